// SPDX-License-Identifier: Apache-2.0
#include "unwind/unwind_store.h"
#include "bpf/host/walk_host.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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
	return s->arena.segments[cell >> ARENA_SEGMENT_SHIFT]
		->cells[cell & (ARENA_SEGMENT_CELLS - 1)];
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
	ASSERT_EQ(s.rule_set.nr, RULE_RUNTIMES + RUNTIME_MAX_ + 1);
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
	ASSERT_EQ(s.arena.nr_segments, 2);
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
	unwind_store_touch(&s, 1, 0);
	/* Number 2 goes, but its cells are not used again at once: a walk may be reading them. */
	ASSERT_ERR(unwind_store_load(&s, 3, big), ENOSPC);
	ASSERT_EQ(s.files[2].state, FILE_STATE_EVICTED);
	ASSERT_EQ(s.files[1].state, FILE_STATE_LOADED);
	ASSERT_EQ(s.nr_evicted, 1);
	unwind_store_tick(&s, 12 * RETIRE_NS);
	ASSERT_OK(unwind_store_load(&s, 3, big));
	ASSERT_EQ(s.arena.nr_segments, 2);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(what_there_is_no_room_for_may_be_elsewhere)
{
	struct unwind_table *big = table_of(30000, 8);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 512 << 10));
	unwind_store_tick(&s, RETIRE_NS);
	ASSERT_OK(unwind_store_load(&s, 1, big));
	ASSERT_OK(unwind_store_load(&s, 2, big));
	ASSERT_ERR(unwind_store_load(&s, 3, big), ENOSPC);
	unwind_store_set_state(&s, 4, FILE_STATE_EVICTED); /* it has no table */
	unwind_store_set_spills(&s, true);
	ASSERT_EQ(s.files[3].state, FILE_STATE_SPILLED);
	ASSERT_EQ(s.files[4].state, FILE_STATE_EVICTED);
	ASSERT_ERR(unwind_store_load(&s, 5, big), ENOSPC);
	ASSERT_EQ(s.files[5].state, FILE_STATE_SPILLED);
	unwind_store_set_spills(&s, false);
	ASSERT_EQ(s.files[3].state, FILE_STATE_EVICTED);
	ASSERT_EQ(s.files[5].state, FILE_STATE_EVICTED);
	ASSERT_EQ(s.files[1].state, FILE_STATE_LOADED);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

/* Loads tables of files that a user uses from number `file` on until one is refused; the next
 * number. */
static uint32_t load_all(struct unwind_store *s, uint32_t file, uint32_t user,
			 const struct unwind_table *table)
{
	int r;

	do {
		unwind_store_touch(s, file, user);
		r = unwind_store_load(s, file++, table);
	} while (!r);
	ASSERT_EQ(r, -ENOSPC);
	return file;
}

/* All that are loaded are in use, by whoever used them before. */
static void touch_all(struct unwind_store *s, uint32_t nr, uint64_t now_ns)
{
	unwind_store_tick(s, now_ns);
	for (uint32_t i = 0; i < nr; i++)
		unwind_store_touch(s, i, s->users[i].user);
}

/* Loads what may be tried again. */
static void load_pending(struct unwind_store *s, uint32_t nr, const struct unwind_table *table)
{
	for (uint32_t file = 1; file < nr; file++)
		if (s->files[file].state == FILE_STATE_PENDING)
			unwind_store_load(s, file, table);
}

static uint32_t nr_loaded(const struct unwind_store *s, uint32_t first, uint32_t end)
{
	uint32_t nr = 0;

	for (; first < end; first++)
		nr += s->files[first].state == FILE_STATE_LOADED;
	return nr;
}

TEST(who_has_more_than_a_share_makes_room_for_who_has_less)
{
	struct unwind_table *big = table_of(30000, 8);
	uint32_t others = geteuid() + 2, victim, end;
	struct unwind_store s;
	uint64_t now = RETIRE_NS;

	/* Sixteen such tables, less two for mappings, and two for who has less than four. */
	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	unwind_store_tick(&s, now);
	end = load_all(&s, 1, geteuid() + 1, big);
	ASSERT(nr_loaded(&s, 1, end) >= 11);
	ASSERT(nr_loaded(&s, 1, end) <= 13);
	/* What was left is found at once; then the greedy one's tables go, in use as they are. */
	victim = end;
	end = load_all(&s, victim, others, big);
	ASSERT(end > victim + 1);
	for (int i = 0; i < 10; i++) {
		touch_all(&s, end, now += RETIRE_NS / 2);
		load_pending(&s, end, big);
	}
	ASSERT_EQ(nr_loaded(&s, victim, end), end - victim);
	ASSERT(nr_loaded(&s, 1, victim) >= 4);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(what_is_in_use_and_roots_is_not_given_up)
{
	struct unwind_table *big = table_of(30000, 8);
	uint32_t first = 1, end = first;
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	unwind_store_tick(&s, RETIRE_NS);
	/* Root's come first, and nobody's share makes room for anyone who is above it. */
	end = load_all(&s, first, 0, big);
	ASSERT(nr_loaded(&s, first, end) >= 13);
	unwind_store_touch(&s, end, geteuid() + 1);
	ASSERT_ERR(unwind_store_load(&s, end, big), ENOSPC);
	touch_all(&s, end + 1, 2 * RETIRE_NS);
	ASSERT_EQ(nr_loaded(&s, first, end), end - first - 1);
	ASSERT_EQ(s.nr_evicted, 0);
	/* A number that is another file's later is nobody's, until somebody uses it. */
	unwind_store_forget(&s, end);
	ASSERT(!s.users[end].known);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(what_others_use_too_is_nobodys)
{
	struct unwind_table *big = table_of(30000, 8);
	uint32_t greedy = geteuid() + 1, others = geteuid() + 2, victim, end;
	struct unwind_store s;
	uint64_t now = RETIRE_NS;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	unwind_store_tick(&s, now);
	victim = load_all(&s, 1, greedy, big);
	/* Root's processes are in all of these as well, and stay there. */
	for (uint32_t file = 1; file < victim; file++)
		unwind_store_touch(&s, file, 0);
	end = load_all(&s, victim, others, big);
	for (int i = 0; i < 10; i++) {
		for (uint32_t file = 1; file < victim; file++)
			unwind_store_touch(&s, file, greedy);
		touch_all(&s, end, now += RETIRE_NS / 2);
		for (uint32_t file = 1; file < victim; file++)
			unwind_store_touch(&s, file, 0);
		load_pending(&s, end, big);
	}
	ASSERT_EQ(s.nr_evicted, 0);
	ASSERT(s.files[end - 1].state == FILE_STATE_EVICTED);
	/* They leave: what only one uses from then on is charged to that one, also when a process
	 * that nobody knows has it. */
	for (uint32_t file = 1; file < victim; file++)
		unwind_store_touch(&s, file, greedy);
	for (int i = 0; i < 20; i++) {
		for (uint32_t file = 1; file < victim; file++)
			unwind_store_touch(&s, file, UNWIND_USER_UNKNOWN);
		touch_all(&s, end, now += RETIRE_NS / 2);
		load_pending(&s, end, big);
	}
	ASSERT(s.nr_evicted > 0);
	ASSERT_EQ(s.files[end - 1].state, FILE_STATE_LOADED);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

/* `nr` samples need the file's table. */
static void need(struct unwind_store *s, uint32_t file, uint32_t user, int nr)
{
	for (int k = 0; k < nr; k++)
		unwind_store_touch(s, file, user);
}

/* A second later. */
static void need_later(struct unwind_store *s, uint32_t file, uint32_t user, int nr)
{
	unwind_store_tick(s, s->now_ns + 1000000000);
	need(s, file, user, nr);
}

/* Of 48 segments 42 are for tables. */
TEST(what_more_samples_need_takes_the_place_of_what_fewer_do)
{
	enum { COOL = 1, HOT, OTHER = 4000000001 };
	struct unwind_table *large = table_of(40 * ARENA_SEGMENT_CELLS / 2, 8);
	struct unwind_table *most = table_of(30 * ARENA_SEGMENT_CELLS / 2, 8);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 12 << 20));
	need_later(&s, COOL, 0, 2);
	ASSERT_OK(unwind_store_load(&s, COOL, large));
	/* No more than it: it stays. */
	ASSERT_ERR(unwind_store_load(&s, HOT, most), ENOSPC);
	for (int i = 0; i < 10; i++) {
		need_later(&s, COOL, 0, 2);
		need(&s, HOT, 0, 2);
	}
	ASSERT_EQ(s.files[COOL].state, FILE_STATE_LOADED);
	/* Another user's, however many need it. */
	s.users[HOT] = (struct file_user){ 0 };
	for (int i = 0; i < 10; i++) {
		need_later(&s, COOL, 0, 2);
		need(&s, HOT, OTHER, 100);
	}
	ASSERT_EQ(s.files[COOL].state, FILE_STATE_LOADED);
	s.users[HOT] = (struct file_user){ 0 };
	/* Clearly more: it goes, and that one comes when nobody can be reading any more. */
	for (int i = 0; i < 10 && s.files[HOT].state != FILE_STATE_PENDING; i++) {
		ASSERT(s.files[COOL].state == FILE_STATE_LOADED || s.nr_evicted == 1);
		need_later(&s, COOL, 0, 2);
		need(&s, HOT, 0, 10);
	}
	ASSERT_EQ(s.files[COOL].state, FILE_STATE_EVICTED);
	ASSERT_OK(unwind_store_load(&s, HOT, most));
	/* What was built just now stays for a while, whoever is needed more by then. */
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(s.files[HOT].state, FILE_STATE_LOADED);
		need_later(&s, COOL, 0, 1000);
		unwind_store_touch(&s, HOT, 0);
	}
	ASSERT_EQ(s.files[HOT].state, FILE_STATE_EVICTED);
	ASSERT_EQ(s.nr_evicted, 2);
	unwind_table_free(large);
	unwind_table_free(most);
	unwind_store_fini(&s);
}

/* Small files that are waited for are many together. */
TEST(many_small_tables_take_the_place_of_a_large_one)
{
	enum { LARGE = 1, FIRST, NR = 8, END = FIRST + NR };
	struct unwind_table *large = table_of(40 * ARENA_SEGMENT_CELLS / 2, 8);
	struct unwind_table *small = table_of(3 * ARENA_SEGMENT_CELLS / 4, 8);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 12 << 20));
	need_later(&s, LARGE, 0, 4);
	ASSERT_OK(unwind_store_load(&s, LARGE, large));
	for (uint32_t file = FIRST; file < END; file++)
		unwind_store_load(&s, file, small);
	for (int i = 0; i < 20; i++) {
		need_later(&s, LARGE, 0, 4);
		for (uint32_t file = FIRST; file < END; file++) {
			unwind_store_touch(&s, file, 0);
			if (s.files[file].state == FILE_STATE_PENDING)
				unwind_store_load(&s, file, small);
		}
	}
	ASSERT_EQ(nr_loaded(&s, FIRST, END), NR);
	ASSERT_EQ(s.files[LARGE].state, FILE_STATE_EVICTED);
	ASSERT(s.is_short);
	unwind_table_free(large);
	unwind_table_free(small);
	unwind_store_fini(&s);
}

TEST(users_who_are_not_known_are_one)
{
	struct unwind_table *big = table_of(30000, 8);
	uint32_t victim = 0, end;
	struct unwind_store s;
	uint64_t now = RETIRE_NS;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	unwind_store_tick(&s, now);
	victim = load_all(&s, 1, UNWIND_USER_UNKNOWN, big);
	ASSERT(nr_loaded(&s, 1, victim) <= 13);
	end = load_all(&s, victim, geteuid() + 1, big);
	for (int i = 0; i < 10; i++) {
		touch_all(&s, end, now += RETIRE_NS / 2);
		load_pending(&s, end, big);
	}
	ASSERT_EQ(nr_loaded(&s, victim, end), end - victim);
	/* One that is seen later has it alone. */
	unwind_store_touch(&s, 1, geteuid() + 2);
	ASSERT_EQ(s.users[1].user, geteuid() + 2);
	ASSERT_EQ(s.users[1].shared_until_ns, 0);
	unwind_store_touch(&s, 1, UNWIND_USER_UNKNOWN);
	ASSERT_EQ(s.users[1].user, geteuid() + 2);
	unwind_table_free(big);
	unwind_store_fini(&s);
}

TEST(room_comes_and_goes_as_far_as_nobody_has_it)
{
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 16 << 20));
	arena_set_max(&s.arena, (16 << 20) - 1);
	ASSERT_EQ(s.arena.max_segments, 63);
	arena_set_max(&s.arena, 17 << 20);
	ASSERT_EQ(s.arena.max_segments, 68);
	arena_set_max(&s.arena, 14 << 20);
	ASSERT_EQ(s.arena.max_segments, 56);
	arena_set_max(&s.arena, 0);
	ASSERT_EQ(s.arena.max_segments, s.arena.nr_segments);
	ASSERT(s.arena.nr_segments > 0);
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
	ASSERT_EQ(s.arena.nr_segments, 2);
	ASSERT_EQ(s.arena.free_ranges.nr, 1);
	ASSERT_EQ(s.arena.free_ranges.items[0].nr, 2 * ARENA_SEGMENT_CELLS);
	unwind_store_fini(&s);
}

/* A table of `nr` rules, each of them with a row; they differ from those of another `base`. */
static struct unwind_table *table_of_rules(uint32_t nr, int32_t base)
{
	struct unwind_table *table = table_of(nr, 0);

	free(table->rules);
	table->nr_rules = nr + 1;
	table->rules = calloc(nr + 1, sizeof(*table->rules));
	table->rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	for (uint32_t i = 1; i <= nr; i++) {
		table->rules[i] = (struct unwind_rule){ .cfa = CFA_REG,
							.cfa_reg = X86_RSP,
							.cfa_off = base + 8 * (int32_t)i };
		table->rows[i - 1] = ROW(0, i);
	}
	return table;
}

/* How many of the file's rows have no rule. */
static uint32_t nr_lost(const struct unwind_store *s, uint32_t file)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->files[file].nr_buckets; i++)
		n += ROW_RULE(cell_of(s, s->files[file].rows + i)) == RULE_TABLE_EVICTED;
	return n;
}

enum { HOSTILE = 32700, HOSTILE_BASE = 1 << 24, ORDINARY = 1000 };

TEST(one_file_does_not_take_the_rules_of_those_that_come_later)
{
	struct unwind_table *hostile = table_of_rules(HOSTILE, HOSTILE_BASE);
	struct unwind_table *victim = table_of_rules(ORDINARY, 0);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, hostile));
	ASSERT_OK(unwind_store_load(&s, 2, victim));
	ASSERT_EQ(nr_lost(&s, 2), 0);
	ASSERT(nr_lost(&s, 1) > 0);
	ASSERT(s.nr_rules_lost > 0);
	unwind_table_free(hostile);
	unwind_table_free(victim);
	unwind_store_fini(&s);
}

/* All of them at work all the time, and nobody's share too large. */
TEST(many_files_do_not_take_them_either)
{
	struct unwind_table *hostile[20], *victim = table_of_rules(ORDINARY, 0);
	struct unwind_store s;
	uint64_t now = RETIRE_NS;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	for (uint32_t i = 0; i < 20; i++) {
		hostile[i] = table_of_rules(4000, HOSTILE_BASE * ((int32_t)i + 1));
		ASSERT_OK(unwind_store_load(&s, 1 + i, hostile[i]));
	}
	ASSERT_OK(unwind_store_load(&s, 100, victim));
	for (int round = 0; round < 40; round++, now += RETIRE_NS / 15) {
		for (uint32_t i = 0; i < 20; i++) {
			unwind_store_touch(&s, 1 + i, 0);
			if (s.files[1 + i].state == FILE_STATE_PENDING)
				ASSERT_OK(unwind_store_load(&s, 1 + i, hostile[i]));
		}
		unwind_store_touch(&s, 100, 0);
		if (s.files[100].state == FILE_STATE_PENDING)
			ASSERT_OK(unwind_store_load(&s, 100, victim));
		unwind_store_tick(&s, now);
	}
	ASSERT_EQ(s.files[100].state, FILE_STATE_LOADED);
	ASSERT_EQ(nr_lost(&s, 100), 0);
	for (uint32_t i = 0; i < 20; i++)
		unwind_table_free(hostile[i]);
	unwind_table_free(victim);
	unwind_store_fini(&s);
}

/* A walk may be about to read the rule of a row that it has seen. */
TEST(a_rule_keeps_its_place_for_a_while_and_then_goes)
{
	struct unwind_table *a = table_of_rules(3, 0), *b = table_of_rules(2, 0);
	struct unwind_table *c = table_of_rules(1, 800);
	uint32_t of_a, of_c, before;
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	unwind_store_tick(&s, RETIRE_NS);
	before = rule_set_nr_free(&s.rule_set);
	ASSERT_OK(unwind_store_load(&s, 1, a));
	ASSERT_EQ(rule_set_nr_free(&s.rule_set), before - 3);
	of_a = ROW_RULE(cell_of(&s, s.files[1].rows + 2));
	/* In its place there is one with the first two. */
	ASSERT_OK(unwind_store_load(&s, 1, b));
	unwind_store_tick(&s, 2 * RETIRE_NS - 1);
	ASSERT_OK(unwind_store_load(&s, 2, c));
	ASSERT_EQ(s.rules[of_a].cfa_off, 24);
	ASSERT_EQ(rule_set_nr_free(&s.rule_set), before - 4);
	unwind_store_tick(&s, 2 * RETIRE_NS);
	ASSERT_EQ(rule_set_nr_free(&s.rule_set), before - 3);
	ASSERT_EQ(s.rules[ROW_RULE(cell_of(&s, s.files[1].rows))].cfa_off, 8);
	ASSERT_EQ(s.rules[ROW_RULE(cell_of(&s, s.files[1].rows + 1))].cfa_off, 16);
	/* What is free is used again. */
	ASSERT_OK(unwind_store_load(&s, 3, a));
	of_c = ROW_RULE(cell_of(&s, s.files[3].rows + 2));
	ASSERT_EQ(of_c, of_a);
	ASSERT_EQ(s.rules[of_c].cfa_off, 24);
	unwind_table_free(a);
	unwind_table_free(b);
	unwind_table_free(c);
	unwind_store_fini(&s);
}

TEST(a_rule_that_is_taken_up_again_stays)
{
	struct unwind_table *a = table_of_rules(3, 0), *b = table_of_rules(3, 800);
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	for (uint64_t i = 1; i < 20; i++) {
		unwind_store_tick(&s, i * RETIRE_NS / 2);
		ASSERT_OK(unwind_store_load(&s, 1, i & 1 ? a : b));
		for (uint32_t row = 0; row < 3; row++)
			ASSERT_EQ(s.rules[ROW_RULE(cell_of(&s, s.files[1].rows + row))].cfa_off,
				  (i & 1 ? 0 : 800) + 8 * (int32_t)(row + 1));
		ASSERT(rule_set_nr_free(&s.rule_set) >=
		       UNWIND_RULES_MAX - RULE_RUNTIMES - RUNTIME_MAX_ - 6);
	}
	unwind_table_free(a);
	unwind_table_free(b);
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
	r = (const struct runtime_record *)&s.arena.segments[0]->cells[other];
	ASSERT_EQ(r->runtime, 3);
	ASSERT_EQ(r->size, 8);
	ASSERT_EQ(r->next, cell);
	ASSERT_EQ(((const uint64_t *)(r + 1))[0], 1);
	ASSERT_EQ(((const uint64_t *)(r + 1))[1], 0);
	ASSERT_ERR(unwind_store_add_record(&s, 2, facts, RUNTIME_RECORD_MAX + 1, 0, &cell), E2BIG);
	unwind_store_fini(&s);
}

/* What the walker finds at `addr` of file 1. */
static struct unwind_rule found(const struct unwind_store *s, uint64_t addr)
{
	const struct unwind_file *f = &s->files[1];
	uint32_t bucket = cell_of(s, f->buckets + (uint32_t)((addr - f->start) >> BUCKET_SHIFT));
	uint32_t row = BUCKET_FIRST(bucket), i;

	for (i = 0; i < BUCKET_NR(bucket); i++)
		if (cell_of(s, f->rows + row + i) <= ROW(addr & 255, 0xffffff))
			continue;
		else
			break;
	return s->rules[ROW_RULE(cell_of(s, f->rows + row + i - 1))];
}

static struct code_row row_of(uint64_t addr, int32_t cfa_off)
{
	return (struct code_row){
		.addr = addr,
		.known = cfa_off,
		.rule = { .cfa = CFA_REG, .cfa_reg = X86_RSP, .cfa_off = cfa_off },
	};
}

static int add_rows(struct unwind_store *s, struct code_row *rows, size_t nr)
{
	const struct code_rows all = { .rows = { .items = rows, .nr = nr } };

	return unwind_store_add_rows(s, 1, &all);
}

/* All of it unfollowed, in one row, but bucket 3. */
static struct unwind_table *table_unfollowed(void)
{
	struct unwind_table *table = table_of(100, 16);

	table->nr_rows = 3;
	table->rows[1] = ROW(0, 0);
	for (uint32_t i = 0; i < 100; i++)
		table->buckets[i] = BUCKET(i > 4   ? 3
					   : i > 2 ? i - 2
						   : i > 0,
					   i == 0 || i == 3 || i == 4);
	table->rows[2] = ROW(0, 1);
	table->rules[1] =
		(struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_UNFOLLOWED };
	return table;
}

TEST(rows_of_followed_code_stand_where_nothing_was_known)
{
	struct unwind_table *table = table_unfollowed();
	struct unwind_store s;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 1 << 20));
	ASSERT_EQ(add_rows(&s, (struct code_row[]){ row_of(0x1000, 8) }, 1), -ENOENT);
	ASSERT_OK(unwind_store_load(&s, 1, table));
	/* Over three buckets, the last of which has rules of its own. */
	ASSERT_OK(add_rows(&s,
			   (struct code_row[]){ row_of(0x1110, 8), row_of(0x1120, 24),
						row_of(0x1130, 0), row_of(0x1140, 40),
						row_of(0x1380, 0) },
			   5));
	ASSERT_EQ(found(&s, 0x10ff).cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(found(&s, 0x110f).cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(found(&s, 0x1110).cfa_off, 8);
	ASSERT_EQ(found(&s, 0x112f).cfa_off, 24);
	ASSERT_EQ(found(&s, 0x1130).cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(found(&s, 0x1140).cfa_off, 40);
	ASSERT_EQ(found(&s, 0x12ff).cfa_off, 40);
	ASSERT_EQ(found(&s, 0x1300).cfa, CFA_STOP);
	ASSERT_EQ(found(&s, 0x1400).cfa, CFA_FRAME_POINTER);
	/* What is known stays, the rest may still come. */
	ASSERT_OK(add_rows(&s, (struct code_row[]){ row_of(0x1100, 64), row_of(0x1200, 0) }, 2));
	ASSERT_EQ(found(&s, 0x1100).cfa_off, 64);
	ASSERT_EQ(found(&s, 0x1110).cfa_off, 8);
	ASSERT_EQ(found(&s, 0x1130).cfa_off, 64);
	ASSERT_EQ(found(&s, 0x1140).cfa_off, 40);
	ASSERT_EQ(found(&s, 0x1200).cfa_off, 40);
	/* They go with the table. */
	ASSERT_OK(unwind_store_load(&s, 1, table));
	ASSERT_EQ(found(&s, 0x1110).cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(s.tables.nr, 1);
	unwind_table_free(table);
	unwind_store_fini(&s);
}

TEST(rows_that_come_later_have_a_limit)
{
	struct unwind_table *table = table_unfollowed();
	struct unwind_store s;
	int r = 0, nr;

	ASSERT_OK(unwind_store_init(&s, &no_maps, 2 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, table));
	for (nr = 0; nr < 1 << 20 && !r; nr++)
		r = add_rows(&s,
			     (struct code_row[]){ row_of(0x1000 + nr % 256, nr + 1),
						  row_of(0x1001 + nr % 256, 0) },
			     2)
			    ?: nr % 256 == 255 ? unwind_store_load(&s, 1, table)
					       : 0;
	ASSERT_EQ(r, -ENOSPC);
	/* And what is there holds. */
	ASSERT_EQ(found(&s, 0x1500).cfa, CFA_FRAME_POINTER);
	unwind_table_free(table);
	unwind_store_fini(&s);
}
