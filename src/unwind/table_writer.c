// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_writer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/sample.h"
#include "util/cleanup.h"

enum {
	ROWS_MIN = 256,
	RULES_MIN = 64,
};

static const union cfi_rule no_rule = { .rule = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE } };

int table_writer_init(struct table_writer *w, uint64_t start, uint64_t end, size_t rows_hint)
{
	*w = (struct table_writer){ .start = start & ~(uint64_t)255 };
	if (end < start || (end - w->start) >> BUCKET_SHIFT >= TABLE_BUCKETS_MAX)
		return -EFBIG;
	w->nr_buckets = (end - w->start + 255) >> BUCKET_SHIFT;
	w->rows_cap = rows_hint < ROWS_MIN	  ? ROWS_MIN
		      : rows_hint > FILE_ROWS_MAX ? FILE_ROWS_MAX
						  : rows_hint;
	w->rules_cap = RULES_MIN;
	w->buckets = calloc(w->nr_buckets + 1, sizeof(*w->buckets));
	w->rows = malloc(w->rows_cap * sizeof(*w->rows));
	w->rules = malloc(w->rules_cap * sizeof(*w->rules));
	if (!w->buckets || !w->rows || !w->rules || hash_index_reserve(&w->by_rule)) {
		table_writer_fini(w);
		return -ENOMEM;
	}
	table_writer_reset(w);
	return 0;
}

void table_writer_fini(struct table_writer *w)
{
	free(w->buckets);
	free(w->rows);
	free(w->rules);
	hash_index_fini(&w->by_rule);
	*w = (struct table_writer){ 0 };
}

static inline uint32_t hash_rule(const union cfi_rule *rule)
{
	const uint64_t *v = rule->words;
	uint64_t h;

	h = v[0] ^ (v[1] << 32 | v[1] >> 32) ^ v[2] * 0x9e3779b97f4a7c15ull;
	return (h ^ h >> 32) * 0xc4ceb9fe1a85ec53ull >> 32;
}

static inline bool same_rule(const union cfi_rule *a, const union cfi_rule *b)
{
	return !((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1]) |
		 (a->words[2] ^ b->words[2]));
}

void table_writer_reset(struct table_writer *w)
{
	hash_index_clear(&w->by_rule);
	memset(w->cache, 0, sizeof(w->cache));
	w->rules[0] = no_rule;
	w->nr_rules = 1;
	hash_index_add(&w->by_rule, hash_rule(&no_rule), 0);
	w->nr_rows = w->bucket = w->bucket_first = w->last_rule = 0;
	w->error = 0;
}

static int grow_rules(struct table_writer *w)
{
	uint32_t cap = w->rules_cap * 2;
	union cfi_rule *rules;

	if (w->nr_rules >= UNWIND_RULES_MAX)
		return -EFBIG;
	rules = realloc(w->rules, cap * sizeof(*rules));
	if (!rules)
		return -ENOMEM;
	w->rules = rules;
	w->rules_cap = cap;
	return 0;
}

static int add_rule(struct table_writer *w, const union cfi_rule *rule, uint32_t h)
{
	int r;

	if (w->nr_rules == w->rules_cap) {
		r = grow_rules(w);
		if (r < 0)
			return r;
	}
	r = hash_index_reserve(&w->by_rule);
	if (r)
		return r;
	w->rules[w->nr_rules] = *rule;
	hash_index_add(&w->by_rule, h, w->nr_rules);
	return w->nr_rules++;
}

/* The rule's number; a negative errno. */
static int rule_number(struct table_writer *w, const union cfi_rule *rule)
{
	uint32_t h = hash_rule(rule), *cached = &w->cache[h >> 20 & (TABLE_RULE_CACHE - 1)];
	uint32_t found;
	size_t pos = h;
	int number = -1;

	if (same_rule(&w->rules[*cached], rule))
		return *cached;
	while (number < 0 && hash_index_next(&w->by_rule, h, &pos, &found))
		if (same_rule(&w->rules[found], rule))
			number = (int)found;
	if (number < 0)
		number = add_rule(w, rule, h);
	if (number >= 0)
		*cached = number;
	return number;
}

static void close_bucket(struct table_writer *w)
{
	w->buckets[w->bucket] = BUCKET(w->bucket_first, w->nr_rows - w->bucket_first);
	w->bucket++;
	w->bucket_first = w->nr_rows;
}

static int grow_rows(struct table_writer *w)
{
	uint64_t cap = (uint64_t)w->rows_cap + w->rows_cap / 4;
	uint32_t *rows;

	if (w->rows_cap >= FILE_ROWS_MAX)
		return -EFBIG;
	if (cap > FILE_ROWS_MAX)
		cap = FILE_ROWS_MAX;
	rows = realloc(w->rows, cap * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	w->rows = rows;
	w->rows_cap = cap;
	return 0;
}

void table_writer_add(struct table_writer *w, uint64_t addr, const union cfi_rule *rule)
{
	uint64_t at = addr - w->start;
	uint32_t bucket = at >> BUCKET_SHIFT;
	int number;

	/* Behind the last bucket is nothing that could be looked up. */
	if (w->error || at >> BUCKET_SHIFT >= w->nr_buckets)
		return;
	number = rule_number(w, rule);
	if (number < 0) {
		w->error = number;
		return;
	}
	if ((uint32_t)number == w->last_rule)
		return;
	while (w->bucket < bucket)
		close_bucket(w);
	/* A row for every byte of a bucket is no compiler's work: the last one is left out. */
	if (w->nr_rows - w->bucket_first == BUCKET_ROWS_MAX)
		return;
	/* Two at one address: the later counts. */
	if (w->nr_rows > w->bucket_first && w->rows[w->nr_rows - 1] >> 24 == (at & 255))
		w->nr_rows--;
	if (w->nr_rows == w->rows_cap) {
		w->error = grow_rows(w);
		if (w->error < 0)
			return;
	}
	w->rows[w->nr_rows++] = ROW(at & 255, number);
	w->last_rule = number;
}

/* Gives back what was allocated in advance; realloc() to a smaller size may fail, harmlessly. */
static void *trim(void *p, size_t size)
{
	void *smaller = realloc(p, size ? size : 1);

	return smaller ? smaller : p;
}

int table_writer_finish(struct table_writer *w, struct unwind_table *table)
{
	if (w->error)
		return w->error;
	while (w->bucket < w->nr_buckets)
		close_bucket(w);
	table->start = w->start;
	table->nr_buckets = w->nr_buckets;
	table->nr_rows = w->nr_rows;
	table->nr_rules = w->nr_rules;
	table->buckets = TAKE_PTR(w->buckets);
	table->rows = trim(TAKE_PTR(w->rows), table->nr_rows * sizeof(*w->rows));
	table->rules = trim(TAKE_PTR(w->rules), table->nr_rules * sizeof(*table->rules));
	return 0;
}

int table_writer_replace(struct table_writer *w, struct unwind_table *table)
{
	struct unwind_table written = *table;
	int r = table_writer_finish(w, &written);

	if (r)
		return r;
	free(table->buckets);
	free(table->rows);
	free(table->rules);
	*table = written;
	return 0;
}
