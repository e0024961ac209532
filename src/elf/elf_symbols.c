// SPDX-License-Identifier: Apache-2.0
/*
 * The sorted list of an ELF file's functions: which tables are read, which of several names of an
 * address stays, and the look-up. elf_symbol_table.c reads the tables, elf_mini_debug.c unpacks
 * MiniDebugInfo.
 *
 * Memory: a string table is read whole, once; when the list is final, what is used of it is copied
 * out if that is less than three quarters of it. A symbol is 24 bytes. If only some symbols are
 * wanted, strings are read in pieces, and the names of those are kept.
 */
#include "elf/elf_symbols.h"
#include "elf/elf_symbols_internal.h"
#include "elf/v8_builtins.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static void private_free(struct elf_symbols_private *priv)
{
	if (!priv)
		return;
	for (size_t i = 0; i < priv->nr_names; i++)
		free(priv->names[i].data);
	vec_free(&priv->ranges);
	free(priv);
}

static void symbol_list_fini(struct symbol_list *list)
{
	vec_free(&list->items);
	private_free(list->priv);
}

void elf_symbols_fini(struct elf_symbols *symbols)
{
	free(symbols->items);
	private_free(symbols->names);
	*symbols = (struct elf_symbols){ 0 };
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Without the version. */
static size_t name_length(const char *name)
{
	return strcspn(name, "@");
}

static int compare_names(const char *a, const char *b)
{
	size_t a_len = name_length(a), b_len = name_length(b);
	int r = compare_numbers(strspn(a, "_"), strspn(b, "_"));

	if (!r)
		r = compare_numbers(a_len, b_len);
	return r ? r : memcmp(a, b, a_len);
}

static uint64_t symbol_rank(const struct elf_symbol *s)
{
	return s->size >> SYMBOL_RANK_SHIFT;
}

static uint64_t symbol_size(const struct elf_symbol *s)
{
	return s->size & ((1ULL << SYMBOL_RANK_SHIFT) - 1);
}

static int compare_symbols(const void *a_, const void *b_)
{
	const struct elf_symbol *a = a_, *b = b_;
	int r = compare_numbers(a->addr, b->addr);

	if (!r)
		r = compare_numbers(symbol_rank(a), symbol_rank(b));
	if (!r)
		r = compare_names(a->name, b->name);
	/* One name with two sizes: the larger one, whatever the order in the file. */
	return r ? r : compare_numbers(symbol_size(b), symbol_size(a));
}

/* Keeps the first of each address; takes the ranks off. */
static void keep_choices(struct symbol_list *list)
{
	struct elf_symbol *items = list->items.items;
	size_t nr = 0;

	for (size_t i = 0; i < list->items.nr; i++) {
		uint64_t size = symbol_size(&items[i]);

		if (nr && items[nr - 1].addr == items[i].addr) {
			struct elf_symbol *kept = &items[nr - 1];

			/* The sizes of the others count only where the choice itself has none. */
			if (symbol_rank(kept) && symbol_size(kept) < size)
				kept->size = size | 1ULL << SYMBOL_RANK_SHIFT;
			continue;
		}
		items[nr] = items[i];
		items[nr++].size = size ? size : 1ULL << SYMBOL_RANK_SHIFT;
	}
	for (size_t i = 0; i < nr; i++) {
		items[i].size = symbol_size(&items[i]);
		if (items[i].size > list->priv->size_max)
			list->priv->size_max = items[i].size;
	}
	list->items.nr = nr;
}

static bool is_in(const struct symbol_names *names, const char *name)
{
	return names->size && name >= names->data && name < names->data + names->size;
}

/* Cuts the versions off, and gives back the part of the string tables that nothing uses. */
static int trim_names(struct symbol_list *list, struct symbol_names *names)
{
	struct elf_symbol *items = list->items.items;
	struct symbol_names used = { 0 };
	size_t pos = 0;

	for (size_t i = 0; i < list->items.nr; i++) {
		if (!is_in(names, items[i].name))
			continue;
		names->data[items[i].name - names->data + name_length(items[i].name)] = '\0';
		used.size += strlen(items[i].name) + 1;
	}
	if (used.size >= names->size / 4 * 3)
		return 0;
	used.data = malloc(used.size + 1);
	if (!used.data)
		return -ENOMEM;
	for (size_t i = 0; i < list->items.nr; i++) {
		size_t len;

		if (!is_in(names, items[i].name))
			continue;
		len = strlen(items[i].name) + 1;
		memcpy(used.data + pos, items[i].name, len);
		items[i].name = used.data + pos;
		pos += len;
	}
	free(names->data);
	*names = used;
	return 0;
}

static void *shrink(void *data, size_t size)
{
	void *smaller = realloc(data, size ? size : 1);

	return smaller ? smaller : data;
}

static int finish(struct symbol_list *list, struct elf_symbols *ret)
{
	if (list->items.nr)
		qsort(list->items.items, list->items.nr, sizeof(*list->items.items),
		      compare_symbols);
	keep_choices(list);
	for (size_t i = 0; i < list->priv->nr_names; i++) {
		int r = trim_names(list, &list->priv->names[i]);

		if (r)
			return r;
	}
	if (list->items.nr < list->items.cap)
		list->items.items =
			shrink(list->items.items, list->items.nr * sizeof(*list->items.items));
	ret->items = TAKE_PTR(list->items.items);
	ret->nr = list->items.nr;
	ret->left_out = list->priv->left_out;
	ret->names = TAKE_PTR(list->priv);
	return 0;
}

static int compare_ranges(const void *a_, const void *b_)
{
	const struct code_range *a = a_, *b = b_;

	return compare_numbers(a->start, b->start);
}

static int add_range(struct elf_symbols_private *priv, uint64_t begin, uint64_t size)
{
	struct code_range range = { .start = begin };

	if (!size || __builtin_add_overflow(begin, size, &range.end))
		return 0;
	return vec_push(&priv->ranges, range);
}

static int read_ranges(const struct elf_file *elf, struct elf_symbols_private *priv)
{
	int r = 0;

	for (size_t i = 0; i < elf->nr_sections && !r; i++) {
		const struct elf_section *s = &elf->sections[i];

		if ((s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR))
			r = add_range(priv, s->addr, s->size);
	}
	for (size_t i = 0; i < elf->nr_segments && !r && !elf->nr_sections; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (s->flags & PF_X))
			r = add_range(priv, s->vaddr, s->memsz);
	}
	if (!r && priv->ranges.nr)
		qsort(priv->ranges.items, priv->ranges.nr, sizeof(*priv->ranges.items),
		      compare_ranges);
	return r;
}

static bool find_table(const struct elf_file *elf, uint32_t type, struct symbol_source *ret)
{
	for (size_t i = 0; i < elf->nr_sections; i++) {
		const struct elf_section *s = &elf->sections[i];
		struct symbol_source source = { .symbols = s->offset,
						.nr = s->size / sizeof(Elf64_Sym),
						.in_order = type == SHT_SYMTAB };

		if (s->type != type || s->link >= elf->nr_sections ||
		    elf->sections[s->link].type != SHT_STRTAB)
			continue;
		source.strings = elf->sections[s->link].offset;
		source.strings_len = elf->sections[s->link].size;
		for (size_t j = 0; j < elf->nr_sections; j++) {
			if (elf->sections[j].type != SHT_SYMTAB_SHNDX || elf->sections[j].link != i)
				continue;
			source.indices = elf->sections[j].offset;
			source.nr_indices = elf->sections[j].size / sizeof(uint32_t);
			break;
		}
		*ret = source;
		return true;
	}
	return false;
}

static int add_mini_debug(struct symbol_list *list, const struct elf_file *elf)
{
	_cleanup_(elf_file_free_p) struct elf_file *inner = NULL;
	struct elf_data data;
	_cleanup_free_ uint8_t *image = NULL;
	struct symbol_source source;
	int r = elf_mini_debug_read(elf, &data);

	if (r)
		return r == -ENOENT ? 0 : r;
	image = data.data;
	r = elf_file_open_memory(data.data, data.size, &inner);
	if (r)
		return r == -ENOMEM ? r : 0;
	if (!find_table(inner, SHT_SYMTAB, &source))
		return 0;
	list->priv->complete = true;
	return symbol_list_add(list, inner, &source);
}

/* V8's builtins, as .symtab would have them. */
static int add_v8_builtins(struct symbol_list *list, const struct elf_file *elf)
{
	_cleanup_(v8_builtins_fini) struct v8_builtins builtins = { 0 };
	int r = v8_builtins_read(elf, &builtins);

	if (r)
		return r == -ENOENT ? 0 : r;
	for (size_t i = 0; i < builtins.nr && list->items.nr < ELF_SYMBOLS_MAX && !r; i++) {
		const struct v8_builtin *b = &builtins.items[i];

		r = vec_push(&list->items, (struct elf_symbol){
						   .addr = b->addr,
						   .size = b->size | SYMBOL_LOCAL,
						   .name = builtins.names + b->name,
					   });
	}
	/* What was pushed keeps its names, also where that failed. */
	list->priv->names[list->priv->nr_names++] =
		(struct symbol_names){ TAKE_PTR(builtins.names), builtins.names_size, 0 };
	return r;
}

static int add_tables(struct symbol_list *list, const struct elf_file *elf)
{
	struct symbol_source source;
	bool full = find_table(elf, SHT_SYMTAB, &source);
	int r = full ? symbol_list_add(list, elf, &source) : 0;

	if (r)
		return r;
	list->priv->complete = full;
	if (find_table(elf, SHT_DYNSYM, &source)) {
		r = symbol_list_add(list, elf, &source);
	} else if (!full) {
		r = symbol_source_from_dynamic(elf, &source);
		r = r ? r : symbol_list_add(list, elf, &source);
	}
	if (r && r != -ENOENT)
		return r;
	if (full)
		return 0;
	r = add_mini_debug(list, elf);
	/* V8's do not make the list complete: other local functions have no names. */
	return r || list->priv->complete ? r : add_v8_builtins(list, elf);
}

/* Of a file that claims nonsense, much. */
static uint64_t source_bytes(const struct symbol_source *source)
{
	enum { MUCH = 1 << 30 };

	if (source->nr > MUCH / sizeof(Elf64_Sym) || source->strings_len > MUCH)
		return MUCH;
	return source->nr * sizeof(Elf64_Sym) + source->strings_len;
}

uint64_t elf_symbols_bytes(const struct elf_file *elf)
{
	struct symbol_source source;
	bool full = find_table(elf, SHT_SYMTAB, &source);
	uint64_t bytes = full ? source_bytes(&source) : 0;

	if (find_table(elf, SHT_DYNSYM, &source) ||
	    (!full && !symbol_source_from_dynamic(elf, &source)))
		bytes += source_bytes(&source);
	return full ? bytes : bytes + elf_mini_debug_bytes(elf);
}

int elf_symbols_read(const struct elf_file *elf, struct elf_symbols *ret)
{
	return elf_symbols_read_some(elf, NULL, ret);
}

int elf_symbols_read_some(const struct elf_file *elf, elf_symbol_wanted_fn *wanted,
			  struct elf_symbols *ret)
{
	_cleanup_(symbol_list_fini) struct symbol_list list = { .wanted = wanted };
	int r;

	list.priv = calloc(1, sizeof(*list.priv));
	if (!list.priv)
		return -ENOMEM;
	r = read_ranges(elf, list.priv);
	if (!r)
		r = add_tables(&list, elf);
	return r ? r : finish(&list, ret);
}

uint64_t elf_symbols_range_end(const struct elf_symbols_private *priv, uint64_t addr)
{
	size_t low = sorted_before(priv->ranges.nr, i, priv->ranges.items[i].start <= addr);

	return low && addr < priv->ranges.items[low - 1].end ? priv->ranges.items[low - 1].end : 0;
}

/* The nearest of the symbols up to `last` whose size covers `addr`, or NULL. */
static const struct elf_symbol *covering(const struct elf_symbols *symbols, size_t last,
					 uint64_t addr)
{
	const struct elf_symbols_private *priv = symbols->names;

	for (size_t i = 0; i < ELF_SYMBOLS_LOOK_BACK && i <= last; i++) {
		const struct elf_symbol *symbol = &symbols->items[last - i];
		uint64_t distance = addr - symbol->addr;

		if (distance < symbol->size)
			return symbol;
		if (distance >= priv->size_max)
			break;
	}
	return NULL;
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *symbols, uint64_t addr)
{
	const struct elf_symbol *nearest, *found;
	size_t low = sorted_before(symbols->nr, i, symbols->items[i].addr <= addr);

	if (!low)
		return NULL;
	nearest = &symbols->items[low - 1];
	found = covering(symbols, low - 1, addr);
	if (found || nearest->size || addr >= elf_symbols_range_end(symbols->names, nearest->addr))
		return found;
	/* A label inside of a function ends with it. */
	return covering(symbols, low - 1, nearest->addr) ? NULL : nearest;
}

/* --- one variable ----------------------------------------------------------------------------- */

enum {
	PIECE = 64 << 10,
	PLACES_MAX = 32, /* a name is there once, and at the end of a few others */
};

/* Where in a section `what` is, as far as there is room; read in pieces. Returns how often. */
static size_t find_places(const struct elf_file *elf, const struct elf_section *section,
			  const char *what, size_t len, uint64_t places[PLACES_MAX])
{
	_cleanup_free_ char *piece = malloc(PIECE);
	uint64_t start = 0;
	size_t nr = 0;

	while (piece && section->size - start >= len) {
		size_t size = section->size - start < PIECE ? section->size - start : PIECE;
		const char *at = piece;

		if (elf_file_read(elf, section->offset + start, piece, size))
			return 0;
		while ((at = memmem(at, size - (size_t)(at - piece), what, len))) {
			if (nr == PLACES_MAX)
				return nr;
			places[nr++] = start + (uint64_t)(at++ - piece);
		}
		/* One that is cut in two is whole in the next piece. */
		start += size - len + 1;
	}
	return nr;
}

static bool is_object_at(const Elf64_Sym *sym, const uint64_t *places, size_t nr)
{
	if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || sym->st_shndx == SHN_UNDEF)
		return false;
	for (size_t i = 0; i < nr; i++)
		if (sym->st_name == places[i])
			return true;
	return false;
}

uint64_t elf_symtab_object(const struct elf_file *elf, const char *name, size_t max)
{
	const struct elf_section *section = elf_file_section(elf, ".symtab"), *strings;
	enum { CHUNK = 512 };
	uint64_t places[PLACES_MAX], size;
	Elf64_Sym symbols[CHUNK];
	size_t nr_places;

	if (!section || section->link >= elf->nr_sections)
		return 0;
	strings = &elf->sections[section->link];
	size = elf_file_section_size(elf, section);
	if (size > max || elf_file_section_size(elf, strings) > max ||
	    (section->flags | strings->flags) & SHF_COMPRESSED)
		return 0;
	/* Most files have no such name. */
	nr_places = elf_file_section_size(elf, strings)
			    ? find_places(elf, strings, name, strlen(name) + 1, places)
			    : 0;
	for (uint64_t at = 0; nr_places && size - at >= sizeof(*symbols);) {
		size_t left = (size_t)(size - at) / sizeof(*symbols),
		       nr = left < CHUNK ? left : CHUNK;

		if (elf_file_read(elf, section->offset + at, symbols, nr * sizeof(*symbols)))
			return 0;
		for (size_t i = 0; i < nr; i++)
			if (is_object_at(&symbols[i], places, nr_places))
				return symbols[i].st_value;
		at += nr * sizeof(*symbols);
	}
	return 0;
}
