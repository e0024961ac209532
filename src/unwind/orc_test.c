// SPDX-License-Identifier: Apache-2.0
/* The kernel's unwind tables, as kernels of different ages have them, made into rows. */
#include "unwind/orc.h"
#include "util/cleanup.h"
#include "test.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SP = 5, BP = 4, R10 = 6, BP_INDIRECT = 8, SP_INDIRECT = 9, PREV_SP = 1 };
enum { CALL = 2, REGS = 3, PARTIAL = 4 };

static const struct orc_layout with_signal = { 8, 3, 11, 1, 0, 0 };
static const struct orc_layout with_end = { 8, 2, 0, 0, 10, 1 };

static void entry_of(uint8_t *to, int16_t sp, int16_t bp, uint32_t sp_reg, uint32_t bp_reg,
		     uint32_t flags)
{
	uint16_t bits = (uint16_t)(sp_reg | bp_reg << 4 | flags << 8);

	memcpy(to, &sp, 2);
	memcpy(to + 2, &bp, 2);
	memcpy(to + 4, &bits, 2);
}

static uint32_t rule(const struct orc_layout *l, int16_t sp, int16_t bp, uint32_t sp_reg,
		     uint32_t bp_reg, uint32_t flags)
{
	uint8_t entry[ORC_ENTRY_SIZE];

	entry_of(entry, sp, bp, sp_reg, bp_reg, flags);
	return orc_rule(l, entry);
}

TEST(rules_since_6_4)
{
	const struct orc_layout *l = &with_signal;
	const uint32_t end = KERNEL_RULE(KERNEL_END, 0, 0, 0);

	ASSERT_EQ(rule(l, 8, 0, SP, 0, CALL), KERNEL_RULE(KERNEL_CFA_SP, 1, 0, 0));
	ASSERT_EQ(rule(l, 64, -16, SP, PREV_SP, CALL), KERNEL_RULE(KERNEL_CFA_SP, 8, 2, 0));
	ASSERT_EQ(rule(l, 16, -16, BP, PREV_SP, CALL), KERNEL_RULE(KERNEL_CFA_FP, 2, 2, 0));
	ASSERT_EQ(rule(l, 8, 0, SP_INDIRECT, 0, CALL), KERNEL_RULE(KERNEL_CFA_AT_SP, 1, 0, 0));
	ASSERT_EQ(rule(l, -40, 0, BP_INDIRECT, BP, CALL), KERNEL_RULE(KERNEL_CFA_AT_FP, 5, 0, 0));
	ASSERT_EQ(rule(l, 0, 0, SP, 0, REGS | 8), KERNEL_RULE(KERNEL_REGS, 0, 0, 1));
	ASSERT_EQ(rule(l, 16, 0, SP, 0, PARTIAL | 8), KERNEL_RULE(KERNEL_REGS_PARTIAL, 2, 0, 1));
	ASSERT_EQ(rule(l, 0, 0, 0, 0, 0), end);
	ASSERT_EQ(rule(l, 0, 0, 0, 0, 1), end);
}

TEST(rules_before_6_4)
{
	const struct orc_layout *l = &with_end;
	const uint32_t end = KERNEL_RULE(KERNEL_END, 0, 0, 0);

	ASSERT_EQ(rule(l, 64, -16, SP, PREV_SP, 0), KERNEL_RULE(KERNEL_CFA_SP, 8, 2, 0));
	ASSERT_EQ(rule(l, 0, 0, SP, 0, 1), KERNEL_RULE(KERNEL_REGS, 0, 0, 1));
	ASSERT_EQ(rule(l, 16, 0, SP, 0, 2), KERNEL_RULE(KERNEL_REGS_PARTIAL, 2, 0, 1));
	ASSERT_EQ(rule(l, 0, 0, 0, 0, 0), end);
	ASSERT_EQ(rule(l, 0, 0, 0, 0, 4), end);
	/* Before 5.12 a distance meant something else. */
	ASSERT_EQ(rule(l, 0, 0, SP_INDIRECT, 0, 0), KERNEL_RULE(KERNEL_CFA_AT_SP, 0, 0, 0));
	ASSERT_EQ(rule(l, 8, 0, SP_INDIRECT, 0, 0), KERNEL_RULE(KERNEL_HELPER, 0, 0, 0));
}

TEST(what_does_not_fit_is_the_kernels)
{
	const struct orc_layout *l = &with_signal;
	const uint32_t helper = KERNEL_RULE(KERNEL_HELPER, 0, 0, 0);

	ASSERT_EQ(rule(l, 8 * 1023, 0, SP, 0, CALL), KERNEL_RULE(KERNEL_CFA_SP, 1023, 0, 0));
	ASSERT_EQ(rule(l, 8 * 1024, 0, SP, 0, CALL), helper);
	ASSERT_EQ(rule(l, 64, -8 * 511, SP, PREV_SP, CALL), KERNEL_RULE(KERNEL_CFA_SP, 8, 511, 0));
	ASSERT_EQ(rule(l, 64, -8 * 512, SP, PREV_SP, CALL), helper);
	ASSERT_EQ(rule(l, 64, 0, SP, PREV_SP, CALL), helper);
	ASSERT_EQ(rule(l, 64, 8, SP, PREV_SP, CALL), helper);
	ASSERT_EQ(rule(l, 12, 0, SP, 0, CALL), helper);
	ASSERT_EQ(rule(l, -8, 0, SP, 0, REGS | 8), helper);
	ASSERT_EQ(rule(l, 0, 0, R10, 0, CALL), helper);
	ASSERT_EQ(rule(l, -40, 8, BP_INDIRECT, BP, CALL), helper);
	ASSERT_EQ(rule(l, 8, 0, SP, BP, CALL), helper);
	ASSERT_EQ(rule(l, 8, 0, SP, 0, 7), helper);
}

/* --- layouts --------------------------------------------------------------------------------- */

/* Fields behind the two distances: pairs of a name and a number of bits. */
struct field {
	const char *name;
	int bits;
};

static int layout_of(const struct field *fields, int nr, struct orc_layout *ret)
{
	struct btf *btf = btf__new_empty();
	int i, s16, u32, at = 32, r;

	ASSERT_PTR_NONNULL(btf);
	s16 = btf__add_int(btf, "short", 2, BTF_INT_SIGNED);
	u32 = btf__add_int(btf, "unsigned int", 4, 0);
	ASSERT(btf__add_struct(btf, "orc_entry", ORC_ENTRY_SIZE) > 0);
	ASSERT_OK(btf__add_field(btf, "sp_offset", s16, 0, 0));
	ASSERT_OK(btf__add_field(btf, "bp_offset", s16, 16, 0));
	for (i = 0; i < nr; i++) {
		ASSERT_OK(btf__add_field(btf, fields[i].name, u32, at, fields[i].bits));
		at += fields[i].bits;
	}
	r = orc_layout_of(btf, ret);
	btf__free(btf);
	return r;
}

TEST(layouts_of_kernels)
{
	const struct field v5_10[] = {
		{ "sp_reg", 4 }, { "bp_reg", 4 }, { "type", 2 }, { "end", 1 }
	};
	const struct field v6_3[] = {
		{ "sp_reg", 4 }, { "bp_reg", 4 }, { "type", 2 }, { "signal", 1 }, { "end", 1 }
	};
	const struct field v6_4[] = {
		{ "sp_reg", 4 }, { "bp_reg", 4 }, { "type", 3 }, { "signal", 1 }
	};
	const struct field regs_elsewhere[] = {
		{ "type", 3 }, { "signal", 1 }, { "sp_reg", 4 }, { "bp_reg", 4 }
	};
	const struct field wider[] = {
		{ "sp_reg", 4 }, { "bp_reg", 4 }, { "type", 4 }, { "signal", 1 }
	};
	struct orc_layout l;
	struct btf *none = btf__new_empty();

	ASSERT_OK(layout_of(v5_10, 4, &l));
	ASSERT(l.type_shift == 8 && l.type_size == 2 && !l.signal_size && l.end_shift == 10);
	ASSERT_OK(layout_of(v6_3, 5, &l));
	ASSERT(l.type_size == 2 && l.signal_shift == 10 && l.signal_size == 1 && l.end_shift == 11);
	ASSERT_OK(layout_of(v6_4, 4, &l));
	ASSERT(!memcmp(&l, &with_signal, sizeof(l)));
	ASSERT_ERR(layout_of(regs_elsewhere, 4, &l), ENOTSUP);
	ASSERT_ERR(layout_of(wider, 4, &l), ENOTSUP);
	ASSERT_ERR(layout_of(v6_4, 3, &l), ENOTSUP);
	ASSERT_ERR(orc_layout_of(none, &l), ENOENT);
	btf__free(none);
}

/* --- tables ---------------------------------------------------------------------------------- */

enum { START = 0x1000, END = 0x1000 + 5 * 256 + 77, IPS = 0x900000, NR_MAX = 2000 };

struct made {
	int32_t ips[NR_MAX];
	uint8_t entries[NR_MAX][ORC_ENTRY_SIZE];
	uint64_t at[NR_MAX];
	struct orc_tables tables;
};

static void made_init(struct made *m)
{
	*m = (struct made){ .tables = { .ips = m->ips,
					.ips_start = IPS,
					.entries = m->entries,
					.layout = with_signal } };
}

static void add(struct made *m, uint64_t at, uint32_t words)
{
	size_t i = m->tables.nr++;

	m->at[i] = at;
	m->ips[i] = (int32_t)(at - (IPS + 4 * i));
	entry_of(m->entries[i], (int16_t)(8 * words), 0, SP, 0, CALL);
}

/* Looks each address up, and among the entries. */
static void check(const struct made *m)
{
	_cleanup_(kernel_table_free_p) struct kernel_table *t = NULL;
	uint64_t at;

	ASSERT_OK(kernel_table_new(&m->tables, START, END, &t));
	for (at = START; at < END; at++) {
		uint32_t expected = KERNEL_RULE(KERNEL_HELPER, 0, 0, 0);

		for (size_t i = 0; i < m->tables.nr && m->at[i] <= at; i++)
			expected = orc_rule(&with_signal, m->entries[i]);
		ASSERT_EQ(kernel_table_rule(t, at), expected);
	}
	ASSERT_EQ(kernel_table_rule(t, START - 1), KERNEL_RULE(KERNEL_HELPER, 0, 0, 0));
	ASSERT_EQ(kernel_table_rule(t, END), KERNEL_RULE(KERNEL_HELPER, 0, 0, 0));
}

TEST(a_rule_holds_until_the_next)
{
	struct made m;

	made_init(&m);
	check(&m);
	add(&m, START + 10, 1); /* nothing holds before */
	add(&m, START + 300, 2);
	add(&m, START + 300, 3); /* of two at one address the last */
	add(&m, START + 301, 3);
	add(&m, START + 4 * 256, 4);
	add(&m, END + 10, 5);
	check(&m);
	made_init(&m);
	add(&m, START - 100, 1); /* what holds before the code, holds on in it */
	add(&m, START + 256, 2);
	check(&m);
}

TEST(buckets_with_many_rows)
{
	struct made m;

	for (uint32_t nr = 13; nr <= 17; nr++) {
		made_init(&m);
		for (uint32_t i = 0; i < nr; i++)
			add(&m, START + 256 + 3 * i, i + 1);
		check(&m);
	}
	made_init(&m);
	for (uint32_t i = 0; i < 3 * 256; i++)
		add(&m, START + 256 + i, 1 + i % 7);
	check(&m);
}

TEST(random_tables)
{
	struct made m;

	srand(1);
	for (int round = 0; round < 100; round++) {
		uint64_t at = START - 50;
		int step = 1 + rand() % 60;

		made_init(&m);
		for (; at < END + 50 && m.tables.nr < NR_MAX; at += (uint64_t)(rand() % step))
			add(&m, at, 1 + (uint32_t)rand() % 5);
		check(&m);
	}
}

TEST(addresses_that_are_left_out)
{
	const uint64_t out[] = { START,	  START + 299, START + 300, START + 511,
				 END - 1, START - 1,   END };
	_cleanup_(kernel_table_free_p) struct kernel_table *t = NULL;
	uint32_t before[END - START];
	struct made m;

	made_init(&m);
	add(&m, START - 1, 1);
	for (uint32_t i = 0; i < 100; i++) /* of the first bucket more than it has room for */
		add(&m, START + 2 * i, 1 + i % 7);
	for (uint32_t i = 0; i < 14; i++) /* of the second one less than two less */
		add(&m, START + 256 + 10 * i, 1 + i % 7);
	ASSERT_OK(kernel_table_new(&m.tables, START, END, &t));
	for (uint64_t at = START; at < END; at++)
		before[at - START] = kernel_table_rule(t, at);
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		ASSERT_OK(kernel_table_leave_out(t, out[i]));
	for (uint64_t at = START; at < END; at++) {
		uint32_t expected = before[at - START];

		for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
			if (at == out[i])
				expected = KERNEL_RULE(KERNEL_HELPER, 0, 0, 0);
		ASSERT_EQ(kernel_table_rule(t, at), expected);
	}
}

TEST(what_is_no_table_is_refused)
{
	struct kernel_table *t;
	struct made m;

	made_init(&m);
	add(&m, START + 300, 1);
	add(&m, START + 299, 1);
	ASSERT_ERR(kernel_table_new(&m.tables, START, END, &t), EBADMSG);
	ASSERT_ERR(kernel_table_new(&m.tables, START, START, &t), E2BIG);
	ASSERT_ERR(kernel_table_new(&m.tables, START, START + (1ull << 40), &t), E2BIG);
}
