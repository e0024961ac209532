// SPDX-License-Identifier: Apache-2.0
/*
 * "ADDRESS TYPE name[\t[module]]" a line, sorted within the kernel, unsorted behind it.
 *
 * The lines are first noted where they stand in the text, then sorted, and only the one choice of
 * each address gets its name copied: one block holds all of them. Symbols that are no functions
 * stay as ends, without a name, since kernel symbols have no sizes.
 */
#include "symbol/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/hex.h"
#include "util/read_file.h"
#include "util/vec.h"
#include "util/sorted.h"

enum {
	/* The kernel's KSYM_NAME_LEN is 512. */
	NAME_MAX_LEN = 1024,
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
	uint32_t name;	 /* in `names`; 0 is "", of an end */
	uint32_t module; /* in `names` */
};

struct kallsyms {
	struct symbol *symbols;
	size_t nr;
	bool hidden;		       /* there were functions, but without their addresses */
	uint64_t text_start, text_end; /* of the kernel itself */
	char *names;
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

static int compare_names(const struct line *a, const struct line *b)
{
	size_t min = a->name_len < b->name_len ? a->name_len : b->name_len;
	size_t a_score = 0, b_score = 0;
	int r;

	while (a_score < a->name_len && a->name[a_score] == '_')
		a_score++;
	while (b_score < b->name_len && b->name[b_score] == '_')
		b_score++;
	if (a_score != b_score)
		return a_score < b_score ? -1 : 1;
	if (a->name_len != b->name_len)
		return a->name_len < b->name_len ? -1 : 1;
	r = memcmp(a->name, b->name, min);
	if (r)
		return r;
	if (a->module_len != b->module_len)
		return a->module_len < b->module_len ? -1 : 1;
	return memcmp(a->module, b->module, a->module_len);
}

static int compare_lines(const void *a_, const void *b_)
{
	const struct line *a = a_, *b = b_;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return compare_names(a, b);
}

/* Keeps the first line of each address, and of neighbouring ends only the first. */
static size_t keep_choices(struct line *lines, size_t nr)
{
	size_t i, kept = 0;

	for (i = 0; i < nr; i++) {
		const struct line *last = kept ? &lines[kept - 1] : NULL;

		if (last && (last->addr == lines[i].addr ||
			     (last->rank == RANK_END && lines[i].rank == RANK_END)))
			continue;
		lines[kept++] = lines[i];
	}
	return kept;
}

static uint32_t add_name(struct kallsyms *k, size_t *used, const char *name, size_t len)
{
	size_t at = *used;

	memcpy(k->names + at, name, len);
	k->names[at + len] = '\0';
	*used += len + 1;
	return (uint32_t)at;
}

static int build(struct kallsyms *k, const struct line *lines, size_t nr)
{
	const struct line *module_of = NULL;
	size_t size = 1, used = 1, i;
	uint32_t module = 0;

	for (i = 0; i < nr; i++)
		size += lines[i].name_len + lines[i].module_len + 2U;
	k->names = malloc(size);
	k->symbols = calloc(nr ? nr : 1, sizeof(*k->symbols));
	if (!k->names || !k->symbols)
		return -ENOMEM;
	k->names[0] = '\0';
	for (i = 0; i < nr; i++) {
		const struct line *l = &lines[i];
		struct symbol *s = &k->symbols[k->nr++];

		s->addr = l->addr;
		if (l->rank == RANK_END)
			continue;
		s->name = add_name(k, &used, l->name, l->name_len);
		if (!l->module_len)
			continue;
		/* A module's functions stand together. */
		if (!module_of || module_of->module_len != l->module_len ||
		    memcmp(module_of->module, l->module, l->module_len)) {
			module = add_name(k, &used, l->module, l->module_len);
			module_of = l;
		}
		s->module = module;
	}
	return 0;
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

int kallsyms_parse(const char *text, size_t size, struct kallsyms **ret)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = calloc(1, sizeof(*k));
	const char *p = text, *end, *line_end;
	_cleanup_free_ struct line *items = NULL;
	VEC(struct line) lines = { 0 };
	struct line line;
	int r = 0;

	if (!k)
		return -ENOMEM;
	if (size > KALLSYMS_SIZE_MAX)
		size = KALLSYMS_SIZE_MAX;
	for (end = text + size; p < end && !r; p = line_end + 1) {
		line_end = memchr(p, '\n', (size_t)(end - p));
		if (!line_end)
			line_end = end;
		if (!parse_line(p, line_end, &line))
			continue;
		note_text(k, &line);
		if (line.addr)
			r = vec_push(&lines, line);
		else if (line.rank != RANK_END)
			k->hidden = true;
	}
	items = lines.items;
	if (r)
		return r;
	if (lines.nr)
		qsort(items, lines.nr, sizeof(*items), compare_lines);
	r = build(k, items, keep_choices(items, lines.nr));
	if (r)
		return r;
	*ret = TAKE_PTR(k);
	return 0;
}

int kallsyms_read(struct kallsyms **ret)
{
	_cleanup_(kallsyms_free_p) struct kallsyms *k = NULL;
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	r = read_file_at(AT_FDCWD, "/proc/kallsyms", KALLSYMS_SIZE_MAX, &text, &size);
	if (r)
		return r;
	r = kallsyms_parse(text, size, &k);
	if (r)
		return r;
	if (!k->nr)
		return k->hidden ? -EPERM : -ENOENT;
	*ret = TAKE_PTR(k);
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->symbols);
	free(k->names);
	free(k);
}

/* Where kretprobes have functions return to, before Linux 5.18 and before 5.16. */
static bool is_trampoline(const struct kallsyms *k, const struct symbol *s)
{
	const char *name = k->names + s->name;

	return !strcmp(name, "__kretprobe_trampoline") || !strcmp(name, "kretprobe_trampoline");
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t addr, const char **ret_module)
{
	size_t low;
	const struct symbol *s;

	/* The first one behind `addr`. */
	low = sorted_before(k->nr, i, k->symbols[i].addr <= addr);
	if (low < k->nr && k->symbols[low].addr == addr + 1 && is_trampoline(k, &k->symbols[low]))
		low++;
	if (!low)
		return NULL;
	s = &k->symbols[low - 1];
	if (!s->name || (addr >= s->addr && addr - s->addr >= KALLSYMS_FUNCTION_MAX))
		return NULL;
	*ret_module = k->names + s->module;
	return k->names + s->name;
}
