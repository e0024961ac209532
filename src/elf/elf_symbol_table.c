// SPDX-License-Identifier: Apache-2.0
/*
 * Reads one ELF symbol table: which of its symbols are functions, and how good a name each is.
 *
 * The table is read in pieces; its strings whole, since names are scattered over them, but for
 * those of a .symtab if only some symbols are wanted. Both may be cut off by the end of the file:
 * what is there is used.
 */
#include "elf/elf_symbols_internal.h"
#include "util/cleanup.h"
#include "util/vec.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
	SYMBOLS_CHUNK = 512,
	/* Entries of a dynamic segment and buckets of a hash table that are looked at. */
	DYNAMIC_MAX = 512,
	SHORT_NAME = 256,
	NAMES_SLACK = 1 << 20,
	BUCKETS_MAX = 1 << 20,
	CHAIN_MAX = 4096, /* symbols of a bucket; real ones have a few */
	/* What is read of strings at a time, and how much of a name is looked at there: real ones
	 * of which the end counts are a tenth of it. */
	PIECE = 8 << 10,
	NAME_SHOWN = 1 << 10,
};

/* How many of `nr` items of `size` bytes the file has behind `offset`. */
static uint64_t available(const struct elf_file *elf, uint64_t offset, uint64_t nr, size_t size)
{
	uint64_t have = offset < elf->size ? (elf->size - offset) / size : 0;

	return nr < have ? nr : have;
}

/* One table while it is read. `kept`: names of those that are wanted, of which items have the
 * places; not used if all are, as `names` has them then. */
struct table {
	struct symbol_list *list;
	const struct elf_file *elf;
	const struct symbol_source *source;
	struct symbol_names *names;
	bool in_pieces;
	VEC(char) kept;
	uint64_t piece_start;
	size_t piece_size;
	char piece[PIECE + 1];
};

/* Of strings that are read in pieces how many there are. */
static int read_strings(struct table *t)
{
	size_t size = available(t->elf, t->source->strings, t->source->strings_len, 1);
	_cleanup_free_ char *data = NULL;
	int r;

	if (size > ELF_SYMBOL_NAMES_MAX)
		size = ELF_SYMBOL_NAMES_MAX;
	if (!t->in_pieces) {
		data = malloc(size + 1);
		if (!data)
			return -ENOMEM;
		r = elf_file_read(t->elf, t->source->strings, data, size);
		if (r)
			return r;
		data[size] = '\0';
	}
	t->names->data = TAKE_PTR(data);
	t->names->size = size;
	t->names->budget = NAMES_SLACK + size * 4;
	return 0;
}

/* NULL: there is none. The end of a long one may be missing. */
static const char *name_in_piece(struct table *t, uint32_t at)
{
	size_t have = t->piece_start + t->piece_size - at;

	if (at < t->piece_start || at >= t->piece_start + t->piece_size ||
	    (have < NAME_SHOWN && have < t->names->size - at)) {
		t->piece_start = at;
		t->piece_size = t->names->size - at < PIECE ? t->names->size - at : PIECE;
		if (elf_file_read(t->elf, t->source->strings + at, t->piece, t->piece_size))
			t->piece_size = 0;
		t->piece[t->piece_size] = '\0';
	}
	return t->piece_size ? t->piece + (at - t->piece_start) : NULL;
}

static const char *name_of(struct table *t, uint32_t at)
{
	if (!at || at >= t->names->size)
		return NULL;
	return t->in_pieces ? name_in_piece(t, at) : t->names->data + at;
}

/*
 * AArch64 marks code and data with $x and $d; annobin and assemblers leave names that begin with a
 * dot. None is a function.
 */
static bool is_label_of_tools(const char *name)
{
	return name[0] == '.' || (name[0] == '$' && name[1] && strchr("xdat", name[1]) &&
				  (!name[2] || name[2] == '.'));
}

static bool is_function(const struct elf_file *elf, const Elf64_Sym *symbol, uint32_t section,
			const char *name)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	const struct elf_section *s = NULL;

	if (elf->nr_sections) {
		if (section == SHN_UNDEF || section >= elf->nr_sections)
			return false;
		s = &elf->sections[section];
	} else if (section == SHN_UNDEF || section >= SHN_LORESERVE) {
		return false;
	}
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* A label at the very end of a section, _etext say, is where code ends. */
	return type == STT_NOTYPE && s && (s->flags & SHF_EXECINSTR) &&
	       symbol->st_value - s->addr < s->size && !is_label_of_tools(name);
}

static unsigned int bind_rank(const Elf64_Sym *symbol)
{
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return 0;
	case STB_WEAK:
		return 1;
	default:
		return 2;
	}
}

static uint64_t rank(const Elf64_Sym *symbol, const char *name)
{
	return bind_rank(symbol) << 3 | (symbol->st_size ? 0 : 1) << 2 |
	       (ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE ? 1 : 0) << 1 |
	       (strchr(name, '@') ? 1 : 0);
}

/*
 * Names share bytes of their table, so that a small file may have any amount of long ones. When
 * there are several times as many as the table is large, only short ones are taken.
 */
static bool is_too_long(struct elf_symbols_private *priv, struct symbol_names *names,
			const char *name)
{
	size_t len = strnlen(name, names->budget > SHORT_NAME ? names->budget : SHORT_NAME);

	if (!name[len]) {
		names->budget -= len < names->budget ? len : names->budget;
		return false;
	}
	priv->left_out = true;
	names->budget = 0;
	return true;
}

/* Puts a name to those that are kept, and where it is there in place of it. */
static int keep_name(struct table *t, const char **name)
{
	size_t at = t->kept.nr, len = strlen(*name) + 1;
	int r = vec_reserve(&t->kept, at + len);

	if (r)
		return r;
	memcpy(t->kept.items + at, *name, len);
	t->kept.nr += len;
	*name = (const char *)at;
	return 0;
}

static int add_symbol(struct table *t, const Elf64_Sym *symbol, uint32_t section)
{
	const char *name = name_of(t, symbol->st_name), *kept = name;
	uint64_t size = symbol->st_size;
	int r = 0;

	/* A name that is but a version would be empty without it. */
	if (!name || !*name || *name == '@' || !is_function(t->elf, symbol, section, name) ||
	    (t->list->wanted && !t->list->wanted(name)) ||
	    is_too_long(t->list->priv, t->names, name))
		return 0;
	if (t->list->wanted)
		r = keep_name(t, &kept);
	if (r)
		return r;
	/* No function is that large: the size is not one. */
	if (size >> SYMBOL_RANK_SHIFT)
		size = 0;
	return vec_push(&t->list->items,
			(struct elf_symbol){
				.addr = symbol->st_value,
				.size = size | rank(symbol, name) << SYMBOL_RANK_SHIFT,
				.name = kept,
			});
}

static int add_chunk(struct table *t, uint64_t first, size_t nr)
{
	const struct symbol_source *source = t->source;
	Elf64_Sym symbols[SYMBOLS_CHUNK];
	uint32_t indices[SYMBOLS_CHUNK] = { 0 };
	uint64_t nr_indices = source->nr_indices > first ? source->nr_indices - first : 0;
	int r;

	r = elf_file_read(t->elf, source->symbols + first * sizeof(*symbols), symbols,
			  nr * sizeof(*symbols));
	if (!r && nr_indices)
		r = elf_file_read(t->elf, source->indices + first * sizeof(*indices), indices,
				  (nr_indices < nr ? nr_indices : nr) * sizeof(*indices));
	for (size_t i = 0; i < nr && !r; i++) {
		bool extended = symbols[i].st_shndx == SHN_XINDEX;
		uint32_t section = extended ? indices[i] : symbols[i].st_shndx;

		if (!extended && section >= SHN_LORESERVE)
			continue; /* absolute or common */
		r = add_symbol(t, &symbols[i], section);
	}
	return r;
}

/* The names that are kept in place of all of the table; `first`: of the items that are its. */
static void take_kept(struct table *t, size_t first)
{
	free(t->names->data);
	t->names->data = t->kept.items;
	t->names->size = t->kept.nr;
	for (size_t i = first; i < t->list->items.nr; i++) {
		struct elf_symbol *s = &t->list->items.items[i];

		s->name = t->kept.items + (size_t)s->name;
	}
}

int symbol_list_add(struct symbol_list *list, const struct elf_file *elf,
		    const struct symbol_source *source)
{
	uint64_t nr = available(elf, source->symbols, source->nr, sizeof(Elf64_Sym));
	struct symbol_source here = *source;
	struct table t = {
		.list = list,
		.elf = elf,
		.source = &here,
		.names = &list->priv->names[list->priv->nr_names],
		.in_pieces = list->wanted && source->in_order,
	};
	size_t before = list->items.nr;
	int r;

	if (list->priv->nr_names == SYMBOL_TABLES_MAX || !nr)
		return 0;
	r = read_strings(&t);
	if (r)
		return r == -ENOMEM ? r : 0;
	list->priv->nr_names++;
	here.nr_indices = available(elf, here.indices, here.nr_indices, sizeof(uint32_t));
	for (uint64_t i = 0; i < nr && list->items.nr < ELF_SYMBOLS_MAX && !r; i += SYMBOLS_CHUNK)
		r = add_chunk(&t, i, nr - i < SYMBOLS_CHUNK ? nr - i : SYMBOLS_CHUNK);
	if (list->wanted)
		take_kept(&t, before);
	return r == -ENOMEM ? r : 0;
}

struct dynamic_addresses {
	uint64_t symbols, strings, strings_len, hash, gnu_hash;
};

static int read_dynamic(const struct elf_file *elf, struct dynamic_addresses *ret)
{
	const struct elf_segment *segment = elf_file_segment(elf, PT_DYNAMIC);
	struct dynamic_addresses found = { 0 };

	if (!segment)
		return -ENOENT;
	for (size_t i = 0; i < DYNAMIC_MAX; i++) {
		Elf64_Dyn dyn;

		if (elf_file_read(elf, segment->offset + i * sizeof(dyn), &dyn, sizeof(dyn)) ||
		    dyn.d_tag == DT_NULL)
			break;
		switch (dyn.d_tag) {
		case DT_SYMTAB:
			found.symbols = dyn.d_un.d_ptr;
			break;
		case DT_STRTAB:
			found.strings = dyn.d_un.d_ptr;
			break;
		case DT_STRSZ:
			found.strings_len = dyn.d_un.d_val;
			break;
		case DT_HASH:
			found.hash = dyn.d_un.d_ptr;
			break;
		case DT_GNU_HASH:
			found.gnu_hash = dyn.d_un.d_ptr;
			break;
		default:
			break;
		}
	}
	*ret = found;
	return found.symbols && found.strings ? 0 : -ENOENT;
}

/* The file offset behind an address, or 0 (where the ELF header is). */
static uint64_t file_offset(const struct elf_file *elf, uint64_t vaddr)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t offset;

		if (s->type == PT_LOAD && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz &&
		    !__builtin_add_overflow(s->offset, vaddr - s->vaddr, &offset))
			return offset;
	}
	return 0;
}

/*
 * A GNU hash table does not say how many symbols there are: the last chain of the highest bucket
 * ends at the last symbol.
 */
static uint64_t count_by_gnu_hash(const struct elf_file *elf, uint64_t table)
{
	struct {
		uint32_t nr_buckets, first_symbol, nr_bloom, shift;
	} header;
	uint64_t pos = file_offset(elf, table), chains;
	uint32_t chunk[SYMBOLS_CHUNK], last = 0, hash;

	if (!pos || elf_file_read(elf, pos, &header, sizeof(header)) ||
	    header.nr_buckets > BUCKETS_MAX)
		return 0;
	pos += sizeof(header) + (uint64_t)header.nr_bloom * sizeof(uint64_t);
	chains = pos + (uint64_t)header.nr_buckets * sizeof(uint32_t);
	for (size_t i = 0; i < header.nr_buckets; i++) {
		size_t left = header.nr_buckets - i;

		if (i % SYMBOLS_CHUNK == 0 &&
		    elf_file_read(elf, pos + i * sizeof(*chunk), chunk,
				  (left < SYMBOLS_CHUNK ? left : SYMBOLS_CHUNK) * sizeof(*chunk)))
			return 0;
		if (chunk[i % SYMBOLS_CHUNK] > last)
			last = chunk[i % SYMBOLS_CHUNK];
	}
	if (last < header.first_symbol)
		return header.first_symbol;
	for (size_t i = 0; i < CHAIN_MAX; i++, last++) {
		uint64_t at = chains + (uint64_t)(last - header.first_symbol) * sizeof(hash);

		if (last >= ELF_SYMBOLS_MAX || elf_file_read(elf, at, &hash, sizeof(hash)))
			return 0;
		if (hash & 1)
			return (uint64_t)last + 1;
	}
	return 0;
}

static uint64_t count_by_hash(const struct elf_file *elf, uint64_t table)
{
	uint32_t header[2]; /* buckets, chains: one chain a symbol */
	uint64_t pos = file_offset(elf, table);

	return pos && !elf_file_read(elf, pos, header, sizeof(header)) ? header[1] : 0;
}

int symbol_source_from_dynamic(const struct elf_file *elf, struct symbol_source *ret)
{
	struct dynamic_addresses dynamic;
	struct symbol_source source = { 0 };
	int r = read_dynamic(elf, &dynamic);

	if (r)
		return r;
	source.symbols = file_offset(elf, dynamic.symbols);
	source.strings = file_offset(elf, dynamic.strings);
	source.strings_len = dynamic.strings_len;
	if (dynamic.hash)
		source.nr = count_by_hash(elf, dynamic.hash);
	if (!source.nr && dynamic.gnu_hash)
		source.nr = count_by_gnu_hash(elf, dynamic.gnu_hash);
	if (!source.symbols || !source.strings || !source.nr)
		return -ENOENT;
	*ret = source;
	return 0;
}
