/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's step over made-up processes, one of each family of versions. Both architectures.
 *
 * The native stack, innermost first: leaf (a C function), loop, glue, loop, end (the first frame).
 */
#pragma once

#include "bpf/host/walk_host.h"
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
	uint32_t max_frames;
	bool late, no_record;
	uint32_t generation;
	struct cached_rule *known; /* what the walker remembers */
	unsigned int nr_reads;	   /* of the heap */
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

static inline int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	const uint8_t *from = memory_at(addr, size);

	(void)ctx;
	t.nr_reads += addr >= HEAP && addr < HEAP + SIZE;
	if (!from)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static inline int read_target(void *ctx, uint64_t addr, void *to, size_t size)
{
	return read_test(ctx, addr, to, (__u32)size);
}

static inline void put(uint64_t addr, uint64_t value)
{
	memcpy(memory_at(addr, 8), &value, 8);
}

static inline void put_32(uint64_t addr, uint32_t value)
{
	memcpy(memory_at(addr, 4), &value, 4);
}

/* --- the process ----------------------------------------------------------------------------- */

static inline void put_rule(uint32_t bucket, uint32_t size, bool loop)
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

static inline void set_up_native(void)
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

static inline void put_text(uint64_t addr, const char *text)
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

static inline void put_code(unsigned int n)
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

static inline void put_frame(uint64_t at, unsigned int n, uint64_t previous)
{
	const struct python_record *r = &t.record;

	put(at + r->f_previous, previous);
	put(at + r->f_code, CODE_OF(n) | (r->minor >= 14 ? 1 : 0));
	put(at + r->f_instr, instr_of(n));
	if (r->frames == PYTHON_FRAME_OBJECTS)
		*memory_at(at + r->f_owner, 1) = 1;
}

static inline void put_entry(uint64_t at, uint64_t previous)
{
	put(at + t.record.f_previous, previous);
	put(at + t.record.f_code, NONE);
	*memory_at(at + t.record.f_owner, 1) = t.record.owner_entry;
}

static inline void put_cframe(uint64_t at, uint64_t current, uint64_t previous)
{
	put(at + t.record.cframe_current, current);
	put(at + t.record.cframe_previous, previous);
}

enum { IN_LOOP = 0x80 }; /* where a loop keeps its struct */

/*
 * The inner loop runs function 0, called by 1 (but up to 3.10: a loop each, 0 only), the outer one
 * runs 2. What tstate leads to.
 */
static inline void put_chain(void)
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

static inline void put_thread(uint64_t tstate, uint64_t interp, uint64_t thread_id)
{
	const struct python_record *r = &t.record;

	put(interp + r->interp_threads, tstate);
	put(tstate + r->ts_interp, interp);
	put(tstate + r->ts_thread_id, thread_id);
}

static inline void set_up(unsigned int minor, bool free_threaded, uint16_t machine)
{
	uint64_t words[PYTHON_DEBUG_OFFSETS_SIZE / 8] = { 0 };
	struct arena_segment *segment = t.segment ? t.segment : malloc(sizeof(*segment));

	memset(&t, 0, sizeof(t));
	memset(segment, 0, sizeof(*segment));
	t.segment = segment;
	t.machine = machine;
	t.max_frames = 100;
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

static inline int walk(void)
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
		.process = { .generation = 7 + t.generation,
			     .nr_mappings = 2,
			     .runtimes = t.no_record ? 0 : RECORD_CELL },
		.max_frames = t.max_frames,
		.thread_pointer = t.tp,
		.late = t.late,
		.rules = t.known,
	};

	*header = (struct runtime_record){ .runtime = RUNTIME_PYTHON, .size = sizeof(t.record) };
	memcpy(header + 1, &t.record, sizeof(t.record));
	regs[t.machine == EM_AARCH64 ? A64_SP : X86_RSP] = t.sp;
	memcpy(wide, regs, sizeof(wide));
	return walk_host(&tables, &memory, &input, &t.walk);
}

/* --- what is expected: "L" leaf, "O" loop, "G" glue, "E" end, "0" to "9" functions, "!N" a note --
 */

static inline void check(const char *want)
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

static inline void each_version(version_fn *test)
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

static inline bool objects(void)
{
	return t.record.frames <= PYTHON_FRAME_OBJECTS_CFRAME;
}

/* Of the inner loop's frames one is missing: in 3.11 and 3.12 the outer loop's are found all the
 * same. */
static inline void check_broken(const char *inner)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "%sGO%sE", inner,
		 t.record.frames == PYTHON_CFRAME ? "2" : "!4");
	check(expected);
}

static inline void expect_all(void)
{
	check(objects() ? "LO0GO2E" : "LO01GO2E");
}
