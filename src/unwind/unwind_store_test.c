// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_store.h"
#include "bpf/host/walk_host.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>

static const struct unwind_store_maps no_maps = { -1, -1, -1 };

static struct unwind_table *table_of(uint32_t nr_buckets, int32_t cfa_off)
{
	struct unwind_table *table = calloc(1, sizeof(*table));

	table->start = 0x1000;
	table->nr_buckets = table->nr_rows = nr_buckets;
	table->nr_rules = 2;
	table->buckets = calloc(nr_buckets, sizeof(uint32_t));
	table->rows = calloc(nr_buckets, sizeof(uint32_t));
	table->rules = calloc(2, sizeof(*table->rules));
	table->rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	table->rules[1] =
		(struct unwind_rule){ .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = cfa_off };
	for (uint32_t i = 0; i < nr_buckets; i++) {
		table->buckets[i] = BUCKET(i, 1);
		table->rows[i] = ROW(0, 1);
	}
	return table;
}

static uint32_t cell_of(const struct unwind_store *s, uint32_t cell)
{
	return s->segments[cell >> ARENA_SEGMENT_SHIFT]->cells[cell & (ARENA_SEGMENT_CELLS - 1)];
}

TEST(a_loaded_table_is_found_with_the_shared_rules)
{
	struct unwind_table *a = table_of(10, 16), *b = table_of(20, 16);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, a));
	ASSERT_OK(unwind_store_load(&s, 2, b));
	ASSERT_EQ(s.files[1].state, FILE_STATE_LOADED);
	ASSERT_EQ(s.files[2].nr_buckets, 20);
	ASSERT_EQ(s.rules[ROW_RULE(cell_of(&s, s.files[1].rows))].cfa_off, 16);
	/* One rule for both, beside the fixed ones. */
	ASSERT_EQ(cell_of(&s, s.files[1].rows), cell_of(&s, s.files[2].rows + 19));
	ASSERT_EQ(s.nr_rules, RULE_RUNTIMES + RUNTIME_MAX_ + 1);
	unwind_table_free(a);
	unwind_table_free(b);
	unwind_store_fini(&s);
}

TEST(tables_may_straddle_segments_but_mappings_do_not)
{
	struct unwind_table *big = table_of(50000, 8);
	struct unwind_mapping m[100];
	struct unwind_store s;
	uint32_t cell;

	memset(m, 0, sizeof(m));
	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, big));
	ASSERT_EQ(s.nr_segments, 2);
	ASSERT_EQ(ROW_RULE(cell_of(&s, s.files[1].rows + 49999)), RULE_RUNTIMES + RUNTIME_MAX_);
	for (int i = 0; i < 200; i++) {
		m[0].start = (uint64_t)i;
		ASSERT_OK(unwind_store_add_mappings(&s, m, 100, &cell));
		ASSERT_EQ(cell >> ARENA_SEGMENT_SHIFT, (cell + 799) >> ARENA_SEGMENT_SHIFT);
		ASSERT_EQ(cell % 8, 0);
		ASSERT_EQ(cell_of(&s, cell), i);
	}
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(a_full_arena_gives_up_what_was_unused_for_longest)
{
	struct unwind_table *big = table_of(30000, 8);
	struct unwind_store s;

	/* Two segments: room for two such tables and no third. */
	ASSERT_OK(unwind_store_init(&s, &no_maps, 512 << 10));
	unwind_store_tick(&s, RETIRE_NS);
	ASSERT_OK(unwind_store_load(&s, 1, big));
	ASSERT_OK(unwind_store_load(&s, 2, big));
	/* Both were needed just now: the third has no place. */
	ASSERT_ERR(unwind_store_load(&s, 3, big), ENOSPC);
	ASSERT_EQ(s.files[3].state, FILE_STATE_EVICTED);
	unwind_store_tick(&s, 10 * RETIRE_NS);
	unwind_store_touch(&s, 1);
	/* Number 2 goes, but its cells are not used again at once: a walk may be reading them. */
	ASSERT_ERR(unwind_store_load(&s, 3, big), ENOSPC);
	ASSERT_EQ(s.files[2].state, FILE_STATE_EVICTED);
	ASSERT_EQ(s.files[1].state, FILE_STATE_LOADED);
	ASSERT_EQ(s.nr_evicted, 1);
	unwind_store_tick(&s, 12 * RETIRE_NS);
	ASSERT_OK(unwind_store_load(&s, 3, big));
	ASSERT_EQ(s.nr_segments, 2);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(tables_leave_room_for_mappings)
{
	struct unwind_table *big = table_of(30000, 8);
	struct unwind_mapping m[100] = { 0 };
	struct unwind_store s;
	uint32_t cell, file = 1;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 2 << 20));
	unwind_store_tick(&s, RETIRE_NS);
	while (!unwind_store_load(&s, file, big))
		file++;
	ASSERT_EQ(s.files[file].state, FILE_STATE_EVICTED);
	ASSERT(file > 7);
	for (int i = 0; i < 60; i++)
		ASSERT_OK(unwind_store_add_mappings(&s, m, 100, &cell));
	/* Their room is made again out of tables that nobody needs. */
	unwind_store_tick(&s, 10 * RETIRE_NS);
	ASSERT(s.nr_evicted);
	unwind_store_tick(&s, 20 * RETIRE_NS);
	for (int i = 0; i < 60; i++)
		ASSERT_OK(unwind_store_add_mappings(&s, m, 100, &cell));
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(half_full_is_told_by_what_is_used)
{
	struct unwind_table *big = table_of(30000, 8);
	struct unwind_store s;

	/* Four segments: room for four such tables. */
	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	ASSERT(!unwind_store_is_half_full(&s));
	ASSERT_OK(unwind_store_load(&s, 1, big));
	ASSERT(!unwind_store_is_half_full(&s));
	ASSERT_OK(unwind_store_load(&s, 2, big));
	ASSERT_OK(unwind_store_load(&s, 3, big));
	ASSERT(unwind_store_is_half_full(&s));
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(cells_come_back_whole)
{
	struct unwind_mapping m[64] = { 0 };
	struct unwind_store s;
	uint32_t cells[100];

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			ASSERT_OK(unwind_store_add_mappings(
				&s, m, 1 + (uint32_t)(i * 7 + round) % 64, &cells[i]));
		for (int i = 0; i < 100; i++)
			unwind_store_free_mappings(&s, cells[i],
						   1 + (uint32_t)(i * 7 + round) % 64);
		unwind_store_tick(&s, (uint64_t)(round + 1) * 2 * RETIRE_NS);
	}
	/* One, and the spare one. */
	ASSERT_EQ(s.nr_segments, 2);
	ASSERT_EQ(s.free_ranges.nr, 1);
	ASSERT_EQ(s.free_ranges.items[0].nr, 2 * ARENA_SEGMENT_CELLS);
	unwind_store_fini(&s);
}

TEST(rules_that_find_no_place_end_a_walk_and_are_counted)
{
	struct unwind_table *table = table_of(1, 8);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	for (int32_t i = 0; i < UNWIND_RULES_MAX; i++) {
		table->rules[1].cfa_off = 8 * i;
		ASSERT_OK(unwind_store_load(&s, 1 + (uint32_t)i % 1000, table));
	}
	ASSERT(s.nr_rules_lost > 0);
	ASSERT_EQ(s.rules[ROW_RULE(cell_of(&s, s.files[1 + (UNWIND_RULES_MAX - 1) % 1000].rows))]
			  .cfa_off,
		  STOP_TABLE_EVICTED);
	unwind_table_free(table);
	unwind_store_fini(&s);
}

TEST(too_many_mappings_are_refused)
{
	struct unwind_mapping *m = calloc(MAPPINGS_MAX + 1, sizeof(*m));
	struct unwind_store s;
	uint32_t cell = 77;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	ASSERT_ERR(unwind_store_add_mappings(&s, m, MAPPINGS_MAX + 1, &cell), E2BIG);
	ASSERT_EQ(cell, 77);
	ASSERT_OK(unwind_store_add_mappings(&s, m, MAPPINGS_MAX, &cell));
	ASSERT_OK(unwind_store_add_mappings(&s, m, 0, &cell));
	free(m);
	unwind_store_fini(&s);
}

TEST(a_record_is_readable_as_a_whole_and_never_cell_0)
{
	uint64_t facts[3] = { 1, 2, 3 };
	struct unwind_store s;
	const struct runtime_record *r;
	uint32_t cell, other;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	ASSERT_OK(unwind_store_add_record(&s, 2, facts, sizeof(facts), 0, &cell));
	ASSERT_OK(unwind_store_add_record(&s, 3, facts, 8, cell, &other));
	ASSERT(cell && other && cell != other);
	ASSERT_EQ(cell % 8, 0);
	r = (const struct runtime_record *)&s.segments[0]->cells[other];
	ASSERT_EQ(r->runtime, 3);
	ASSERT_EQ(r->size, 8);
	ASSERT_EQ(r->next, cell);
	ASSERT_EQ(((const uint64_t *)(r + 1))[0], 1);
	ASSERT_EQ(((const uint64_t *)(r + 1))[1], 0);
	ASSERT_ERR(unwind_store_add_record(&s, 2, facts, RUNTIME_RECORD_MAX + 1, 0, &cell), E2BIG);
	unwind_store_fini(&s);
}
