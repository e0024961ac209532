// SPDX-License-Identifier: Apache-2.0
/*
 * Builds a file's table: where its code is, which ELF symbol covers which of it, then each unit of
 * its debug information (symbol_units.c), and of all that the rows of the image (symbol_merge.c).
 */
#include "symbol/symbol_builder.h"
#include "symbol/symbol_builder_internal.h"
#include "symbol/symbol_table.h"
#include "util/cut.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The symbols of the file and of its separate debug file. */
struct symbol_tables {
	struct elf_symbols tables[2];
	size_t nr;
};

static void tables_fini(struct symbol_tables *t)
{
	for (size_t i = 0; i < t->nr; i++)
		elf_symbols_fini(&t->tables[i]);
}

void builder_fini(struct builder *b)
{
	symbol_writer_free(b->writer);
	vec_free(&b->code);
	vec_free(&b->symbols);
	vec_free(&b->ranges.items);
	vec_free(&b->ranges.rows);
	vec_free(&b->lines.items);
	vec_free(&b->lines.rows);
}

/* --- code ------------------------------------------------------------------------------------- */

struct address_range {
	uint64_t begin, end;
};

static int compare_ranges(const void *a_, const void *b_)
{
	const struct address_range *a = a_, *b = b_;

	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Ranges that touch or overlap are joined; what is 4 GiB beyond the first is left out. */
static int add_code(struct builder *b, struct address_range *ranges, size_t nr)
{
	if (!nr)
		return 0;
	qsort(ranges, nr, sizeof(*ranges), compare_ranges);
	b->base = ranges[0].begin;
	for (size_t i = 0; i < nr && ranges[i].begin - b->base < UINT32_MAX; i++) {
		uint64_t end = ranges[i].end - b->base;
		struct code_span new = { (uint32_t)(ranges[i].begin - b->base),
					 end < UINT32_MAX ? (uint32_t)end : UINT32_MAX };
		struct code_span *last = b->code.nr ? &b->code.items[b->code.nr - 1] : NULL;
		int r = 0;

		if (last && new.begin <= last->end)
			last->end = new.end > last->end ? new.end : last->end;
		else
			r = vec_push(&b->code, new);
		if (r)
			return r;
	}
	return 0;
}

/* By sections; by segments if there are none. */
static int read_code(struct builder *b, const struct elf_file *elf)
{
	_cleanup_free_ struct address_range *ranges =
		calloc(elf->nr_sections + elf->nr_segments + 1, sizeof(*ranges));
	size_t nr = 0;

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < elf->nr_sections; i++) {
		const struct elf_section *s = &elf->sections[i];
		struct address_range range = { .begin = s->addr };

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && s->size &&
		    !__builtin_add_overflow(s->addr, s->size, &range.end))
			ranges[nr++] = range;
	}
	for (size_t i = 0; i < elf->nr_segments && !nr; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct address_range range = { .begin = s->vaddr };

		if (s->type == PT_LOAD && (s->flags & PF_X) && s->memsz &&
		    !__builtin_add_overflow(s->vaddr, s->memsz, &range.end))
			ranges[nr++] = range;
	}
	return add_code(b, ranges, nr);
}

const struct code_span *builder_code(const struct builder *b, uint64_t addr)
{
	size_t low;

	if (addr < b->base || addr - b->base >= UINT32_MAX)
		return NULL;
	low = sorted_before(b->code.nr, i, b->code.items[i].begin <= addr - b->base);
	if (!low || b->code.items[low - 1].end <= addr - b->base)
		return NULL;
	return &b->code.items[low - 1];
}

/* --- symbols ---------------------------------------------------------------------------------- */

size_t builder_symbol(const struct builder *b, uint32_t addr)
{
	return sorted_before(b->symbols.nr, i, b->symbols.items[i].end <= addr);
}

static bool is_rust_hash(const char *s, size_t len)
{
	return len > 20 && !memcmp(s + len - 20, "17h", 3) && s[len - 1] == 'E' &&
	       strspn(s + len - 17, "0123456789abcdef") == 16;
}

uint32_t symbol_language_of(const char *name)
{
	if (!strncmp(name, "_Z", 2))
		return is_rust_hash(name, strcspn(name, ".")) ? SYMBOL_LANGUAGE_RUST
							      : SYMBOL_LANGUAGE_CPP;
	if (!strncmp(name, "_R", 2) && name[2] >= 'A' && name[2] <= 'Z')
		return SYMBOL_LANGUAGE_RUST;
	if (!strncmp(name, "_D", 2) && name[2] >= '1' && name[2] <= '9')
		return SYMBOL_LANGUAGE_D;
	if (!strncmp(name, "$s", 2) || !strncmp(name, "$S", 2))
		return SYMBOL_LANGUAGE_SWIFT;
	return SYMBOL_LANGUAGE_UNKNOWN;
}

/* The symbol that covers an address: the one that begins nearest, the separate file's first. */
static const struct elf_symbol *find_symbol(const struct symbol_tables *t, uint64_t addr)
{
	const struct elf_symbol *found = NULL;

	for (size_t i = 0; i < t->nr; i++) {
		const struct elf_symbol *s = elf_symbols_find(&t->tables[i], addr);

		if (s && (!found || s->addr >= found->addr))
			found = s;
	}
	return found;
}

static int compare_numbers(const void *a_, const void *b_)
{
	uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;

	return a < b ? -1 : a > b;
}

struct borders {
	VEC(uint32_t) items;
};

static int add_border(const struct builder *b, struct borders *borders, uint64_t addr)
{
	if (addr < b->base || addr - b->base >= UINT32_MAX)
		return 0;
	return vec_push(&borders->items, (uint32_t)(addr - b->base));
}

/* Every address where another symbol than before may be the one that covers it. */
static int find_borders(const struct builder *b, const struct symbol_tables *t,
			struct borders *borders)
{
	int r = 0;

	for (size_t i = 0; i < b->code.nr && !r; i++) {
		r = vec_push(&borders->items, b->code.items[i].begin);
		if (!r)
			r = vec_push(&borders->items, b->code.items[i].end);
	}
	for (size_t i = 0; i < t->nr; i++) {
		for (size_t j = 0; j < t->tables[i].nr && !r; j++) {
			const struct elf_symbol *s = &t->tables[i].items[j];
			uint64_t end;

			r = add_border(b, borders, s->addr);
			if (!r && !__builtin_add_overflow(s->addr, s->size, &end))
				r = add_border(b, borders, end);
		}
	}
	if (!r && borders->items.nr)
		qsort(borders->items.items, borders->items.nr, sizeof(*borders->items.items),
		      compare_numbers);
	return r;
}

static int write_name(struct builder *b, const char *name, uint32_t *ret)
{
	char cut[SYMBOL_NAME_MAX + 1];

	return symbol_writer_string(b->writer, cut_text(name, cut, sizeof(cut)), ret);
}

static int add_symbol(struct builder *b, const struct elf_symbol *symbol, uint32_t begin,
		      uint32_t end)
{
	struct symbol_span *last = b->symbols.nr ? &b->symbols.items[b->symbols.nr - 1] : NULL;
	struct symbol_span new = {
		.begin = begin, .end = end, .sized = symbol->size, .function = IMAGE_NONE
	};
	int r = write_name(b, symbol->name, &new.name);

	new.symbol = symbol->addr > b->base ? (uint32_t)(symbol->addr - b->base) : 0;
	if (!r && last && last->end == begin && last->name == new.name &&
	    last->symbol == new.symbol) {
		last->end = end;
		return 0;
	}
	return r ? r : vec_push(&b->symbols, new);
}

static int read_symbols(struct builder *b, const struct symbol_tables *t, struct borders *borders)
{
	int r = find_borders(b, t, borders);
	const uint32_t *at = borders->items.items;

	for (size_t i = 0; i + 1 < borders->items.nr && !r; i++) {
		const struct elf_symbol *symbol;

		if (at[i] == at[i + 1] || !builder_code(b, b->base + at[i]))
			continue;
		symbol = find_symbol(t, b->base + at[i]);
		if (symbol)
			r = add_symbol(b, symbol, at[i], at[i + 1]);
	}
	return r;
}

/* Each symbol is a span, too: for what debug information does not cover. */
static int add_symbol_spans(struct builder *b)
{
	for (size_t i = 0; i < b->symbols.nr; i++) {
		const struct symbol_span *s = &b->symbols.items[i];
		int r = vec_push(&b->ranges.items, (struct span){ .begin = s->begin,
								  .end = s->end,
								  .data = (uint32_t)i,
								  .flags = SPAN_SYMBOL });

		if (r)
			return r;
	}
	return 0;
}

/* --- complaints ------------------------------------------------------------------------------- */

enum { COMPLAINTS_SIZE_MAX = 16 << 10 };

/* Hands them on, and keeps them for the table, a line each. */
struct complaints {
	const struct debug_search *search;
	char text[COMPLAINTS_SIZE_MAX];
	size_t len;
};

static void keep_complaint(struct complaints *c, const char *text)
{
	size_t len = strlen(text);

	if (len + 2 > sizeof(c->text) - c->len)
		return;
	memcpy(c->text + c->len, text, len);
	c->len += len;
	c->text[c->len++] = '\n';
	c->text[c->len] = '\0';
}

static void take_complaint(void *ctx, const char *text)
{
	struct complaints *c = ctx;

	keep_complaint(c, text);
	if (c->search->complain)
		c->search->complain(c->search->ctx, text);
}

static void complain_of_damage(const struct debug_files *files, const struct debug_search *search)
{
	char text[4096 + 128];

	snprintf(text, sizeof(text), "%s: its debug information is damaged, used as far as it goes",
		 debug_files_path(files));
	search->complain(search->ctx, text);
}

static void complain_of_names(const struct symbol_tables *t, const struct debug_search *search)
{
	char text[4096 + 128];

	for (size_t i = 0; i < t->nr; i++)
		if (t->tables[i].left_out && search->complain) {
			snprintf(text, sizeof(text), "%s: too much of long names, some left out",
				 search->path);
			search->complain(search->ctx, text);
			return;
		}
}

/* They are the last string. Nothing may be added to the writer after that. */
static int write_complaints(struct builder *b, const struct complaints *c,
			    struct image_header *header)
{
	uint32_t string;

	if (!c->len)
		return 0;
	header->flags |= IMAGE_HAS_COMPLAINTS;
	return symbol_writer_string(b->writer, c->text, &string);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Code goes on to where a function's does that ends in a system call: elf_symbols_end(). */
static void extend_code(struct builder *b, const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < b->code.nr; i++) {
		struct code_span *code = &b->code.items[i];
		uint64_t end = b->base + code->end;
		size_t n = sorted_before(symbols->nr, j, symbols->items[j].addr < end);

		if (n && code->end < UINT32_MAX &&
		    symbols->items[n - 1].size == end + 1 - symbols->items[n - 1].addr)
			code->end++;
	}
}

static int add_tables(struct builder *b, const struct elf_file *elf, const struct elf_file *debug,
		      const struct debug_search *search)
{
	_cleanup_(tables_fini) struct symbol_tables t = { 0 };
	struct borders borders = { 0 };
	int r = elf_symbols_read(elf, &t.tables[0]);

	if (r)
		return r;
	t.nr = 1;
	r = elf_symbols_end(&t.tables[0], elf);
	if (r)
		return r;
	extend_code(b, &t.tables[0]);
	if (debug) {
		r = elf_symbols_read(debug, &t.tables[1]);
		if (r)
			return r;
		t.nr = 2;
	}
	complain_of_names(&t, search);
	r = read_symbols(b, &t, &borders);
	vec_free(&borders.items);
	return r ? r : add_symbol_spans(b);
}

/* Symbols, then what debug information there is. Its sections are in memory only meanwhile. */
static int read_file(struct builder *b, const struct elf_file *elf,
		     const struct symbol_builder_options *options, struct complaints *complaints,
		     struct image_header *header, struct dwarf_counts *ret_counts)
{
	_cleanup_(debug_files_free_p) struct debug_files *files = NULL;
	struct debug_search search = options->search;
	int r;

	search.complain = take_complaint;
	search.ctx = complaints;
	if (options->no_debug_info) {
		/* The separate file's symbols are wanted all the same. */
		search.max_bytes = 0;
		search.complain = NULL;
	}
	r = debug_files_open(elf, &search, &files);
	if (r < 0)
		return r;
	if (r || options->no_debug_info)
		header->flags |= IMAGE_NO_DEBUG_INFO;
	r = add_tables(b, elf, debug_files_elf(files), &search);
	if (!r && !options->no_debug_info)
		r = dwarf_read_units(debug_files_dwarf(files), builder_add_unit, b, ret_counts);
	if (!r && ret_counts->bad_units)
		complain_of_damage(files, &search);
	if (!r && !b->has_go)
		r = builder_add_go(b, elf, options->no_debug_info);
	return r;
}

static int build(struct builder *b, const struct elf_file *elf,
		 const struct symbol_builder_options *options, int fd,
		 struct symbol_builder_stats *stats)
{
	struct image_header header = {
		.fingerprint = debug_files_fingerprint(elf, &options->search),
	};
	struct complaints complaints = { .search = &options->search };
	int r = symbol_writer_new(fd, &b->writer);

	if (options->complaint)
		keep_complaint(&complaints, options->complaint);
	if (!r)
		r = read_code(b, elf);
	if (!r)
		r = read_file(b, elf, options, &complaints, &header, &stats->dwarf);
	if (!r)
		r = builder_merge(b);
	if (!r)
		r = write_complaints(b, &complaints, &header);
	header.base = b->base;
	if (!r)
		r = symbol_writer_finish(b->writer, &header);
	if (r)
		return r;
	stats->functions = header.nr_functions;
	stats->ranges = header.nr_ranges;
	stats->lines = header.nr_lines;
	stats->size = header.size;
	return header.nr_functions ? 0 : -ENOENT;
}

int symbol_table_build(const struct elf_file *elf, const struct symbol_builder_options *options,
		       int fd, struct symbol_builder_stats *ret_stats)
{
	struct symbol_builder_stats stats = { 0 };
	struct builder b = { 0 };
	int r;

	if (elf->type == ET_REL)
		return -ENOTSUP;
	r = build(&b, elf, options, fd, &stats);
	builder_fini(&b);
	if (!r && ret_stats)
		*ret_stats = stats;
	return r;
}
