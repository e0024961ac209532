// SPDX-License-Identifier: Apache-2.0
/*
 * attach() over made-up processes: what has yet to begin, where the symbols are, and that no
 * process, made by whomever, is looked through for ever.
 */
#include "runtime/ruby/ruby_file.h"

#include "test.h"

#include <elf.h>
#include <errno.h>

enum {
	BASE = 0x100000,
	DATA = BASE, /* of a megabyte */
	DATA_SIZE = 1 << 20,
	SYMBOLS = DATA + 0x800,
	BEGUN = DATA + DATA_SIZE,
	SIZE = DATA_SIZE + 0x1000,
	/* Pointers are larger than 32 bits: what is there is seen a second time. */
	HEAP = 0x100000,
	WORDS = HEAP / 8,
};
#define HEAP_BASE 0x7f0000000000ull
#define IDS	  (HEAP_BASE + 0x1000)
#define PART	  (HEAP_BASE + 0x2000)
#define ITEMS	  (HEAP_BASE + 0x3000)
#define STRINGS	  (HEAP_BASE + 0x8000)

static struct {
	uint8_t bytes[SIZE];
	uint64_t heap[WORDS];
	unsigned int nr_reads;
	struct ruby_dso dso;
	struct runtime_target target;
	struct runtime_proc *proc;
	struct ruby_record record;
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	t.nr_reads++;
	if (addr >= HEAP_BASE && addr < HEAP_BASE + HEAP && size <= HEAP_BASE + HEAP - addr)
		memcpy(to, (uint8_t *)t.heap + (addr - HEAP_BASE), size);
	else if (addr >= BASE && addr < BASE + SIZE && size <= BASE + SIZE - addr)
		memcpy(to, t.bytes + (addr - BASE), size);
	else
		return -EFAULT;
	return 0;
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(t.bytes + (addr - BASE), &value, sizeof(value));
}

static uint64_t *heap_at(uint64_t addr)
{
	return t.heap + (addr - HEAP_BASE) / 8;
}

/* An array of 600 things, as 3.3 has it. */
static void put_array(uint64_t addr, uint64_t items)
{
	uint64_t *to = heap_at(addr);

	to[0] = RUBY_T_ARRAY;
	to[2] = 600;
	to[4] = items;
}

static void put_name(uint64_t id, char name)
{
	uint64_t addr = STRINGS + id * 64, *to = heap_at(addr);

	to[0] = RUBY_T_STRING;
	to[2] = 1;
	to[3] = (uint8_t)name;
	*heap_at(ITEMS + id * 16) = addr;
}

static void set_up(void)
{
	memset(&t, 0, sizeof(t));
	t.dso = (struct ruby_dso){
		.dso.ops = runtimes[RUNTIME_RUBY],
		.layout = ruby_layout_of(303),
		.machine = EM_X86_64,
		.how = RUBY_EC_TLS,
		.ec_offset = -64,
		.begun = BEGUN,
		.data = { DATA, DATA + DATA_SIZE },
	};
	t.target = (struct runtime_target){ .machine = EM_X86_64, .memory = { read_test, NULL } };
	put(BEGUN, HEAP_BASE);
	put_array(IDS, HEAP_BASE + 0x1800);
	*heap_at(HEAP_BASE + 0x1800) = PART;
	put_array(PART, ITEMS);
	put_name('+', '+');
	put_name('!', '!');
}

static void put_symbols(uint64_t addr)
{
	put(addr, 2000);
	put(addr + 8, HEAP_BASE + 0x100);
	put(addr + 16, IDS);
}

static int attach(void)
{
	return t.dso.dso.ops->attach(&t.dso.dso, &t.target, &t.record, &t.proc);
}

TEST(symbols_among_the_variables)
{
	set_up();
	put_symbols(SYMBOLS);
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
}

TEST(symbols_that_have_a_name)
{
	set_up();
	t.dso.symbols = SYMBOLS;
	ASSERT_ERR(attach(), EBADMSG);
	put_symbols(SYMBOLS);
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
}

/* Those that cannot be found are done without. */
TEST(collections_are_counted_there)
{
	set_up();
	put_symbols(SYMBOLS);
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
	ASSERT_EQ(t.record.collections, 0);
	t.dso.gc = (struct ruby_gc){
		.vm = DATA + 0x900, .slot = true, .objspace = 0x450, .flags = 16, .count = 0x1b8
	};
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
	ASSERT_EQ(t.record.collections, 0);
	put(DATA + 0x900, DATA + 0x908);
	put(DATA + 0x908, HEAP_BASE);
	*heap_at(HEAP_BASE + 0x450) = HEAP_BASE + 0x600;
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
	ASSERT_EQ(t.record.collections, HEAP_BASE + 0x600 + 0x1b8);
	ASSERT_EQ(t.record.collecting, HEAP_BASE + 0x600 + 16);
	t.dso.gc.slot = false;
	t.dso.gc.vm = DATA + 0x908;
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
	ASSERT_EQ(t.record.collections, HEAP_BASE + 0x600 + 0x1b8);
}

/* However long that takes: a program may have Ruby in itself and start it later. */
TEST(what_has_not_begun_is_asked_again)
{
	set_up();
	put(BEGUN, 0);
	ASSERT_ERR(attach(), EAGAIN);
	ASSERT(t.nr_reads <= 2);
	put_symbols(SYMBOLS);
	ASSERT_ERR(attach(), EAGAIN);
}

TEST(no_symbols_make_no_sense)
{
	set_up();
	ASSERT_ERR(attach(), EBADMSG);
	put_symbols(SYMBOLS);
	put_name('!', '?');
	ASSERT_ERR(attach(), EBADMSG);
}

/* What looks like them takes several reads each, and a process may have nothing else. */
TEST(what_looks_like_symbols_is_not_read_for_ever)
{
	set_up();
	put_name('!', '?');
	for (uint64_t addr = DATA; addr + 24 <= DATA + DATA_SIZE; addr += 24)
		put_symbols(addr);
	ASSERT_ERR(attach(), EBADMSG);
	ASSERT(t.nr_reads < 16 * 4096);
	t.nr_reads = 0;
	put_name('!', '!');
	ASSERT_OK(attach());
	t.dso.dso.ops->detach(t.proc);
	ASSERT(t.nr_reads < 20);
}
