// SPDX-License-Identifier: Apache-2.0
/*
 * The counters of a JVM, made by hand after OpenJDK's perfMemory.hpp. hotspot_live_test.c has the
 * real ones.
 */
#include "runtime/hotspot/hotspot_operations.h"

#include <errno.h>
#include <string.h>

#include "test.h"

enum {
	POINTER = 0x1000, /* PerfMemory::_prologue */
	START = 0x20000,
	SIZE = 4096,
	FIRST = 32,
	ENTRY = 64, /* of each, its name 20 bytes behind its begin and its value 56 */
	NAME = 20,
	VALUE = 56,
};

static const char wanted[] = "sun.threads.vmOperationTime";

static struct {
	uint64_t start;
	uint8_t memory[SIZE];
	uint32_t readable;
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	if (addr == POINTER && size == 8)
		memcpy(to, &t.start, 8);
	else if (addr >= START && size <= t.readable && addr - START <= t.readable - size)
		memcpy(to, t.memory + (addr - START), size);
	else
		return -EFAULT;
	return 0;
}

static void put_4(uint32_t at, uint32_t value)
{
	memcpy(t.memory + at, &value, 4);
}

static void add(uint32_t nr, const char *name, char type)
{
	uint32_t at = FIRST + nr * ENTRY;

	put_4(at, ENTRY);
	put_4(at + 4, NAME);
	t.memory[at + 12] = (uint8_t)type;
	put_4(at + 16, VALUE);
	memcpy(t.memory + at + NAME, name, strlen(name) + 1);
	put_4(28, nr + 1);
	put_4(8, at + ENTRY);
}

static void set_up(void)
{
	static const uint8_t head[] = { 0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1 };

	memset(&t, 0, sizeof(t));
	t.start = START;
	t.readable = SIZE;
	memcpy(t.memory, head, sizeof(head));
	put_4(24, FIRST);
	add(0, "java.threads.live", 'J');
	add(1, "sun.threads.vmOperationTim", 'J');
	add(2, wanted, 'J');
	add(3, "sun.rt.safepoints", 'J');
}

static struct hotspot_operations find_in(uint32_t release)
{
	const struct runtime_target target = { .memory = { .read = read_test } };
	const struct hotspot_vm vm = { .target = &target,
				       .release = release,
				       .at_perf_memory = POINTER };
	struct hotspot_operations found = { 0 };

	hotspot_find_operations(&vm, &found);
	return found;
}

static uint64_t find(void)
{
	return find_in(17).at;
}

TEST(the_time_of_operations_is_found_by_its_name)
{
	set_up();
	ASSERT_EQ(find(), START + FIRST + 2 * ENTRY + VALUE);
	for (uint32_t release = 8; release < 30; release++)
		ASSERT_EQ(find_in(release).at != 0, release >= 17 && release <= 25);
}

TEST(it_is_looked_for_a_few_times)
{
	const struct runtime_target target = { .memory = { .read = read_test } };
	const struct hotspot_vm vm = { .target = &target,
				       .release = 25,
				       .at_perf_memory = POINTER };
	struct hotspot_operations found = { 0 };

	/* The JVM has yet to make it. */
	set_up();
	put_4(28, 2);
	hotspot_find_operations(&vm, &found);
	ASSERT_EQ(found.at, 0);
	put_4(28, 4);
	hotspot_find_operations(&vm, &found);
	ASSERT_EQ(found.at, START + FIRST + 2 * ENTRY + VALUE);
	/* Or never does. */
	found = (struct hotspot_operations){ 0 };
	put_4(28, 2);
	for (int i = 0; i < 100; i++)
		hotspot_find_operations(&vm, &found);
	put_4(28, 4);
	hotspot_find_operations(&vm, &found);
	ASSERT_EQ(found.at, 0);
	/* Without counters there will be none: nothing changes any more. */
	t.start = 0;
	found = find_in(25);
	ASSERT_EQ(found.at, 0);
	t.start = START;
	hotspot_find_operations(&vm, &found);
	ASSERT_EQ(found.at, 0);
}

TEST(what_makes_no_sense_is_not_taken)
{
	const uint32_t entry = FIRST + 2 * ENTRY;

	set_up();
	t.memory[5] = 3; /* another version */
	ASSERT_EQ(find(), 0);
	set_up();
	t.memory[0] = 0;
	ASSERT_EQ(find(), 0);
	set_up();
	t.readable = 100;
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(8, 1 << 30); /* used */
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(8, entry + VALUE + 7);
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(24, ~0u); /* the first entry's offset */
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(FIRST, 0); /* an entry's size */
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(entry, ~0u);
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(entry + 4, ENTRY - 5); /* its name's offset */
	ASSERT_EQ(find(), 0);
	set_up();
	put_4(entry + 8, 4); /* an array */
	ASSERT_EQ(find(), 0);
	set_up();
	t.memory[entry + 12] = 'B';
	ASSERT_EQ(find(), 0);
	for (uint32_t at = ENTRY - 7; at < ENTRY + 8; at++) {
		set_up();
		put_4(entry + 16, at); /* its value's offset */
		ASSERT_EQ(find(), 0);
	}
	set_up();
	put_4(entry + 16, VALUE + 4);
	ASSERT_EQ(find(), 0);
}
