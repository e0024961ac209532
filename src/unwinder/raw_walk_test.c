// SPDX-License-Identifier: Apache-2.0
/*
 * Walks this very process by its own mappings and unwind tables, from registers and a stack copy as
 * the kernel would send them, and compares with what libgcc's unwinder finds.
 */
#include "unwinder/raw_walk.h"
#include "test.h"

#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
	struct sample_raw raw;
	uint8_t stack[RAW_STACK_MAX];
	uint64_t array, frame; /* the innermost of with_arrays(), and where it keeps its caller */
	void *trace[512];
	int nr_trace;
} seen;

enum { ARRAY_PAGES = 5 };

static void get_registers(const ucontext_t *uc, struct sample_raw *raw)
{
#if defined(__x86_64__)
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				     REG_RBP, REG_RSP, REG_R8,	REG_R9,	 REG_R10, REG_R11,
				     REG_R12, REG_R13, REG_R14, REG_R15 };

	for (int i = 0; i < 16; i++)
		raw->regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	raw->pc = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	raw->stack_start = raw->regs[X86_RSP];
#else
	for (int i = 0; i < 31; i++)
		raw->regs[i] = uc->uc_mcontext.regs[i];
	raw->regs[A64_SP] = raw->stack_start = uc->uc_mcontext.sp;
	raw->pc = uc->uc_mcontext.pc;
#endif
}

/* Page by page up to the end of the stack, as copy_stack() in bpf/sample.bpf.c. */
__attribute__((no_sanitize("address", "undefined"))) static void copy_stack(void *top)
{
	uint64_t from = seen.raw.stack_start, left = (uint64_t)top - from;

	seen.raw.stack_size = left < RAW_STACK_MAX ? (uint32_t)left : RAW_STACK_MAX;
	for (uint32_t i = 0; i < seen.raw.stack_size; i++)
		seen.stack[i] = ((const uint8_t *)from)[i];
}

__attribute__((noinline)) static int leaf(void *top)
{
	ucontext_t uc;

	getcontext(&uc);
	get_registers(&uc, &seen.raw);
	copy_stack(top);
	seen.nr_trace = backtrace(seen.trace, 512);
	return seen.nr_trace;
}

__attribute__((noinline)) static int middle(int depth, void *top)
{
	volatile int keep = depth;
	int n = depth ? middle(depth - 1, top) : leaf(top);

	return n + keep - depth;
}

__attribute__((noinline)) static int with_arrays(int n, void *top)
{
	volatile char array[ARRAY_PAGES * RAW_PAGE];

	seen.array = (uint64_t)array;
	seen.frame = (uint64_t)__builtin_frame_address(0);
	array[0] = 0;
	return (n > 1 ? with_arrays(n - 1, top) : middle(3, top)) + array[0];
}

/* In a child, as `check` runs us: its stack has no known top, so read it from /proc. */
static void *stack_top(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &start, &end) == 2)
			break;
	if (f)
		fclose(f);
	return (void *)end;
}

static struct process_table processes;
static struct unwind_store store;
static struct publisher publisher;
static struct process *proc;

static void set_up(void)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };

	ASSERT_OK(process_table_init(&processes));
	ASSERT_OK(unwind_store_init(&store, &no_maps, 16 << 20));
	publisher_init(&publisher, &processes, &store, NULL);
	ASSERT_OK(process_get(&processes, getpid(), &proc));
	ASSERT_OK(publisher_show(&publisher, proc, 1));
}

static void tear_down(void)
{
	process_table_fini(&processes);
	publisher_fini(&publisher);
	unwind_store_fini(&store);
}

static const struct mapping_snapshot *snapshot_of(void)
{
	return ((struct published_process *)proc->user)->snapshot;
}

static int walk_seen(struct walk *walk)
{
	const struct stack_copy copy = { .start = seen.raw.stack_start,
					 .size = seen.raw.stack_size,
					 .bytes = seen.stack };

	return raw_walk(&publisher, snapshot_of(), &seen.raw, &copy, 0, false, 1024, walk);
}

/*
 * The callers that both found are the same, counted from the outermost of a walk of `whole` frames:
 * a sanitizer's backtrace() has a frame of its own in front.
 */
static void assert_same_callers(const struct walk *walk, int whole)
{
	int more = seen.nr_trace - whole;

	ASSERT(more == 0 || more == 1);
	for (int i = 1; i < walk->full.nr_words; i++)
		ASSERT_EQ(FRAME_DATA(walk->words[i]) + 1, (uint64_t)seen.trace[i + more]);
}

TEST(walks_itself_as_libgcc_does)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int stop;

	set_up();
	middle(20, stack_top());
	stop = walk_seen(walk);
	ASSERT_EQ(stop, STOP_COMPLETE);
	ASSERT(walk->full.nr_words > 22);
	assert_same_callers(walk, walk->full.nr_words);
	tear_down();
	free(walk);
}

TEST(a_short_copy_is_told_from_a_corrupt_stack)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	int whole;

	set_up();
	middle(400, stack_top());
	walk_seen(walk);
	whole = walk->full.nr_words;
	/* Up to a page's end, as the kernel copies; the frames go on for two pages more. */
	seen.raw.stack_size = (uint32_t)(((seen.raw.stack_start + 4096 + 4095) & ~4095ull) -
					 seen.raw.stack_start);
	ASSERT_EQ(walk_seen(walk), STOP_STACK_COPY_END);
	ASSERT(walk->full.nr_words >= 2);
	assert_same_callers(walk, whole);
	ASSERT_EQ(raw_walk_reason(&seen.raw, STOP_STACK_COPY_END), STOP_STACK_COPY_END);
	seen.raw.is_short = 1;
	ASSERT_EQ(raw_walk_reason(&seen.raw, STOP_STACK_COPY_END), STOP_NO_PROCESS);
	ASSERT_EQ(raw_walk_reason(&seen.raw, STOP_COMPLETE), STOP_COMPLETE);
	seen.raw.is_short = 0;
	tear_down();
	free(walk);
}

/* Keeps of the copy the pages that do not lie in [start, end), as the kernel would have made it. */
static struct stack_copy without(uint64_t start, uint64_t end)
{
	struct sample_raw *raw = &seen.raw;
	uint64_t addr, page, next;
	struct stack_copy copy;
	uint32_t size = 0;

	raw->nr_pages = 0;
	for (addr = raw->stack_start; addr < raw->stack_start + raw->stack_size; addr = next) {
		page = addr & -(uint64_t)RAW_PAGE;
		next = page + RAW_PAGE;
		if (page < end && next > start)
			continue;
		raw->pages[raw->nr_pages++] =
			(uint16_t)(page / RAW_PAGE - raw->stack_start / RAW_PAGE);
		memmove(seen.stack + size, seen.stack + (addr - raw->stack_start), next - addr);
		size += (uint32_t)(next - addr);
	}
	raw->stack_size = size;
	ASSERT(stack_copy_of_raw(raw, seen.stack, &copy));
	return copy;
}

TEST(a_walk_goes_on_behind_a_hole)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	struct stack_copy copy;
	uint64_t first;

	set_up();
	with_arrays(2, stack_top());
	first = (seen.array + RAW_PAGE) & -(uint64_t)RAW_PAGE;
	copy = without(first, first + (ARRAY_PAGES - 2) * RAW_PAGE);
	ASSERT(copy.nr_pages > 2);
	ASSERT_EQ(raw_walk(&publisher, snapshot_of(), &seen.raw, &copy, 0, false, 1024, walk),
		  STOP_COMPLETE);
	assert_same_callers(walk, walk->full.nr_words);
	tear_down();
	free(walk);
}

/* As the kernel's walker is told: both end alike then (walk_host_test). */
TEST(who_has_looked_tells_the_walker)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	const struct stack_copy copy = { .bytes = seen.stack };

	set_up();
	with_arrays(2, stack_top());
	for (int is_final = 0; is_final < 2; is_final++) {
		raw_walk(&publisher, snapshot_of(), &seen.raw, &copy, 0, is_final, 1024, walk);
		ASSERT_EQ(!!(walk->process.flags & PROCESS_MAPPINGS_FINAL), is_final);
	}
	tear_down();
	free(walk);
}

TEST(what_is_needed_of_a_hole_ends_the_walk)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	struct stack_copy copy;
	int whole;

	set_up();
	with_arrays(2, stack_top());
	ASSERT_EQ(walk_seen(walk), STOP_COMPLETE);
	whole = walk->full.nr_words;
	copy = without(seen.frame, seen.frame + 16);
	ASSERT_EQ(raw_walk(&publisher, snapshot_of(), &seen.raw, &copy, 0, false, 1024, walk),
		  STOP_STACK_UNREADABLE);
	ASSERT(walk->full.nr_words < whole);
	assert_same_callers(walk, whole);
	tear_down();
	free(walk);
}

#if defined(__x86_64__)
/* A thread's first function calls one whose CFA hangs on rax while a helper runs that keeps it. */
void kept_inner(void);
extern const char kept_outer_goes_on[], kept_root_goes_on[];
__asm__(".pushsection .text\n"
	"kept_inner:\n"
	"	.cfi_startproc\n"
	"	nop\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.p2align 6\n" /* the calls are not in the copy of the code around kept_inner */
	"kept_outer:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rax\n"
	"	.cfi_def_cfa_register %rax\n"
	"	sub $0x48, %rsp\n"
	"	call kept_inner\n"
	"kept_outer_goes_on:\n"
	"	mov %rax, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.p2align 6\n"
	"kept_root:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined %rip\n"
	"	call kept_outer\n"
	"kept_root_goes_on:\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	"	.popsection\n");

/* A process that is over, and was like this one. */
static int32_t gone_process(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	ASSERT(pid > 0);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	return pid;
}

TEST(code_that_called_is_known_though_the_process_is_gone)
{
	/* From 128 bytes below the stack pointer to a page's end, as the kernel copies. */
	const uint64_t stack[64] = {
		[16] = (uint64_t)kept_outer_goes_on, [26] = (uint64_t)kept_root_goes_on
	};
	const struct stack_copy copy = { .start = 0x7ff1000 - sizeof(stack),
					 .size = sizeof(stack),
					 .bytes = (const uint8_t *)stack };
	const struct sample_raw raw = {
		.pc = (uint64_t)kept_inner,
		.regs = { [X86_RSP] = copy.start + 16 * sizeof(stack[0]),
			  [X86_RAX] = copy.start + 26 * sizeof(stack[0]) },
	};
	struct walk *walk = calloc(1, sizeof(*walk));
	const int32_t pids[] = { getpid(), gone_process() };

	set_up();
	for (size_t i = 0; i < 2; i++) {
		ASSERT_EQ(raw_walk(&publisher, snapshot_of(), &raw, &copy, pids[i], false, 1024,
				   walk),
			  STOP_COMPLETE);
		ASSERT_EQ(walk->full.nr_words, 3);
		ASSERT_EQ(FRAME_DATA(walk->words[2]) + 1, (uint64_t)kept_root_goes_on);
	}
	/* What is there is no call. */
	seen.raw = raw;
	seen.raw.regs[X86_RAX] += 8;
	ASSERT_EQ(raw_walk(&publisher, snapshot_of(), &seen.raw, &copy, pids[1], false, 1024, walk),
		  STOP_UNKNOWN_REGISTER);
	tear_down();
	free(walk);
}
#endif

TEST(a_copy_that_makes_no_sense_is_refused)
{
	struct stack_copy copy;
	struct sample_raw raw = { .stack_start = 0x7ff0f80,
				  .nr_pages = 3,
				  .pages = { 0, 1, 4 },
				  .stack_size = 0x80 + 2 * RAW_PAGE };
	struct stack_chunk chunk;

	ASSERT(stack_copy_of_raw(&raw, seen.stack, &copy));
	ASSERT(stack_copy_chunk(&copy, 2, &chunk));
	ASSERT_EQ(chunk.addr, 0x7ff4000);
	ASSERT_EQ(chunk.bytes - seen.stack, 0x80 + RAW_PAGE);
	ASSERT(!stack_copy_chunk(&copy, 3, &chunk));
	raw.pages[2] = 1;
	ASSERT(!stack_copy_of_raw(&raw, seen.stack, &copy));
	raw.pages[2] = 4;
	raw.stack_size++;
	ASSERT(!stack_copy_of_raw(&raw, seen.stack, &copy));
	raw.stack_size--;
	raw.nr_pages = RAW_PAGES_MAX + 1;
	ASSERT(!stack_copy_of_raw(&raw, seen.stack, &copy));
	/* Nothing of the first page: the others are whole. */
	raw = (struct sample_raw){
		.stack_start = 0x7ff0f80, .nr_pages = 1, .pages = { 1 }, .stack_size = RAW_PAGE
	};
	ASSERT(stack_copy_of_raw(&raw, seen.stack, &copy));
	ASSERT(stack_copy_chunk(&copy, 0, &chunk));
	ASSERT_EQ(chunk.addr, 0x7ff1000);
	ASSERT_EQ(chunk.bytes - seen.stack, 0);
}

TEST(what_had_no_room_in_the_copy_is_told_from_what_is_not_there)
{
	struct sample_raw raw = { .stack_start = 0x7ff0000,
				  .nr_pages = RAW_PAGES_NEAR + 2,
				  .stack_size = (RAW_PAGES_NEAR + 2) * RAW_PAGE };
	struct copied_memory copied = { 0 };
	uint64_t word;
	uint32_t i;

	for (i = 0; i < raw.nr_pages; i++)
		raw.pages[i] = (uint16_t)(i < RAW_PAGES_NEAR ? 2 * i : 100 + 2 * i);
	ASSERT(stack_copy_of_raw(&raw, seen.stack, &copied.stack));
	/* A hole of the near part, and of the end's. */
	ASSERT(copied_memory_read(&copied, raw.stack_start + RAW_PAGE, &word, 8));
	i = raw.pages[RAW_PAGES_NEAR] + 1;
	ASSERT(copied_memory_read(&copied, raw.stack_start + i * RAW_PAGE, &word, 8));
	ASSERT_EQ(copied_memory_stop(&copied, STOP_STACK_UNREADABLE), STOP_STACK_UNREADABLE);
	/* Between both, and behind. */
	ASSERT(copied_memory_read(&copied, raw.stack_start + 50 * RAW_PAGE, &word, 8));
	ASSERT_EQ(copied_memory_stop(&copied, STOP_STACK_UNREADABLE), STOP_STACK_COPY_END);
	copied.past_copy = false;
	ASSERT(copied_memory_read(&copied, raw.stack_start + 150 * RAW_PAGE, &word, 8));
	ASSERT(copied.past_copy);
}

/* Go calls its runtime on the thread's stack, and goes back to the goroutine's. */
TEST(another_stack_than_the_copied_one_is_told_from_what_is_not_there)
{
	const uint64_t goroutine = 0xc000104fc0;
	struct sample_raw raw = { .stack_start = 0x7ff0000,
				  .nr_pages = 2,
				  .pages = { 0, 2 },
				  .stack_size = 2 * RAW_PAGE };
	struct copied_memory copied = { 0 };
	uint64_t word;

	ASSERT(stack_copy_of_raw(&raw, seen.stack, &copied.stack));
	ASSERT(copied_memory_read_stack(&copied, goroutine, &word, 8));
	ASSERT_EQ(copied_memory_stop(&copied, STOP_STACK_UNREADABLE), STOP_STACK_COPY_END);
	ASSERT_EQ(copied_memory_stop(&copied, STOP_FRAME_POINTER), STOP_FRAME_POINTER);
	ASSERT(copied_memory_read_stack(&copied, raw.stack_start - 8, &word, 8));
	ASSERT_EQ(copied_memory_stop(&copied, STOP_STACK_UNREADABLE), STOP_STACK_COPY_END);
	/* What ended the walk is a hole of this one. */
	ASSERT(copied_memory_read_stack(&copied, raw.stack_start + RAW_PAGE, &word, 8));
	ASSERT_EQ(copied_memory_stop(&copied, STOP_STACK_UNREADABLE), STOP_STACK_UNREADABLE);
}

TEST(tables_are_loaded_as_the_walk_meets_their_files)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	size_t before;

	set_up();
	middle(3, stack_top());
	before = store.tables.nr;
	ASSERT_EQ(before, 0);
	walk_seen(walk);
	ASSERT(store.tables.nr >= 2);
	tear_down();
	free(walk);
}

TEST(a_table_that_was_begun_is_loaded_when_it_is_needed)
{
	const struct unwind_mapping *m;
	const struct mapping_snapshot *b;
	uint32_t nr_begun = 0;

	set_up();
	b = snapshot_of();
	m = publisher_mappings(&publisher, b);
	for (uint32_t i = 0; i < b->nr; i++) {
		if (m[i].file == MAPPING_ANON)
			continue;
		publisher_begin_table(&publisher, m[i].file);
		nr_begun += loader_is_ahead(&publisher.loader, m[i].file);
	}
	ASSERT(nr_begun);
	ASSERT_EQ(store.tables.nr, 0);
	for (uint32_t i = 0; i < b->nr; i++)
		if (loader_is_ahead(&publisher.loader, m[i].file))
			ASSERT_EQ(publisher_load(&publisher, b, m[i].file), FILE_STATE_LOADED);
	ASSERT(!loader_is_busy(&publisher.loader));
	ASSERT(store.tables.nr >= nr_begun);
	tear_down();
}

static int build_folder(void *ctx)
{
	const char *root = getenv("SONDE_BUILD_ROOT");

	(void)ctx;
	return open(root ? root : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static uint32_t nr_spilled(void)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < publisher.files.nr; i++)
		nr += publisher_has_spilled(&publisher, i);
	return nr;
}

TEST(where_no_table_has_room_walks_are_whole_all_the_same)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	uint32_t first;

	set_up();
	middle(20, stack_top());
	arena_set_max(&store.arena, 0);
	for (uint32_t nr = ARENA_SEGMENT_CELLS; nr; nr /= 2)
		while (!arena_alloc(&store.arena, nr, false, &first))
			;
	ASSERT_EQ(walk_seen(walk), STOP_TABLE_EVICTED);
	publisher.spill_folder = build_folder;
	publisher_tick(&publisher, now_ns(), 0);
	ASSERT(nr_spilled() >= 1);
	ASSERT_EQ(walk_seen(walk), STOP_COMPLETE);
	ASSERT_EQ(store.tables.nr, 0);
	ASSERT(nr_spilled() >= 2);
	assert_same_callers(walk, walk->full.nr_words);
	/* Its user has had his part of the time: his stacks are cut. */
	publisher_read_spilled(&publisher, snapshot_of(), 10000000000);
	ASSERT_EQ(walk_seen(walk), STOP_TABLE_EVICTED);
	close(publisher.spill.folder);
	tear_down();
	free(walk);
}

TEST(a_new_snapshot_has_a_new_generation_and_old_ones_stay_for_a_while)
{
	struct mapping more = { .start = 0x10000, .end = 0x11000, .file = MAPPING_ANON };
	uint32_t old;

	set_up();
	old = snapshot_of()->generation;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT_EQ(snapshot_of()->generation, old);
	/* What a side band event would do. */
	ASSERT(proc->mappings.nr > 0);
	proc->mappings.items[0].start = more.start;
	proc->version++;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT(snapshot_of()->generation > old);
	ASSERT_PTR_NONNULL(publisher_snapshot(&publisher, old));
	publisher_tick(&publisher, RETIRE_NS - 1, RETIRE_NS - 1);
	ASSERT_PTR_NONNULL(publisher_snapshot(&publisher, old));
	/* A turn takes long: what waits since before it may be of that snapshot. */
	publisher_tick(&publisher, 2 * RETIRE_NS, RETIRE_NS - 1);
	ASSERT_PTR_NONNULL(publisher_snapshot(&publisher, old));
	publisher_tick(&publisher, 2 * RETIRE_NS, 2 * RETIRE_NS);
	ASSERT_PTR_NULL(publisher_snapshot(&publisher, old));
	ASSERT_PTR_NONNULL(publisher_snapshot(&publisher, snapshot_of()->generation));
	tear_down();
}

TEST(what_is_retired_between_two_ticks_was_not_at_the_first)
{
	uint64_t begin = now_ns();

	set_up();
	proc->version++;
	/* The kernel reads it: never touched here, since there is room for the new snapshot. */
	publisher.store->maps.arena_fd = 0;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	publisher.store->maps.arena_fd = -1;
	ASSERT_EQ(publisher.retired.nr, 1);
	ASSERT(publisher.retired.items[0]->retired_ns >= begin);
	tear_down();
}

TEST(generations_come_round)
{
	uint32_t old;

	set_up();
	old = snapshot_of()->generation;
	publisher.last_generation = UINT32_MAX;
	proc->version++;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT(snapshot_of()->generation);
	ASSERT(snapshot_of()->generation != old);
	ASSERT_EQ(publisher_snapshot(&publisher, old)->generation, old);
	publisher.last_generation = snapshot_of()->generation - 1;
	old = snapshot_of()->generation;
	proc->version++;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT(snapshot_of()->generation != old);
	tear_down();
}
