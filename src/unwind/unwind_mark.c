// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_writer.h"

struct marking {
	struct table_writer writer;
	const struct code_range *ranges;
	size_t nr_ends, at; /* both ends of all ranges, in order; how many of them are passed */
	uint32_t runtime;
	uint8_t flags;	     /* of rules by a register, or 0 */
	union cfi_rule rule; /* in force, unmarked */
};

static uint64_t end_at(const struct marking *m, size_t i)
{
	return i & 1 ? m->ranges[i / 2].end : m->ranges[i / 2].start;
}

static void add(struct marking *m, uint64_t addr)
{
	union cfi_rule rule = m->rule;

	/* Where a walk is cut, nothing is known of what was before. */
	if (m->at & 1 && rule.rule.cfa != CFA_STOP)
		rule.rule.ra |= (uint8_t)(m->runtime << RULE_RUNTIME_SHIFT);
	if (m->at & 1 && rule.rule.cfa == CFA_REG)
		rule.rule.flags |= m->flags;
	table_writer_add(&m->writer, addr, &rule);
}

/* Adds rows where ranges begin or end before `addr`. */
static void pass(struct marking *m, uint64_t addr)
{
	while (m->at < m->nr_ends && end_at(m, m->at) < addr) {
		uint64_t end = end_at(m, m->at++);

		add(m, end);
	}
	while (m->at < m->nr_ends && end_at(m, m->at) == addr)
		m->at++;
}

static void sweep(struct marking *m, const struct unwind_table *t)
{
	for (uint32_t b = 0; b < t->nr_buckets; b++) {
		uint64_t start = t->start + ((uint64_t)b << BUCKET_SHIFT);
		uint32_t first = BUCKET_FIRST(t->buckets[b]), nr = BUCKET_NR(t->buckets[b]);

		for (uint32_t i = first; i < first + nr; i++) {
			uint64_t addr = start + (t->rows[i] >> 24);

			pass(m, addr);
			m->rule.rule = t->rules[ROW_RULE(t->rows[i])];
			add(m, addr);
		}
	}
	pass(m, t->start + ((uint64_t)t->nr_buckets << BUCKET_SHIFT));
}

static int mark(struct unwind_table *table, struct marking *m)
{
	uint64_t end = table->start + ((uint64_t)table->nr_buckets << BUCKET_SHIFT);
	int r;

	if (!m->nr_ends || !table->nr_buckets)
		return 0;
	m->rule.rule = table->rules[0];
	r = table_writer_init(&m->writer, table->start, end, table->nr_rows + m->nr_ends);
	if (r)
		return r;
	sweep(m, table);
	r = table_writer_replace(&m->writer, table);
	table_writer_fini(&m->writer);
	return r;
}

int unwind_table_mark(struct unwind_table *table, const struct code_range *ranges, size_t nr,
		      uint32_t runtime)
{
	struct marking m = { .ranges = ranges, .nr_ends = 2 * nr, .runtime = runtime };

	return mark(table, &m);
}

int unwind_table_mark_new_threads(struct unwind_table *table, const struct code_range *ranges,
				  size_t nr)
{
	struct marking m = { .ranges = ranges, .nr_ends = 2 * nr, .flags = RULE_NEW_THREAD };

	return mark(table, &m);
}
