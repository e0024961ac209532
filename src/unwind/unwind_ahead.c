// SPDX-License-Identifier: Apache-2.0
#include "unwind/code_follow.h"
#include "unwind/table_writer.h"

#include <errno.h>

struct following {
	struct table_writer writer;
	const struct elf_file *elf;
	const struct code_range *functions;
	size_t nr, at;	       /* which of them comes next */
	struct code_rows rows; /* of that one, if it was followed */
	bool is_followed;
	int error;
};

static void next_function(struct following *f)
{
	f->at++;
	code_rows_fini(&f->rows);
	f->rows = (struct code_rows){ 0 };
	f->is_followed = false;
}

/* What cannot be read, or not be followed, stays as it was. */
static void follow_function(struct following *f)
{
	if (f->is_followed)
		return;
	f->is_followed = true;
	if (code_follow_ahead(f->elf, &f->functions[f->at], &f->rows) == -ENOMEM)
		f->error = -ENOMEM;
}

static void add(struct following *f, uint64_t addr, const struct unwind_rule *rule)
{
	union cfi_rule u = { .rule = *rule };

	table_writer_add(&f->writer, addr, &u);
}

/* [start, end) has that rule, and is within the next function. */
static void add_function(struct following *f, uint64_t start, uint64_t end,
			 const struct unwind_rule *rule)
{
	add(f, start, rule);
	follow_function(f);
	for (size_t i = 0; i < f->rows.rows.nr && f->rows.rows.items[i].addr < end; i++) {
		const struct code_row *row = &f->rows.rows.items[i];

		/* The one that is in force at `start` replaces what was added there. */
		if (i + 1 < f->rows.rows.nr && row[1].addr <= start)
			continue;
		add(f, row->addr > start ? row->addr : start, row->known ? &row->rule : rule);
	}
}

/* [start, end) has that rule. */
static void add_range(struct following *f, uint64_t start, uint64_t end,
		      const struct unwind_rule *rule)
{
	if (start < end)
		add(f, start, rule);
	if (!unwind_rule_is_unfollowed(rule))
		return;
	while (f->at < f->nr && f->functions[f->at].start < end) {
		const struct code_range *function = &f->functions[f->at];
		uint64_t from = function->start > start ? function->start : start;
		uint64_t to = function->end < end ? function->end : end;

		if (from < to)
			add_function(f, from, to, rule);
		if (from < to && to < end)
			add(f, to, rule);
		if (function->end > end)
			return;
		next_function(f);
	}
}

static void sweep(struct following *f, const struct unwind_table *t)
{
	const struct unwind_rule *rule = &t->rules[0];
	uint64_t since = t->start;

	for (uint32_t b = 0; b < t->nr_buckets; b++) {
		uint64_t start = t->start + ((uint64_t)b << BUCKET_SHIFT);
		uint32_t first = BUCKET_FIRST(t->buckets[b]), nr = BUCKET_NR(t->buckets[b]);

		for (uint32_t i = first; i < first + nr; i++) {
			uint64_t addr = start + (t->rows[i] >> 24);

			add_range(f, since, addr, rule);
			rule = &t->rules[ROW_RULE(t->rows[i])];
			since = addr;
		}
	}
	add_range(f, since, t->start + ((uint64_t)t->nr_buckets << BUCKET_SHIFT), rule);
}

int unwind_table_follow(struct unwind_table *table, const struct elf_file *elf,
			const struct code_range *functions, size_t nr)
{
	struct following f = { .elf = elf, .functions = functions, .nr = nr };
	uint64_t end = table->start + ((uint64_t)table->nr_buckets << BUCKET_SHIFT);
	int r;

	if (!nr || !table->nr_buckets)
		return 0;
	r = table_writer_init(&f.writer, table->start, end, table->nr_rows + 4 * nr);
	if (r)
		return r;
	sweep(&f, table);
	code_rows_fini(&f.rows);
	r = f.error ? f.error : table_writer_replace(&f.writer, table);
	table_writer_fini(&f.writer);
	return r;
}
