// SPDX-License-Identifier: Apache-2.0
/* A table's cells may straddle segments of the arena, a process's mappings may not. */
#include "unwind/unwind_store.h"
#include "unwind/table_heat.h"
#include "unwind/table_image.h"
#include "unwind/table_shares.h"
#include "bpf/host/walk_host.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	CELLS_PER_MAPPING = sizeof(struct unwind_mapping) / 4,
	/* Whole mappings' worth, which keeps both aligned. */
	RECORD_CELLS = (RUNTIME_RECORD_CELLS + CELLS_PER_MAPPING - 1) & -CELLS_PER_MAPPING,
	/* The part of the arena that is not for tables: without a table some stacks are cut, but
	 * without its mappings nothing of a process is known. */
	PART_FOR_MAPPINGS = 8,
	/* The part that is for tables of users who have no more than a share (table_shares.h). */
	PART_FOR_OTHERS = 6,
	/* Of all rules: ordinary files have some hundreds, the largest 1,000. */
	RULES_OF_FILE_MAX = UNWIND_RULES_MAX / 8,
	RULES_PART = 4,			      /* of the free ones is what a file may take */
	RULES_RESERVE = UNWIND_RULES_MAX / 4, /* free, for those that come */
	/* Rows that are added to a file's: so many at a time, and so often (4 MiB). */
	MORE_ROWS = 4096,
	MORE_ROWS_MAX = 256,
	/* Files whose tables may come again in one tick. */
	ADMITTED_MAX = 16,
};

static void retire(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	arena_retire(&s->arena, first, nr, unwind_store_now(s));
}

static uint32_t *cell(const struct unwind_store *s, uint32_t number)
{
	return arena_cell(&s->arena, number);
}

/* --- the store ------------------------------------------------------------------------------- */

int unwind_store_init(struct unwind_store *s, const struct unwind_store_maps *maps,
		      size_t max_bytes)
{
	int r;

	memset(s, 0, sizeof(*s));
	s->maps = *maps;
	r = arena_init(&s->arena, maps->arena_fd, max_bytes);
	s->files = arena_map_array(maps->files_fd, UNWIND_FILES_MAX * sizeof(*s->files));
	s->rules = arena_map_array(maps->rules_fd, UNWIND_RULES_MAX * sizeof(*s->rules));
	s->used_ns = calloc(UNWIND_FILES_MAX, sizeof(*s->used_ns));
	s->wanted = calloc(UNWIND_FILES_MAX, sizeof(*s->wanted));
	s->users = calloc(UNWIND_FILES_MAX, sizeof(*s->users));
	s->heat = calloc(UNWIND_FILES_MAX, sizeof(*s->heat));
	if (!s->files || !s->rules || !s->used_ns || !s->wanted || !s->users || !s->heat)
		r = -ENOMEM;
	if (!r)
		r = rule_set_init(&s->rule_set, s->rules);
	if (r)
		unwind_store_fini(s);
	return r;
}

void unwind_store_fini(struct unwind_store *s)
{
	if (s->files)
		munmap(s->files, UNWIND_FILES_MAX * sizeof(*s->files));
	if (s->rules)
		munmap(s->rules, UNWIND_RULES_MAX * sizeof(*s->rules));
	arena_fini(&s->arena);
	rule_set_fini(&s->rule_set);
	vec_free(&s->tables);
	free(s->used_ns);
	free(s->wanted);
	free(s->users);
	free(s->heat);
	memset(s, 0, sizeof(*s));
}

/* --- tables ---------------------------------------------------------------------------------- */

void unwind_store_set_state(struct unwind_store *s, uint32_t file, enum unwind_file_state state)
{
	if (file < UNWIND_FILES_MAX)
		__atomic_store_n(&s->files[file].state, state, __ATOMIC_RELEASE);
}

void unwind_store_refuse(struct unwind_store *s, uint32_t file)
{
	unwind_store_set_state(s, file, s->spills ? FILE_STATE_SPILLED : FILE_STATE_EVICTED);
}

void unwind_store_set_spills(struct unwind_store *s, bool spills)
{
	enum unwind_file_state was = s->spills ? FILE_STATE_SPILLED : FILE_STATE_EVICTED;

	if (s->spills == spills)
		return;
	s->spills = spills;
	for (uint32_t i = 0; i < UNWIND_FILES_MAX; i++)
		if (s->files[i].state == was && (!spills || s->wanted[i].cells))
			unwind_store_refuse(s, i);
}

/* Calls `each` for each rule that the table's rows have, once. */
static void each_rule(struct unwind_store *s, const struct file_table *t,
		      void (*each)(struct unwind_store *s, uint32_t rule))
{
	uint64_t seen[UNWIND_RULES_MAX / 64] = { 0 };

	for (uint32_t i = t->nr - t->nr_rows; i < t->nr; i++) {
		uint32_t rule = ROW_RULE(*cell(s, t->first + i));

		if (seen[rule / 64] >> rule % 64 & 1)
			continue;
		seen[rule / 64] |= 1ull << rule % 64;
		each(s, rule);
	}
}

static void hold_rule(struct unwind_store *s, uint32_t rule)
{
	rule_set_ref(&s->rule_set, rule);
}

static void let_rule_go(struct unwind_store *s, uint32_t rule)
{
	rule_set_unref(&s->rule_set, rule, unwind_store_now(s));
}

static void let_rows_go(struct unwind_store *s, const struct file_table *t)
{
	if (!t->is_more)
		each_rule(s, t, let_rule_go);
	for (uint32_t i = 0; t->is_more && i < t->used; i++)
		let_rule_go(s, ROW_RULE(*cell(s, t->first + i)));
}

static void set_wish(struct unwind_store *s, uint32_t file, struct table_wish wish)
{
	s->nr_wanted -= s->wanted[file].cells != 0;
	s->nr_wanted += wish.cells != 0;
	s->wanted[file] = wish;
}

/* The file's table, and all that was added to it; how many cells these were. */
static uint32_t drop_table(struct unwind_store *s, uint32_t file)
{
	struct table_wish wish = { 0 };
	size_t i, kept = 0;

	for (i = 0; i < s->tables.nr; i++) {
		const struct file_table *t = &s->tables.items[i];

		if (t->file != file) {
			s->tables.items[kept++] = *t;
			continue;
		}
		unwind_store_refuse(s, file);
		let_rows_go(s, t);
		retire(s, t->first, t->nr);
		wish.cells += t->nr;
		wish.rules += t->nr_rules;
	}
	s->tables.nr = kept;
	if (wish.cells)
		set_wish(s, file, wish);
	return wish.cells;
}

/*
 * Makes room by giving up tables, the longest unused first, but none that a sample needed within
 * RETIRE_NS (they would come back at once). The cells come back later: true if any were found.
 */
static bool evict_for(struct unwind_store *s, uint32_t nr)
{
	bool any = false;

	while (nr) {
		size_t i, oldest = SIZE_MAX;
		uint32_t dropped;

		for (i = 0; i < s->tables.nr; i++) {
			uint64_t used = s->used_ns[s->tables.items[i].file];

			if (used + RETIRE_NS < s->now_ns &&
			    (oldest == SIZE_MAX || used < s->used_ns[s->tables.items[oldest].file]))
				oldest = i;
		}
		if (oldest == SIZE_MAX)
			return any;
		dropped = drop_table(s, s->tables.items[oldest].file);
		nr -= dropped < nr ? dropped : nr;
		s->nr_evicted++;
		any = true;
	}
	return any;
}

static uint64_t for_mappings(const struct unwind_store *s)
{
	return (uint64_t)(s->arena.max_segments / PART_FOR_MAPPINGS) << ARENA_SEGMENT_SHIFT;
}

/* Makes room by giving up tables of users who have more than a share, whoever needs them. */
static void evict_greedy(struct unwind_store *s, uint64_t nr)
{
	const struct file_table *t;

	while (nr && (t = table_shares_greediest(s))) {
		uint32_t dropped = drop_table(s, t->file);

		nr -= dropped < nr ? dropped : nr;
		s->nr_evicted++;
	}
}

/* Makes room for what is needed more by giving up what is needed less, if there is such. */
static void evict_cooler(struct unwind_store *s, uint32_t file, uint64_t nr)
{
	uint32_t victims[TABLE_HEAT_VICTIMS];
	size_t n = table_heat_cooler(s, file, nr, victims);

	for (size_t i = 0; i < n; i++) {
		drop_table(s, victims[i]);
		s->nr_evicted++;
	}
}

/* How long what was admitted again has its room before it is built. */
#define ADMITTED_NS 2000000000ull
#define SHORT_NS    2000000000ull

/* --- room ------------------------------------------------------------------------------------ */

/* Makes `nr` cells come back in time, without what is on its way already. */
static void make_room(struct unwind_store *s, uint32_t nr)
{
	uint64_t coming = arena_nr_coming(&s->arena);

	if (coming < nr)
		evict_for(s, nr - (uint32_t)coming);
}

static uint64_t for_others(const struct unwind_store *s)
{
	return (uint64_t)(s->arena.max_segments / PART_FOR_OTHERS) << ARENA_SEGMENT_SHIFT;
}

/* What a file's table must leave free. */
static uint64_t room_beside(const struct unwind_store *s, uint32_t file, uint32_t nr)
{
	return for_mappings(s) + (table_shares_allow(s, file, nr) ? 0 : for_others(s));
}

/* What is free for a table of `nr` cells, or will be in time. */
static uint64_t room_in_time(const struct unwind_store *s, uint32_t nr)
{
	return arena_nr_coming(&s->arena) + arena_nr_for(&s->arena, nr);
}

/* Makes room for a file's table of `nr` cells, for which there was none. */
static void make_room_for(struct unwind_store *s, uint32_t file, uint32_t nr)
{
	uint64_t all = (uint64_t)s->arena.max_segments << ARENA_SEGMENT_SHIFT;
	uint64_t wanted = nr + for_mappings(s) + for_others(s), coming;

	make_room(s, nr);
	coming = room_in_time(s, nr);
	if (coming < wanted && wanted <= all && table_shares_allow(s, file, nr))
		evict_greedy(s, wanted - coming);
	wanted = nr + room_beside(s, file, nr);
	coming = room_in_time(s, nr);
	if (coming < wanted && wanted <= all)
		evict_cooler(s, file, wanted - coming);
}

/*
 * How many new rules a file may bring: no more than its share, and always a part of what is left,
 * so that there is something for those that come later.
 */
static uint32_t rules_of_file(const struct unwind_store *s)
{
	uint32_t part = rule_set_nr_free(&s->rule_set) / RULES_PART;

	return part < RULES_OF_FILE_MAX ? part : RULES_OF_FILE_MAX;
}

/*
 * When places for rules run short a table is given up: the longest unused, else the one that takes
 * most of them, whoever needs it.
 */
static void make_room_for_rules(struct unwind_store *s)
{
	size_t i, oldest = SIZE_MAX, most = 0;

	if (rule_set_nr_free(&s->rule_set) + s->rule_set.nr_retired >= RULES_RESERVE)
		return;
	for (i = 0; i < s->tables.nr; i++) {
		const struct file_table *t = &s->tables.items[i];
		uint64_t used = s->used_ns[t->file];

		if (used + RETIRE_NS < s->now_ns &&
		    (oldest == SIZE_MAX || used < s->used_ns[s->tables.items[oldest].file]))
			oldest = i;
		if (t->nr_rules > s->tables.items[most].nr_rules)
			most = i;
	}
	if (!s->tables.nr)
		return;
	drop_table(s, s->tables.items[oldest != SIZE_MAX ? oldest : most].file);
	s->nr_evicted++;
}

/* Is there room for it, and would it leave some? */
static bool has_room_for_rules(const struct unwind_store *s, uint32_t nr)
{
	return rule_set_nr_free(&s->rule_set) >= nr + RULES_RESERVE;
}

/* Tables that came when places for rules ran short may be built anew, and whole. */
static void mend_tables(struct unwind_store *s)
{
	for (size_t i = 0; i < s->tables.nr; i++) {
		const struct file_table *t = &s->tables.items[i];

		if (!t->is_short || rules_of_file(s) < t->nr_rules)
			continue;
		s->tables.items[i].is_short = false;
		unwind_store_set_state(s, t->file, FILE_STATE_PENDING);
		return;
	}
}

/* Is there room for so many cells of a file's table? */
static bool has_room(const struct unwind_store *s, uint32_t file, uint32_t nr)
{
	return arena_nr_free(&s->arena) >= nr + room_beside(s, file, nr) &&
	       arena_has(&s->arena, nr);
}

static bool is_hot(const struct unwind_store *s, uint32_t file)
{
	return s->used_ns[file] + RETIRE_NS > s->now_ns;
}

/*
 * Of the files whose table was refused or given up the one that is needed most for its size of
 * those that there is room for; UNWIND_FILES_MAX: none. For others that samples are in, room is
 * made.
 */
static uint32_t choose_wish(struct unwind_store *s, bool make)
{
	uint32_t found = UNWIND_FILES_MAX, nr = s->nr_wanted;

	for (uint32_t i = 0; i < UNWIND_FILES_MAX && nr; i++) {
		uint32_t cells = s->wanted[i].cells;

		nr -= cells != 0;
		if (!cells || !has_room_for_rules(s, s->wanted[i].rules))
			continue;
		if (!has_room(s, i, cells + s->nr_admitted)) {
			if (make && is_hot(s, i))
				make_room_for(s, i, cells);
		} else if (found == UNWIND_FILES_MAX || table_heat_is_hotter(s, i, found)) {
			found = i;
		}
	}
	return found;
}

/* Do samples need more than there is room for, and for so long that it is no passing state? */
static void look_if_short(struct unwind_store *s)
{
	uint64_t wanted = for_mappings(s);

	for (uint32_t i = 0, nr = s->nr_wanted; i < UNWIND_FILES_MAX && nr; i++) {
		nr -= s->wanted[i].cells != 0;
		if (s->wanted[i].cells && is_hot(s, i))
			wanted += s->wanted[i].cells;
	}
	if (wanted <= for_mappings(s) ||
	    wanted <= arena_nr_free(&s->arena) + arena_nr_coming(&s->arena))
		s->enough_ns = s->now_ns;
	s->is_short = s->enough_ns + SHORT_NS < s->now_ns;
}

/* These may come again. What samples are in has its room until it is built. */
static void admit_again(struct unwind_store *s)
{
	if (s->admitted_ns + ADMITTED_NS < s->now_ns)
		s->nr_admitted = 0;
	for (int i = 0; i < ADMITTED_MAX; i++) {
		uint32_t file = choose_wish(s, !i);

		if (file == UNWIND_FILES_MAX)
			return;
		if (is_hot(s, file)) {
			s->nr_admitted += s->wanted[file].cells;
			s->admitted_ns = s->now_ns;
		}
		set_wish(s, file, (struct table_wish){ 0 });
		unwind_store_set_state(s, file, FILE_STATE_PENDING);
	}
}

void unwind_store_tick(struct unwind_store *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	arena_tick(&s->arena, now_ns);
	if (arena_nr_free(&s->arena) < for_mappings(s))
		make_room(s, (uint32_t)(for_mappings(s) - arena_nr_free(&s->arena)));
	if (now_ns >= RETIRE_NS)
		rule_set_expire(&s->rule_set, now_ns - RETIRE_NS);
	make_room_for_rules(s);
	table_heat_cool(s);
	admit_again(s);
	look_if_short(s);
	mend_tables(s);
	arena_keep_spare(&s->arena);
}

/* Numbers of the table's rules in the shared array, each with a reference. */
static uint32_t *map_rules(struct unwind_store *s, const struct unwind_table *table,
			   struct file_table *t)
{
	uint32_t *ids = calloc(table->nr_rules ? table->nr_rules : 1, sizeof(*ids)), i;
	uint32_t left = rules_of_file(s);
	bool is_new;

	for (i = 0; ids && i < table->nr_rules; i++) {
		if (!rule_set_get(&s->rule_set, &table->rules[i], left, &ids[i], &is_new)) {
			left -= is_new;
			continue;
		}
		ids[i] = RULE_TABLE_EVICTED;
		rule_set_ref(&s->rule_set, ids[i]);
		t->is_short = table->nr_rules <= RULES_OF_FILE_MAX;
		s->nr_rules_lost++;
	}
	return ids;
}

/* Cells of the table, from number `at` on. */
static int read_cells(const struct unwind_table *table, uint32_t at, uint32_t *to, uint32_t nr)
{
	const uint32_t *from;

	if (table->image)
		return table_image_read(table, at, to, nr);
	from = at < table->nr_buckets ? table->buckets + at
				      : table->rows + (at - table->nr_buckets);
	memcpy(to, from, nr * sizeof(*to));
	return 0;
}

/*
 * Copies in cells number `at` to `end` of the table, which begins at cell `first`, segment by
 * segment; with `ids`, rows whose rule numbers are translated. Nobody reads them yet.
 */
static int copy_cells(struct unwind_store *s, uint32_t first, const struct unwind_table *table,
		      uint32_t at, uint32_t end, const uint32_t *ids)
{
	while (at < end) {
		uint32_t *to = cell(s, first + at), i;
		uint32_t n = ARENA_SEGMENT_CELLS - ((first + at) & (ARENA_SEGMENT_CELLS - 1));
		int r;

		if (n > end - at)
			n = end - at;
		r = read_cells(table, at, to, n);
		if (r)
			return r;
		for (i = 0; ids && i < n; i++)
			to[i] = (to[i] & 0xff000000) | ids[ROW_RULE(to[i])];
		at += n;
	}
	return 0;
}

static int fill_table(struct unwind_store *s, struct file_table *t,
		      const struct unwind_table *table)
{
	_cleanup_free_ uint32_t *ids = map_rules(s, table, t);
	int r;

	if (!ids)
		return -ENOMEM;
	r = copy_cells(s, t->first, table, 0, table->nr_buckets, NULL);
	if (!r)
		r = copy_cells(s, t->first, table, table->nr_buckets, t->nr, ids);
	if (!r)
		each_rule(s, t, hold_rule);
	for (uint32_t i = 0; i < table->nr_rules; i++)
		let_rule_go(s, ids[i]);
	return r;
}

int unwind_store_load(struct unwind_store *s, uint32_t file, const struct unwind_table *table)
{
	struct file_table t = {
		.file = file,
		.nr = table->nr_buckets + table->nr_rows,
		.nr_rows = table->nr_rows,
		.nr_rules =
			table->nr_rules < RULES_OF_FILE_MAX ? table->nr_rules : RULES_OF_FILE_MAX,
		.since_ns = s->now_ns,
	};
	struct unwind_file *f;
	int r;

	if (file >= UNWIND_FILES_MAX)
		return -E2BIG;
	f = &s->files[file];
	drop_table(s, file);
	r = has_room(s, file, t.nr) ? arena_alloc(&s->arena, t.nr, false, &t.first) : -ENOSPC;
	set_wish(s, file,
		 r == -ENOSPC ? (struct table_wish){ t.nr, t.nr_rules } : (struct table_wish){ 0 });
	if (r == -ENOSPC)
		make_room_for(s, file, t.nr);
	if (!r) {
		r = vec_reserve(&s->tables, s->tables.nr + 1);
		if (!r)
			r = fill_table(s, &t, table);
		if (r)
			retire(s, t.first, t.nr);
		else
			s->tables.items[s->tables.nr++] = t;
	}
	if (r) {
		unwind_store_refuse(s, file);
		return r;
	}
	f->start = table->start;
	f->nr_buckets = table->nr_buckets;
	f->buckets = t.first;
	f->rows = t.first + table->nr_buckets;
	s->used_ns[file] = s->now_ns;
	unwind_store_set_state(s, file, FILE_STATE_LOADED);
	return 0;
}

size_t unwind_store_bytes_with(const struct unwind_store *s, const struct unwind_table *table)
{
	uint64_t nr = (uint64_t)table->nr_buckets + table->nr_rows;

	/* Large ones begin with a segment of their own. */
	nr += arena_nr_used(&s->arena) + ARENA_SEGMENT_CELLS;
	for (size_t i = 0; i < s->tables.nr; i++)
		if (s->tables.items[i].nr >= ARENA_SEGMENT_CELLS)
			nr += -s->tables.items[i].nr & (ARENA_SEGMENT_CELLS - 1);
	nr += nr * 7 / 17 +
	      2 * ARENA_SEGMENT_CELLS; /* PART_FOR_MAPPINGS and PART_FOR_OTHERS: 7/24 */
	return nr * sizeof(uint32_t);
}

/* --- rows that come later -------------------------------------------------------------------- */

/* How far a file's rows may reach: BUCKET_FIRST() has so many bits. */
enum { ROWS_REACH = 1 << 24, BUCKET_BYTES = 1 << BUCKET_SHIFT };

/* Room for `nr` further rows of a file; their first cell. */
static int alloc_rows(struct unwind_store *s, uint32_t file, uint32_t nr, uint32_t *ret)
{
	struct file_table more = { .file = file, .nr = MORE_ROWS, .is_more = true, .used = nr };
	uint32_t nr_more = 0;
	int r;

	for (size_t i = 0; i < s->tables.nr; i++) {
		struct file_table *t = &s->tables.items[i];

		if (t->file != file || !t->is_more)
			continue;
		nr_more++;
		if (t->nr - t->used >= nr) {
			*ret = t->first + t->used;
			t->used += nr;
			return 0;
		}
	}
	r = nr_more < MORE_ROWS_MAX && has_room(s, file, more.nr)
		    ? arena_alloc_behind(&s->arena, more.nr, s->files[file].rows, ROWS_REACH,
					 &more.first)
		    : -ENOSPC;
	if (r == -ENOSPC)
		make_room_for(s, file, more.nr);
	if (r)
		return r;
	r = vec_push(&s->tables, more);
	if (r)
		retire(s, more.first, more.nr);
	*ret = more.first;
	return r;
}

/* The rule of each byte of a bucket. */
static void read_bucket(const struct unwind_store *s, const struct unwind_file *f, uint32_t bucket,
			uint32_t ids[BUCKET_BYTES])
{
	uint32_t word = *cell(s, f->buckets + bucket), first = BUCKET_FIRST(word), at, i;
	uint32_t id = first ? ROW_RULE(*cell(s, f->rows + first - 1)) : RULE_NONE;

	for (at = 0, i = 0; at < BUCKET_BYTES; at++) {
		while (i < BUCKET_NR(word) && *cell(s, f->rows + first + i) >> 24 <= at)
			id = ROW_RULE(*cell(s, f->rows + first + i++));
		ids[at] = id;
	}
}

/* Writes it once more: what readers have found of the old rows stays where it is. */
static int write_bucket(struct unwind_store *s, uint32_t file, uint32_t bucket,
			const uint32_t ids[BUCKET_BYTES])
{
	const struct unwind_file *f = &s->files[file];
	uint32_t rows[BUCKET_BYTES], nr = 0, at, first;
	int r;

	for (at = 0; at < BUCKET_BYTES && nr < BUCKET_ROWS_MAX; at++)
		if (!nr || ROW_RULE(rows[nr - 1]) != ids[at])
			rows[nr++] = ROW(at, ids[at]);
	r = alloc_rows(s, file, nr, &first);
	if (r)
		return r;
	for (at = 0; at < nr; at++) {
		*cell(s, first + at) = rows[at];
		hold_rule(s, ROW_RULE(rows[at]));
	}
	__atomic_store_n(cell(s, f->buckets + bucket), BUCKET(first - f->rows, nr),
			 __ATOMIC_RELEASE);
	return 0;
}

/* The table itself, without what was added to it. */
static struct file_table *table_of(struct unwind_store *s, uint32_t file)
{
	for (size_t i = 0; i < s->tables.nr; i++)
		if (s->tables.items[i].file == file && !s->tables.items[i].is_more)
			return &s->tables.items[i];
	return NULL;
}

/*
 * The rule that `row` gives to addresses that have rule `old`, with a reference: the file's share
 * of rules counts for these too.
 */
static int rule_instead(struct unwind_store *s, uint32_t file, const struct code_row *row,
			uint32_t old, uint32_t *ret)
{
	struct file_table *t = table_of(s, file);
	struct unwind_rule rule = row->rule;
	bool is_new;
	int r;

	if (!t)
		return -ENOENT;
	rule.ra |= RULE_RUNTIME(&s->rules[old]) << RULE_RUNTIME_SHIFT;
	r = rule_set_get(&s->rule_set, &rule, t->nr_rules < RULES_OF_FILE_MAX && rules_of_file(s),
			 ret, &is_new);
	if (!r)
		t->nr_rules += is_new;
	return r;
}

/* Rules instead of those in ids[]; in got[], those of them that have a reference for that. */
static int change_ids(struct unwind_store *s, uint32_t file, uint64_t start,
		      const struct code_rows *rows, size_t *row, uint32_t ids[BUCKET_BYTES],
		      uint32_t got[BUCKET_BYTES], uint32_t *nr_got)
{
	uint32_t was = 0, is = 0;
	size_t last = SIZE_MAX;

	for (uint32_t at = 0; at < BUCKET_BYTES; at++) {
		const struct code_row *next = &rows->rows.items[*row];
		int r;

		while (*row + 1 < rows->rows.nr && next[1].addr <= start + at) {
			++*row;
			next++;
		}
		if (next->addr > start + at || !next->known ||
		    !unwind_rule_is_unfollowed(&s->rules[ids[at]]))
			continue;
		if (last != *row || was != ids[at]) {
			r = rule_instead(s, file, next, ids[at], &is);
			if (r)
				return r;
			got[(*nr_got)++] = is;
			last = *row;
			was = ids[at];
		}
		ids[at] = is;
	}
	return 0;
}

static int change_bucket(struct unwind_store *s, uint32_t file, uint32_t bucket,
			 const struct code_rows *rows, size_t *row)
{
	uint64_t start = s->files[file].start + ((uint64_t)bucket << BUCKET_SHIFT);
	uint32_t ids[BUCKET_BYTES], got[BUCKET_BYTES], nr_got = 0;
	int r;

	read_bucket(s, &s->files[file], bucket, ids);
	r = change_ids(s, file, start, rows, row, ids, got, &nr_got);
	if (!r && nr_got)
		r = write_bucket(s, file, bucket, ids);
	while (nr_got)
		let_rule_go(s, got[--nr_got]);
	return r;
}

int unwind_store_add_rows(struct unwind_store *s, uint32_t file, const struct code_rows *rows)
{
	const struct unwind_file *f = &s->files[file];
	uint64_t bucket, last;
	size_t row = 0;
	int r = 0;

	if (file >= UNWIND_FILES_MAX || f->state != FILE_STATE_LOADED)
		return -ENOENT;
	if (!rows->rows.nr || rows->rows.items[0].addr < f->start)
		return -EINVAL;
	bucket = (rows->rows.items[0].addr - f->start) >> BUCKET_SHIFT;
	last = (rows->rows.items[rows->rows.nr - 1].addr - f->start) >> BUCKET_SHIFT;
	for (; bucket <= last && bucket < f->nr_buckets && !r; bucket++)
		r = change_bucket(s, file, (uint32_t)bucket, rows, &row);
	return r;
}

void unwind_store_forget(struct unwind_store *s, uint32_t file)
{
	drop_table(s, file);
	set_wish(s, file, (struct table_wish){ 0 });
	s->used_ns[file] = 0;
	s->users[file] = (struct file_user){ 0 };
	s->heat[file] = 0;
	unwind_store_set_state(s, file, FILE_STATE_NONE);
}

void unwind_store_touch(struct unwind_store *s, uint32_t file, uint32_t user)
{
	if (file >= UNWIND_FILES_MAX)
		return;
	s->used_ns[file] = s->now_ns;
	table_heat_use(s, file);
	table_shares_use(s, file, user);
}

/* --- mappings -------------------------------------------------------------------------------- */

int unwind_store_add_mappings(struct unwind_store *s, const struct unwind_mapping *mappings,
			      uint32_t nr, uint32_t *ret_cell)
{
	uint32_t nr_cells = nr * CELLS_PER_MAPPING, first;
	int r;

	if (nr > MAPPINGS_MAX)
		return -E2BIG;
	if (!nr) {
		*ret_cell = 0;
		return 0;
	}
	r = arena_alloc(&s->arena, nr_cells, true, &first);
	if (r == -ENOSPC)
		make_room(s, ARENA_SEGMENT_CELLS);
	if (r)
		return r;
	memcpy(cell(s, first), mappings, nr * sizeof(*mappings));
	*ret_cell = first;
	return 0;
}

void unwind_store_free_mappings(struct unwind_store *s, uint32_t first, uint32_t nr)
{
	retire(s, first, nr * CELLS_PER_MAPPING);
}

int unwind_store_add_record(struct unwind_store *s, uint32_t runtime, const void *record,
			    uint32_t size, uint32_t next, uint32_t *ret_cell)
{
	uint32_t nr_cells = RECORD_CELLS, first;
	struct runtime_record *to;
	int r;

	if (size > RUNTIME_RECORD_MAX)
		return -E2BIG;
	r = arena_alloc(&s->arena, nr_cells, true, &first);
	if (!r && !first) /* 0 means none: these cells stay unused */
		r = arena_alloc(&s->arena, nr_cells, true, &first);
	if (r == -ENOSPC)
		make_room(s, ARENA_SEGMENT_CELLS);
	if (r)
		return r;
	to = (struct runtime_record *)cell(s, first);
	memset(to, 0, nr_cells * sizeof(uint32_t));
	*to = (struct runtime_record){ .runtime = runtime, .next = next, .size = size };
	memcpy(to + 1, record, size);
	*ret_cell = first;
	return 0;
}

void unwind_store_free_record(struct unwind_store *s, uint32_t cell)
{
	retire(s, cell, RECORD_CELLS);
}

size_t unwind_store_bytes(const struct unwind_store *s)
{
	return arena_bytes(&s->arena);
}

bool unwind_store_is_half_full(const struct unwind_store *s)
{
	return arena_nr_free(&s->arena) < (uint64_t)s->arena.max_segments
						  << (ARENA_SEGMENT_SHIFT - 1);
}
