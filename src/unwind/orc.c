// SPDX-License-Identifier: Apache-2.0
#include "unwind/orc.h"
#include "util/cleanup.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/btf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	CODE_MAX = 256 << 20,
	MORE_MAX = (1 << 23) - 1, /* KERNEL_BUCKET_FIRST */
};

static void field_of(const struct btf *btf, const struct btf_type *type, const char *name,
		     uint8_t *ret_shift, uint8_t *ret_size)
{
	const struct btf_member *m = btf_members(type);
	uint32_t i, at, size;

	for (i = 0; i < btf_vlen(type); i++) {
		const char *its = btf__name_by_offset(btf, m[i].name_off);

		if (!its || strcmp(its, name))
			continue;
		at = btf_member_bit_offset(type, i);
		size = btf_member_bitfield_size(type, i);
		if (at < 8 * ORC_FLAGS_OFFSET || at + size > 8 * ORC_ENTRY_SIZE)
			return;
		*ret_shift = at - 8 * ORC_FLAGS_OFFSET;
		*ret_size = size;
	}
}

int orc_layout_of(const struct btf *btf, struct orc_layout *ret)
{
	uint8_t sp_shift = 0, sp_size = 0, bp_shift = 0, bp_size = 0;
	const struct btf_type *type;
	struct orc_layout l = { 0 };
	int id = btf__find_by_name_kind(btf, "orc_entry", BTF_KIND_STRUCT);

	if (id < 0)
		return -ENOENT;
	type = btf__type_by_id(btf, id);
	if (!type || type->size != ORC_ENTRY_SIZE)
		return -ENOTSUP;
	field_of(btf, type, "sp_reg", &sp_shift, &sp_size);
	field_of(btf, type, "bp_reg", &bp_shift, &bp_size);
	field_of(btf, type, "type", &l.type_shift, &l.type_size);
	field_of(btf, type, "signal", &l.signal_shift, &l.signal_size);
	field_of(btf, type, "end", &l.end_shift, &l.end_size);
	if (sp_shift != 0 || sp_size != 4 || bp_shift != 4 || bp_size != 4)
		return -ENOTSUP;
	/* With 2 bits the end is marked apart, with 3 by the type. */
	if (!(l.type_size == 2 && l.end_size == 1) &&
	    !(l.type_size == 3 && !l.end_size && l.signal_size == 1))
		return -ENOTSUP;
	*ret = l;
	return 0;
}

uint32_t orc_rule(const struct orc_layout *l, const void *entry)
{
	const uint8_t *from = entry;
	int16_t sp, bp;
	uint16_t flags;

	memcpy(&sp, from, sizeof(sp));
	memcpy(&bp, from + 2, sizeof(bp));
	memcpy(&flags, from + ORC_FLAGS_OFFSET, sizeof(flags));
	return orc_entry_rule(l, sp, bp, flags);
}

static uint64_t address_of(const struct orc_tables *t, size_t i)
{
	int32_t distance;

	memcpy(&distance, (const char *)t->ips + 4 * i, sizeof(distance));
	return t->ips_start + 4 * i + (int64_t)distance;
}

static uint32_t rule_of(const struct orc_tables *t, size_t i)
{
	return orc_rule(&t->layout, (const char *)t->entries + ORC_ENTRY_SIZE * i);
}

/* The rows of one bucket as they come. */
struct rows {
	uint32_t row[KERNEL_BUCKET_MORE_MAX];
	uint32_t nr;
};

/* Of two entries of one address the last one holds: the first is the end of what stands before. */
static void add_row(struct rows *rows, uint32_t low, uint32_t rule)
{
	if (rows->nr && KERNEL_ROW_LOW(rows->row[rows->nr - 1]) == low)
		rows->nr--;
	if (!rows->nr || KERNEL_ROW_RULE(rows->row[rows->nr - 1]) != rule)
		rows->row[rows->nr++] = KERNEL_ROW(low, rule);
}

static int put_rows(struct kernel_table *t, size_t bucket, const struct rows *rows, size_t *room)
{
	struct kernel_bucket *b = &t->buckets[bucket];
	uint32_t *grown;

	b->head = KERNEL_BUCKET(0, rows->nr);
	if (rows->nr <= KERNEL_BUCKET_ROWS) {
		memcpy(b->rows, rows->row, rows->nr * sizeof(*rows->row));
		return 0;
	}
	if (t->nr_more + rows->nr > MORE_MAX)
		return -E2BIG;
	if (t->nr_more + rows->nr > *room) {
		*room = 2 * *room + KERNEL_BUCKET_MORE_MAX;
		grown = realloc(t->more, *room * sizeof(*t->more));
		if (!grown)
			return -ENOMEM;
		t->more = grown;
	}
	b->head = KERNEL_BUCKET(t->nr_more, rows->nr);
	memcpy(t->more + t->nr_more, rows->row, rows->nr * sizeof(*rows->row));
	t->nr_more += rows->nr;
	return 0;
}

static int put_buckets(struct kernel_table *t, const struct orc_tables *from)
{
	uint32_t rule = ORC_HELPER;
	uint64_t base, last = 0;
	size_t b, i, room = 0;
	int r;

	for (i = 0; i < from->nr && address_of(from, i) < t->start; i++) {
		if (address_of(from, i) < last)
			return -EBADMSG;
		last = address_of(from, i);
		rule = rule_of(from, i);
	}
	for (b = 0; b < t->nr_buckets; b++) {
		struct rows rows = { .nr = 0 };

		base = t->start + (b << KERNEL_BUCKET_SHIFT);
		add_row(&rows, 0, rule);
		for (; i < from->nr; i++) {
			uint64_t at = address_of(from, i);

			if (at < last)
				return -EBADMSG;
			if (at >= t->end || (at - base) >> KERNEL_BUCKET_SHIFT)
				break;
			last = at;
			rule = rule_of(from, i);
			add_row(&rows, at - base, rule);
			t->nr_entries++;
			t->nr_helper += KERNEL_RULE_KIND(rule) == KERNEL_HELPER;
		}
		r = put_rows(t, b, &rows, &room);
		if (r)
			return r;
	}
	return 0;
}

int kernel_table_new(const struct orc_tables *tables, uint64_t start, uint64_t end,
		     struct kernel_table **ret)
{
	_cleanup_(kernel_table_free_p) struct kernel_table *t = NULL;
	int r;

	if (end <= start || end - start > CODE_MAX)
		return -E2BIG;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->start = start;
	t->end = end;
	t->nr_buckets = ((end - start - 1) >> KERNEL_BUCKET_SHIFT) + 1;
	t->buckets = calloc(t->nr_buckets, sizeof(*t->buckets));
	if (!t->buckets)
		return -ENOMEM;
	r = put_buckets(t, tables);
	if (r)
		return r;
	*ret = TAKE_PTR(t);
	return 0;
}

int kernel_table_leave_out(struct kernel_table *t, uint64_t address)
{
	size_t bucket = (address - t->start) >> KERNEL_BUCKET_SHIFT, room = t->nr_more;
	uint64_t base = t->start + (bucket << KERNEL_BUCKET_SHIFT);
	struct rows rows = { .nr = 0 };

	if (address < t->start || address >= t->end)
		return 0;
	for (uint32_t low = 0; low < 1 << KERNEL_BUCKET_SHIFT && base + low < t->end; low++)
		add_row(&rows, low,
			base + low == address ? ORC_HELPER : kernel_table_rule(t, base + low));
	return put_rows(t, bucket, &rows, &room);
}

void kernel_table_free(struct kernel_table *t)
{
	if (!t)
		return;
	free(t->buckets);
	free(t->more);
	free(t);
}

uint32_t kernel_table_rule(const struct kernel_table *t, uint64_t address)
{
	const struct kernel_bucket *b;
	const uint32_t *rows;
	uint32_t lo = 0, n, low;

	if (address < t->start || address >= t->end)
		return ORC_HELPER;
	b = &t->buckets[(address - t->start) >> KERNEL_BUCKET_SHIFT];
	low = (address - t->start) & ((1 << KERNEL_BUCKET_SHIFT) - 1);
	n = KERNEL_BUCKET_NR(b->head);
	rows = n > KERNEL_BUCKET_ROWS ? t->more + KERNEL_BUCKET_FIRST(b->head) : b->rows;
	/* lo: how many rows begin at or before the address. The first begins with the bucket. */
	while (n) {
		uint32_t half = n / 2;

		if (KERNEL_ROW_LOW(rows[lo + half]) <= low) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return KERNEL_ROW_RULE(rows[lo - 1]);
}
