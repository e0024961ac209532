// SPDX-License-Identifier: Apache-2.0
/*
 * Spans of all units and symbols, which may overlap, become one sequence of rows.
 *
 * Where several claim an address, the one whose function (or line sequence) begins nearest before
 * it has it: a bogus range that reaches too far hides nothing behind it, and what it hid reappears
 * where the nearer one ends. Of those that begin alike (code folded by a linker) the one that bears
 * the symbol's name wins, then the shorter, then the first in the file; its unit also gives the
 * lines. One sweep; every span's rows are decoded once.
 */
#include "symbol/symbol_builder_internal.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <string.h>

/* A span that covers the address which the sweep has reached, and the row of it there. */
struct active {
	uint32_t end;
	const uint8_t *next; /* NULL: a single row */
	struct image_row row, behind;
};

struct winner {
	uint32_t begin, unit;
};

struct sweep {
	struct builder *b;
	const struct span_list *list;
	uint32_t at;
	bool gap; /* the last row written is one of nothing */
	VEC(struct active) stack;
	VEC(struct winner) ties; /* of ranges that begin alike, in order */
};

int span_begin(struct span_list *list, uint32_t begin, struct image_row *ret_last)
{
	if (list->rows.nr > SPAN_BYTES_MAX - 2 * IMAGE_ROW_MAX)
		return -EFBIG;
	*ret_last = (struct image_row){ .addr = begin };
	return 0;
}

int span_row(struct span_list *list, struct image_row *last, const struct image_row *row)
{
	size_t nr = list->rows.nr;
	int r;

	if (nr > SPAN_BYTES_MAX - 2 * IMAGE_ROW_MAX)
		return -EFBIG;
	r = vec_reserve(&list->rows, nr + IMAGE_ROW_MAX);
	if (r)
		return r;
	list->rows.nr =
		(size_t)(image_put_row(list->rows.items + nr, last, row) - list->rows.items);
	*last = *row;
	return 0;
}

int span_end(struct span_list *list, const struct image_row *last, const struct span *span)
{
	struct image_row end = *last, before = *last;
	int r;

	end.addr = span->end;
	r = span_row(list, &before, &end);
	return r ? r : vec_push(&list->items, *span);
}

static int compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Who wins comes later. */
static int compare_spans(const void *a_, const void *b_)
{
	const struct span *a = a_, *b = b_;
	int r = compare(a->begin, b->begin);

	if (!r)
		r = compare(a->origin, b->origin);
	if (!r)
		r = compare(a->flags, b->flags);
	if (!r)
		r = compare(b->end, a->end);
	return r ? r : compare(b->unit, a->unit);
}

static bool is_sorted(const struct span_list *list)
{
	for (size_t i = 1; i < list->items.nr; i++)
		if (compare_spans(&list->items.items[i - 1], &list->items.items[i]) > 0)
			return false;
	return true;
}

static void sort(struct span_list *list)
{
	if (!is_sorted(list))
		qsort(list->items.items, list->items.nr, sizeof(*list->items.items), compare_spans);
}

/* The row of a symbol that debug information does not know, or not to its end. */
static int symbol_row(struct sweep *s, const struct span *span, struct image_row *ret)
{
	struct builder *b = s->b;
	const struct symbol_span *symbol = &b->symbols.items[span->data];
	struct image_function function = { 0 };
	struct image_row row = { .addr = span->begin };
	uint32_t number = symbol->function;
	int r = 0;

	if (number == IMAGE_NONE) {
		function.name = symbol->name;
		function.file_language =
			symbol_language_of(symbol_writer_text(b->writer, symbol->name));
		r = symbol_writer_function(b->writer, &function, &number);
	}
	if (!r)
		r = symbol_writer_scope(b->writer, &(struct symbol_scope){ .function = number },
					&row.value);
	if (r)
		return r;
	*ret = row;
	return 0;
}

static int activate(struct sweep *s, const struct span *span)
{
	struct active active = { .end = span->end };
	int r = 0;

	if (span->flags == SPAN_SYMBOL) {
		/* Its row is made when it is wanted: mostly it never is. */
		active.row = (struct image_row){ .addr = span->begin };
		active.behind =
			(struct image_row){ .addr = span->end,
					    .value = (uint32_t)(span - s->list->items.items) };
	} else {
		active.row.addr = active.behind.addr = span->begin;
		active.next = image_get_row(s->list->rows.items + span->data, &active.row);
		active.behind = active.row;
		active.next = image_get_row(active.next, &active.behind);
	}
	r = vec_push(&s->stack, active);
	return r;
}

static int put_row(struct sweep *s, const struct active *active, uint32_t at)
{
	struct image_row row = active->row;

	row.addr = at;
	s->gap = false;
	return symbol_writer_row(s->b->writer, &row);
}

/* Writes what the span says from s->at up to `end`. */
static int emit(struct sweep *s, struct active *active, uint32_t end)
{
	uint32_t at = s->at;
	int r;

	if (!active->next && !active->row.value) {
		r = symbol_row(s, &s->list->items.items[active->behind.value], &active->row);
		if (r)
			return r;
	}
	for (;;) {
		while (active->next && active->behind.addr <= at &&
		       active->behind.addr < active->end) {
			active->row = active->behind;
			active->next = image_get_row(active->next, &active->behind);
		}
		r = put_row(s, active, at);
		if (r || !active->next || active->behind.addr >= end)
			return r;
		at = active->behind.addr;
	}
}

/* Goes on to `limit`, which is where the next span begins. */
static int advance(struct sweep *s, uint32_t limit)
{
	int r;

	while (s->at < limit && s->stack.nr) {
		struct active *top = &s->stack.items[s->stack.nr - 1];
		uint32_t end = top->end < limit ? top->end : limit;

		if (end > s->at) {
			r = emit(s, top, end);
			if (r)
				return r;
			s->at = end;
		}
		if (top->end <= s->at)
			s->stack.nr--;
	}
	if (s->at == limit)
		return 0;
	r = s->gap ? 0 : symbol_writer_row(s->b->writer, &(struct image_row){ .addr = s->at });
	s->gap = true;
	s->at = limit;
	return r;
}

static int sweep(struct sweep *s)
{
	int r = 0;

	s->at = 0;
	s->gap = true;
	s->stack.nr = 0;
	for (size_t i = 0; i < s->list->items.nr && !r; i++) {
		const struct span *span = &s->list->items.items[i];

		r = advance(s, span->begin);
		if (!r)
			r = activate(s, span);
	}
	return r ? r : advance(s, UINT32_MAX);
}

/* Remembers which of several units that claim the same code gets it. */
static int find_ties(struct sweep *s)
{
	const struct span *items = s->list->items.items;

	for (size_t i = 0; i + 1 < s->list->items.nr; i++) {
		const struct span *winner = &items[i + 1];
		int r;

		if (items[i].begin != winner->begin || items[i].unit == winner->unit ||
		    items[i].flags == SPAN_SYMBOL)
			continue;
		if (s->ties.nr && s->ties.items[s->ties.nr - 1].begin == winner->begin)
			s->ties.nr--;
		r = vec_push(&s->ties, (struct winner){ winner->begin, winner->unit });
		if (r)
			return r;
	}
	return 0;
}

static bool wins_tie(const struct sweep *s, const struct span *span)
{
	size_t low = sorted_before(s->ties.nr, i, s->ties.items[i].begin < span->begin);

	return low < s->ties.nr && s->ties.items[low].begin == span->begin &&
	       s->ties.items[low].unit == span->unit;
}

static void span_list_fini(struct span_list *list)
{
	vec_free(&list->items);
	vec_free(&list->rows);
}

static int merge(struct sweep *s)
{
	struct builder *b = s->b;
	int r;

	s->list = &b->ranges;
	sort(&b->ranges);
	r = find_ties(s);
	if (!r)
		r = sweep(s);
	if (r)
		return r;
	span_list_fini(&b->ranges);
	for (size_t i = 0; i < b->lines.items.nr && s->ties.nr; i++)
		if (wins_tie(s, &b->lines.items.items[i]))
			b->lines.items.items[i].flags |= SPAN_NAME_MATCHES;
	s->list = &b->lines;
	sort(&b->lines);
	r = symbol_writer_begin_lines(b->writer);
	return r ? r : sweep(s);
}

int builder_merge(struct builder *b)
{
	struct sweep s = { .b = b };
	int r = merge(&s);

	vec_free(&s.stack);
	vec_free(&s.ties);
	return r;
}
