// SPDX-License-Identifier: Apache-2.0
/*
 * The step over made-up processes, one of each family of versions: what is shown, in which order
 * between native frames, and what is said where things don't fit. Both architectures.
 *
 * The native stack, innermost first: leaf (a C function), loop, glue, loop, end (the first frame).
 */
#include "bpf/host/walk_host.h"
#include "runtime/python/python_async.h"
#include "runtime/python/python_debug_fixture.h"
#include "runtime/python/python_offsets.h"

#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	CODE = 0x400000,
	LEAF = CODE + 0x100,
	LOOP = CODE + 0x200,
	GLUE = CODE + 0x300,
	END = CODE + 0x400,
	TRAMPOLINE = 0x500000,
	STACK = 0x700000,
	HEAP = 0x800000,
	SIZE = 0x10000, /* of each of these */
	/* On the stack; a loop's frame is [its sp, + LOOP_SIZE). */
	LEAF_SP = STACK + 0x1000,
	LEAF_SIZE = 0x40,
	LOOP_SIZE = 0x200,
	GLUE_SIZE = 0x40,
	INNER = LEAF_SP + LEAF_SIZE,
	GLUE_SP = INNER + LOOP_SIZE,
	OUTER = GLUE_SP + GLUE_SIZE,
	END_SP = OUTER + LOOP_SIZE,
	/* On the heap. */
	HEAD = HEAP,
	INTERP = HEAP + 0x100,
	OTHER_INTERP = HEAP + 0x2200,
	THIRD_INTERP = HEAP + 0xd800,
	TSTATE = HEAP + 0x4400,
	THIRD_TSTATE = HEAP + 0x4600,
	OTHER_TSTATE = HEAP + 0x4800,
	ROOT_CFRAME = HEAP + 0x4c00,
	CODE_TYPE = HEAP + 0x4d00,
	NONE = HEAP + 0x4e00,
	CODES = HEAP + 0x5000, /* 0x200 each */
	FRAMES = HEAP + 0x8000,
	TEXTS = HEAP + 0xa000,
	THREAD = HEAP + 0xc000, /* the thread pointer */
	RECORD_CELL = 8192,
	FIRST_RULE = 8, /* of the buckets */
	RULES = 16,
};

static struct {
	uint16_t machine;
	struct unwind_file files[2];
	struct unwind_rule rules[RULES];
	struct arena_segment *segment;
	uint8_t stack[SIZE], heap[SIZE], code[SIZE];
	struct python_record record;
	struct python_layout layout;
	uint64_t tp;
	bool late, no_record;
	unsigned int nr_reads; /* of the heap */
	uint64_t pc, sp;
	struct walk walk;
} t;

static uint8_t *memory_at(uint64_t addr, size_t size)
{
	const struct {
		uint64_t start;
		uint8_t *bytes;
	} areas[] = { { STACK, t.stack }, { HEAP, t.heap }, { TRAMPOLINE, t.code } };

	for (size_t i = 0; i < 3; i++)
		if (addr >= areas[i].start && addr < areas[i].start + SIZE &&
		    size <= areas[i].start + SIZE - addr)
			return areas[i].bytes + (addr - areas[i].start);
	return NULL;
}

static int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	const uint8_t *from = memory_at(addr, size);

	(void)ctx;
	t.nr_reads += addr >= HEAP && addr < HEAP + SIZE;
	if (!from)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static int read_target(void *ctx, uint64_t addr, void *to, size_t size)
{
	return read_test(ctx, addr, to, (__u32)size);
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(memory_at(addr, 8), &value, 8);
}

static void put_32(uint64_t addr, uint32_t value)
{
	memcpy(memory_at(addr, 4), &value, 4);
}

/* --- the process ----------------------------------------------------------------------------- */

static void put_rule(uint32_t bucket, uint32_t size, bool loop)
{
	bool arm = t.machine == EM_AARCH64;

	t.rules[FIRST_RULE + bucket] = (struct unwind_rule){ .cfa = CFA_REG,
							     .cfa_reg = arm ? A64_SP : X86_RSP,
							     .cfa_off = (int32_t)size,
							     .ra_off = -1 };
	if (loop)
		t.rules[FIRST_RULE + bucket].ra |= RUNTIME_PYTHON << RULE_RUNTIME_SHIFT;
	t.segment->cells[1024 + bucket] = BUCKET(bucket, 1);
	t.segment->cells[2048 + bucket] = ROW(0, FIRST_RULE + bucket);
}

static void set_up_native(void)
{
	struct unwind_mapping *m = (struct unwind_mapping *)t.segment->cells;

	m[0] = (struct unwind_mapping){ CODE, CODE + 0x500, CODE, 1, 0 };
	m[1] = (struct unwind_mapping){ TRAMPOLINE, TRAMPOLINE + SIZE, 0, MAPPING_ANON,
					RUNTIME_PYTHON };
	t.files[1] = (struct unwind_file){
		.nr_buckets = 5, .buckets = 1024, .rows = 2048, .state = FILE_STATE_LOADED
	};
	t.rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	for (uint32_t id = 0; id < 4; id++)
		t.rules[RULE_RUNTIMES + id] =
			(struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = (int32_t)id };
	put_rule(0, 0, false);
	put_rule(1, LEAF_SIZE, false);
	put_rule(2, LOOP_SIZE, true);
	put_rule(3, GLUE_SIZE, false);
	put_rule(4, 0, false);
	t.rules[FIRST_RULE + 4] = (struct unwind_rule){ .cfa = CFA_END };
	put(INNER - 8, LOOP + 0x11);
	put(GLUE_SP - 8, GLUE + 0x11);
	put(OUTER - 8, LOOP + 0x21);
	put(END_SP - 8, END + 0x11);
	t.pc = LEAF + 5;
	t.sp = LEAF_SP;
}

static void put_text(uint64_t addr, const char *text)
{
	const struct python_record *r = &t.record;

	unsigned int shift = t.layout.free_threaded ? 8 : r->minor >= 14 ? 16 : 2;

	put(addr + r->str_length, strlen(text));
	put_32(addr + r->str_state, (1u | PYTHON_STR_COMPACT | PYTHON_STR_ASCII) << shift);
	memcpy(memory_at(addr + r->str_ascii, strlen(text)), text, strlen(text));
}

#define CODE_OF(n)  (CODES + 0x200ull * (n))
#define FRAME_OF(n) (FRAMES + 0x200ull * (n))
#define NAME_OF(n)  (TEXTS + 0x100ull * (n))

static void put_code(unsigned int n)
{
	const struct python_record *r = &t.record;
	char text[16];

	put(CODE_OF(n) + r->co_type, CODE_TYPE);
	put(CODE_OF(n) + r->co_filename, TEXTS + 0x1f00);
	put(CODE_OF(n) + r->co_name, NAME_OF(n));
	put(CODE_OF(n) + r->co_linetable, TEXTS + 0x1e00);
	put_32(CODE_OF(n) + r->co_firstlineno, 10 + n);
	if (r->co_version)
		put_32(CODE_OF(n) + r->co_version, 1000 + n);
	if (r->co_firsttraceable)
		put_32(CODE_OF(n) + r->co_firsttraceable, 2);
	snprintf(text, sizeof(text), "function_%u", n);
	put_text(NAME_OF(n), text);
}

/* Where it is in its code: 2 * n + 20 bytes. */
static uint64_t instr_of(unsigned int n)
{
	if (t.record.flags & PYTHON_INSTR_PTR)
		return CODE_OF(n) + t.record.co_code + 2 * n + 20;
	return t.record.flags & PYTHON_LASTI_IN_UNITS ? n + 10 : 2 * n + 20;
}

static void put_frame(uint64_t at, unsigned int n, uint64_t previous)
{
	const struct python_record *r = &t.record;

	put(at + r->f_previous, previous);
	put(at + r->f_code, CODE_OF(n) | (r->minor >= 14 ? 1 : 0));
	put(at + r->f_instr, instr_of(n));
	if (r->frames == PYTHON_FRAME_OBJECTS)
		*memory_at(at + r->f_owner, 1) = 1;
}

static void put_entry(uint64_t at, uint64_t previous)
{
	put(at + t.record.f_previous, previous);
	put(at + t.record.f_code, NONE);
	*memory_at(at + t.record.f_owner, 1) = t.record.owner_entry;
}

static void put_cframe(uint64_t at, uint64_t current, uint64_t previous)
{
	put(at + t.record.cframe_current, current);
	put(at + t.record.cframe_previous, previous);
}

enum { IN_LOOP = 0x80 }; /* where a loop keeps its struct */

/*
 * The inner loop runs function 0, called by 1 (but up to 3.10: a loop each, 0 only), the outer one
 * runs 2. What tstate leads to.
 */
static void put_chain(void)
{
	const struct python_record *r = &t.record;
	bool objects = r->frames <= PYTHON_FRAME_OBJECTS_CFRAME;

	for (unsigned int n = 0; n < 4; n++)
		put_code(n);
	put_text(TEXTS + 0x1f00, "/some/where/file.py");
	if (objects) {
		put_frame(FRAME_OF(0), 0, FRAME_OF(2));
		put_frame(FRAME_OF(2), 2, 0);
	} else if (r->f_entry) {
		put_frame(FRAME_OF(0), 0, FRAME_OF(1));
		put_frame(FRAME_OF(1), 1, FRAME_OF(2));
		put_frame(FRAME_OF(2), 2, 0);
		*memory_at(FRAME_OF(1) + r->f_entry, 1) = 1;
		*memory_at(FRAME_OF(2) + r->f_entry, 1) = 1;
	} else {
		put_frame(FRAME_OF(0), 0, FRAME_OF(1));
		put_frame(FRAME_OF(1), 1, INNER + IN_LOOP + 0x40);
		put_entry(INNER + IN_LOOP + 0x40, FRAME_OF(2));
		put_frame(FRAME_OF(2), 2, OUTER + IN_LOOP + 0x40);
		put_entry(OUTER + IN_LOOP + 0x40, 0);
	}
	put(TSTATE + r->ts_frame, FRAME_OF(0));
	if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME || r->frames == PYTHON_CFRAME) {
		put_cframe(INNER + IN_LOOP, FRAME_OF(0), OUTER + IN_LOOP);
		put_cframe(OUTER + IN_LOOP, FRAME_OF(2), ROOT_CFRAME);
		put_cframe(ROOT_CFRAME, 0, 0);
		put(TSTATE + r->ts_frame, INNER + IN_LOOP);
		if (objects)
			put(TSTATE + r->ts_frame_object, FRAME_OF(0));
	}
}

static void put_thread(uint64_t tstate, uint64_t interp, uint64_t thread_id)
{
	const struct python_record *r = &t.record;

	put(interp + r->interp_threads, tstate);
	put(tstate + r->ts_interp, interp);
	put(tstate + r->ts_thread_id, thread_id);
}

static void set_up(unsigned int minor, bool free_threaded, uint16_t machine)
{
	uint64_t words[PYTHON_DEBUG_OFFSETS_SIZE / 8] = { 0 };
	struct arena_segment *segment = t.segment ? t.segment : malloc(sizeof(*segment));

	memset(&t, 0, sizeof(t));
	memset(segment, 0, sizeof(*segment));
	t.segment = segment;
	t.machine = machine;
	if (minor <= 12)
		ASSERT_OK(python_offsets_of(minor, &t.record, &t.layout));
	for (int i = 0; i < NR_DEBUG_FIXTURES && minor > 12; i++) {
		if (debug_fixtures[i].minor != minor ||
		    debug_fixtures[i].free_threaded != free_threaded)
			continue;
		memcpy(words, PYTHON_DEBUG_COOKIE, 8);
		memcpy(words + 1, debug_fixtures[i].words, sizeof(debug_fixtures[i].words));
		ASSERT_OK(python_offsets_parse(words, sizeof(words), &t.record, &t.layout));
	}
	ASSERT_EQ(t.record.minor, minor);
	t.record.interpreters = HEAD;
	t.record.code_type = CODE_TYPE;
	t.record.tls_2 = -1;
	if (machine == EM_AARCH64)
		t.record.flags |= PYTHON_STACK_BELOW;
	t.tp = THREAD;
	set_up_native();
	put(HEAD, INTERP);
	put_thread(TSTATE, INTERP, machine == EM_AARCH64 ? THREAD - 0x700 : THREAD);
	put_chain();
}

static int walk(void)
{
	struct runtime_record *header = (struct runtime_record *)&t.segment->cells[RECORD_CELL];
	const struct walk_memory memory = { .read = read_test, .ctx = NULL };
	struct arena_segment *const segments[] = { t.segment };
	const struct walk_tables tables = { t.files, 2, t.rules, RULES, segments, 1 };
	uint64_t regs[UNWIND_REGS_MAX] = { 0 };
	__u64 wide[UNWIND_REGS_MAX];
	struct walk_input input = {
		.machine = t.machine,
		.pc = t.pc,
		.regs = wide,
		.process = { .generation = 7,
			     .nr_mappings = 2,
			     .runtimes = t.no_record ? 0 : RECORD_CELL },
		.max_frames = 100,
		.thread_pointer = t.tp,
		.late = t.late,
	};

	*header = (struct runtime_record){ .runtime = RUNTIME_PYTHON, .size = sizeof(t.record) };
	memcpy(header + 1, &t.record, sizeof(t.record));
	regs[t.machine == EM_AARCH64 ? A64_SP : X86_RSP] = t.sp;
	memcpy(wide, regs, sizeof(wide));
	return walk_host(&tables, &memory, &input, &t.walk);
}

/* --- what is expected: "L" leaf, "O" loop, "G" glue, "E" end, "0" to "9" functions, "!N" a note --
 */

static void check(const char *want)
{
	char got[256] = "";
	size_t len = 0;
	int how = walk();

	for (uint32_t i = 0; i < t.walk.full.nr_words; i += 1 + FRAME_EXTRA(t.walk.words[i])) {
		uint64_t word = t.walk.words[i], data = FRAME_DATA(word);

		ASSERT(len < sizeof(got) - 8);
		if (FRAME_RUNTIME(word) == RUNTIME_NATIVE) {
			got[len++] = " LOGE"[data >> 8 & 7];
		} else if (!FRAME_EXTRA(word)) {
			got[len++] = '!';
			got[len++] = (char)('0' + data);
		} else {
			unsigned int n = (unsigned int)((data - CODES) / 0x200);
			struct runtime_target target = { .memory = { .read = read_target } };
			uint32_t cookie;

			ASSERT_EQ(data, CODE_OF(n));
			ASSERT_OK(python_read_cookie(&target, &t.record, data, &cookie));
			ASSERT_EQ(PYTHON_COOKIE(t.walk.words[i + 1]), cookie);
			ASSERT_EQ(PYTHON_LASTI(t.walk.words[i + 1]), 2 * n + 20);
			got[len++] = (char)('0' + n);
		}
	}
	if (strcmp(got, want) != 0)
		FAIL("3.%u%s: %s, not %s", t.record.minor, t.layout.free_threaded ? "t" : "", got,
		     want);
	ASSERT_EQ(how, STOP_COMPLETE);
}

typedef void version_fn(void);

static void each_version(version_fn *test)
{
	for (unsigned int i = 0; i < 2; i++) {
		uint16_t machine = i ? EM_AARCH64 : EM_X86_64;

		for (unsigned int minor = 6; minor <= 15; minor++) {
			set_up(minor, false, machine);
			test();
		}
		for (unsigned int minor = 14; minor <= 15; minor++) {
			set_up(minor, true, machine);
			test();
		}
	}
}

#define TEST_EACH(name, scenario)                                                                  \
	TEST(name)                                                                                 \
	{                                                                                          \
		each_version(scenario);                                                            \
	}

static bool objects(void)
{
	return t.record.frames <= PYTHON_FRAME_OBJECTS_CFRAME;
}

/* Of the inner loop's frames one is missing: in 3.11 and 3.12 the outer loop's are found all the
 * same. */
static void check_broken(const char *inner)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "%sGO%sE", inner,
		 t.record.frames == PYTHON_CFRAME ? "2" : "!4");
	check(expected);
}

static void expect_all(void)
{
	check(objects() ? "LO0GO2E" : "LO01GO2E");
}

TEST_EACH(each_loop_has_its_frames_behind_it, expect_all)

static void use_tls(void)
{
	uint64_t many = HEAP + 0xd000;

	/* The list would lead nowhere. */
	put(INTERP + t.record.interp_threads, 0);
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	expect_all();
	t.record.tls = -0x20;
	put(THREAD - 0x20, TSTATE);
	expect_all();
	t.record.tls_2 = 0x28;
	put(THREAD - 0x20, many);
	put(many + 0x28, TSTATE);
	expect_all();
}

TEST_EACH(the_thread_state_is_where_the_c_library_keeps_it, use_tls)

/*
 * What a frame costs: its reads off the stack, 30 to 40 ns each. One frame more, of another
 * function of the same file: of the frame, of its code object, up to 3.11 of its name.
 */
static void one_frame_more(void)
{
	const struct python_record *r = &t.record;
	unsigned int before, nr_frames;

	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	before = t.nr_reads;
	t.nr_reads = 0;
	if (objects()) {
		/* A frame a loop: without the inner one. */
		t.pc = GLUE + 5;
		t.sp = GLUE_SP;
		put(TSTATE + r->ts_frame,
		    r->frames == PYTHON_FRAME_OBJECTS ? FRAME_OF(2) : OUTER + IN_LOOP);
		put(TSTATE + r->ts_frame_object, FRAME_OF(2));
		ASSERT_EQ(walk(), STOP_COMPLETE);
		ASSERT_EQ(before - t.nr_reads, 3);
		return;
	}
	put_frame(FRAME_OF(5), 3, FRAME_OF(1));
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5));
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.nr_reads - before, r->co_version ? 2 : 3);
	/* Recursion, with callers below: one read of many frames. */
	before = t.nr_reads;
	nr_frames = t.walk.nr_frames;
	for (unsigned int n = 1; n < 8; n++)
		put_frame(FRAME_OF(5) + 0x80 * n, 3, FRAME_OF(5) + 0x80 * (n - 1));
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5) + 0x80 * 7);
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.nr_frames, nr_frames + 7);
	ASSERT_EQ(t.nr_reads, before + 1);
}

TEST_EACH(a_frame_takes_two_or_three_reads, one_frame_more)

static void second_in_list(void)
{
	put(OTHER_TSTATE + t.record.ts_next, TSTATE);
	put_thread(OTHER_TSTATE, INTERP, 0x1234);
	expect_all();
	/* What the C library has is not of this thread. */
	t.record.tls = 0x318;
	put(THREAD + 0x318, OTHER_TSTATE);
	expect_all();
}

TEST_EACH(the_thread_state_is_the_one_with_the_threads_id, second_in_list)

static void no_state(void)
{
	put(TSTATE + t.record.ts_thread_id, 0x1234);
	check("LO!3GO!3E");
	put(HEAD, 0x10); /* unreadable */
	check("LO!3GO!3E");
	t.tp = 0;
	check("LO!3GO!3E");
}

TEST_EACH(a_thread_without_a_state_has_a_note, no_state)

static void not_ready(void)
{
	t.late = true;
	check("LO!1GO!1E");
	t.late = false;
	t.no_record = true;
	check("LO!1GO!1E");
}

TEST_EACH(a_process_that_is_not_known_yet_has_a_note, not_ready)

/* The inner loop is about to begin, or ends: what there is belongs to the outer one. */
static void not_linked(void)
{
	const struct python_record *r = &t.record;

	if (r->frames == PYTHON_FRAME_OBJECTS) {
		put(TSTATE + r->ts_frame, FRAME_OF(2));
		t.record.loop_base = LOOP;
		t.record.nr_gaps = 2;
		t.record.gaps[0] = (struct python_gap){ 0, 4 };
		t.record.gaps[1] = (struct python_gap){ 0x10, 0x14 };
	} else if (r->frames == PYTHON_ENTRY) {
		put(TSTATE + r->ts_frame, FRAME_OF(2));
	} else {
		put(TSTATE + r->ts_frame, OUTER + IN_LOOP);
		put(TSTATE + r->ts_frame_object, objects() ? FRAME_OF(2) : 0);
	}
	if (r->frames == PYTHON_CFRAME)
		put(TSTATE + r->ts_thread_id, t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD);
	check("LOGO2E");
}

TEST_EACH(a_loop_that_is_not_linked_has_no_frames, not_linked)

/* 3.10: the inner loop's CFrame is linked, its frame object is not yet. */
TEST(a_loop_that_has_linked_its_cframe_only)
{
	set_up(10, false, EM_X86_64);
	put(TSTATE + t.record.ts_frame_object, FRAME_OF(2));
	t.record.loop_base = LOOP;
	t.record.nr_gaps = 1;
	t.record.gaps[0] = (struct python_gap){ 0x10, 0x14 };
	check("LOGO2E");
}

/*
 * 3.10: the inner loop's CFrame is not there, or no more, but a frame object that may be the inner
 * one's or its caller's: only one that has ended, or waits, is the inner one's.
 */
TEST(the_object_of_a_loop_that_ended_is_passed)
{
	static const struct {
		int8_t state;
		bool ended;
	} states[] = { { -1, true }, { 0, false }, { 1, true }, { 2, false }, { 3, true } };

	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		set_up(10, false, EM_X86_64);
		put(TSTATE + t.record.ts_frame, OUTER + IN_LOOP);
		memcpy(memory_at(FRAME_OF(0) + t.record.f_owner, 1), &states[i].state, 1);
		check(states[i].ended ? "LOGO2E" : "LOGO0E");
	}
}

/* Several frames one behind the other of one code object, and of another again. */
static void recursion(void)
{
	const struct python_record *r = &t.record;

	if (objects())
		return;
	for (unsigned int i = 5; i < 8; i++) {
		put_frame(FRAME_OF(i), i == 6 ? 3 : 0, i == 7 ? FRAME_OF(1) : FRAME_OF(i + 1));
		if (i == 5) /* not begun: left out, but its code is known */
			put(FRAME_OF(i) + r->f_instr, CODE_OF(0) + r->co_code);
	}
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5));
	check("LO0301GO2E");
	put(FRAME_OF(6) + r->f_code, CODE_OF(0) | (r->minor >= 14 ? 1 : 0));
	put(FRAME_OF(6) + r->f_instr, CODE_OF(0) + r->co_code + 20);
	check("LO0001GO2E");
	/* It's not taken for what can't be read. */
	put(FRAME_OF(6) + r->f_code, 0x10);
	check_broken("LO0!2");
}

TEST_EACH(recursion_is_shown_in_full, recursion)

/* The outer loop's frames are missing. */
static void mismatch(void)
{
	if (t.record.frames == PYTHON_FRAME_OBJECTS)
		put(FRAME_OF(0) + t.record.f_previous, 0);
	else if (t.record.frames == PYTHON_ENTRY)
		put(INNER + IN_LOOP + 0x40 + t.record.f_previous, 0);
	else
		put_cframe(INNER + IN_LOOP, FRAME_OF(0), HEAP + 0xf000);
	if (t.record.f_entry) /* its entry frame would not fit, which is tested below */
		put(HEAP + 0xf000 + t.record.cframe_current, FRAME_OF(2));
	check(objects() ? "LO0GO!4E" : "LO01GO!4E");
}

TEST_EACH(a_loop_without_frames_has_a_note, mismatch)

static void incomplete(void)
{
	if (objects())
		return;
	put(FRAME_OF(0) + t.record.f_instr, CODE_OF(0) + t.record.co_code + 2);
	check("LO1GO2E");
	/* A generator's is complete from the start. */
	*memory_at(FRAME_OF(0) + t.record.f_owner, 1) = t.record.owner_generator;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(FRAME_DATA(t.walk.words[2]), CODE_OF(0));
	ASSERT_EQ(PYTHON_LASTI(t.walk.words[3]), 2);
	if (t.record.flags & PYTHON_EXECUTABLE) {
		put(FRAME_OF(0) + t.record.f_code, NONE);
		check("LO1GO2E");
	}
}

TEST_EACH(frames_that_have_not_begun_or_are_no_functions_are_left_out, incomplete)

static void unreadable(void)
{
	if (objects()) {
		put(FRAME_OF(0) + t.record.f_code, 0x10);
		check_broken("LO!2");
		return;
	}
	put(FRAME_OF(0) + t.record.f_previous, 0x10);
	ASSERT_EQ(walk(), STOP_COMPLETE);
	check_broken("LO0!2");
}

TEST_EACH(frames_that_can_not_be_read_have_a_note, unreadable)

static void endless(void)
{
	if (objects())
		return;
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(0));
	if (t.record.f_entry)
		*memory_at(FRAME_OF(1) + t.record.f_entry, 1) = 0;
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(1));
	check_broken("LO01!2");
	/* None of them is shown, and most steps would be theirs. */
	put(FRAME_OF(0) + t.record.f_instr, CODE_OF(0) + t.record.co_code);
	put(FRAME_OF(0) + t.record.f_previous, FRAME_OF(0));
	check_broken("LO!2");
	put(FRAME_OF(1) + t.record.f_instr, CODE_OF(1) + t.record.co_code);
	put(FRAME_OF(0) + t.record.f_previous, FRAME_OF(1));
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(0));
	check_broken("LO!2");
}

TEST_EACH(frames_in_a_circle_end, endless)

/* The inner loop is of another interpreter, the outer one of the first. */
static void interpreters(void)
{
	const struct python_record *r = &t.record;
	uint64_t id = t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD;
	uint64_t elsewhere = STACK + 0x8000;

	put(HEAD, OTHER_INTERP);
	put(OTHER_INTERP + r->interp_next, INTERP);
	put_thread(OTHER_TSTATE, OTHER_INTERP, id);
	put(OTHER_TSTATE + r->ts_frame, FRAME_OF(0));
	/* The C library has the first one's. */
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	put(TSTATE + r->ts_frame, FRAME_OF(2));
	switch (r->frames) {
	case PYTHON_FRAME_OBJECTS:
		put(FRAME_OF(0) + r->f_previous, 0);
		put(INNER + 0x20, FRAME_OF(0) + 0x168);
		put(OUTER + 0x28, FRAME_OF(2) + 0x168);
		break;
	case PYTHON_ENTRY:
		put(INNER + IN_LOOP + 0x40 + r->f_previous, 0);
		break;
	default:
		put_cframe(INNER + IN_LOOP, FRAME_OF(0), ROOT_CFRAME);
		put(OTHER_TSTATE + r->ts_frame, INNER + IN_LOOP);
		put(TSTATE + r->ts_frame, OUTER + IN_LOOP);
		if (r->f_entry)
			put(FRAME_OF(1) + r->f_previous, 0);
	}
	if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME) {
		put(OTHER_TSTATE + r->ts_frame_object, FRAME_OF(0));
		put(TSTATE + r->ts_frame_object, FRAME_OF(2));
	}
	expect_all();
	/* Before them in the list is one that this thread is in, but in none of these loops. */
	put(HEAD, THIRD_INTERP);
	put(THIRD_INTERP + r->interp_next, OTHER_INTERP);
	put_thread(THIRD_TSTATE, THIRD_INTERP, id);
	put_frame(FRAME_OF(3), 3, elsewhere + 0x40);
	put(THIRD_TSTATE + r->ts_frame, FRAME_OF(3));
	put_entry(elsewhere + 0x40, 0);
	expect_all();
}

TEST_EACH(each_loop_has_the_frames_of_its_interpreter, interpreters)

/* 3.11: the CFrame is linked, but still has what was on the stack before. */
TEST(a_loop_that_has_not_set_its_frame_yet)
{
	set_up(11, false, EM_X86_64);
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(3));
	check("LOGO2E");
	/* What leads to the caller's may be written last, too. */
	put_cframe(INNER + IN_LOOP, FRAME_OF(0), 0x123456);
	check("LOGO2E");
	for (unsigned int minor = 11; minor <= 12; minor++) {
		set_up(minor, false, EM_X86_64);
		t.pc = LOOP + 0x12;
		t.sp = INNER;
		put_cframe(INNER + IN_LOOP, 0x10, 0);
		check("OGO2E");
	}
	put_cframe(INNER + IN_LOOP, 0, OUTER + IN_LOOP);
	t.record.nr_gaps = 1; /* 3.12: elsewhere it is a frame that is not linked to its caller */
	check("O!2GO2E");
	t.record.gaps[0] = (struct python_gap){ LOOP, LOOP + 0x20 };
	check("OGO2E");
}

/* Free-threaded: a thread's own copy of the instructions. */
TEST(instructions_in_a_threads_own_copy)
{
	uint64_t array = HEAP + 0xd000, copy = HEAP + 0xd100;

	set_up(14, true, EM_X86_64);
	put(CODE_OF(0) + t.record.co_tlbc, array);
	put(array + 8 + 8 * 3, copy);
	put_32(FRAME_OF(0) + t.record.f_tlbc, 3);
	put(FRAME_OF(0) + t.record.f_instr, copy + 20);
	expect_all();
}

/* Text at the very end of readable memory. */
TEST(a_name_at_the_end_of_memory)
{
	set_up(11, false, EM_X86_64);
	put(CODE_OF(0) + t.record.co_name, HEAP + SIZE - 0x40);
	put_text(HEAP + SIZE - 0x40, "short");
	expect_all();
}

TEST(trampolines_have_no_frame)
{
	static const uint8_t sub[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3 };
	uint64_t sp = LEAF_SP;

	set_up(12, false, EM_X86_64);
	memcpy(t.code, sub, sizeof(sub));
	/* Interrupted: at its first instruction, in its body, at its return. */
	for (unsigned int i = 0; i < 3; i++) {
		t.pc = TRAMPOLINE + (i == 0 ? 0 : i == 1 ? 6 : 10);
		t.sp = i == 1 ? sp - 16 : sp - 8;
		put(sp - 8, LOOP + 0x11);
		/* It returns into the outer loop's native frame. */
		put(sp + LOOP_SIZE - 8, END + 0x11);
		ASSERT_EQ(walk(), STOP_COMPLETE);
		ASSERT_EQ(FRAME_DATA(t.walk.words[0]), LOOP + 0x10);
	}
}

/* --- tasks that wait: function 2 is Handle._run() now, 3 a coroutine -------------------------- */

enum {
	OBJECTS = HEAP + 0xe000, /* 0x100 each */
	TYPES = HEAP + 0xf000,	 /* 0x110 each */
	TYPE_NAMES = HEAP + 0xfd00,
};
enum object { HANDLE, CALLBACK, RUNNING, WAITING, COROUTINE, ITERATOR, WAKEUP, OTHER, LIST, TUPLE };
#define OBJECT(n) (OBJECTS + 0x100ull * (n))
#define TYPE(n)	  (TYPES + 0x110ull * (n))

/* An object of a type of its own. */
static void put_object(enum object n, const char *type)
{
	put(OBJECT(n) + 8, TYPE(n));
	put(TYPE(n) + 24, TYPE_NAMES + 0x20 * n);
	put(TYPE(n) + 32, t.record.async.task_size);
	memcpy(memory_at(TYPE_NAMES + 0x20 * n, 0x20), type, strlen(type) + 1);
}

/* The coroutine awaits the object `awaited`. */
static void put_coroutine(uint64_t awaited)
{
	const struct python_async *a = &t.record.async;
	uint64_t frame = OBJECT(COROUTINE) + a->gen_frame, values = OBJECT(COROUTINE) + 0xe0, top;

	put_object(COROUTINE, "coroutine");
	if (objects()) {
		put(frame, FRAME_OF(3));
		frame = FRAME_OF(3);
	}
	put_frame(frame, 3, 0);
	if (a->gen_state)
		*memory_at(OBJECT(COROUTINE) + a->gen_state, 1) = (uint8_t)a->state;
	else if (a->state)
		*memory_at(frame + t.record.f_owner, 1) = (uint8_t)a->state;
	if (a->flags & PYTHON_ASYNC_VALUES_INLINE)
		values = frame + a->f_values;
	else
		put(frame + a->f_values, values + (a->f_depth ? 0 : 16));
	top = values + 8 - (a->flags & PYTHON_ASYNC_INDEXED ? 8 : 0);
	if (a->f_depth)
		put_32(frame + a->f_depth, 2);
	put(top, awaited);
}

/* The future at `future` has `callback`, or, from 3.14 on, the awaiter. */
static void put_awaiter(uint64_t future, uint64_t callback, uint64_t awaiter)
{
	if (t.record.async.fut_awaited_by)
		put(future + t.record.async.fut_awaited_by, awaiter);
	else
		put(future + 24, callback);
}

static void put_tasks(void)
{
	ASSERT_OK(python_async_of(&t.layout, &t.record));
	put_text(NAME_OF(2), t.layout.co_qualname ? "Handle._run" : "_run");
	put_32(CODE_OF(2) + t.record.async.co_argcount, 1);
	put_32(CODE_OF(3) + t.record.async.co_flags, 0x80);
	put(FRAME_OF(2) + t.record.async.f_locals, OBJECT(HANDLE));
	put_object(HANDLE, "Handle");
	put(OBJECT(HANDLE) + 24, OBJECT(CALLBACK));
	put_object(CALLBACK,
		   t.record.minor >= 12 ? "_asyncio.TaskStepMethWrapper" : "TaskStepMethWrapper");
	put(OBJECT(CALLBACK) + 16, OBJECT(RUNNING));
	put_object(RUNNING, "_asyncio.Task");
	put_object(WAITING, "_asyncio.Task");
	put(OBJECT(WAITING) + t.record.async.task_coro, OBJECT(COROUTINE));
	put_object(ITERATOR, "_asyncio.FutureIter");
	put_object(WAKEUP, "TaskWakeupMethWrapper");
	put(OBJECT(WAKEUP) + 16, OBJECT(WAITING));
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put_coroutine(OBJECT(ITERATOR));
}

static void each_version_with_tasks(version_fn *test)
{
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int minor = 7; minor <= 15; minor++) {
			set_up(minor, false, i ? EM_AARCH64 : EM_X86_64);
			put_tasks();
			test();
		}
}

static void check_tasks(const char *want)
{
	char text[64];

	snprintf(text, sizeof(text), "LO0%sGO%s2E", objects() ? "" : "1", want);
	check(text);
}

static void one_waits(void)
{
	check_tasks("!63");
	/* Not wanted. */
	t.record.flags &= ~(uint32_t)PYTHON_ASYNC;
	check_tasks("");
}

TEST(who_waits_for_a_task_stands_behind_it)
{
	each_version_with_tasks(one_waits);
}

static void nobody_waits(void)
{
	put_awaiter(OBJECT(RUNNING), 0, 0);
	check_tasks("");
	/* Not a task of this version. */
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put(TYPE(RUNNING) + 32, t.record.async.task_size + 8);
	check_tasks("");
	/* No task's callback. */
	put_object(CALLBACK, "function");
	check_tasks("");
}

TEST(nobody_waits_for_a_task)
{
	each_version_with_tasks(nobody_waits);
}

static void who_knows(void)
{
	put_object(OTHER, "function");
	put_awaiter(OBJECT(RUNNING), OBJECT(OTHER), OBJECT(OTHER));
	check_tasks("!8");
	put_awaiter(OBJECT(RUNNING), 0x10, 0x10); /* unreadable */
	check_tasks("!8");
	/* It is known who, but not what that one awaits. */
	put_awaiter(OBJECT(RUNNING), OBJECT(WAKEUP), OBJECT(WAITING));
	put_coroutine(OBJECT(OTHER));
	check_tasks("!6!83");
	/* And not where: it runs. */
	if (t.record.async.gen_state)
		*memory_at(OBJECT(COROUTINE) + t.record.async.gen_state, 1) = 77;
	else
		put(OBJECT(COROUTINE) + t.record.async.gen_frame, 0);
	check_tasks("!6!8");
}

TEST(who_waits_is_not_known)
{
	each_version_with_tasks(who_knows);
}

static void two_wait(void)
{
	put_object(OTHER, "_asyncio.Task");
	if (t.record.async.fut_awaited_by) { /* a set of two */
		put(OBJECT(RUNNING) + t.record.async.fut_awaited_by, OBJECT(LIST));
		*memory_at(OBJECT(RUNNING) + t.record.async.fut_awaited_by_is_set, 1) = 1;
		put(OBJECT(LIST) + 24, 2);
		put(OBJECT(LIST) + 32, 7);
		put(OBJECT(LIST) + 40, OBJECT(TUPLE));
		put(OBJECT(TUPLE) + 0x30, OBJECT(WAITING));
		check_tasks("!7");
		put(OBJECT(LIST) + 24, 1);
		check_tasks("!63");
		return;
	}
	put(OBJECT(RUNNING) + 40, OBJECT(LIST));
	put(OBJECT(LIST) + 16, 1);
	put(OBJECT(LIST) + 24, OBJECT(LIST) + 0x40);
	put(OBJECT(LIST) + 0x40, OBJECT(TUPLE));
	put(OBJECT(TUPLE) + 24, OBJECT(WAKEUP)); /* the same one again */
	check_tasks("!63");
	put_object(CALLBACK, "TaskWakeupMethWrapper");
	put(OBJECT(TUPLE) + 24, OBJECT(CALLBACK));
	check_tasks("!7");
	put_object(OTHER, "function");
	put(OBJECT(TUPLE) + 24, OBJECT(OTHER)); /* somebody else is told, too */
	check_tasks("!63");
	put(OBJECT(LIST) + 16, 1000000);
	check_tasks("!8");
}

TEST(several_wait_for_a_task)
{
	each_version_with_tasks(two_wait);
}

static void in_circles(void)
{
	/* A coroutine that awaits itself. */
	put_coroutine(OBJECT(COROUTINE));
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.nr_frames, 100);
	/* Something around itself: no frame, but an end. */
	put_object(OTHER, "coroutine_wrapper");
	put(OBJECT(OTHER) + 16, OBJECT(OTHER));
	put_coroutine(OBJECT(OTHER));
	check_tasks("!6!8");
	/* Tasks that wait for each other. */
	put_coroutine(OBJECT(ITERATOR));
	put_awaiter(OBJECT(WAITING), OBJECT(WAKEUP), OBJECT(WAITING));
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	ASSERT_EQ(t.walk.nr_frames, 100);
}

TEST(what_waits_for_itself_comes_to_an_end)
{
	each_version_with_tasks(in_circles);
}

static void by_itself(void)
{
	/* Function 0 is a coroutine, and no Handle is below it. */
	put_32(CODE_OF(0) + t.record.async.co_flags, 0x80);
	put_text(NAME_OF(2), "function_2");
	put_32(CODE_OF(1) + t.record.async.co_flags, 0x20);
	check(objects() ? "LO0GO!82E" : "LO01GO!82E");
	put_32(CODE_OF(2) + t.record.async.co_flags, 0x80);
	check(objects() ? "LO0GO2E" : "LO01GO2E");
}

TEST(what_runs_a_coroutine_is_not_known)
{
	each_version_with_tasks(by_itself);
}
