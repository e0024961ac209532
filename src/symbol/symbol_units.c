// SPDX-License-Identifier: Apache-2.0
/*
 * One unit of debug information becomes spans: of each function's range, which scope has which
 * address; of each line sequence, its rows.
 *
 * A function's ranges are cut where ELF symbols begin and end: the outermost function of a piece
 * bears the symbol's name, so that `foo.cold` is what it is everywhere else.
 */
#include "symbol/symbol_builder_internal.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <string.h>

/* Where a scope has code, clipped to 32 bits. */
struct interval {
	uint32_t begin, end;
	uint32_t scope, depth;
};

/* From `addr` on, until the next one. */
struct flat_row {
	uint32_t addr, scope;
};

struct unit_reader {
	struct builder *b;
	const struct dwarf_unit *unit;
	uint32_t number; /* of the unit */
	uint8_t language;
	/* By scope. */
	uint32_t *depth;
	uint32_t *next;		  /* of the same function */
	uint32_t *last;		  /* of a function: its last scope so far */
	uint32_t *piece, *offset; /* the scope's record in that piece */
	/* By function and file: numbers in the image, or IMAGE_NONE. */
	uint32_t *functions, *files;
	uint32_t nr_pieces;
	/* Of the function that is in work. */
	VEC(struct interval) intervals, stack;
	VEC(struct flat_row) rows;
	/* Where functions begin, all of them. */
	VEC(uint64_t) starts;
};

static void reader_fini(struct unit_reader *u)
{
	free(u->depth);
	free(u->functions);
	vec_free(&u->intervals);
	vec_free(&u->stack);
	vec_free(&u->rows);
	vec_free(&u->starts);
}

static uint8_t language_of(uint16_t language)
{
	/* DWARF 5, table 7.17, and what was assigned since (dwarfstd.org, language codes). */
	switch (language) {
	case 0x0000:
		return SYMBOL_LANGUAGE_UNKNOWN;
	case 0x0001: /* C89 */
	case 0x0002: /* C */
	case 0x000c: /* C99 */
	case 0x001d: /* C11 */
	case 0x002c: /* C17 */
		return SYMBOL_LANGUAGE_C;
	case 0x0004: /* C++ */
	case 0x0019: /* C++03 */
	case 0x001a: /* C++11 */
	case 0x0021: /* C++14 */
	case 0x002a: /* C++17 */
	case 0x002b: /* C++20 */
		return SYMBOL_LANGUAGE_CPP;
	case 0x001c:
		return SYMBOL_LANGUAGE_RUST;
	case 0x0016:
		return SYMBOL_LANGUAGE_GO;
	case 0x0013:
		return SYMBOL_LANGUAGE_D;
	case 0x001e:
		return SYMBOL_LANGUAGE_SWIFT;
	default:
		return SYMBOL_LANGUAGE_OTHER;
	}
}

/* --- files and functions ---------------------------------------------------------------------- */

static int file_number(struct unit_reader *u, uint32_t file, uint32_t *ret)
{
	int r;

	if (file >= u->unit->lines->nr_files) {
		*ret = 0;
		return 0;
	}
	if (u->files[file] == IMAGE_NONE) {
		r = symbol_writer_file(u->b->writer, u->unit->lines->files[file], &u->files[file]);
		if (r)
			return r;
	}
	*ret = u->files[file];
	return 0;
}

static const char *function_name(const struct dwarf_function *f)
{
	return f->linkage_name && *f->linkage_name ? f->linkage_name : f->name;
}

/* A function of the unit, under the symbol's name if there is one. */
static int add_function(struct unit_reader *u, uint32_t function, const struct symbol_span *symbol,
			uint32_t *ret)
{
	const struct dwarf_function *f = &u->unit->functions[function];
	struct image_function image = { .line = f->line };
	uint32_t file;
	int r = file_number(u, f->file, &file);

	if (symbol)
		image.name = symbol->name;
	else if (!r)
		r = symbol_writer_string(u->b->writer, function_name(f), &image.name);
	if (r)
		return r;
	image.file_language = file << 8 | u->language;
	return symbol_writer_function(u->b->writer, &image, ret);
}

static int function_number(struct unit_reader *u, uint32_t function, uint32_t *ret)
{
	if (u->functions[function] == IMAGE_NONE) {
		int r = add_function(u, function, NULL, &u->functions[function]);

		if (r)
			return r;
	}
	*ret = u->functions[function];
	return 0;
}

/* --- which scope has which address ------------------------------------------------------------ */

static int compare_intervals(const void *a_, const void *b_)
{
	const struct interval *a = a_, *b = b_;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	return a->scope < b->scope ? -1 : a->scope > b->scope;
}

static bool clip(const struct builder *b, const struct dwarf_range *range, uint32_t *ret_begin,
		 uint32_t *ret_end)
{
	uint64_t begin = range->begin > b->base ? range->begin - b->base : 0, end;

	if (range->end <= b->base || begin >= UINT32_MAX)
		return false;
	end = range->end - b->base;
	*ret_begin = (uint32_t)begin;
	*ret_end = end < UINT32_MAX ? (uint32_t)end : UINT32_MAX;
	return *ret_begin < *ret_end;
}

static int collect(struct unit_reader *u, uint32_t root)
{
	struct interval prev = { 0 };
	bool sorted = true;

	u->intervals.nr = 0;
	for (uint32_t i = root; i != IMAGE_NONE; i = u->next[i]) {
		const struct dwarf_scope *scope = &u->unit->scopes[i];

		for (uint32_t j = 0; j < scope->nr_ranges; j++) {
			const struct dwarf_range *range = &u->unit->ranges[scope->first_range + j];
			struct interval new = { .scope = i, .depth = u->depth[i] };
			int r;

			if (!clip(u->b, range, &new.begin, &new.end))
				continue;
			sorted = sorted && (!u->intervals.nr || compare_intervals(&prev, &new) < 0);
			prev = new;
			r = vec_push(&u->intervals, new);
			if (r)
				return r;
		}
	}
	if (!sorted)
		qsort(u->intervals.items, u->intervals.nr, sizeof(*u->intervals.items),
		      compare_intervals);
	return 0;
}

static int push_row(struct unit_reader *u, uint32_t addr, uint32_t scope)
{
	if (u->rows.nr) {
		struct flat_row *last = &u->rows.items[u->rows.nr - 1];

		if (last->addr == addr) {
			last->scope = scope;
			return 0;
		}
		if (last->scope == scope)
			return 0;
	}
	return vec_push(&u->rows, (struct flat_row){ addr, scope });
}

/* Drops what ends at or before `addr`, writing what is visible below it from there on. */
static int close_until(struct unit_reader *u, uint32_t addr)
{
	int r = 0;

	while (u->stack.nr && !r) {
		uint32_t end = u->stack.items[u->stack.nr - 1].end;

		if (end > addr)
			break;
		do
			u->stack.nr--;
		while (u->stack.nr && u->stack.items[u->stack.nr - 1].end <= end);
		r = push_row(u, end,
			     u->stack.nr ? u->stack.items[u->stack.nr - 1].scope : IMAGE_NONE);
	}
	return r;
}

/*
 * The innermost scope of each address of a function: of those that cover it, the one that begins
 * last; of several that begin there, the deepest.
 */
static int flatten(struct unit_reader *u, uint32_t root)
{
	int r = collect(u, root);

	u->rows.nr = 0;
	u->stack.nr = 0;
	for (size_t i = 0; i < u->intervals.nr && !r; i++) {
		const struct interval *at = &u->intervals.items[i];

		r = close_until(u, at->begin);
		if (!r)
			r = push_row(u, at->begin, at->scope);
		if (!r)
			r = vec_push(&u->stack, *at);
	}
	return r ? r : close_until(u, UINT32_MAX);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* The offset of a scope's record in this piece; makes those of its callers that are not there. */
static int scope_offset(struct unit_reader *u, uint32_t scope, uint32_t *ret)
{
	uint32_t missing[DWARF_INLINE_DEPTH_MAX + 1];
	uint32_t nr = 0, parent;
	int r = 0;

	/* The function itself is there, and callers come before what they call. */
	for (; u->piece[scope] != u->nr_pieces; scope = u->unit->scopes[scope].parent)
		missing[nr++] = scope;
	parent = u->offset[scope];
	while (nr-- && !r) {
		const struct dwarf_scope *s = &u->unit->scopes[missing[nr]];
		struct symbol_scope new = { .parent = parent,
					    .call_line = s->call_line,
					    .call_column = s->call_column };

		r = function_number(u, s->function, &new.function);
		if (!r)
			r = file_number(u, s->call_file, &new.call_file);
		if (!r)
			r = symbol_writer_scope(u->b->writer, &new, &parent);
		u->piece[missing[nr]] = u->nr_pieces;
		u->offset[missing[nr]] = parent;
	}
	if (r)
		return r;
	*ret = parent;
	return 0;
}

/* Does the symbol name this function's code, or was its end only guessed beyond its own? */
static bool symbol_names(const struct symbol_span *symbol, uint32_t origin)
{
	return symbol->sized || symbol->symbol >= origin;
}

static int begin_piece(struct unit_reader *u, uint32_t root, struct symbol_span *symbol,
		       struct span *span)
{
	const struct dwarf_scope *scope = &u->unit->scopes[root];
	const struct dwarf_function *f = &u->unit->functions[scope->function];
	struct symbol_scope record = { 0 };
	int r;

	if (symbol && !symbol_names(symbol, span->origin))
		symbol = NULL;
	span->flags = SPAN_DEBUG_INFO;
	if (symbol && !strcmp(symbol_writer_text(u->b->writer, symbol->name), function_name(f)))
		span->flags |= SPAN_NAME_MATCHES;
	r = symbol ? add_function(u, scope->function, symbol, &record.function)
		   : function_number(u, scope->function, &record.function);
	if (!r)
		r = symbol_writer_scope(u->b->writer, &record, &u->offset[root]);
	if (r)
		return r;
	if (symbol && symbol->function == IMAGE_NONE)
		symbol->function = record.function;
	u->piece[root] = ++u->nr_pieces;
	return 0;
}

static size_t first_row(const struct unit_reader *u, uint32_t addr)
{
	size_t low = sorted_before(u->rows.nr, i, u->rows.items[i].addr <= addr);

	return low ? low - 1 : 0;
}

/* [begin, end) of the function, all under one symbol or none. */
static int add_piece(struct unit_reader *u, uint32_t root, struct symbol_span *symbol,
		     const struct code_span *where, uint32_t origin)
{
	struct span_list *list = &u->b->ranges;
	struct span span = { .begin = where->begin,
			     .end = where->end,
			     .origin = origin,
			     .unit = u->number,
			     .data = (uint32_t)list->rows.nr };
	struct image_row last, row = { 0 };
	int r = span_begin(list, span.begin, &last);

	if (!r)
		r = begin_piece(u, root, symbol, &span);
	for (size_t i = first_row(u, span.begin); i < u->rows.nr && !r; i++) {
		const struct flat_row *at = &u->rows.items[i];

		if (at->addr >= span.end)
			break;
		row.addr = at->addr > span.begin ? at->addr : span.begin;
		r = scope_offset(u, at->scope == IMAGE_NONE ? root : at->scope, &row.value);
		if (!r)
			r = span_row(list, &last, &row);
	}
	return r ? r : span_end(list, &last, &span);
}

/* A function's range, cut at the borders of symbols. */
static int add_range(struct unit_reader *u, uint32_t root, const struct dwarf_range *range)
{
	struct builder *b = u->b;
	const struct code_span *code = builder_code(b, range->begin);
	struct code_span where;
	uint32_t begin, end;
	size_t i;
	int r = 0;

	if (!code || !clip(b, range, &begin, &end))
		return 0;
	end = end < code->end ? end : code->end;
	where.begin = begin;
	for (i = builder_symbol(b, begin); where.begin < end && !r; where.begin = where.end) {
		struct symbol_span *symbol = i < b->symbols.nr ? &b->symbols.items[i] : NULL;

		if (symbol && symbol->begin <= where.begin) {
			where.end = symbol->end < end ? symbol->end : end;
			i++;
		} else {
			where.end = symbol && symbol->begin < end ? symbol->begin : end;
			symbol = NULL;
		}
		r = add_piece(u, root, symbol, &where, begin);
	}
	return r;
}

static int add_root(struct unit_reader *u, uint32_t root)
{
	const struct dwarf_scope *scope = &u->unit->scopes[root];
	int r = flatten(u, root);

	for (uint32_t i = 0; i < scope->nr_ranges && !r; i++) {
		const struct dwarf_range *range = &u->unit->ranges[scope->first_range + i];

		r = vec_push(&u->starts, range->begin);
		if (!r)
			r = add_range(u, root, range);
	}
	return r;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int line_row(struct unit_reader *u, const struct line_row *from, uint32_t addr,
		    struct image_row *ret)
{
	*ret = (struct image_row){ .addr = addr, .line = from->line, .column = from->column };
	if (from->file != UINT32_MAX)
		return file_number(u, from->file, &ret->value);
	ret->line = ret->column = 0;
	return 0;
}

/* The rows [first, last) of one sequence, or a part of it, which ends where row `last` begins. */
static int add_sequence(struct unit_reader *u, size_t first, size_t last)
{
	const struct line_row *rows = u->unit->lines->rows;
	const struct code_span *code = builder_code(u->b, rows[first].addr);
	struct span_list *list = &u->b->lines;
	struct dwarf_range range = { rows[first].addr, rows[last].addr };
	struct span span = { .unit = u->number,
			     .flags = SPAN_DEBUG_INFO,
			     .data = (uint32_t)list->rows.nr };
	struct image_row state, row;
	int r;

	if (!code || !clip(u->b, &range, &span.begin, &span.end))
		return 0;
	span.origin = span.begin;
	span.end = span.end < code->end ? span.end : code->end;
	r = span_begin(list, span.begin, &state);
	for (size_t i = first; i < last && !r; i++) {
		uint64_t addr = rows[i].addr - u->b->base;

		if (addr >= span.end)
			break;
		if (i + 1 < last && rows[i + 1].addr == rows[i].addr)
			continue; /* the last counts */
		r = line_row(u, &rows[i], (uint32_t)addr, &row);
		if (!r && (i == first || row.value != state.value || row.line != state.line ||
			   row.column != state.column))
			r = span_row(list, &state, &row);
	}
	return r ? r : span_end(list, &state, &span);
}

static int compare_starts(const void *a_, const void *b_)
{
	uint64_t a = *(const uint64_t *)a_, b = *(const uint64_t *)b_;

	return a < b ? -1 : a > b;
}

/*
 * A sequence in parts, each from the begin of a function on: so that of units which claim the same
 * code, the one that gets a function gets its lines too.
 */
static int add_parts(struct unit_reader *u, size_t first, size_t last, size_t *start)
{
	const struct line_row *rows = u->unit->lines->rows;
	int r = 0;

	for (size_t i = first; i < last && !r; i++) {
		while (*start < u->starts.nr && u->starts.items[*start] < rows[i].addr)
			(*start)++;
		if (*start == u->starts.nr || u->starts.items[*start] != rows[i].addr ||
		    rows[i].addr == rows[first].addr)
			continue;
		r = add_sequence(u, first, i);
		first = i;
	}
	return r ? r : add_sequence(u, first, last);
}

static int add_lines(struct unit_reader *u)
{
	const struct line_table *lines = u->unit->lines;
	size_t i = 0, first, start = 0;
	int r = 0;

	if (u->starts.nr)
		qsort(u->starts.items, u->starts.nr, sizeof(*u->starts.items), compare_starts);
	while (i < lines->nr_rows && !r) {
		if (lines->rows[i].flags & LINE_END) {
			i++;
			continue;
		}
		first = i;
		while (i + 1 < lines->nr_rows && !(lines->rows[i].flags & LINE_END))
			i++;
		/* Without an end the last row only tells where the one before it ends. */
		if (lines->rows[i].addr > lines->rows[first].addr)
			r = add_parts(u, first, i, &start);
		i++;
	}
	return r;
}

/* --- the unit --------------------------------------------------------------------------------- */

static int reader_init(struct unit_reader *u)
{
	size_t nr_scopes = u->unit->nr_scopes;
	size_t nr_names = u->unit->nr_functions + u->unit->lines->nr_files;

	/* Two allocations, each of several arrays. */
	u->depth = malloc((nr_scopes + 1) * 5 * sizeof(*u->depth));
	u->functions = malloc((nr_names + 1) * sizeof(*u->functions));
	if (!u->depth || !u->functions)
		return -ENOMEM;
	u->next = u->depth + nr_scopes;
	u->last = u->next + nr_scopes;
	u->piece = u->last + nr_scopes;
	u->offset = u->piece + nr_scopes;
	u->files = u->functions + u->unit->nr_functions;
	memset(u->piece, 0, nr_scopes * sizeof(*u->piece));
	memset(u->functions, 0xff, nr_names * sizeof(*u->functions));
	return 0;
}

/* Joins the scopes of each function into a list. */
static void group(struct unit_reader *u)
{
	for (uint32_t i = 0; i < u->unit->nr_scopes; i++) {
		uint32_t parent = u->unit->scopes[i].parent, root;

		u->next[i] = IMAGE_NONE;
		u->last[i] = i;
		u->depth[i] = 0;
		u->offset[i] = i; /* until it is written: its function */
		if (parent == DWARF_NONE)
			continue;
		if (parent >= i || u->depth[parent] >= DWARF_INLINE_DEPTH_MAX) {
			u->depth[i] = DWARF_INLINE_DEPTH_MAX;
			continue;
		}
		u->depth[i] = u->depth[parent] + 1;
		root = u->offset[i] = u->offset[parent];
		u->next[u->last[root]] = i;
		u->last[root] = i;
	}
}

static int read_unit(struct unit_reader *u)
{
	int r = reader_init(u);

	if (r)
		return r;
	group(u);
	for (uint32_t i = 0; i < u->unit->nr_scopes && !r; i++)
		if (u->unit->scopes[i].parent == DWARF_NONE)
			r = add_root(u, i);
	return r ? r : add_lines(u);
}

/*
 * Go 1.16 and 1.17 do not describe what is inlined into methods' wrappers (<autogenerated>), but
 * have it in their own table, by which their runtime names such a frame. 1.18 describes it.
 */
static bool has_better_table(const struct dwarf_unit *unit)
{
	static const char *const producers[] = { "Go cmd/compile go1.16", "Go cmd/compile go1.17" };

	for (size_t i = 0; i < sizeof(producers) / sizeof(*producers); i++) {
		size_t len = strlen(producers[i]);

		if (!strncmp(unit->producer, producers[i], len))
			return unit->producer[len] < '0' || unit->producer[len] > '9';
	}
	return false;
}

int builder_add_unit(void *ctx, const struct dwarf_unit *unit)
{
	struct builder *b = ctx;
	struct unit_reader u = { .b = b,
				 .unit = unit,
				 .number = ++b->nr_units,
				 .language = language_of(unit->language) };
	int r;

	if (u.language == SYMBOL_LANGUAGE_GO && has_better_table(unit))
		return 0;
	r = read_unit(&u);
	b->has_go |= u.language == SYMBOL_LANGUAGE_GO;
	reader_fini(&u);
	return r;
}
