// SPDX-License-Identifier: Apache-2.0
/*
 * Walks out of code that CPython's JIT has made (python_jit.bpf.h), over made-up stacks: a trace,
 * entered by a loop, which keeps a frame pointer or not; x86-64.
 */
#include "bpf/host/walk_host.h"
#include "runtime/python/python_abi.h"

#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	CODE = 0x400000,
	CALL = CODE + 0x40, /* in the loop: call *%rax */
	END = CODE + 0x100, /* the first frame */
	TRACE = 0x500000,
	STACK = 0x700000,
	SIZE = 0x2000, /* of these two */
	LARGE = 0x10000000,
	BEHIND = 0x17, /* in the shim: where the trace returns to */
	LOOP_SP = STACK + 0x800,
	LOOP_FRAME = 0x2d0,
	LOOP_FP = LOOP_SP + LOOP_FRAME,
	LOOP_ENTERED = LOOP_SP - 8 - 40 - 8, /* that address lies there */
	RECORD_CELL = 8192,
	RULES = 16,
};

static const uint8_t shim[] = {
	0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x53,	    /* push */
	0x49, 0x89, 0xfc, 0x49, 0x89, 0xf5, 0x49, 0x89, 0xd6,	    /* mov */
	0xe8, 0x0a, 0,	  0,	0,    0x5b, 0x41, 0x5c, 0x41, 0x5d, /* call, pop */
	0x41, 0x5e, 0x41, 0x5f, 0xc3,
};

static struct {
	struct unwind_file files[2];
	struct unwind_rule rules[RULES];
	struct arena_segment *segment;
	uint8_t code[0x200], trace[SIZE], stack[SIZE];
	struct python_record record;
	__u64 regs[UNWIND_REGS_MAX];
	uint64_t pc;
	uint8_t *large_stack; /* at LARGE */
	size_t large_size;
	uint32_t max_frames, nr_reads; /* but for those of the stack */
	struct walk walk;
} t;

static bool is_in(uint64_t addr, size_t size, uint64_t start, size_t room)
{
	return addr >= start && size <= room && addr - start <= room - size;
}

static uint8_t *memory_at(uint64_t addr, size_t size)
{
	if (is_in(addr, size, CODE, sizeof(t.code)))
		return t.code + (addr - CODE);
	if (is_in(addr, size, TRACE, SIZE))
		return t.trace + (addr - TRACE);
	if (is_in(addr, size, LARGE, t.large_size))
		return t.large_stack + (addr - LARGE);
	return is_in(addr, size, STACK, SIZE) ? t.stack + (addr - STACK) : NULL;
}

static int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	const uint8_t *from = memory_at(addr, size);

	(void)ctx;
	t.nr_reads += addr < STACK;
	if (!from)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(memory_at(addr, 8), &value, 8);
}

/* The loop has called the shim, which has called the trace. */
static void set_up(bool frame_pointer)
{
	struct unwind_mapping *m;

	free(t.segment);
	memset(&t, 0, sizeof(t));
	t.segment = calloc(1, sizeof(*t.segment));
	ASSERT(t.segment);
	m = (struct unwind_mapping *)t.segment->cells;
	m[0] = (struct unwind_mapping){ CODE, CODE + 0x200, CODE, 1, 0 };
	m[1] = (struct unwind_mapping){ TRACE, TRACE + SIZE, 0, MAPPING_ANON, RUNTIME_PYTHON };
	t.files[1] = (struct unwind_file){
		.nr_buckets = 2, .buckets = 1024, .rows = 2048, .state = FILE_STATE_LOADED
	};
	t.rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	t.rules[RULE_RUNTIMES + RUNTIME_PYTHON] =
		(struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = RUNTIME_PYTHON };
	t.rules[8] = (struct unwind_rule){
		.cfa = CFA_REG,
		.cfa_reg = frame_pointer ? X86_RBP : X86_RSP,
		.cfa_off = frame_pointer ? 16 : LOOP_FRAME + 16,
		.ra_off = -1,
	};
	for (unsigned int i = 0; i < UNWIND_SLOTS; i++)
		t.rules[8].slot_off[i] = SLOT_SAME;
	t.rules[9] = (struct unwind_rule){ .cfa = CFA_END };
	for (unsigned int i = 0; i < 2; i++) {
		t.segment->cells[1024 + i] = BUCKET(i, 1);
		t.segment->cells[2048 + i] = ROW(0, 8 + i);
	}
	memcpy(memory_at(TRACE, sizeof(shim)), shim, sizeof(shim));
	memcpy(memory_at(CALL, 2), "\xff\xd0", 2);
	t.record.flags = PYTHON_JIT;
	t.record.loop_frame = frame_pointer ? LOOP_FRAME : 0;
	put(LOOP_FP + 8, END + 0x11);
	put(LOOP_SP - 8, CALL + 2);
	for (unsigned int i = 0; i < 5; i++)
		put(LOOP_SP - 16 - 8 * i, 0x1000 + 15 - i);
	put(LOOP_ENTERED, TRACE + BEHIND);
	t.pc = TRACE + 0x1100;
	t.regs[X86_RSP] = LOOP_ENTERED;
	t.regs[X86_RBP] = LOOP_FP;
}

static int walk(void)
{
	struct runtime_record *header = (struct runtime_record *)&t.segment->cells[RECORD_CELL];
	const struct walk_memory memory = { .read = read_test };
	struct arena_segment *const segments[] = { t.segment };
	const struct walk_tables tables = { t.files, 2, t.rules, RULES, segments, 1 };
	struct walk_input input = {
		.machine = EM_X86_64,
		.pc = t.pc,
		.regs = t.regs,
		.process = { .generation = 7, .nr_mappings = 2, .runtimes = RECORD_CELL },
		.max_frames = t.max_frames ?: 100,
	};

	*header = (struct runtime_record){ .runtime = RUNTIME_PYTHON, .size = sizeof(t.record) };
	memcpy(header + 1, &t.record, sizeof(t.record));
	return walk_host(&tables, &memory, &input, &t.walk);
}

static void expect_loop(void)
{
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 2);
	ASSERT_EQ(FRAME_DATA(t.walk.words[0]), CALL + 1);
	ASSERT_EQ(FRAME_DATA(t.walk.words[1]), END + 0x10);
}

TEST(a_trace_is_left_for_the_loop_that_entered_it)
{
	for (unsigned int i = 0; i < 2; i++) {
		set_up(i);
		expect_loop();
		ASSERT_EQ(t.walk.regs[X86_R15], 0x1000 + 15);
		ASSERT_EQ(t.walk.regs[X86_R12], 0x1000 + 12);
		/* It has a frame of its own, and uses the frame pointer for something else. */
		t.regs[X86_RSP] = LOOP_ENTERED - 0x40;
		t.regs[X86_RBP] = 0x123456789;
		put(LOOP_ENTERED - 8, LOOP_FP);
		put(LOOP_ENTERED - 0x38, TRACE + 0x17 + 8);
		expect_loop();
	}
}

TEST(a_shim_is_left_from_each_of_its_instructions)
{
	static const struct {
		uint8_t at, saved;
	} rows[] = { { 0, 0 },	  { 2, 1 },    { 4, 2 },    { 6, 3 },	 { 8, 4 },
		     { 9, 5 },	  { 12, 5 },   { 0x12, 5 }, { 0x17, 5 }, { 0x18, 4 },
		     { 0x1a, 3 }, { 0x1c, 2 }, { 0x1e, 1 }, { 0x20, 0 } };

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		set_up(i & 1);
		for (unsigned int reg = X86_R12; reg <= X86_R15; reg++)
			t.regs[reg] = 0x1000 + reg;
		t.pc = TRACE + rows[i / 2].at;
		t.regs[X86_RSP] = LOOP_SP - 8 - 8 * rows[i / 2].saved;
		/* What was saved is the caller's, what wasn't is still, or again, in its register.
		 */
		for (unsigned int k = 0; k < 4 && k < rows[i / 2].saved; k++)
			t.regs[X86_R15 - k] = 0;
		expect_loop();
		for (unsigned int reg = X86_R12; reg <= X86_R15; reg++)
			ASSERT_EQ(t.walk.regs[reg], 0x1000 + reg);
	}
}

TEST(a_frame_pointer_that_is_not_the_loops_ends_the_walk)
{
	set_up(true);
	t.regs[X86_RBP] = LOOP_FP + 0x40;
	ASSERT_EQ(walk(), STOP_UNKNOWN_REGISTER);
	ASSERT_EQ(t.walk.full.nr_words, 1);
}

TEST(what_did_not_call_the_shim_is_not_shown)
{
	set_up(false);
	memcpy(memory_at(CALL, 2), "\x90\x90", 2);
	ASSERT_EQ(walk(), STOP_FRAME_POINTER);
	ASSERT_EQ(t.walk.full.nr_words, 0);
}

/* It has a frame pointer of its own, and calls nothing. */
TEST(other_code_in_anonymous_memory_is_walked_by_its_frame_pointer)
{
	set_up(true);
	memset(memory_at(TRACE, sizeof(shim)), 0x90, sizeof(shim));
	t.regs[X86_RSP] = LOOP_SP - 0x40;
	t.regs[X86_RBP] = LOOP_SP - 0x20;
	put(LOOP_SP - 0x20, LOOP_FP);
	put(LOOP_SP - 0x18, CALL + 2);
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 3);
	ASSERT_EQ(FRAME_DATA(t.walk.words[0]), TRACE + 0x1100);
	ASSERT_EQ(FRAME_DATA(t.walk.words[1]), CALL + 1);
}

/*
 * All words of the stack lead to pages where no shim begins, but for one of each JIT_WORDS; nothing
 * is shown of a trace, and each goes on in another one, by way of a call in the loop's code.
 */
TEST(words_that_may_be_shims_cut_the_stack)
{
	enum { WORDS = 48, SHIM = 40, ROUNDS = 8000, PAGES = TRACE + SIZE - 0x1000 };
	static uint8_t stack[8 * WORDS * (ROUNDS + 1)];

	set_up(false);
	t.large_stack = stack;
	t.large_size = sizeof(stack);
	t.rules[8].cfa_off = 8;
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t at = LARGE + 8 * WORDS * i;

		for (uint64_t word = 0; word < WORDS; word++)
			put(at + 8 * word, PAGES + BEHIND);
		put(at + 8 * SHIM, TRACE + BEHIND);
		put(at + 8 * (SHIM + 6), CALL + 2);
		put(at + 8 * (SHIM + 7), TRACE + 0x1101);
	}
	t.max_frames = SAMPLE_FRAMES_MAX;
	t.regs[X86_RSP] = LARGE;
	ASSERT_EQ(walk(), STOP_TOO_MUCH_WORK);
	ASSERT(t.nr_reads < 3 * WALK_WORK_MAX);
}
