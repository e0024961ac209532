// SPDX-License-Identifier: Apache-2.0
#include "unwind/table_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "abi/sample.h"
#include "unwind/table_writer.h"
#include "util/cleanup.h"
#include "util/read_file.h"
#include "util/write_all.h"

/* The file: this, the rules, the buckets, the rows. */
struct image_header {
	char magic[8];
	uint64_t start;
	uint32_t nr_buckets, nr_rows, nr_rules;
	uint32_t nr_bad_fdes, nr_bad_cies, nr_unsupported_expressions, nr_rows_before_merging;
	uint32_t pad_;
};

static const char magic[8] = "SndTable";

enum { PIECE = 16384 }; /* cells that are checked at a time */

int table_image_write(int fd, const struct unwind_table *table)
{
	struct image_header header = {
		.start = table->start,
		.nr_buckets = table->nr_buckets,
		.nr_rows = table->nr_rows,
		.nr_rules = table->nr_rules,
		.nr_bad_fdes = table->nr_bad_fdes,
		.nr_bad_cies = table->nr_bad_cies,
		.nr_unsupported_expressions = table->nr_unsupported_expressions,
		.nr_rows_before_merging = table->nr_rows_before_merging,
	};
	int r;

	memcpy(header.magic, magic, sizeof(magic));
	r = write_all(fd, &header, sizeof(header));
	if (!r)
		r = write_all(fd, table->rules, table->nr_rules * sizeof(*table->rules));
	if (!r)
		r = write_all(fd, table->buckets, table->nr_buckets * sizeof(*table->buckets));
	if (!r)
		r = write_all(fd, table->rows, table->nr_rows * sizeof(*table->rows));
	return r;
}

/* --- checks ----------------------------------------------------------------------------------- */

static uint64_t cells_at(uint32_t nr_rules)
{
	return sizeof(struct image_header) + (uint64_t)nr_rules * sizeof(struct unwind_rule);
}

static int read_header(int fd, struct image_header *ret)
{
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size < (off_t)sizeof(*ret))
		return -EBADMSG;
	r = read_all_at(fd, 0, ret, sizeof(*ret));
	if (r)
		return r;
	if (memcmp(ret->magic, magic, sizeof(magic)) || ret->start & 255 ||
	    ret->nr_buckets > TABLE_BUCKETS_MAX || ret->nr_rows > FILE_ROWS_MAX || !ret->nr_rules ||
	    ret->nr_rules > UNWIND_RULES_MAX)
		return -EBADMSG;
	if ((uint64_t)st.st_size !=
	    cells_at(ret->nr_rules) + ((uint64_t)ret->nr_buckets + ret->nr_rows) * sizeof(uint32_t))
		return -EBADMSG;
	return 0;
}

static bool is_rule(const struct unwind_rule *rule, uint32_t runtime)
{
	uint32_t marked = RULE_RUNTIME(rule);

	if (rule->cfa > CFA_FRAME_POINTER || rule->cfa_reg >= UNWIND_REGS_MAX ||
	    RULE_INDEX(rule->flags) >= UNWIND_REGS_MAX || (marked && marked != runtime))
		return false;
	if (rule->cfa == CFA_STOP)
		return rule->cfa_off == STOP_NO_RULE || rule->cfa_off == STOP_BAD_CFI;
	return RULE_RA(rule) == RA_AT_CFA ||
	       (RULE_RA(rule) == RA_IN_REG && rule->ra_off >= 0 && rule->ra_off < UNWIND_REGS_MAX);
}

static bool are_rules(const struct unwind_rule *rules, uint32_t nr, uint32_t runtime)
{
	const struct unwind_rule none = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };

	if (memcmp(&rules[0], &none, sizeof(none)))
		return false;
	for (uint32_t i = 0; i < nr; i++)
		if (!is_rule(&rules[i], runtime))
			return false;
	return true;
}

/* Do the rows of each bucket follow those of the one before, in the order of their addresses? */
struct check {
	const struct unwind_table *table;
	uint32_t *buckets, *rows; /* PIECE of each */
	uint32_t row;		  /* the next one */
};

static int check_rows(struct check *c, uint32_t nr)
{
	int64_t last = -1;

	for (uint32_t i = 0; i < nr; i++, c->row++) {
		const struct unwind_table *t = c->table;
		uint32_t at = c->row % PIECE, left = t->nr_rows - c->row;
		int r = 0;

		if (!left)
			return -EBADMSG;
		if (!at)
			r = table_image_read(t, t->nr_buckets + c->row, c->rows,
					     left < PIECE ? left : PIECE);
		if (r)
			return r;
		if ((int64_t)(c->rows[at] >> 24) <= last || ROW_RULE(c->rows[at]) >= t->nr_rules)
			return -EBADMSG;
		last = c->rows[at] >> 24;
	}
	return 0;
}

static int check_buckets(struct check *c)
{
	const struct unwind_table *t = c->table;

	for (uint32_t i = 0; i < t->nr_buckets; i++) {
		uint32_t bucket, left = t->nr_buckets - i;
		int r = 0;

		if (i % PIECE == 0)
			r = table_image_read(t, i, c->buckets, left < PIECE ? left : PIECE);
		if (r)
			return r;
		bucket = c->buckets[i % PIECE];
		if (BUCKET_FIRST(bucket) != c->row)
			return -EBADMSG;
		r = check_rows(c, BUCKET_NR(bucket));
		if (r)
			return r;
	}
	return c->row == t->nr_rows ? 0 : -EBADMSG;
}

static int check_cells(const struct unwind_table *table)
{
	_cleanup_free_ uint32_t *buckets = malloc(PIECE * sizeof(*buckets));
	_cleanup_free_ uint32_t *rows = malloc(PIECE * sizeof(*rows));
	struct check c = { .table = table, .buckets = buckets, .rows = rows };

	return buckets && rows ? check_buckets(&c) : -ENOMEM;
}

int table_image_read(const struct unwind_table *table, uint32_t first, uint32_t *to, uint32_t nr)
{
	return read_all_at(table->image, cells_at(table->nr_rules) + (uint64_t)first * sizeof(*to),
			   to, nr * sizeof(*to));
}

int table_image_open(int fd, uint32_t runtime, struct unwind_table **ret)
{
	_cleanup_(unwind_table_free_p) struct unwind_table *table = calloc(1, sizeof(*table));
	int seals = fcntl(fd, F_GET_SEALS);
	struct image_header header;
	int r;

	if (!table)
		return -ENOMEM;
	if (seals < 0 || (seals & TABLE_IMAGE_SEALS) != TABLE_IMAGE_SEALS)
		return -EBADMSG;
	r = read_header(fd, &header);
	if (r)
		return r;
	*table = (struct unwind_table){
		.start = header.start,
		.nr_buckets = header.nr_buckets,
		.nr_rows = header.nr_rows,
		.nr_rules = header.nr_rules,
		.nr_bad_fdes = header.nr_bad_fdes,
		.nr_bad_cies = header.nr_bad_cies,
		.nr_unsupported_expressions = header.nr_unsupported_expressions,
		.nr_rows_before_merging = header.nr_rows_before_merging,
		.rules = malloc(header.nr_rules * sizeof(*table->rules)),
		.image = fd,
	};
	r = table->rules ? read_all_at(fd, sizeof(header), table->rules,
				       header.nr_rules * sizeof(*table->rules))
			 : -ENOMEM;
	if (!r && !are_rules(table->rules, table->nr_rules, runtime))
		r = -EBADMSG;
	if (!r)
		r = check_cells(table);
	if (r) {
		table->image = 0; /* it stays the caller's */
		return r;
	}
	*ret = TAKE_PTR(table);
	return 0;
}

/* --- without reading all of it ---------------------------------------------------------------- */

int table_image_copy(int fd, const struct unwind_table *table)
{
	_cleanup_free_ uint8_t *piece = NULL;
	uint64_t at = 0, end;
	int r = 0;

	if (!table->image)
		return table_image_write(fd, table);
	piece = malloc(PIECE);
	if (!piece)
		return -ENOMEM;
	end = cells_at(table->nr_rules) +
	      ((uint64_t)table->nr_buckets + table->nr_rows) * sizeof(uint32_t);
	while (!r && at < end) {
		size_t n = end - at < PIECE ? end - at : PIECE;

		r = read_all_at(table->image, at, piece, n);
		if (!r)
			r = write_all(fd, piece, n);
		at += n;
	}
	return r;
}

int table_image_read_rules(struct unwind_table *table)
{
	size_t size = table->nr_rules * sizeof(*table->rules);

	free(table->rules);
	table->rules = malloc(size);
	return table->rules
		       ? read_all_at(table->image, sizeof(struct image_header), table->rules, size)
		       : -ENOMEM;
}

/* The row that counts at `addr`: its rule's number; 0: there is none. Or a negative errno. */
static int find_row(const struct unwind_table *table, uint64_t addr)
{
	/* Those of a bucket, and the one before. */
	uint32_t rows[BUCKET_ROWS_MAX + 1], bucket, first, nr, before, i;
	uint64_t at = addr - table->start;
	int r;

	if (addr < table->start || at >> BUCKET_SHIFT >= table->nr_buckets)
		return 0;
	r = table_image_read(table, (uint32_t)(at >> BUCKET_SHIFT), &bucket, 1);
	if (r)
		return r;
	first = BUCKET_FIRST(bucket);
	nr = BUCKET_NR(bucket);
	before = first > 0;
	if (nr > BUCKET_ROWS_MAX || first > table->nr_rows || nr > table->nr_rows - first)
		return -EBADMSG;
	r = table_image_read(table, table->nr_buckets + first - before, rows, nr + before);
	if (r)
		return r;
	for (i = before; i < nr + before && rows[i] <= ROW(at & 255, 0xffffff); i++)
		;
	return i ? (int)ROW_RULE(rows[i - 1]) : 0;
}

int table_image_find(const struct unwind_table *table, uint64_t addr, struct unwind_rule *ret)
{
	int number = find_row(table, addr);

	if (number < 0)
		return number;
	if ((uint32_t)number >= table->nr_rules)
		return -EBADMSG;
	return read_all_at(table->image,
			   sizeof(struct image_header) + (uint64_t)number * sizeof(*ret), ret,
			   sizeof(*ret));
}
