// SPDX-License-Identifier: Apache-2.0
/*
 * What Go's table of functions says, for programs without debug information: each function becomes
 * a unit of its own, as if DWARF had described it.
 */
#include "symbol/symbol_builder_internal.h"

#include <string.h>

#include "elf/go_table.h"
#include "util/sorted.h"

enum {
	LANGUAGE_GO = 0x0016, /* DW_LANG_Go */
	FILES_MAX = 1024,     /* of one function with what is inlined into it */
	/* Bytes of names, in sizes of the table: they may share bytes there. */
	NAMES_RATIO = 4,
	NAMES_FREE = 1 << 20,
};

struct steps {
	VEC(struct go_step) items;
};

/* A piece of code that one inlined call has for itself. */
struct part {
	uint32_t begin, end, scope;
};

struct go_reader {
	struct builder *b;
	struct go_table *table;
	uint64_t names_left;
	/* Of the function that is in work. */
	struct go_function f;
	struct steps file_steps, line_steps, inlined;
	VEC(struct part) parts;
	VEC(uint32_t) scope_of; /* by index of the tree: its scope, or DWARF_NONE */
	VEC(int32_t) file_numbers;
	VEC(const char *) files;
	VEC(struct dwarf_function) functions;
	VEC(struct dwarf_scope) scopes;
	VEC(struct dwarf_range) ranges;
	VEC(struct line_row) rows;
};

static void reader_fini(struct go_reader *g)
{
	vec_free(&g->file_steps.items);
	vec_free(&g->line_steps.items);
	vec_free(&g->inlined.items);
	vec_free(&g->parts);
	vec_free(&g->scope_of);
	vec_free(&g->file_numbers);
	vec_free(&g->files);
	vec_free(&g->functions);
	vec_free(&g->scopes);
	vec_free(&g->ranges);
	vec_free(&g->rows);
}

static void reader_reset(struct go_reader *g)
{
	g->file_steps.items.nr = g->line_steps.items.nr = g->inlined.items.nr = 0;
	g->parts.nr = g->scope_of.nr = g->file_numbers.nr = g->files.nr = 0;
	g->functions.nr = g->scopes.nr = g->ranges.nr = g->rows.nr = 0;
}

/* --- values ----------------------------------------------------------------------------------- */

static int read_steps(struct go_reader *g, enum go_values_kind kind, struct steps *steps)
{
	struct go_values values;
	struct go_step step;
	int r = 0;

	go_values_begin(g->table, &g->f, kind, &values);
	while (!r && go_values_next(&values, &step))
		r = vec_push(&steps->items, step);
	return r;
}

static int32_t value_at(const struct steps *s, uint32_t pc)
{
	size_t low = sorted_before(s->items.nr, i, s->items.items[i].end <= pc);

	return low < s->items.nr ? s->items.items[low].value : -1;
}

static uint32_t line_at(const struct go_reader *g, uint32_t pc)
{
	int32_t line = value_at(&g->line_steps, pc);

	return line > 0 ? (uint32_t)line : 0;
}

/* The index of a file in g->files. */
static int file_index(struct go_reader *g, int32_t number, uint32_t *ret)
{
	const char *path;
	int r;

	*ret = DWARF_NONE;
	for (size_t i = 0; i < g->file_numbers.nr; i++)
		if (g->file_numbers.items[i] == number) {
			*ret = (uint32_t)i;
			return 0;
		}
	path = go_table_file(g->table, &g->f, number);
	if (!path || g->files.nr == FILES_MAX)
		return 0;
	r = vec_push(&g->file_numbers, number);
	if (!r)
		r = vec_push(&g->files, path);
	if (!r)
		*ret = (uint32_t)g->files.nr - 1;
	return r;
}

static int file_at(struct go_reader *g, uint32_t pc, uint32_t *ret)
{
	return file_index(g, value_at(&g->file_steps, pc), ret);
}

/* --- functions and what is inlined into them -------------------------------------------------- */

static const char *take_name(struct go_reader *g, const char *name)
{
	size_t len = name ? strlen(name) : 0;

	if (len > g->names_left)
		return "";
	g->names_left -= len;
	return name ? name : "";
}

static int add_scope(struct go_reader *g, const char *name, uint32_t pc, uint32_t start_line,
		     struct dwarf_scope *scope, uint32_t *ret)
{
	struct dwarf_function function = { .name = take_name(g, name), .line = start_line };
	int r = file_at(g, pc, &function.file);

	scope->function = (uint32_t)g->functions.nr;
	*ret = (uint32_t)g->scopes.nr;
	if (!r)
		r = vec_push(&g->functions, function);
	return r ? r : vec_push(&g->scopes, *scope);
}

/* Which value of GO_INLINED the caller has; DWARF_NONE: it is the function itself. */
static uint32_t caller_of(const struct go_reader *g, uint32_t index)
{
	struct go_inlined inlined;
	int32_t caller;

	if (go_table_inlined(g->table, &g->f, index, &inlined))
		return DWARF_NONE;
	caller = value_at(&g->inlined, inlined.parent_pc);
	return caller >= 0 && (size_t)caller < g->scope_of.nr ? (uint32_t)caller : DWARF_NONE;
}

static int add_call(struct go_reader *g, uint32_t index, uint32_t pc, uint32_t parent)
{
	struct dwarf_scope scope = { .parent = parent };
	struct go_inlined inlined;
	int r;

	/* A record that makes no sense: its code counts as its caller's. */
	if (go_table_inlined(g->table, &g->f, index, &inlined)) {
		g->scope_of.items[index] = parent;
		return 0;
	}
	scope.call_line = line_at(g, inlined.parent_pc);
	r = file_at(g, inlined.parent_pc, &scope.call_file);
	return r ? r
		 : add_scope(g, go_table_name(g->table, inlined.name), pc, inlined.start_line,
			     &scope, &g->scope_of.items[index]);
}

/* Makes the scope of an inlined call, after those of its callers. `pc` has it. */
static int make_scope(struct go_reader *g, uint32_t index, uint32_t pc)
{
	uint32_t chain[DWARF_INLINE_DEPTH_MAX], nr = 0, parent = 0;
	int r = 0;

	while (index != DWARF_NONE && g->scope_of.items[index] == DWARF_NONE) {
		if (nr == DWARF_INLINE_DEPTH_MAX)
			return 0;
		chain[nr++] = index;
		index = caller_of(g, index);
	}
	if (index != DWARF_NONE)
		parent = g->scope_of.items[index];
	while (nr-- && !r) {
		r = add_call(g, chain[nr], pc, parent);
		parent = g->scope_of.items[chain[nr]];
	}
	return r;
}

/* Room for every index that has code: each has an instruction at least. */
static int init_scopes(struct go_reader *g)
{
	uint32_t nr = 0, length = (uint32_t)(g->f.end - g->f.start);
	int r;

	for (size_t i = 0; i < g->inlined.items.nr; i++) {
		int32_t value = g->inlined.items.items[i].value;

		if (value >= 0 && (uint32_t)value < length && (uint32_t)value >= nr)
			nr = (uint32_t)value + 1;
	}
	r = nr ? vec_reserve(&g->scope_of, nr) : 0;
	if (r || !nr)
		return r;
	memset(g->scope_of.items, 0xff, nr * sizeof(*g->scope_of.items));
	g->scope_of.nr = nr;
	return 0;
}

static int find_parts(struct go_reader *g)
{
	int r = init_scopes(g);

	for (size_t i = 0; i < g->inlined.items.nr && !r; i++) {
		const struct go_step *s = &g->inlined.items.items[i];
		uint32_t index = (uint32_t)s->value;

		if (s->value < 0 || index >= g->scope_of.nr)
			continue;
		if (g->scope_of.items[index] == DWARF_NONE)
			r = make_scope(g, index, s->begin);
		/* Too deep, and the function itself. */
		if (!r && g->scope_of.items[index] != DWARF_NONE && g->scope_of.items[index])
			r = vec_push(&g->parts,
				     (struct part){ s->begin, s->end, g->scope_of.items[index] });
	}
	return r;
}

/* The parts become ranges, grouped by scope: parts are in the order of addresses already. */
static int group_parts(struct go_reader *g)
{
	uint32_t sum = 1;
	int r = vec_reserve(&g->ranges, g->parts.nr + 1);

	if (r)
		return r;
	g->scopes.items[0].nr_ranges = 1;
	g->ranges.items[0] = (struct dwarf_range){ g->f.start, g->f.end };
	for (size_t i = 0; i < g->parts.nr; i++)
		g->scopes.items[g->parts.items[i].scope].nr_ranges++;
	for (size_t i = 1; i < g->scopes.nr; i++) {
		g->scopes.items[i].first_range = sum;
		sum += g->scopes.items[i].nr_ranges;
		g->scopes.items[i].nr_ranges = 0;
	}
	for (size_t i = 0; i < g->parts.nr; i++) {
		struct dwarf_scope *s = &g->scopes.items[g->parts.items[i].scope];

		g->ranges.items[s->first_range + s->nr_ranges++] =
			(struct dwarf_range){ g->f.start + g->parts.items[i].begin,
					      g->f.start + g->parts.items[i].end };
	}
	g->ranges.nr = sum;
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int find_lines(struct go_reader *g)
{
	const struct steps *files = &g->file_steps, *lines = &g->line_steps;
	uint32_t pc = 0;
	size_t f = 0, l = 0;
	int r = 0;

	while (l < lines->items.nr && f < files->items.nr && !r) {
		const struct go_step *file = &files->items.items[f], *line = &lines->items.items[l];
		struct line_row row = { .addr = g->f.start + pc,
					.line = line->value > 0 ? (uint32_t)line->value : 0 };

		r = file_index(g, file->value, &row.file);
		if (!r)
			r = vec_push(&g->rows, row);
		pc = file->end < line->end ? file->end : line->end;
		f += file->end == pc;
		l += line->end == pc;
	}
	return r || !pc ? r
			: vec_push(&g->rows,
				   (struct line_row){ .addr = g->f.start + pc, .flags = LINE_END });
}

/* --- the whole -------------------------------------------------------------------------------- */

static int read_details(struct go_reader *g)
{
	int r = read_steps(g, GO_FILE, &g->file_steps);

	return r ? r : read_steps(g, GO_INLINED, &g->inlined);
}

static int read_function(struct go_reader *g, bool names_only)
{
	struct dwarf_scope root = { .parent = DWARF_NONE, .call_file = DWARF_NONE };
	const char *name = go_table_function_name(g->table, &g->f);
	struct line_table lines = { 0 };
	struct dwarf_unit unit = { .language = LANGUAGE_GO, .producer = "", .lines = &lines };
	uint32_t scope;
	int r;

	reader_reset(g);
	r = read_steps(g, GO_LINE, &g->line_steps);
	/* No lines: a mark of the linker's, no function. */
	if (r || !g->line_steps.items.nr)
		return r;
	/* Code ends where lines do: what follows is padding. */
	g->f.end = g->f.start + g->line_steps.items.items[g->line_steps.items.nr - 1].end;
	r = names_only ? 0 : read_details(g);
	if (!r)
		r = add_scope(g, name, 0, names_only ? 0 : g->f.start_line, &root, &scope);
	if (!r)
		r = find_parts(g);
	if (!r)
		r = group_parts(g);
	if (!r)
		r = find_lines(g);
	if (r || !*g->functions.items[0].name)
		return r;
	lines.files = g->files.items;
	lines.nr_files = g->files.nr;
	lines.rows = g->rows.items;
	lines.nr_rows = g->rows.nr;
	unit.functions = g->functions.items;
	unit.nr_functions = g->functions.nr;
	unit.scopes = g->scopes.items;
	unit.nr_scopes = g->scopes.nr;
	unit.ranges = g->ranges.items;
	unit.nr_ranges = g->ranges.nr;
	return builder_add_unit(g->b, &unit);
}

int builder_add_go(struct builder *b, const struct elf_file *elf, bool names_only)
{
	struct go_table table;
	struct go_reader g = { .b = b, .table = &table };
	int r = go_table_read(elf, &table);

	if (r)
		return r == -ENOENT ? 0 : r;
	g.names_left = table.size * NAMES_RATIO + NAMES_FREE;
	for (uint32_t i = 0; i < table.nr_functions && !r; i++)
		if (!go_table_function(&table, i, &g.f))
			r = read_function(&g, names_only);
	reader_fini(&g);
	go_table_fini(&table);
	return r;
}
