/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the rows of an unwind table in the order of their addresses, straight into the arrays
 * that the table keeps: buckets, rows (equal neighbours become one) and distinct rules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dwarf/cfi.h"
#include "unwind/unwind_table.h"
#include "util/hash_index.h"

enum {
	TABLE_RULE_CACHE = 1024,
	TABLE_BUCKETS_MAX = 1 << 23, /* 2 GiB of code, 32 MiB of buckets */
};

struct table_writer {
	uint64_t start;
	uint32_t nr_buckets;
	uint32_t *buckets;
	uint32_t *rows;
	uint32_t nr_rows, rows_cap;
	union cfi_rule *rules;
	uint32_t nr_rules, rules_cap;
	/* private */
	uint32_t bucket, bucket_first;	  /* the open one */
	uint32_t last_rule;		  /* of the last row; 0 at first, as the look-up has it */
	struct hash_index by_rule;	  /* rule numbers */
	uint32_t cache[TABLE_RULE_CACHE]; /* rule numbers, direct-mapped in front of `by_rule` */
	int error;			  /* the first failure; writes are ignored from then on */
};

/* A place to go back to. */
struct table_mark {
	uint32_t nr_rows, bucket, bucket_first, last_rule;
	uint32_t last_row; /* itself: a row at the same address may replace it */
};

/* For code in [start, end); `rows_hint` is how many rows are likely. 0, -EFBIG or -ENOMEM. */
int table_writer_init(struct table_writer *w, uint64_t start, uint64_t end, size_t rows_hint);
void table_writer_fini(struct table_writer *w);
/* Forgets all rows and rules. */
void table_writer_reset(struct table_writer *w);

/* From `addr` on, which is not below the last row's: `rule`. Failures are kept in w->error. */
void table_writer_add(struct table_writer *w, uint64_t addr, const union cfi_rule *rule);

static inline struct table_mark table_writer_mark(const struct table_writer *w)
{
	return (struct table_mark){ w->nr_rows, w->bucket, w->bucket_first, w->last_rule,
				    w->nr_rows ? w->rows[w->nr_rows - 1] : 0 };
}
/* Takes back what was added since the mark. */
static inline void table_writer_rewind(struct table_writer *w, struct table_mark mark)
{
	w->nr_rows = mark.nr_rows;
	w->bucket = mark.bucket;
	w->bucket_first = mark.bucket_first;
	w->last_rule = mark.last_rule;
	if (w->nr_rows)
		w->rows[w->nr_rows - 1] = mark.last_row;
}

/* Moves the arrays, trimmed, into `table`. 0 or the first error. */
int table_writer_finish(struct table_writer *w, struct unwind_table *table);
/* As table_writer_finish(), in place of the arrays that `table` has: they are freed, or, after an
 * error, still its own. */
int table_writer_replace(struct table_writer *w, struct unwind_table *table);
