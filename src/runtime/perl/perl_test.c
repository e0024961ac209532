// SPDX-License-Identifier: Apache-2.0
/*
 * attach() over made-up processes: what has yet to begin, layouts by version, how threads get at
 * their interpreters.
 */
#include "runtime/perl/perl_file.h"

#include "fake_memory.h"
#include "test.h"

#include <elf.h>
#include <errno.h>

enum {
	BASE = 0x100000,
	SIZE = 0x1000,
	BIAS = BASE,
	/* In the file. */
	CURINTERP = 0x100,
	CURSTACKINFO = 0x108,
	THR_KEY = 0x110,
	BLOCK_TYPE = 0x200,
	NAMES = 0x400,
	KEY = 5,
};

static struct {
	uint8_t bytes[SIZE];
	struct perl_dso dso;
	struct runtime_target target;
	struct perl_record record;
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	return fake_memory_read(t.bytes, BASE, SIZE, addr, to, size);
}

static void put(uint64_t at, uint64_t value)
{
	memcpy(t.bytes + at, &value, sizeof(value));
}

/* The names of PL_block_type, "SUB" and so on, in that order; NULL ends them. */
static void put_types(const char *const *names)
{
	for (size_t i = 0; names[i]; i++) {
		memcpy(t.bytes + NAMES + 16 * i, names[i], strlen(names[i]) + 1);
		put(BLOCK_TYPE + 8 * i, BASE + NAMES + 16 * i);
	}
}

/* cop.h at v5.36.0; before there is no DEFER. */
static const char *const types[] = { "NULL",	   "WHEN",	  "BLOCK",	 "GIVEN",
				     "LOOP_ARY",   "LOOP_LAZYSV", "LOOP_LAZYIV", "LOOP_LIST",
				     "LOOP_PLAIN", "SUB",	  "FORMAT",	 "EVAL",
				     "SUBST",	   "DEFER",	  NULL };

static void set_up(unsigned int version, bool threaded)
{
	memset(&t, 0, sizeof(t));
	t.target = (struct runtime_target){
		.pid = 1, .machine = EM_X86_64, .memory = { read_test, NULL }, .bias = BIAS
	};
	t.dso = (struct perl_dso){ .version = version,
				   .threaded = threaded,
				   .curinterp = CURINTERP,
				   .thr_key = THR_KEY,
				   .op = 0x120,
				   .curcop = 0x128,
				   .comppad = 0x130,
				   .savestack = 0x148,
				   .compiling = 0x138,
				   .curstackinfo = CURSTACKINFO,
				   .interp_size = 0xf00,
				   .block_type = BLOCK_TYPE,
				   .nextstate = 0x10 };
	t.dso.base.ops = runtimes[RUNTIME_PERL];
	put_types(types);
	put(CURINTERP, 0x7000);
	put(CURSTACKINFO, 0x7000);
	put(THR_KEY, KEY);
}

static int attach(void)
{
	struct runtime_proc *proc;
	int r;

	memset(&t.record, 0, sizeof(t.record));
	r = runtimes[RUNTIME_PERL]->attach(&t.dso.base, &t.target, &t.record, &proc);
	if (!r)
		runtimes[RUNTIME_PERL]->detach(proc);
	return r;
}

TEST(layouts_are_those_of_the_version)
{
	/* With threads: intrpvar.h, where PL_defgv and others stood before PL_curcop up to 5.32;
	 * cop.h, where 5.32 has added blk_sub.old_cxsubix and PERL_SI.si_cxsubix. */
	static const struct {
		unsigned int version, curcop, cx_size, cx_cv, si_type;
	} all[] = {
		{ 28, 0xe0, 96, 64, 40 },  { 30, 0xe0, 96, 64, 40 },  { 32, 0xe0, 104, 72, 44 },
		{ 34, 0xd0, 104, 72, 44 }, { 36, 0xd0, 104, 72, 44 }, { 40, 0xd0, 104, 72, 44 },
		{ 42, 0xd0, 104, 72, 44 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		set_up(all[i].version, true);
		ASSERT_OK(attach());
		ASSERT_EQ(t.record.op, 8u);
		ASSERT_EQ(t.record.curcop, all[i].curcop);
		ASSERT_EQ(t.record.curstackinfo, all[i].curcop + 16u);
		ASSERT_EQ(t.record.comppad, all[i].curcop + 80u);
		ASSERT_EQ(t.record.savestack, 40u);
		ASSERT_EQ(t.record.cx_size, all[i].cx_size);
		ASSERT_EQ(t.record.cx_cv, all[i].cx_cv);
		ASSERT_EQ(t.record.si_type, all[i].si_type);
		ASSERT_EQ(t.record.compiling_size, 0xf00u);
		ASSERT_EQ(t.record.nextstate, BIAS + 0x10u);
		ASSERT(t.record.flags & PERL_THREADED);
		ASSERT_EQ(t.record.key.near, THREAD_KEY_GLIBC_FIRST + 16u * KEY + 8);
	}
}

TEST(without_threads_addresses_are_the_files)
{
	set_up(36, false);
	ASSERT_OK(attach());
	ASSERT(!(t.record.flags & PERL_THREADED));
	ASSERT_EQ(t.record.op, BIAS + 0x120u);
	ASSERT_EQ(t.record.savestack, BIAS + 0x148u);
	ASSERT_EQ(t.record.curcop, BIAS + 0x128u);
	ASSERT_EQ(t.record.curstackinfo, BIAS + (unsigned int)CURSTACKINFO);
	ASSERT_EQ(t.record.compiling_size, 1u);
	ASSERT(!t.record.key.near && !t.record.key.far);
}

TEST(an_interpreter_that_has_yet_to_begin_is_waited_for)
{
	set_up(36, true);
	put(CURINTERP, 0);
	ASSERT_EQ(attach(), -EAGAIN);
	set_up(36, false);
	put(CURSTACKINFO, 0);
	ASSERT_EQ(attach(), -EAGAIN);
	t.target.bias = BIAS + SIZE;
	ASSERT_EQ(attach(), -EFAULT);
}

TEST(types_of_contexts_have_the_numbers_that_the_file_gives_them)
{
	/* 5.41.3 to 5.41.8 had no WHEN and GIVEN. */
	static const char *const others[] = { "NULL", "BLOCK", "SUB",	"FORMAT",
					      "EVAL", "SUBST", "DEFER", NULL };

	set_up(36, true);
	ASSERT_OK(attach());
	ASSERT_EQ(t.record.cx_sub, 9);
	ASSERT_EQ(t.record.cx_format, 10);
	ASSERT_EQ(t.record.cx_eval, 11);
	ASSERT_EQ(t.record.cx_defer, 13);
	/* Before 5.36 something else is behind them. */
	put(BLOCK_TYPE + 8 * 13, 3);
	ASSERT_OK(attach());
	ASSERT_EQ(t.record.cx_defer, 0);
	memset(t.bytes + BLOCK_TYPE, 0, NAMES - BLOCK_TYPE);
	put_types(others);
	ASSERT_OK(attach());
	ASSERT_EQ(t.record.cx_sub, 2);
	ASSERT_EQ(t.record.cx_eval, 4);
	ASSERT_EQ(t.record.cx_defer, 6);
	/* Not relocated yet. */
	memset(t.bytes + BLOCK_TYPE, 0, NAMES - BLOCK_TYPE);
	ASSERT_EQ(attach(), -EBADMSG);
}

TEST(how_a_thread_gets_at_its_interpreter)
{
	set_up(36, true);
	put(THR_KEY, 40);
	ASSERT_OK(attach());
	ASSERT(!t.record.key.near);
	ASSERT_EQ(t.record.key.far, THREAD_KEY_GLIBC_BLOCKS + 8u);
	put(THR_KEY, THREAD_KEYS_MAX);
	ASSERT_EQ(attach(), -EBADMSG);
	/* aarch64's libcs are not known, so the loop's register has to tell. */
	set_up(36, true);
	t.target.machine = EM_AARCH64;
	ASSERT_EQ(attach(), -ENOTSUP);
	t.dso.held[0] = (struct perl_range){ 0x40, 0x80 };
	ASSERT_OK(attach());
	ASSERT_EQ(t.record.held[0].start, BIAS + 0x40u);
	ASSERT_EQ(t.record.held[0].end, BIAS + 0x80u);
	ASSERT(!t.record.held[1].start && !t.record.key.near && !t.record.key.far);
}
