// SPDX-License-Identifier: Apache-2.0
/*
 * attach() and its like over made-up processes: which thread is found among interpreters, what is
 * not ready and what never will be, where trampolines are.
 */
#include "runtime/python/python_debug_fixture.h"
#include "runtime/python/python_file.h"
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"

#include "fake_memory.h"
#include "test.h"

#include <elf.h>
#include <errno.h>

enum {
	BASE = 0x100000,
	SIZE = 0x20000,
	RUNTIME = BASE + 0x1000,
	CODE_TYPE = BASE + 0x3000,
	TYPE_NAME = BASE + 0x3100,
	INTERP = BASE + 0x4000,
	OTHER_INTERP = BASE + 0x8000,
	TSTATE = BASE + 0xc000,
	OTHER_TSTATE = BASE + 0xc400,
	PTHREAD = BASE + 0x10000,
	CODE = BASE + 0x12000,
	NAME = BASE + 0x12200,
	TABLE = BASE + 0x12300,
	TRAMPOLINE = BASE + 0x13000,
	ARENA = BASE + 0x13100,	 /* 0x100 each */
	COPIES = BASE + 0x14000, /* 0x1000 each */
	TRAMPOLINE_SIZE = 16,
	PERF_ARENA = 1960, /* of 3.12's _PyRuntime */
};

static struct {
	uint8_t bytes[SIZE];
	bool gone;
	size_t nr_reads;
	struct code_range loop;
	struct python_dso dso;
	struct runtime_keeper keeper;
	struct runtime_target target;
	struct python_record record; /* offsets alone */
	struct python_layout layout;
	struct python_record got;
	struct runtime_proc *proc;
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	t.nr_reads++;
	if (t.gone)
		return -ESRCH;
	return fake_memory_read(t.bytes, BASE, SIZE, addr, to, size);
}

static void put_bytes(uint64_t addr, const void *from, size_t size)
{
	memcpy(t.bytes + (addr - BASE), from, size);
}

static void put(uint64_t addr, uint64_t value)
{
	put_bytes(addr, &value, sizeof(value));
}

static void put_thread(uint64_t tstate, uint64_t interp, uint64_t pthread)
{
	put(interp + t.record.interp_threads, tstate);
	put(tstate + t.record.ts_interp, interp);
	put(tstate + t.record.ts_thread_id, pthread);
}

/* 3.11, 3.12 or 3.13, with one interpreter and one thread. */
static void set_up(unsigned int minor)
{
	uint64_t words[PYTHON_DEBUG_OFFSETS_SIZE / 8] = { 0 };
	uint64_t interpreters = 40;

	memset(&t, 0, sizeof(t));
	t.loop = (struct code_range){ BASE, BASE + 16 };
	t.dso = (struct python_dso){
		.dso = { .ops = runtimes[RUNTIME_PYTHON] },
		.minor = minor,
		.runtime = RUNTIME,
		.code_type = CODE_TYPE,
	};
	t.dso.dso.interpreter_functions.items = &t.loop;
	t.dso.dso.interpreter_functions.nr = 1;
	t.target = (struct runtime_target){
		.pid = 1, .machine = EM_X86_64, .memory = { .read = read_test }, .keeper = &t.keeper
	};
	if (minor == 13) {
		memcpy(words, PYTHON_DEBUG_COOKIE, 8);
		memcpy(words + 1, debug_fixtures[0].words, sizeof(debug_fixtures[0].words));
		put_bytes(RUNTIME, words, sizeof(words));
		ASSERT_OK(python_offsets_parse(words, sizeof(words), &t.record, &t.layout));
		interpreters = t.record.interpreters;
	} else {
		ASSERT_OK(python_offsets_of(minor, &t.record, &t.layout));
	}
	put(RUNTIME + interpreters, INTERP);
	put_thread(TSTATE, INTERP, PTHREAD);
	put_bytes(TYPE_NAME, "code", 5);
	put(CODE_TYPE + 24, TYPE_NAME);
	put(CODE_TYPE + 32, minor == 11 ? 184 : 192);
}

static int attach(void)
{
	return runtimes[RUNTIME_PYTHON]->attach(&t.dso.dso, &t.target, &t.got, &t.proc);
}

static void detach(void)
{
	runtimes[RUNTIME_PYTHON]->detach(t.proc);
	t.proc = NULL;
}

static void attach_and_detach(void)
{
	ASSERT_OK(attach());
	ASSERT(t.proc->ops == t.dso.dso.ops);
	detach();
}

/* In front of the first one, as new ones are. */
static void put_other_interpreter(void)
{
	uint64_t head = RUNTIME + (t.record.minor == 13 ? t.record.interpreters : 40);

	put(head, OTHER_INTERP);
	put(OTHER_INTERP + t.record.interp_next, INTERP);
}

TEST(interpreters_without_threads_are_passed)
{
	for (unsigned int minor = 11; minor <= 13; minor++) {
		set_up(minor);
		attach_and_detach();
		put_other_interpreter();
		attach_and_detach();
		put(INTERP + t.record.interp_threads, 0);
		ASSERT_ERR(attach(), EAGAIN);
		put(INTERP + t.record.interp_next, OTHER_INTERP); /* a circle */
		ASSERT_ERR(attach(), EAGAIN);
	}
}

/* One thread with a state in each of two interpreters: the C library has the first one's. */
TEST(the_place_of_thread_states_is_found_by_any_interpreter)
{
	for (unsigned int minor = 11; minor <= 13; minor++) {
		set_up(minor);
		put(PTHREAD + 0x310, 1);
		put(PTHREAD + 0x318, TSTATE);
		attach_and_detach();
		ASSERT_EQ(t.got.tls, 0x318);
		put_other_interpreter();
		put_thread(OTHER_TSTATE, OTHER_INTERP, PTHREAD);
		attach_and_detach();
		ASSERT_EQ(t.got.tls, 0x318);
		put(PTHREAD + 0x318, 0);
		attach_and_detach();
		ASSERT_EQ(t.got.tls, 0);
	}
}

enum { TP = 0x740, DTV = BASE + 0x15000 };

/* As glibc has it: the executable has variables, too; or libc alone, behind those of others. */
static void put_dtv(unsigned int module, uint64_t at)
{
	put(PTHREAD + TP, DTV);
	put(DTV - 16, 14);
	put(DTV, 1);
	for (unsigned int i = 1; i <= module; i++)
		put(DTV + 16 * i, UINT64_MAX);
	put(DTV + 16 * module, at);
}

static void check_tls(int64_t expected)
{
	attach_and_detach();
	ASSERT_EQ(t.got.tls, expected);
}

TEST(on_aarch64_thread_states_are_found_from_where_the_thread_pointer_leads)
{
	for (unsigned int minor = 11; minor <= 13; minor++) {
		for (unsigned int module = 1; module <= 3; module += 2) {
			set_up(minor);
			t.target.machine = EM_AARCH64;
			put(PTHREAD + 0x310, 1);
			put(PTHREAD + 0x318, TSTATE);
			check_tls(0); /* that is not known */
			put_dtv(module, PTHREAD + TP + 16);
			check_tls(0x318 - TP);
			ASSERT(t.got.flags & PYTHON_STACK_BELOW);
			put(PTHREAD + 0x318, 0);
			check_tls(0);
			put(PTHREAD + TP + 0x28, TSTATE);
			check_tls(0x28);
			put_dtv(module, PTHREAD - 16); /* that is no such thing */
			check_tls(0);
		}
		/* musl */
		set_up(minor);
		t.target.machine = EM_AARCH64;
		put(PTHREAD + 0xc0, DTV);
		put(DTV, 1);
		put(DTV + 8, PTHREAD + 0xc8 + 16);
		put(PTHREAD + 0xc8 + 0x30, TSTATE);
		check_tls(0x30);
	}
}

/* How long that is waited for, unwinder/runtimes_test.c tests. */
static void check_nonsense(void)
{
	ASSERT_ERR(attach(), EBADMSG);
}

TEST(what_makes_no_sense_may_not_be_ready)
{
	for (unsigned int minor = 11; minor <= 13; minor++) {
		set_up(minor);
		put(TSTATE + t.record.ts_interp, 0);
		check_nonsense();
		if (minor == 13)
			continue;
		set_up(minor);
		put(CODE_TYPE + 32, 8);
		check_nonsense();
		set_up(minor);
		put(CODE_TYPE + 24, 0);
		check_nonsense();
	}
	set_up(13);
	put(RUNTIME, 0);
	check_nonsense();
}

TEST(a_process_that_is_gone_is_not_a_wrong_one)
{
	for (unsigned int minor = 11; minor <= 13; minor++) {
		set_up(minor);
		t.gone = true;
		ASSERT_ERR(attach(), ESRCH);
	}
}

TEST(an_unknown_version_stays_unknown)
{
	set_up(13);
	put(RUNTIME + 8, 0x03200000); /* 3.32 */
	ASSERT_ERR(attach(), ENOTSUP);
}

/* --- trampolines ----------------------------------------------------------------------------- */

/* The `n`th arena, and the one before it (-1: none). */
static void put_arena(unsigned int n, int previous, uint64_t size)
{
	uint64_t start = COPIES + 0x1000 * n, at = ARENA + 0x100 * n;
	const uint64_t words[] = { start,
				   start + TRAMPOLINE_SIZE,
				   size,
				   size - TRAMPOLINE_SIZE,
				   TRAMPOLINE_SIZE,
				   previous < 0 ? 0 : (uint64_t)(ARENA + 0x100 * previous) };

	put_bytes(at, words, sizeof(words));
	memset(t.bytes + (start - BASE), 0x5a, TRAMPOLINE_SIZE);
}

static void set_up_trampolines(unsigned int newest)
{
	set_up(12);
	t.dso.trampoline = TRAMPOLINE;
	t.dso.trampoline_end = TRAMPOLINE + TRAMPOLINE_SIZE;
	memset(t.bytes + (TRAMPOLINE - BASE), 0x5a, TRAMPOLINE_SIZE);
	put(RUNTIME + PERF_ARENA, ARENA + 0x100 * newest);
}

static void check_arenas(unsigned int nr)
{
	ASSERT_OK(attach());
	ASSERT_EQ(t.proc->code.nr, nr);
	for (unsigned int i = 0; i < nr; i++) {
		ASSERT_EQ(t.proc->code.items[i].start, COPIES + 0x1000 * i);
		ASSERT_EQ(t.proc->code.items[i].end, COPIES + 0x1000 * (i + 1));
	}
	/* Nothing has moved since. */
	ASSERT_EQ(runtimes[RUNTIME_PYTHON]->refresh(t.proc, &t.got), 0);
	detach();
}

TEST(all_arenas_of_trampolines_are_found)
{
	for (unsigned int nr = 1; nr <= 4; nr++) {
		set_up_trampolines(nr - 1);
		for (unsigned int i = 0; i < nr; i++)
			put_arena(i, (int)i - 1, 0x1000);
		check_arenas(nr);
	}
}

TEST(arenas_in_a_circle_count_once)
{
	set_up_trampolines(0);
	put_arena(0, 0, 0x1000);
	check_arenas(1);
	set_up_trampolines(1);
	put_arena(0, 1, 0x1000);
	put_arena(1, 0, 0x1000);
	check_arenas(2);
}

TEST(arenas_do_not_overlap)
{
	set_up_trampolines(1);
	put_arena(0, -1, 0x2000);
	put_arena(1, 0, 0x1000);
	ASSERT_OK(attach());
	ASSERT_EQ(t.proc->code.nr, 1);
	ASSERT_EQ(t.proc->code.items[0].start, COPIES);
	ASSERT_EQ(t.proc->code.items[0].end, COPIES + 0x2000);
	detach();
}

TEST(an_arena_that_is_new_is_told)
{
	set_up_trampolines(0);
	put_arena(0, -1, 0x1000);
	ASSERT_OK(attach());
	put_arena(1, 0, 0x1000);
	put(RUNTIME + PERF_ARENA, ARENA + 0x100);
	ASSERT_EQ(runtimes[RUNTIME_PYTHON]->refresh(t.proc, &t.got), 1);
	ASSERT_EQ(t.proc->code.nr, 2);
	detach();
}

/* --- code objects ---------------------------------------------------------------------------- */

static int take_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	ASSERT_STR(inline_frame->name, "work");
	(*(unsigned int *)ctx)++;
	return 0;
}

static int name_code(uint64_t references)
{
	unsigned int nr = 0;
	const struct runtime_sink sink = { .add = take_inline_frame, .ctx = &nr };
	uint64_t words[2] = { FRAME(RUNTIME_PYTHON, 1, CODE) };
	uint32_t cookie;
	int r;

	put(CODE, references);
	ASSERT_OK(python_read_cookie(&t.target, &t.got, CODE, &cookie));
	words[1] = PYTHON_WORD1(cookie, 0);
	ASSERT_OK(attach()); /* nothing is remembered */
	r = runtimes[RUNTIME_PYTHON]->symbolize(t.proc, words, 2, &sink);
	detach();
	ASSERT_EQ(nr, r ? 0 : 1);
	return r;
}

static void set_up_code(void)
{
	const struct python_layout *l = &t.layout;

	put(CODE + 8, CODE_TYPE);
	put(CODE + l->co_filename, NAME);
	put(CODE + l->co_name, NAME);
	put(CODE + l->co_qualname, NAME);
	put(CODE + l->co_linetable, TABLE);
	put(NAME + l->str_length, 4);
	put_bytes(NAME + l->str_ascii, "work", 4);
}

/* As many functions as there may be are made of a code object; freed memory has a link there. */
TEST(code_of_millions_of_functions_is_alive)
{
	for (unsigned int minor = 11; minor <= 12; minor++) {
		set_up(minor);
		set_up_code();
		put(NAME + t.layout.str_state, (1 | PYTHON_STR_COMPACT | PYTHON_STR_ASCII) << 2);
		attach_and_detach();
		ASSERT_OK(name_code(1));
		ASSERT_OK(name_code(20 << 20));
		ASSERT_ERR(name_code(0), ENOENT);
		ASSERT_ERR(name_code(0x7f1234567800), ENOENT);
	}
}

static void name_kept(struct python_names *names, uint64_t code)
{
	unsigned int nr = 0;
	const struct runtime_sink sink = { .add = take_inline_frame, .ctx = &nr };
	uint64_t words[2] = { FRAME(RUNTIME_PYTHON, 1, code) };
	uint32_t cookie;

	ASSERT_OK(python_read_cookie(&t.target, &t.got, code, &cookie));
	words[1] = PYTHON_WORD1(cookie, 0);
	t.nr_reads = 0;
	ASSERT_OK(python_names_symbolize(names, words, 2, &sink));
	ASSERT_EQ(nr, 1);
}

/* Anybody may start many, each with a hundred code objects whose line tables are large. */
TEST(processes_have_one_budget_of_names)
{
	enum { NR = 4, CODES = 100, CODE_AT = 0x100, LINES = 0xd000 };
	struct python_names *names[NR];

	set_up(12);
	set_up_code();
	put(NAME + t.layout.str_state, (1 | PYTHON_STR_COMPACT | PYTHON_STR_ASCII) << 2);
	put(TABLE + t.layout.bytes_length, LINES);
	put(CODE, 1);
	for (uint64_t i = 0; i < CODES; i++)
		put_bytes(COPIES + i * CODE_AT, t.bytes + (CODE - BASE), CODE_AT);
	attach_and_detach();
	for (size_t i = 0; i < NR; i++) {
		ASSERT_OK(python_names_new(&t.target, &t.got, &t.layout, &names[i]));
		for (uint64_t k = 0; k < CODES; k++)
			name_kept(names[i], COPIES + k * CODE_AT);
		ASSERT(t.keeper.bytes >= CODES * LINES);
		ASSERT(t.keeper.bytes <= RUNTIME_KEPT_MAX);
	}
	/* Of the first one nothing is kept any more, of the last one all is. */
	name_kept(names[NR - 1], COPIES);
	ASSERT_EQ(t.nr_reads, 0);
	name_kept(names[0], COPIES);
	ASSERT(t.nr_reads > 0);
	for (size_t i = 0; i < NR; i++)
		python_names_free(names[i]);
	ASSERT(!t.keeper.bytes && !t.keeper.oldest);
}

/* `interned` before a str's other flags has 2, 8 or 16 bits. */
TEST(flags_of_a_str_are_found)
{
	static const unsigned int shifts[] = { 2, 8, 16 };

	for (uint32_t interned = 0; interned <= 3; interned++)
		for (uint32_t width = 1; width <= 4; width *= 2)
			for (unsigned int i = 0; i < 3; i++) {
				uint32_t flags = width | PYTHON_STR_COMPACT;

				ASSERT_EQ(python_str_flags(interned | flags << shifts[i]), flags);
			}
	set_up(11);
	set_up_code();
	attach_and_detach();
	for (unsigned int i = 0; i < 3; i++) {
		put(NAME + t.layout.str_state, 1 | (1 | PYTHON_STR_COMPACT | PYTHON_STR_ASCII)
							       << shifts[i]);
		ASSERT_OK(name_code(1));
	}
}

/* Up to 3.11: what a code object has never changes, or it is another one. */
TEST(other_constants_make_another_code_object)
{
	for (unsigned int minor = 6; minor <= 11; minor++) {
		struct python_record r;
		uint32_t cookie, now;

		set_up(11);
		ASSERT_OK(python_offsets_of(minor, &r, &t.layout));
		r.code_type = CODE_TYPE;
		set_up_code();
		put(NAME + t.layout.str_state, (1 | PYTHON_STR_COMPACT | PYTHON_STR_ASCII) << 2);
		ASSERT_OK(python_read_cookie(&t.target, &r, CODE, &cookie));
		for (unsigned int at = 0; at < r.co_size; at += 8) {
			/* Count of references; 3.11: co_warmup with co_flags, and caches. */
			bool changes = at == 0 || (minor == 11 && (at == 48 || at >= 144)) ||
				       (minor == 11 && at == 16);

			if (at == r.co_type || at == r.co_filename || at == r.co_name)
				continue;
			t.bytes[CODE - BASE + at] ^= 4;
			ASSERT_OK(python_read_cookie(&t.target, &r, CODE, &now));
			ASSERT_EQ(now == cookie, changes);
			t.bytes[CODE - BASE + at] ^= 4;
		}
	}
}
