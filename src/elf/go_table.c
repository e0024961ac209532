// SPDX-License-Identifier: Apache-2.0
#include "elf/go_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/file_id.h"
#include "util/cleanup.h"

enum {
	WORD = 8,
	HEADER_SIZE = 72, /* of 1.18 and later; the others are shorter, and followed by a lot */
	PIECE = 256 << 10,
	WINDOW = 64 << 10,
	ALIGN = 8, /* of the table, and of moduledata */
	/* Functions whose records are looked at before a table is believed. */
	CHECKED = 64,
	FLAG_TOP_FRAME = 1, /* internal/abi/symtab.go: FuncFlagTopFrame */
	RECORD_MIN = 40,    /* bytes of a function's record, at least: Go 1.2's */
	/* A search ends after so many tables and modules that are none. */
	CANDIDATES_MAX = 8,
	MODULES_MAX = 64,
	MODULE_BYTES_MAX = 64 << 20, /* of writable data: the largest programs have a third */
	/* moduledata, in words: pcHeader, names, ..., text; go:func.* of 1.18 and of 1.20. */
	MODULE_NAMES = 1,
	MODULE_TEXT = 22,
	MODULE_FUNCDATA_1_18 = 38,
	MODULE_FUNCDATA_1_20 = 40,
	MODULE_WORDS = 41,
	/* internal/abi/symtab.go, the same since 1.16. */
	PCDATA_INLINED = 2,
	FUNCDATA_INLINED = 3,
	INLINED_SIZE_MAX = 20,
};

static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

static const struct elf_section *find_section(const struct elf_file *elf)
{
	const struct elf_section *s = NULL;

	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && !s; i++)
		s = elf_file_section(elf, sections[i]);
	return s;
}

/* That can be read as it is, and need not be searched for. */
static const struct elf_section *table_section(const struct elf_file *elf)
{
	const struct elf_section *s = find_section(elf);

	return s && s->type != SHT_NOBITS && !(s->flags & SHF_COMPRESSED) ? s : NULL;
}

bool go_made(const struct elf_file *elf)
{
	char id[GO_BUILD_ID_MAX];

	return find_section(elf) || elf_file_section(elf, ".note.go.buildid") ||
	       elf_file_section(elf, ".go.buildinfo") ||
	       (!elf->nr_sections && !elf_file_go_build_id(elf, id));
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Numbers of the table; 0 where it does not reach. */
static uint64_t get(const struct go_table *t, uint64_t at, size_t size)
{
	uint64_t n = 0;

	if (at <= t->size && size <= t->size - at)
		memcpy(&n, t->data + at, size);
	return n;
}

static uint32_t get32(const struct go_table *t, uint64_t at)
{
	return (uint32_t)get(t, at, 4);
}

static bool is_magic(const uint8_t *p, enum go_table_layout *ret)
{
	static const uint8_t magics[] = { 0xfb, 0xfa, 0xf0, 0xf1 };

	for (size_t i = 0; i < sizeof(magics); i++) {
		if (p[0] != magics[i] || memcmp(p + 1, "\xff\xff\xff\0", 5))
			continue;
		*ret = (enum go_table_layout)i;
		return (p[6] == 1 || p[6] == 4) && p[7] == WORD;
	}
	return false;
}

static size_t entry_size(const struct go_table *t)
{
	return t->layout >= GO_TABLE_1_18 ? 4 : WORD;
}

static uint64_t code_address(const struct go_table *t, uint32_t i)
{
	size_t size = entry_size(t);

	return t->text + get(t, t->functions + (uint64_t)i * 2 * size, size);
}

/* Where the record of function `i` is. */
static uint64_t record_of(const struct go_table *t, uint32_t i)
{
	size_t size = entry_size(t);
	uint64_t at = get(t, t->functions + ((uint64_t)i * 2 + 1) * size, size);

	if (t->layout == GO_TABLE_1_2)
		return at;
	return at < t->size ? t->functions + at : t->size;
}

/* A number of the header, which alone is there yet. */
static uint64_t header_word(const uint8_t header[static HEADER_SIZE], size_t at)
{
	uint64_t n;

	memcpy(&n, header + at, WORD);
	return n;
}

/*
 * 0; -ENOENT: no table of t->size bytes begins so. Each function has a record of its own: a table
 * is not more work than its size tells.
 */
static int read_header(const uint8_t header[static HEADER_SIZE], struct go_table *t)
{
	uint64_t nr = header_word(header, 8), offsets[5] = { 0 }, room;
	size_t at;

	if (t->size < HEADER_SIZE || !is_magic(header, &t->layout))
		return -ENOENT;
	at = t->layout >= GO_TABLE_1_18 ? 32 : 24;
	t->quantum = header[6];
	for (size_t i = 0; i < 5; i++) {
		offsets[i] = t->layout == GO_TABLE_1_2 ? 0 : header_word(header, at + WORD * i);
		if (offsets[i] > t->size)
			return -ENOENT;
	}
	t->names = offsets[0];
	t->units = offsets[1];
	t->files = offsets[2];
	t->values = offsets[3];
	t->functions = t->layout == GO_TABLE_1_2 ? 16 : offsets[4];
	if (t->layout >= GO_TABLE_1_18)
		t->text = header_word(header, 24);
	/* Behind the last function stands where it ends. */
	room = t->size - t->functions;
	room = room < entry_size(t) ? 0 : (room - entry_size(t)) / (2 * entry_size(t) + RECORD_MIN);
	if (!nr || nr > room)
		return -ENOENT;
	t->nr_functions = (uint32_t)nr;
	return 0;
}

/* 1.2 has its files behind the functions. */
static int find_files(struct go_table *t)
{
	if (t->layout == GO_TABLE_1_2)
		t->files = get32(t, t->functions + ((uint64_t)t->nr_functions * 2 + 1) * WORD);
	return t->files > t->size ? -ENOENT : 0;
}

/* Code that the file has: a size that it only claims would bound nothing. */
static bool is_code(const struct elf_file *elf, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && s->offset <= elf->size &&
		    s->filesz <= elf->size - s->offset && start >= s->vaddr && end > start &&
		    end - s->vaddr <= s->filesz)
			return true;
	}
	return false;
}

/* Do functions ascend, all of them, within code, and do records say where they belong? */
static int check_functions(const struct go_table *t)
{
	size_t size = entry_size(t);

	/* Neither the header nor a module has said where code begins. */
	if (t->layout >= GO_TABLE_1_18 && !t->text)
		return -ENOENT;
	if (!is_code(t->elf, code_address(t, 0), code_address(t, t->nr_functions)))
		return -ENOENT;
	for (uint32_t i = 0; i < t->nr_functions; i++) {
		if (code_address(t, i) > code_address(t, i + 1))
			return -ENOENT;
		if (i < CHECKED && t->text + get(t, record_of(t, i), size) != code_address(t, i))
			return -ENOENT;
	}
	return 0;
}

/* --- moduledata ------------------------------------------------------------------------------- */

/* What a search may still do. */
struct search {
	uint64_t bytes;
	unsigned int candidates;
};
static const struct search all_modules = { MODULE_BYTES_MAX, MODULES_MAX };

/*
 * The words at `addr`, as ld.so will have them. On aarch64 ld adds to what it finds there, and Go's
 * linker has written the same number already: only the relocations tell.
 */
static void relocate(const struct elf_file *elf, uint64_t addr, uint64_t *words, size_t nr,
		     struct search *left)
{
	enum { RELAS = PIECE / sizeof(Elf64_Rela) };
	const struct elf_section *s = elf_file_section(elf, ".rela.dyn");
	_cleanup_free_ Elf64_Rela *piece = NULL;
	uint64_t nr_relas = s ? s->size / sizeof(*piece) : 0;

	if (!s || s->type != SHT_RELA || s->size > left->bytes)
		return;
	left->bytes -= s->size;
	piece = malloc(RELAS * sizeof(*piece));
	for (uint64_t at = 0; piece && at < nr_relas; at += RELAS) {
		uint64_t n = nr_relas - at < RELAS ? nr_relas - at : RELAS;

		if (elf_file_read(elf, s->offset + at * sizeof(*piece), piece, n * sizeof(*piece)) <
		    0)
			return;
		for (uint64_t i = 0; i < n; i++) {
			uint64_t offset = piece[i].r_offset - addr;

			if (ELF64_R_TYPE(piece[i].r_info) == R_AARCH64_RELATIVE &&
			    offset / WORD < nr && offset % WORD == 0)
				words[offset / WORD] = (uint64_t)piece[i].r_addend;
		}
	}
}

static bool take_module(struct go_table *t, uint64_t addr, struct search *left)
{
	uint64_t words[MODULE_WORDS], text;

	if (elf_file_read_vaddr(t->elf, addr, words, sizeof(words)) < 0 || words[0] != t->addr ||
	    words[MODULE_NAMES + 1] != words[MODULE_NAMES + 2])
		return false;
	if (t->elf->machine == EM_AARCH64)
		relocate(t->elf, addr, words, MODULE_WORDS, left);
	if (words[MODULE_NAMES] != t->addr + t->names)
		return false;
	text = words[MODULE_TEXT];
	if (!is_code(t->elf, text, text + 1))
		return false;
	t->text = text;
	t->funcdata =
		words[t->layout == GO_TABLE_1_20 ? MODULE_FUNCDATA_1_20 : MODULE_FUNCDATA_1_18];
	return true;
}

/* Is that a part of the table? In position-independent programs it can be written. */
static bool in_table(const struct go_table *t, uint64_t addr, uint64_t size)
{
	return table_section(t->elf) && addr >= t->addr && addr - t->addr <= t->size &&
	       size <= t->size - (addr - t->addr);
}

static bool search_module(struct go_table *t, const struct elf_segment *s, uint8_t *piece,
			  struct search *left)
{
	uint64_t word;

	for (uint64_t at = -s->vaddr & (ALIGN - 1); at < s->filesz && left->bytes; at += PIECE) {
		uint64_t size = s->filesz - at < PIECE ? s->filesz - at : PIECE;

		if (in_table(t, s->vaddr + at, size))
			continue;
		if (elf_file_read(t->elf, s->offset + at, piece, size) < 0)
			return false;
		left->bytes -= size < left->bytes ? size : left->bytes;
		for (uint64_t i = 0; i + WORD <= size; i += ALIGN) {
			memcpy(&word, piece + i, WORD);
			if (word != t->addr)
				continue;
			if (!left->candidates)
				return false;
			left->candidates--;
			if (take_module(t, s->vaddr + at + i, left))
				return true;
		}
	}
	return false;
}

/*
 * It has a section since 1.26, where the table itself no longer says where code begins. Without it
 * there are no inlined calls.
 */
static int find_module(struct go_table *t, struct search *left)
{
	const struct elf_section *section = elf_file_section(t->elf, ".go.module");
	_cleanup_free_ uint8_t *piece = NULL;

	if (t->layout < GO_TABLE_1_18)
		return 0;
	if (section) {
		take_module(t, section->addr, left);
		return 0;
	}
	piece = malloc(PIECE);
	if (!piece)
		return -ENOMEM;
	for (size_t i = 0; i < t->elf->nr_segments; i++) {
		const struct elf_segment *s = &t->elf->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_W && search_module(t, s, piece, left))
			return 0;
	}
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* `t` has what the header says. */
static int take_table(struct go_table t, uint64_t offset, struct search *modules,
		      struct go_table *ret)
{
	int r;

	t.data = malloc(t.size);
	if (!t.data)
		return -ENOMEM;
	r = elf_file_read(t.elf, offset, t.data, t.size) < 0 ? -ENOENT : find_files(&t);
	if (!r)
		r = find_module(&t, modules);
	if (!r)
		r = check_functions(&t);
	if (r)
		go_table_fini(&t);
	else
		*ret = t;
	return r;
}

/* By what stands at the begin of `size` bytes: all of the header, or, `known` bytes of it. */
static int look_at_header(const struct elf_file *elf, uint64_t offset, const uint8_t *begin,
			  uint64_t known, struct go_table *t)
{
	uint8_t header[HEADER_SIZE];

	if (t->size < HEADER_SIZE || t->size > GO_TABLE_MAX || offset > elf->size ||
	    t->size > elf->size - offset)
		return -ENOENT;
	if (known >= HEADER_SIZE)
		memcpy(header, begin, HEADER_SIZE);
	else if (elf_file_read(elf, offset, header, HEADER_SIZE) < 0)
		return -ENOENT;
	return read_header(header, t);
}

struct searches {
	struct search tables, modules;
};

/* All of `size` bytes of a segment, at `at` in it. */
static int search_piece(const struct elf_file *elf, const struct elf_segment *s, uint64_t at,
			const uint8_t *piece, uint64_t size, struct searches *left,
			struct go_table *ret)
{
	enum go_table_layout layout;
	int r = -ENOENT;

	for (uint64_t i = 0; i + WORD <= size && r == -ENOENT; i += ALIGN) {
		struct go_table t = { .elf = elf,
				      .addr = s->vaddr + at + i,
				      .size = s->filesz - at - i };

		if (piece[i + 1] != 0xff || !is_magic(piece + i, &layout) ||
		    look_at_header(elf, s->offset + at + i, piece + i, size - i, &t))
			continue;
		if (!left->tables.candidates || t.size > left->tables.bytes) {
			left->tables.bytes = 0;
			return -ENOENT;
		}
		left->tables.candidates--;
		left->tables.bytes -= t.size;
		r = take_table(t, s->offset + at + i, &left->modules, ret);
	}
	return r;
}

static int search_segment(const struct elf_file *elf, const struct elf_segment *s, uint8_t *piece,
			  struct searches *left, struct go_table *ret)
{
	int r = -ENOENT;

	for (uint64_t at = -s->vaddr & (ALIGN - 1); at < s->filesz && r == -ENOENT; at += PIECE) {
		uint64_t size = s->filesz - at < PIECE ? s->filesz - at : PIECE;

		if (size > left->tables.bytes ||
		    elf_file_read(elf, s->offset + at, piece, size) < 0)
			return -ENOENT;
		left->tables.bytes -= size;
		r = search_piece(elf, s, at, piece, size, left, ret);
	}
	return r;
}

/* What is no code, or can be written. */
static uint64_t segments_bytes(const struct elf_file *elf, bool is_written)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && (is_written ? s->flags & PF_W : !(s->flags & PF_X)) &&
		    __builtin_add_overflow(sum, s->filesz, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/*
 * gcc's linker merges it with others in position-independent programs. All is read once to find it,
 * and, in all, twice more as what may be one: it is the rest of its segment.
 */
static int search(const struct elf_file *elf, struct go_table *ret)
{
	uint64_t bytes = segments_bytes(elf, false);
	struct searches left = {
		{ 3 * (bytes < GO_TABLE_MAX ? bytes : GO_TABLE_MAX), CANDIDATES_MAX }, all_modules
	};
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	int r = piece ? -ENOENT : -ENOMEM;

	for (size_t i = 0; i < elf->nr_segments && r == -ENOENT; i++)
		if (elf->segments[i].type == PT_LOAD && !(elf->segments[i].flags & PF_X))
			r = search_segment(elf, &elf->segments[i], piece, &left, ret);
	return r;
}

int go_table_read(const struct elf_file *elf, struct go_table *ret)
{
	const struct elf_section *s;
	struct go_table t = { .elf = elf };
	struct search modules = all_modules;

	if (!go_made(elf))
		return -ENOENT;
	s = table_section(elf);
	if (!s)
		return search(elf, ret);
	t.addr = s->addr;
	t.size = s->size;
	if (look_at_header(elf, s->offset, NULL, 0, &t))
		return -ENOENT;
	return take_table(t, s->offset, &modules, ret);
}

void go_table_fini(struct go_table *t)
{
	free(t->data);
	free(t->window);
	*t = (struct go_table){ 0 };
}

uint64_t go_table_bytes(const struct elf_file *elf)
{
	const struct elf_section *s;
	uint64_t sum, module = 0;

	if (!go_made(elf))
		return 0;
	s = table_section(elf);
	sum = s ? s->size : segments_bytes(elf, false);
	if (!elf_file_section(elf, ".go.module"))
		module = segments_bytes(elf, true);
	if (s && s->flags & SHF_WRITE && s->size <= module)
		module -= s->size; /* in_table() */
	module = module < MODULE_BYTES_MAX ? module : MODULE_BYTES_MAX;
	return __builtin_add_overflow(sum, module, &sum) ? UINT64_MAX : sum;
}

/* --- functions -------------------------------------------------------------------------------- */

/* The two arrays behind the record of a function: of values, of other data. */
static void read_inlined(const struct go_table *t, uint64_t at, uint32_t nr_values, uint8_t nr_data,
			 struct go_function *f)
{
	uint64_t data = at + 4 * (uint64_t)nr_values, offset;

	if (nr_values <= PCDATA_INLINED || nr_values > t->size / 4 || nr_data <= FUNCDATA_INLINED)
		return;
	f->inlined_index = get32(t, at + 4 * PCDATA_INLINED);
	if (t->layout == GO_TABLE_1_16) {
		data = (data + WORD - 1) & -(uint64_t)WORD;
		f->inlined = get(t, data + WORD * FUNCDATA_INLINED, WORD);
	} else if (t->funcdata) {
		offset = get32(t, data + 4 * FUNCDATA_INLINED);
		if (offset != UINT32_MAX)
			f->inlined = t->funcdata + offset;
	}
}

int go_table_function(const struct go_table *t, uint32_t i, struct go_function *ret)
{
	uint64_t at = record_of(t, i), tail;
	struct go_function f = { .start = code_address(t, i), .end = code_address(t, i + 1) };

	/* That it is code is known of all of them: check_functions(). */
	if (i >= t->nr_functions || f.end <= f.start || f.end - f.start > UINT32_MAX ||
	    at > t->size || t->size - at < 48)
		return -ENOENT;
	at += entry_size(t);
	f.name = get32(t, at);
	for (size_t k = 0; k < 3; k++)
		f.values[k] = get32(t, at + 12 + 4 * k);
	tail = at + 28;
	if (t->layout >= GO_TABLE_1_16) {
		f.unit = get32(t, tail);
		tail += 4;
	}
	if (t->layout >= GO_TABLE_1_20) {
		f.start_line = get32(t, tail);
		tail += 4;
	}
	if (t->layout >= GO_TABLE_1_16) {
		f.id = (uint8_t)get(t, tail, 1);
		f.top = get(t, tail + 1, 1) & FLAG_TOP_FRAME;
		read_inlined(t, tail + 4, get32(t, at + 24), (uint8_t)get(t, tail + 3, 1), &f);
	}
	*ret = f;
	return 0;
}

uint32_t go_table_first(const struct go_table *t, uint64_t addr)
{
	uint32_t low = 0, high = t->nr_functions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (code_address(t, middle) < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const char *text_at(const struct go_table *t, uint64_t at)
{
	uint64_t max;

	if (at >= t->size)
		return NULL;
	max = t->size - at < GO_NAME_MAX ? t->size - at : GO_NAME_MAX;
	return strnlen((const char *)t->data + at, max) < max ? (const char *)t->data + at : NULL;
}

const char *go_table_name(const struct go_table *t, uint32_t name)
{
	return text_at(t, t->names + name);
}

const char *go_table_function_name(const struct go_table *t, const struct go_function *f)
{
	return go_table_name(t, f->name);
}

const char *go_table_file(const struct go_table *t, const struct go_function *f, int32_t file)
{
	uint32_t at;

	if (file < 0)
		return NULL;
	if (t->layout == GO_TABLE_1_2) {
		at = get32(t, t->files + 4 * (uint64_t)file);
		return at ? text_at(t, at) : NULL;
	}
	at = get32(t, t->units + 4 * ((uint64_t)f->unit + (uint64_t)file));
	return at == UINT32_MAX ? NULL : text_at(t, t->files + at);
}

/* --- values ----------------------------------------------------------------------------------- */

void go_values_begin(const struct go_table *t, const struct go_function *f,
		     enum go_values_kind kind, struct go_values *ret)
{
	uint32_t offset = kind == GO_INLINED ? f->inlined_index : f->values[kind];
	uint64_t at = t->values + offset;

	*ret = (struct go_values){ .limit = (uint32_t)(f->end - f->start),
				   .value = -1,
				   .quantum = t->quantum };
	/* 0: there are none. */
	if (offset && at < t->size) {
		ret->at = t->data + at;
		ret->end = t->data + t->size;
	}
}

static bool get_varint(struct go_values *v, uint32_t *ret)
{
	uint32_t n = 0;

	for (unsigned int shift = 0; shift < 35 && v->at < v->end; shift += 7) {
		uint8_t byte = *v->at++;

		n |= (uint32_t)(byte & 0x7f) << (shift & 31);
		if (!(byte & 0x80)) {
			*ret = n;
			return true;
		}
	}
	return false;
}

bool go_values_next(struct go_values *v, struct go_step *ret)
{
	uint32_t delta, code;
	uint64_t end;

	if (v->pos >= v->limit || !get_varint(v, &delta) || (!delta && v->begun) ||
	    !get_varint(v, &code) || !code)
		return false;
	v->begun = true;
	v->value = (int32_t)((uint32_t)v->value + (delta >> 1 ^ -(delta & 1)));
	end = v->pos + (uint64_t)code * v->quantum;
	end = end < v->limit ? end : v->limit;
	*ret = (struct go_step){ v->pos, (uint32_t)end, v->value };
	v->pos = (uint32_t)end;
	return true;
}

/* Bytes that the file has at `addr`, of at most `max`. */
static uint64_t bytes_at(const struct elf_file *elf, uint64_t addr, uint64_t max)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];
		uint64_t at = addr - s->vaddr;

		if (s->type == PT_LOAD && addr >= s->vaddr && at < s->filesz)
			return s->filesz - at < max ? s->filesz - at : max;
	}
	return 0;
}

/* Functions' trees lie near each other: a read each would take longer than all the rest. */
static bool read_window(struct go_table *t, uint64_t addr, void *buf, uint64_t size)
{
	uint64_t at = addr - t->window_addr;

	if (addr < t->window_addr || at > t->window_size || size > t->window_size - at) {
		if (!t->window)
			t->window = malloc(WINDOW);
		if (!t->window)
			return false;
		at = 0;
		t->window_addr = addr;
		t->window_size = bytes_at(t->elf, addr, WINDOW);
		if (t->window_size < size ||
		    elf_file_read_vaddr(t->elf, addr, t->window, t->window_size) < 0) {
			t->window_size = 0;
			return false;
		}
	}
	memcpy(buf, t->window + at, size);
	return true;
}

int go_table_inlined(struct go_table *t, const struct go_function *f, uint32_t index,
		     struct go_inlined *ret)
{
	uint32_t words[INLINED_SIZE_MAX / 4];
	/* 1.20: id, name, pc, line. Before: parent and id, file, line, name, pc. */
	bool is_new = t->layout >= GO_TABLE_1_20;
	uint64_t size = is_new ? 16 : INLINED_SIZE_MAX, addr;

	if (!f->inlined || __builtin_add_overflow(f->inlined, index * size, &addr) ||
	    !read_window(t, addr, words, size))
		return -ENOENT;
	*ret = is_new ? (struct go_inlined){ words[1], words[2], words[3] }
		      : (struct go_inlined){ words[3], words[4], 0 };
	return ret->parent_pc < f->end - f->start ? 0 : -ENOENT;
}
