// SPDX-License-Identifier: Apache-2.0
/*
 * "ADDRESS TYPE name[\t[module]]" a line, sorted within the kernel, unsorted behind it.
 *
 * Lines are taken in as they are read, since all of their text is several megabytes: one block has
 * the names, and what has the address of the line before takes its place or is passed over. What is
 * not sorted is sorted at the end. Symbols that are no functions stay as ends, without a name,
 * since kernel symbols have no sizes.
 *
 * The kernel's own symbols come first (kernel/kallsyms.c, update_iter()) and never change while it
 * runs: they are packed, and to read again is to read what stands behind them.
 */
#include "symbol/kallsyms.h"
#include "symbol/packed_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/hex.h"
#include "util/sorted.h"
#include "util/vec.h"

enum {
	/* The kernel's KSYM_NAME_LEN is 512. */
	NAME_MAX_LEN = 1024,
	READ_BYTES = 64 << 10,
	NAMES_MAX = 1 << 29, /* symbol.name has so many bits */
};

/* In the order of preference among the names of one address. */
enum rank {
	RANK_GLOBAL,
	RANK_WEAK,
	RANK_LOCAL,
	RANK_BEGIN, /* of a section of the kernel, such as _stext */
	RANK_END,   /* nothing begins here */
};

struct line {
	uint64_t addr;
	const char *name, *module;
	uint16_t name_len, module_len;
	uint8_t rank;
};

struct symbol {
	uint64_t addr;
	uint32_t name : 29; /* in `names`; 0 is "", of an end */
	uint32_t rank : 3;
	uint32_t module; /* in `names` */
};

/* The kernel's own part, where it is known to stand in order and in front of all others. */
struct own {
	struct packed_symbols *packed; /* NULL: they are among `symbols` */
	size_t nr_symbols;	       /* of those in `symbols`; 0: not known */
	size_t nr_names;
	uint64_t bytes; /* of text */
	uint64_t last;	/* address of the last line, and that line's length */
	size_t last_size;
};

/* What the next line is to be, if reading began behind the kernel's own part. */
enum check { CHECK_NONE, CHECK_LAST, CHECK_OTHER };

struct kallsyms {
	VEC(struct symbol) symbols; /* behind the packed ones */
	VEC(char) names;
	struct own own;
	enum check check;
	uint64_t bytes, last; /* of the lines so far, and the last one's address and length */
	size_t last_size;
	bool hidden;		       /* there were functions, but without their addresses */
	uint64_t text_start, text_end; /* of the kernel itself */
	uint32_t module;	       /* of the last symbol that has one */
	size_t nr_sorted;	       /* symbols, up to the first that lies before another */
};

/* --- one line --------------------------------------------------------------------------------- */

static bool is_one_of(const char *name, size_t len, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == len && !memcmp(*list, name, len))
			return true;
	return false;
}

static enum rank rank_of(char type, const struct line *line)
{
	static const char *const begins[] = { "_text", "_stext", "_sinittext", "__init_begin",
					      NULL };
	static const char *const ends[] = { "_etext", "_einittext", "__init_end", NULL };

	if (!line->module_len && is_one_of(line->name, line->name_len, ends))
		return RANK_END;
	if (!line->module_len && is_one_of(line->name, line->name_len, begins))
		return RANK_BEGIN;
	switch (type) {
	case 'T':
		return RANK_GLOBAL;
	case 'W':
	case 'w':
	case 'i':
		return RANK_WEAK;
	case 't':
		return RANK_LOCAL;
	default:
		return RANK_END;
	}
}

static const char *word_end(const char *p, const char *end)
{
	while (p < end && (unsigned char)*p > ' ')
		p++;
	return p;
}

static bool parse_line(const char *p, const char *end, struct line *ret)
{
	const char *word;
	char type;

	*ret = (struct line){ .module = "" };
	p = hex_parse(p, end, &ret->addr);
	if (!p || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	type = p[1];
	word = p + 3;
	p = word_end(word, end);
	if (p == word || p - word > NAME_MAX_LEN)
		return false;
	ret->name = word;
	ret->name_len = (uint16_t)(p - word);
	while (p < end && (*p == '\t' || *p == ' '))
		p++;
	if (p < end && *p == '[') {
		word = ++p;
		p = memchr(word, ']', (size_t)(end - word));
		if (!p || p - word > NAME_MAX_LEN || memchr(word, '\0', (size_t)(p - word)))
			return false;
		ret->module = word;
		ret->module_len = (uint16_t)(p - word);
	}
	ret->rank = rank_of(type, ret);
	return true;
}

/* --- the table -------------------------------------------------------------------------------- */

static int compare_names(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b), a_score = strspn(a, "_");
	size_t b_score = strspn(b, "_");

	if (a_score != b_score)
		return a_score < b_score ? -1 : 1;
	if (a_len != b_len)
		return a_len < b_len ? -1 : 1;
	return memcmp(a, b, a_len);
}

static int compare_symbols(const void *a_, const void *b_, void *names_)
{
	const struct symbol *a = a_, *b = b_;
	const char *names = names_;
	int r;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	r = compare_names(names + a->name, names + b->name);
	return r ? r : strcmp(names + a->module, names + b->module);
}

static int add_name(struct kallsyms *k, const char *name, size_t len, uint32_t *ret)
{
	if (k->names.nr + len + 1 > NAMES_MAX || vec_reserve(&k->names, k->names.nr + len + 1))
		return -ENOMEM;
	*ret = (uint32_t)k->names.nr;
	memcpy(k->names.items + k->names.nr, name, len);
	k->names.nr += len;
	k->names.items[k->names.nr++] = '\0';
	return 0;
}

/* Kernels with padding have "__pfx_NAME" in front of each NAME: half of all symbols. */
static int share_name(struct kallsyms *k, const struct symbol *last, const struct line *line,
		      uint32_t *ret)
{
	size_t len = last ? strlen(k->names.items + last->name) : 0;
	uint32_t at = len >= line->name_len ? last->name + (uint32_t)(len - line->name_len) : 0;

	if (!at || memcmp(k->names.items + at, line->name, line->name_len))
		return add_name(k, line->name, line->name_len, ret);
	*ret = at;
	return 0;
}

/* A module's functions stand together. */
static int add_module(struct kallsyms *k, const struct line *line, uint32_t *ret)
{
	const char *last = k->names.items + k->module;
	int r;

	*ret = 0;
	if (!line->module_len)
		return 0;
	if (strlen(last) != line->module_len || memcmp(last, line->module, line->module_len)) {
		r = add_name(k, line->module, line->module_len, &k->module);
		if (r)
			return r;
	}
	*ret = k->module;
	return 0;
}

/* Behind the last symbol, or in its place. */
static int add_symbol(struct kallsyms *k, const struct line *line)
{
	struct symbol *last = k->symbols.nr ? &k->symbols.items[k->symbols.nr - 1] : NULL;
	bool is_first_other = k->own.nr_symbols && k->own.nr_symbols == k->symbols.nr;
	struct symbol s = { .addr = line->addr, .rank = line->rank };
	size_t names_nr = k->names.nr;
	uint32_t name = 0;
	int r;

	/* Where the kernel is sorted only the first end counts. */
	if (last && !line->module_len && last->rank == RANK_END && line->rank == RANK_END &&
	    line->addr >= last->addr && k->nr_sorted == k->symbols.nr)
		return 0;
	if (line->rank != RANK_END) {
		r = add_module(k, line, &s.module);
		if (!r)
			r = share_name(k, is_first_other ? NULL : last, line, &name);
		if (r)
			return r;
		s.name = name;
	}
	if (!last || last->addr != s.addr || is_first_other) {
		k->nr_sorted += k->nr_sorted == k->symbols.nr && (!last || last->addr < s.addr);
		return vec_push(&k->symbols, s);
	}
	if (compare_symbols(last, &s, k->names.items) > 0)
		*last = s;
	else if (s.module == last->module)
		k->names.nr = names_nr;
	return 0;
}

/* Keeps the first symbol of each address, and of neighbouring ends only the first. */
static void keep_choices(struct kallsyms *k)
{
	size_t i, kept = k->own.nr_symbols;

	for (i = kept; i < k->symbols.nr; i++) {
		const struct symbol *s = &k->symbols.items[i];
		const struct symbol *last = kept ? &k->symbols.items[kept - 1] : NULL;

		if (last &&
		    (last->addr == s->addr || (last->rank == RANK_END && s->rank == RANK_END)))
			continue;
		k->symbols.items[kept++] = *s;
	}
	k->symbols.nr = kept;
}

/* Are all symbols from number `nr` on behind this address? */
static bool are_behind(const struct kallsyms *k, size_t nr, uint64_t addr)
{
	for (size_t i = nr; i < k->symbols.nr; i++)
		if (k->symbols.items[i].addr <= addr)
			return false;
	return true;
}

static bool is_behind(const struct kallsyms *k, size_t nr)
{
	return !nr || are_behind(k, nr, k->symbols.items[nr - 1].addr);
}

/* Those that do not stand in order, which are usually all larger than the kernel's own. */
static void sort(struct kallsyms *k)
{
	size_t at = k->nr_sorted;

	if (!is_behind(k, at))
		at = k->own.nr_symbols;
	if (!is_behind(k, at)) {
		k->own = (struct own){ 0 };
		at = 0;
	}
	if (at < k->symbols.nr)
		qsort_r(k->symbols.items + at, k->symbols.nr - at, sizeof(*k->symbols.items),
			compare_symbols, k->names.items);
	keep_choices(k);
}

static bool is_kernels(const struct line *line, const char *name)
{
	return !line->module_len && line->name_len == strlen(name) &&
	       !memcmp(line->name, name, line->name_len);
}

static void note_text(struct kallsyms *k, const struct line *line)
{
	if (is_kernels(line, "_stext"))
		k->text_start = line->addr;
	else if (is_kernels(line, "_etext"))
		k->text_end = line->addr;
}

void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end)
{
	bool known = k->text_start && k->text_start < k->text_end;

	*ret_start = known ? k->text_start : 0;
	*ret_end = known ? k->text_end : 0;
}

/* --- the kernel's own part -------------------------------------------------------------------- */

static uint64_t own_addr(const void *k_, size_t i)
{
	const struct kallsyms *k = k_;

	return k->symbols.items[i].addr;
}

static const char *own_name(const void *k_, size_t i)
{
	const struct kallsyms *k = k_;

	return k->names.items + k->symbols.items[i].name;
}

/* What stands behind the kernel's own symbols and names comes to their place; that of "" stays. */
static void keep_others(struct kallsyms *k)
{
	uint32_t less = (uint32_t)k->own.nr_names - 1;
	size_t nr = k->symbols.nr - k->own.nr_symbols;

	memmove(k->symbols.items, k->symbols.items + k->own.nr_symbols,
		nr * sizeof(*k->symbols.items));
	memmove(k->names.items + 1, k->names.items + k->own.nr_names,
		k->names.nr - k->own.nr_names);
	k->symbols.nr = nr;
	k->names.nr -= less;
	for (size_t i = 0; i < nr; i++) {
		k->symbols.items[i].name -= k->symbols.items[i].name ? less : 0;
		k->symbols.items[i].module -= k->symbols.items[i].module ? less : 0;
	}
	k->own.nr_symbols = 0;
	/* Growing for the kernel's own took most of it. */
	vec_shrink(&k->symbols);
	vec_shrink(&k->names);
}

/* Once the kernel's own part is known. Where it cannot be, it stays as it is. */
static void pack_own(struct kallsyms *k)
{
	if (!k->own.nr_symbols)
		return;
	if (!packed_symbols_new(k->own.nr_symbols, own_addr, own_name, k, &k->own.packed))
		keep_others(k);
}

static int kallsyms_new(struct kallsyms **ret)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = calloc(1, sizeof(*k));

	if (!k || vec_push(&k->names, '\0'))
		return -ENOMEM;
	*ret = TAKE_PTR(k);
	return 0;
}

/* Where there is none of a module: the end. */
static const struct line no_line = { .module = "", .module_len = 1 };

/* The first line of a module ends the kernel's own part. */
static void note_own(struct kallsyms *k, const struct line *line)
{
	if (!line->module_len || k->own.bytes || k->nr_sorted != k->symbols.nr)
		return;
	k->own = (struct own){ .nr_symbols = k->symbols.nr,
			       .nr_names = k->names.nr,
			       .bytes = k->bytes,
			       .last = k->last,
			       .last_size = k->last_size };
}

static bool is_as_before(const struct kallsyms *k, const struct line *line, size_t size)
{
	if (k->check == CHECK_OTHER)
		return line->module_len;
	return !line->module_len && line->addr == k->own.last && size == k->own.last_size;
}

static int take_in_line(struct kallsyms *k, const struct line *line, size_t size)
{
	if (k->check && !is_as_before(k, line, size))
		return -ESTALE;
	if (k->check) {
		k->check = k->check == CHECK_LAST ? CHECK_OTHER : CHECK_NONE;
		if (k->check)
			return 0;
	}
	note_own(k, line);
	k->last = line->addr;
	k->last_size = size;
	note_text(k, line);
	if (line->addr)
		return add_symbol(k, line);
	if (line->rank != RANK_END)
		k->hidden = true;
	return 0;
}

static int take_in(struct kallsyms *k, const char *text, size_t size)
{
	const char *p = text, *end = text + size, *line_end;
	struct line line;
	int r = 0;

	for (; p < end && !r; p = line_end + 1) {
		line_end = memchr(p, '\n', (size_t)(end - p));
		if (!line_end)
			line_end = end;
		if (parse_line(p, line_end, &line))
			r = take_in_line(k, &line, (size_t)(line_end + 1 - p));
		k->bytes += (size_t)(line_end + 1 - p);
	}
	return r;
}

int kallsyms_parse(const char *text, size_t size, struct kallsyms **ret)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	int r = kallsyms_new(&k);

	if (!r)
		r = take_in(k, text, size < KALLSYMS_SIZE_MAX ? size : KALLSYMS_SIZE_MAX);
	if (r)
		return r;
	note_own(k, &no_line);
	sort(k);
	pack_own(k);
	*ret = TAKE_PTR(k);
	return 0;
}

/* Up to the last whole line of what is read so far; a line as long as the buffer is none. */
static int take_in_lines(struct kallsyms *k, char *text, size_t *used)
{
	const char *last = memrchr(text, '\n', *used);
	size_t size = last ? (size_t)(last + 1 - text) : *used == READ_BYTES ? *used : 0;
	int r = last ? take_in(k, text, size) : 0;

	*used -= size;
	memmove(text, text + size, *used);
	return r;
}

static int read_all(struct kallsyms *k, int fd)
{
	_cleanup_free_ char *text = malloc(READ_BYTES);
	size_t used = 0, total = 0;
	ssize_t n;
	int r = 0;

	if (!text)
		return -ENOMEM;
	while (!r && total < KALLSYMS_SIZE_MAX && (n = read(fd, text + used, READ_BYTES - used))) {
		if (n < 0)
			return -errno;
		used += (size_t)n;
		total += (size_t)n;
		r = take_in_lines(k, text, &used);
	}
	return r ? r : take_in(k, text, used);
}

int kallsyms_read_from(int fd, struct kallsyms **ret)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	int r = kallsyms_new(&k);

	if (!r)
		r = read_all(k, fd);
	if (r)
		return r;
	note_own(k, &no_line);
	sort(k);
	if (!k->symbols.nr)
		return k->hidden ? -EPERM : -ENOENT;
	pack_own(k);
	*ret = TAKE_PTR(k);
	return 0;
}

static uint64_t last_own(const struct kallsyms *k)
{
	return packed_symbols_addr(k->own.packed, packed_symbols_nr(k->own.packed) - 1);
}

/* A bad line between the last two lines of the kernel's own part would be found by the check. */
static int read_others(struct kallsyms *k, int fd)
{
	int r;

	if (!k->own.packed)
		return -ENODATA;
	if (lseek(fd, (off_t)(k->own.bytes - k->own.last_size), SEEK_SET) < 0)
		return -errno;
	k->symbols.nr = k->nr_sorted = 0;
	k->names.nr = 1;
	k->module = 0;
	k->check = CHECK_LAST;
	r = read_all(k, fd);
	if (!r && k->check == CHECK_LAST)
		r = -ESTALE;
	k->check = CHECK_NONE;
	sort(k);
	if (!r && !are_behind(k, 0, last_own(k)))
		r = -ESTALE;
	return r;
}

int kallsyms_read_again_from(int fd, struct kallsyms **k)
{
	struct kallsyms *all;
	int r = read_others(*k, fd);

	if (!r)
		return 0;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = kallsyms_read_from(fd, &all);
	if (r)
		return r;
	kallsyms_free(*k);
	*k = all;
	return 0;
}

int kallsyms_read(struct kallsyms **ret)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kallsyms_read_from(fd, ret);
}

int kallsyms_read_again(struct kallsyms **k)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kallsyms_read_again_from(fd, k);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	packed_symbols_free(k->own.packed);
	vec_free(&k->symbols);
	vec_free(&k->names);
	free(k);
}

void kallsyms_rest(struct kallsyms *k)
{
	if (k->own.packed)
		packed_symbols_rest(k->own.packed);
}

/* --- looking up ------------------------------------------------------------------------------- */

/* A symbol by its number, the packed ones first. */
static uint64_t addr_of(const struct kallsyms *k, size_t nr_packed, size_t i)
{
	return i < nr_packed ? packed_symbols_addr(k->own.packed, i)
			     : k->symbols.items[i - nr_packed].addr;
}

static const char *name_of(const struct kallsyms *k, size_t nr_packed, size_t i)
{
	const char *name = i < nr_packed ? packed_symbols_name(k->own.packed, i)
					 : k->names.items + k->symbols.items[i - nr_packed].name;

	return name && *name ? name : NULL;
}

/* Where kretprobes have functions return to, before Linux 5.18 and before 5.16. */
static bool is_trampoline(const char *name)
{
	return name &&
	       (!strcmp(name, "__kretprobe_trampoline") || !strcmp(name, "kretprobe_trampoline"));
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **ret_module)
{
	const size_t nr_packed = k->own.packed ? packed_symbols_nr(k->own.packed) : 0;
	const size_t nr = nr_packed + k->symbols.nr;
	const char *name;
	size_t low;

	/* The first one behind `addr`. */
	low = sorted_before(nr, i, addr_of(k, nr_packed, i) <= addr);
	if (low < nr && addr_of(k, nr_packed, low) == addr + 1 &&
	    is_trampoline(name_of(k, nr_packed, low)))
		low++;
	if (!low)
		return NULL;
	low--;
	if (addr >= addr_of(k, nr_packed, low) &&
	    addr - addr_of(k, nr_packed, low) >= KALLSYMS_FUNCTION_MAX)
		return NULL;
	name = name_of(k, nr_packed, low);
	if (name)
		*ret_module = low < nr_packed
				      ? ""
				      : k->names.items + k->symbols.items[low - nr_packed].module;
	return name;
}
