// SPDX-License-Identifier: Apache-2.0
/*
 * Tables of any bytes: a look-up near each entry finds what a search through all of them finds, and
 * only what is not sorted is refused. Byte 0: the layout; then entries of 10 bytes, how far each is
 * from the one before (4, signed) and itself.
 */
#include "fuzz.h"
#include "unwind/orc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	START = 0x10000,
	END = START + 3000,
	IPS = 0x40000,
	ENTRIES_MAX = 500,
	ENTRY = 4 + ORC_ENTRY_SIZE
};

struct input {
	int32_t ips[ENTRIES_MAX];
	uint8_t entries[ENTRIES_MAX][ORC_ENTRY_SIZE];
	uint64_t at[ENTRIES_MAX];
	struct orc_tables tables;
	bool sorted;
};

static void read_input(struct input *in, const uint8_t *data, size_t size)
{
	static const struct orc_layout layouts[] = { { 8, 3, 11, 1, 0, 0 },
						     { 8, 2, 10, 1, 11, 1 },
						     { 8, 2, 0, 0, 10, 1 } };
	uint64_t at = START - 100;
	size_t i;

	*in = (struct input){ .tables = { in->ips, IPS, in->entries, 0, layouts[data[0] % 3] },
			      .sorted = true };
	for (i = 0; i < ENTRIES_MAX && 1 + (i + 1) * ENTRY <= size; i++) {
		int32_t distance;

		memcpy(&distance, data + 1 + i * ENTRY, 4);
		distance %= 1000;
		in->sorted &= !i || distance >= 0;
		at += (uint64_t)(int64_t)distance;
		in->at[i] = at;
		in->ips[i] = (int32_t)(at - (IPS + 4 * i));
		memcpy(in->entries[i], data + 1 + i * ENTRY + 4, ORC_ENTRY_SIZE);
	}
	in->tables.nr = i;
}

static void check(const struct input *in, const struct kernel_table *t, uint64_t at)
{
	uint32_t expected = KERNEL_RULE(KERNEL_HELPER, 0, 0, 0);
	size_t i;

	if (at >= START && at < END)
		for (i = 0; i < in->tables.nr && in->at[i] <= at; i++)
			expected = orc_rule(&in->tables.layout, in->entries[i]);
	if (kernel_table_rule(t, at) != expected)
		abort();
}

FUZZER(data, size)
{
	static struct input in;
	struct kernel_table *t = NULL;
	size_t i;
	int r;

	if (!size)
		return 0;
	read_input(&in, data, size);
	r = kernel_table_new(&in.tables, START, END, &t);
	if (r == -ENOMEM)
		return 0;
	if (r == -EBADMSG ? in.sorted : r != 0)
		abort();
	/* What is behind the code is not looked at. */
	for (i = 0; !r && in.sorted && i < in.tables.nr; i++) {
		check(&in, t, in.at[i] - 1);
		check(&in, t, in.at[i]);
		check(&in, t, in.at[i] + 1);
	}
	kernel_table_free(t);
	return 0;
}
