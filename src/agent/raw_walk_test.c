// SPDX-License-Identifier: Apache-2.0
/*
 * Walks this very process by its own mappings and unwind tables, from registers and a stack copy as
 * the kernel would send them, and compares with what libgcc's unwinder finds.
 */
#include "agent/raw_walk.h"
#include "test.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ucontext.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
	struct sample_raw raw;
	uint8_t stack[RAW_STACK_MAX];
	void *trace[512];
	int nr_trace;
} seen;

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

static const struct block *block_of(void)
{
	return ((struct view *)proc->user)->block;
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
	stop = raw_walk(&publisher, block_of(), &seen.raw, seen.stack, 0, 1024, walk);
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
	middle(200, stack_top());
	raw_walk(&publisher, block_of(), &seen.raw, seen.stack, 0, 1024, walk);
	whole = walk->full.nr_words;
	/* Up to a page's end, as the kernel copies; the frames go on for two pages more. */
	seen.raw.stack_size = (uint32_t)(((seen.raw.stack_start + 4096 + 4095) & ~4095ull) -
					 seen.raw.stack_start);
	ASSERT_EQ(raw_walk(&publisher, block_of(), &seen.raw, seen.stack, 0, 1024, walk),
		  STOP_STACK_COPY_END);
	ASSERT(walk->full.nr_words >= 2);
	assert_same_callers(walk, whole);
	tear_down();
	free(walk);
}

TEST(tables_are_loaded_as_the_walk_meets_their_files)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	size_t before;

	set_up();
	middle(3, stack_top());
	before = store.tables.nr;
	ASSERT_EQ(before, 0);
	raw_walk(&publisher, block_of(), &seen.raw, seen.stack, 0, 1024, walk);
	ASSERT(store.tables.nr >= 2);
	tear_down();
	free(walk);
}

TEST(a_new_view_has_a_new_generation_and_old_blocks_stay_for_a_while)
{
	struct mapping more = { .start = 0x10000, .end = 0x11000, .file = MAPPING_ANON };
	uint32_t old;

	set_up();
	old = block_of()->generation;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT_EQ(block_of()->generation, old);
	/* What a side band event would do. */
	ASSERT(proc->mappings.nr > 0);
	proc->mappings.items[0].start = more.start;
	proc->version++;
	ASSERT_OK(publisher_show(&publisher, proc, 0));
	ASSERT(block_of()->generation > old);
	ASSERT_PTR_NONNULL(publisher_block(&publisher, old));
	publisher_tick(&publisher, RETIRE_NS - 1);
	ASSERT_PTR_NONNULL(publisher_block(&publisher, old));
	publisher_tick(&publisher, 2 * RETIRE_NS);
	ASSERT_PTR_NULL(publisher_block(&publisher, old));
	ASSERT_PTR_NONNULL(publisher_block(&publisher, block_of()->generation));
	tear_down();
}
