// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_writer.h"
#include "abi/sample.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

enum { RUNTIME = 5 };

static const union cfi_rule
	small = { .rule = { .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 8 } },
	large = { .rule = { .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = 96 } },
	none = { .rule = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE } },
	end = { .rule = { .cfa = CFA_END } };

/* [0x1000, 0x1400): small, from 0x1110 on large, from 0x1300 on none. */
static struct unwind_table *table(void)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	struct table_writer w;

	ASSERT_OK(table_writer_init(&w, 0x1000, 0x1400, 4));
	table_writer_add(&w, 0x1000, &small);
	table_writer_add(&w, 0x1110, &large);
	table_writer_add(&w, 0x1300, &none);
	ASSERT_OK(table_writer_finish(&w, t));
	table_writer_fini(&w);
	return t;
}

static void expect(const struct unwind_table *t, uint64_t addr, const union cfi_rule *rule,
		   uint32_t runtime)
{
	const struct unwind_rule *found = unwind_table_find(t, addr);

	ck_assert_msg(found->cfa == rule->rule.cfa && found->cfa_off == rule->rule.cfa_off,
		      "%#lx: cfa %d, %d", (long)addr, found->cfa, found->cfa_off);
	ck_assert_msg(RULE_RUNTIME(found) == runtime && RULE_RA(found) == RA_AT_CFA, "%#lx: ra %#x",
		      (long)addr, found->ra);
}

TEST(a_range_within_rows_is_marked_to_the_byte)
{
	const struct code_range ranges[] = { { 0x1021, 0x1203 } };
	struct unwind_table *t = table();

	ASSERT_OK(unwind_table_mark(t, ranges, 1, RUNTIME));
	expect(t, 0x1000, &small, 0);
	expect(t, 0x1020, &small, 0);
	expect(t, 0x1021, &small, RUNTIME);
	expect(t, 0x110f, &small, RUNTIME);
	expect(t, 0x1110, &large, RUNTIME);
	expect(t, 0x1202, &large, RUNTIME);
	expect(t, 0x1203, &large, 0);
	expect(t, 0x12ff, &large, 0);
	expect(t, 0x1300, &none, 0);
	unwind_table_free(t);
}

TEST(ranges_that_touch_rows_and_each_other)
{
	const struct code_range ranges[] = { { 0x1000, 0x1010 },
					     { 0x1010, 0x1020 },
					     { 0x1110, 0x1300 } };
	struct unwind_table *t = table();

	ASSERT_OK(unwind_table_mark(t, ranges, 3, RUNTIME));
	expect(t, 0x1000, &small, RUNTIME);
	expect(t, 0x100f, &small, RUNTIME);
	expect(t, 0x1010, &small, RUNTIME);
	expect(t, 0x1020, &small, 0);
	expect(t, 0x110f, &small, 0);
	expect(t, 0x1110, &large, RUNTIME);
	expect(t, 0x12ff, &large, RUNTIME);
	expect(t, 0x1300, &none, 0);
	unwind_table_free(t);
}

TEST(first_frames_are_marked)
{
	const struct code_range ranges[] = { { 0x1000, 0x1010 } };
	struct unwind_table *t = calloc(1, sizeof(*t));
	struct table_writer w;

	ASSERT_OK(table_writer_init(&w, 0x1000, 0x1400, 1));
	table_writer_add(&w, 0x1000, &end);
	ASSERT_OK(table_writer_finish(&w, t));
	table_writer_fini(&w);
	ASSERT_OK(unwind_table_mark(t, ranges, 1, RUNTIME));
	expect(t, 0x100f, &end, RUNTIME);
	expect(t, 0x1010, &end, 0);
	unwind_table_free(t);
}

TEST(where_walks_are_cut_nothing_is_marked)
{
	const struct code_range ranges[] = { { 0x1200, 0x1380 } };
	struct unwind_table *t = table();

	ASSERT_OK(unwind_table_mark(t, ranges, 1, RUNTIME));
	expect(t, 0x1200, &large, RUNTIME);
	expect(t, 0x1300, &none, 0);
	expect(t, 0x1380, &none, 0);
	unwind_table_free(t);
}

TEST(ranges_outside_the_table_change_nothing)
{
	const struct code_range ranges[] = { { 0x10, 0x20 }, { 0x1500, 0x1600 } };
	struct unwind_table *t = table();

	ASSERT_OK(unwind_table_mark(t, ranges, 2, RUNTIME));
	ASSERT_EQ(t->nr_rows, 3);
	expect(t, 0x1000, &small, 0);
	expect(t, 0x12ff, &large, 0);
	ASSERT_OK(unwind_table_mark(t, NULL, 0, RUNTIME));
	unwind_table_free(t);
}
