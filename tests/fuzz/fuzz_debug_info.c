// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information: of a file, its supplementary file and its split units. The input is a list of
 * sections: a byte that names it (below), three bytes of size, its contents. What is handed over
 * must keep what debug_info.h promises.
 */
#include "fuzz.h"
#include "dwarf/debug_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NR_SECTIONS = 12, /* as in struct dwarf_sections */
	NR_FILES = 3,	  /* main, supplementary, split */
};

struct input {
	struct dwarf_sections files[NR_FILES];
};

_Static_assert(sizeof(struct dwarf_sections) == NR_SECTIONS * sizeof(struct dwarf_span),
	       "a section more: the corpus has to know");

static void parse(const uint8_t *data, size_t size, struct input *input)
{
	struct dwarf_span *spans = (struct dwarf_span *)input->files;

	while (size >= 4) {
		uint8_t kind = data[0];
		size_t length = data[1] | data[2] << 8 | data[3] << 16;

		data += 4;
		size -= 4;
		if (length > size)
			length = size;
		if (kind < NR_SECTIONS * NR_FILES)
			spans[kind] = (struct dwarf_span){ data, length };
		data += length;
		size -= length;
	}
}

static int find_split(void *ctx, const struct dwarf_split_ref *ref,
		      const struct dwarf_sections **ret)
{
	const struct input *input = ctx;

	(void)strlen(ref->name);
	(void)strlen(ref->directory);
	if (!input->files[2].info.data)
		return -ENOENT;
	*ret = &input->files[2];
	return 0;
}

static void check_functions(const struct dwarf_unit *unit)
{
	for (size_t i = 0; i < unit->nr_functions; i++) {
		const struct dwarf_function *f = &unit->functions[i];

		(void)strlen(f->name);
		if (f->linkage_name && !strlen(f->linkage_name))
			abort();
		if (f->file != DWARF_NONE && f->file >= unit->lines->nr_files)
			abort();
	}
}

static int check(void *ctx, const struct dwarf_unit *unit)
{
	(void)ctx;
	(void)strlen(unit->producer);
	check_functions(unit);
	for (size_t i = 0; i < unit->nr_scopes; i++) {
		const struct dwarf_scope *s = &unit->scopes[i];
		const struct dwarf_range *r = unit->ranges + s->first_range;

		if (s->parent != DWARF_NONE && s->parent >= i)
			abort();
		if (s->function >= unit->nr_functions || !s->nr_ranges ||
		    s->first_range + (size_t)s->nr_ranges > unit->nr_ranges)
			abort();
		if (s->call_file != DWARF_NONE && s->call_file >= unit->lines->nr_files)
			abort();
		for (uint32_t k = 0; k < s->nr_ranges; k++)
			if (r[k].begin >= r[k].end || (k && r[k].begin < r[k - 1].end))
				abort();
	}
	return 0;
}

FUZZER(data, size)
{
	struct input input = { 0 };
	struct dwarf_counts counts;
	struct dwarf_source source = { .split = find_split, .ctx = &input };
	int r;

	parse(data, size, &input);
	source.main = input.files[0];
	source.alt = input.files[1].info.data ? &input.files[1] : NULL;
	r = dwarf_read_units(&source, check, NULL, &counts);
	if (r && r != -ENOMEM)
		abort();
	return 0;
}
