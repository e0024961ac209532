// SPDX-License-Identifier: Apache-2.0
/*
 * A sorted list of mappings that do not overlap.
 *
 * munmap is not reported, so a mapping stays until another takes its place: a new one carves what
 * it covers out of the old ones. JITs that make the same pages executable again and again find
 * their mapping already there, which costs a search and changes nothing.
 */
#include "process/process_internal.h"

#include <string.h>

/* Whether `b` goes on in memory and in the file where `a` ends. */
static bool continues(const struct mapping *a, const struct mapping *b)
{
	return a->end == b->start && a->file == b->file &&
	       (a->file == MAPPING_ANON || a->offset + (a->end - a->start) == b->offset);
}

static bool covers(const struct mapping *outer, const struct mapping *inner)
{
	return outer->start <= inner->start && outer->end >= inner->end &&
	       outer->file == inner->file &&
	       (outer->file == MAPPING_ANON ||
		outer->offset + (inner->start - outer->start) == inner->offset);
}

/* The first mapping that ends beyond `addr`. */
static size_t find(const struct mapping_list *list, uint64_t addr)
{
	size_t lo = 0, hi = list->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (list->items[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void append_piece(struct mapping *pieces, size_t *nr, struct mapping m)
{
	if (m.start >= m.end)
		return;
	if (*nr && continues(&pieces[*nr - 1], &m))
		pieces[*nr - 1].end = m.end;
	else
		pieces[(*nr)++] = m;
}

/* Replaces items [first, last) by `nr` pieces. */
static int splice(struct mapping_list *list, size_t first, size_t last,
		  const struct mapping *pieces, size_t nr)
{
	size_t new_nr = list->nr - (last - first) + nr;

	if (new_nr > (list->max ?: MAPPINGS_MAX) && new_nr > list->nr)
		return -ENOSPC;
	if (vec_reserve(list, new_nr))
		return -ENOMEM;
	memmove(list->items + first + nr, list->items + last,
		(list->nr - last) * sizeof(*list->items));
	memcpy(list->items + first, pieces, nr * sizeof(*pieces));
	list->nr = new_nr;
	return 0;
}

int mapping_list_carve(struct mapping_list *list, const struct mapping *m)
{
	struct mapping pieces[5], piece;
	size_t first = find(list, m->start), last, nr = 0;
	int r;

	if (first < list->nr && covers(&list->items[first], m))
		return 0;
	for (last = first; last < list->nr && list->items[last].start < m->end;)
		last++;
	/* The neighbours that only touch take part too, to be joined. */
	if (first && list->items[first - 1].end == m->start)
		append_piece(pieces, &nr, list->items[--first]);
	if (first < last && list->items[first].start < m->start &&
	    list->items[first].end > m->start) {
		piece = list->items[first];
		piece.end = m->start;
		append_piece(pieces, &nr, piece);
	}
	append_piece(pieces, &nr, *m);
	if (last > first && list->items[last - 1].end > m->end) {
		piece = list->items[last - 1];
		if (piece.file != MAPPING_ANON)
			piece.offset += m->end - piece.start;
		piece.start = m->end;
		append_piece(pieces, &nr, piece);
	}
	if (last < list->nr && list->items[last].start == m->end)
		append_piece(pieces, &nr, list->items[last++]);
	r = splice(list, first, last, pieces, nr);
	return r ? r : 1;
}

int mapping_list_copy(struct mapping_list *to, const struct mapping_list *from)
{
	if (vec_reserve(to, from->nr))
		return -ENOMEM;
	if (from->nr)
		memcpy(to->items, from->items, from->nr * sizeof(*from->items));
	to->nr = from->nr;
	to->max = from->max;
	to->beyond = from->beyond;
	return 0;
}

bool mapping_list_equal(const struct mapping_list *a, const struct mapping_list *b)
{
	if (a->nr != b->nr)
		return false;
	for (size_t i = 0; i < a->nr; i++)
		if (!covers(&a->items[i], &b->items[i]) || !covers(&b->items[i], &a->items[i]))
			return false;
	return true;
}

const struct mapping *process_mapping(const struct process *proc, uint64_t addr)
{
	size_t i = find(&proc->mappings, addr);

	if (i == proc->mappings.nr || proc->mappings.items[i].start > addr)
		return NULL;
	return &proc->mappings.items[i];
}
