// SPDX-License-Identifier: Apache-2.0
/* Debug information, copied and searchable: see test_debug_info_flat.h. */
#include "dwarf/test_debug_info_flat.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "elf/elf_file.h"
#include "test.h"

enum { SECTION_MAX = 1 << 30 };

/* Of LeakSanitizer's interface; there under ASan only. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

void flat_keep_begin(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

void flat_keep_end(void)
{
	if (__lsan_enable)
		__lsan_enable();
}

static const char *copy(const char *s)
{
	char *c = s ? strdup(s) : NULL;

	ASSERT(!s || c);
	return c;
}

static const char *file_of(const struct dwarf_unit *unit, uint32_t file)
{
	if (file == DWARF_NONE)
		return "";
	ASSERT(file < unit->lines->nr_files);
	return copy(unit->lines->files[file]);
}

static void add_rows(struct flat *f, const struct dwarf_unit *unit)
{
	const struct line_row *rows = unit->lines->rows;

	for (size_t i = 0; i + 1 < unit->lines->nr_rows; i++) {
		ASSERT(rows[i].addr <= rows[i + 1].addr);
		if ((rows[i].flags & LINE_END) || rows[i].addr == rows[i + 1].addr)
			continue;
		ASSERT_OK(vec_push(&f->rows,
				   (struct flat_row){ rows[i].addr, rows[i + 1].addr,
						      file_of(unit, rows[i].file), rows[i].line }));
	}
}

int flat_add(void *ctx, const struct dwarf_unit *unit)
{
	struct flat *f = ctx;
	size_t first = f->scopes.nr;

	flat_keep_begin();
	ASSERT_PTR_NONNULL(unit->producer);
	for (size_t i = 0; i < unit->nr_scopes; i++) {
		const struct dwarf_scope *s = &unit->scopes[i];
		const struct dwarf_range *ranges = unit->ranges + s->first_range;
		const struct dwarf_function *function = &unit->functions[s->function];
		struct flat_scope *scope = calloc(1, sizeof(*scope));

		ASSERT(s->function < unit->nr_functions && function->name);
		ASSERT(s->parent == DWARF_NONE || s->parent < i);
		ASSERT(s->nr_ranges && s->first_range + (size_t)s->nr_ranges <= unit->nr_ranges);
		*scope = (struct flat_scope){ .linkage_name = copy(function->linkage_name),
					      .name = copy(function->name),
					      .file = file_of(unit, function->file),
					      .line = function->line,
					      .call_file = file_of(unit, s->call_file),
					      .call_line = s->call_line };
		if (s->parent != DWARF_NONE) {
			scope->parent = f->scopes.items[first + s->parent];
			scope->depth = scope->parent->depth + 1;
			ASSERT(scope->depth <= DWARF_INLINE_DEPTH_MAX);
		}
		ASSERT_OK(vec_push(&f->scopes, scope));
		for (uint32_t k = 0; k < s->nr_ranges; k++) {
			ASSERT(ranges[k].begin < ranges[k].end);
			ASSERT(!k || ranges[k - 1].end < ranges[k].begin);
			ASSERT_OK(
				vec_push(&f->ranges, (struct flat_range){ ranges[k].begin,
									  ranges[k].end, scope }));
		}
	}
	add_rows(f, unit);
	flat_keep_end();
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	/* Both kinds begin with it. */
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

void flat_finish(struct flat *f)
{
	if (f->ranges.nr)
		qsort(f->ranges.items, f->ranges.nr, sizeof(*f->ranges.items), by_begin);
	if (f->rows.nr)
		qsort(f->rows.items, f->rows.nr, sizeof(*f->rows.items), by_begin);
}

/* All sections of that name, one behind the other. */
static struct dwarf_span load(const struct elf_file *elf, const char *name, const char *suffix)
{
	struct dwarf_span span = { 0 };
	uint8_t *all = NULL;
	char full[64];

	snprintf(full, sizeof(full), "%s%s", name, suffix);
	for (size_t i = 0; i < elf->nr_sections; i++) {
		struct elf_data data;

		if (strcmp(elf->sections[i].name, full))
			continue;
		ASSERT_OK(elf_file_section_data(elf, &elf->sections[i], SECTION_MAX, &data));
		all = realloc(all, span.size + data.size + 1);
		memcpy(all + span.size, data.data, data.size);
		span.size += data.size;
		span.data = all;
	}
	return span;
}

static bool load_all(const char *path, const char *suffix, struct dwarf_sections *ret)
{
	struct elf_file *elf;

	if (elf_file_open(path, &elf))
		return false;
	*ret = (struct dwarf_sections){
		.info = load(elf, ".debug_info", suffix),
		.abbrev = load(elf, ".debug_abbrev", suffix),
		.str = load(elf, ".debug_str", suffix),
		.str_offsets = load(elf, ".debug_str_offsets", suffix),
		.line = load(elf, ".debug_line", suffix),
		.line_str = load(elf, ".debug_line_str", suffix),
		.addr = load(elf, ".debug_addr", suffix),
		.ranges = load(elf, ".debug_ranges", suffix),
		.rnglists = load(elf, ".debug_rnglists", suffix),
		.types = load(elf, ".debug_types", suffix),
		.cu_index = load(elf, ".debug_cu_index", ""),
		.tu_index = load(elf, ".debug_tu_index", ""),
	};
	elf_file_free(elf);
	return true;
}

static int find_split(void *ctx, const struct dwarf_split_ref *ref,
		      const struct dwarf_sections **ret)
{
	static struct dwarf_sections sections;
	char path[PATH_MAX];
	bool found;

	flat_keep_begin();
	snprintf(path, sizeof(path), "%s.dwp", (const char *)ctx);
	found = load_all(path, ".dwo", &sections);
	if (!found) {
		if (*ref->name == '/')
			snprintf(path, sizeof(path), "%s", ref->name);
		else
			snprintf(path, sizeof(path), "%s/%s", ref->directory, ref->name);
		found = load_all(path, ".dwo", &sections);
	}
	flat_keep_end();
	*ret = &sections;
	return found ? 0 : -ENOENT;
}

/* The supplementary file that .gnu_debugaltlink names. */
static bool load_alt(const char *path, struct dwarf_sections *ret)
{
	char alt[PATH_MAX];
	struct elf_file *elf;
	struct dwarf_span link;
	const char *name, *slash = strrchr(path, '/');
	int dir_len = slash ? slash + 1 - path : 0;

	ASSERT_OK(elf_file_open(path, &elf));
	link = load(elf, ".gnu_debugaltlink", "");
	elf_file_free(elf);
	name = (const char *)link.data;
	if (!name)
		return false;
	snprintf(alt, sizeof(alt), "%.*s%s", *name == '/' ? 0 : dir_len, path, name);
	ASSERT(load_all(alt, "", ret));
	return true;
}

void flat_read(const char *path, struct flat *ret)
{
	struct dwarf_sections alt;
	struct dwarf_source source = { .split = find_split, .ctx = (void *)path };

	*ret = (struct flat){ 0 };
	flat_keep_begin();
	ck_assert_msg(load_all(path, "", &source.main), "no ELF file: %s", path);
	if (load_alt(path, &alt))
		source.alt = &alt;
	flat_keep_end();
	ASSERT_OK(dwarf_read_units(&source, flat_add, ret, &ret->counts));
	flat_finish(ret);
}

const struct flat_scope *flat_find(const struct flat *f, uint64_t addr)
{
	const struct flat_scope *found = NULL;

	for (size_t i = 0; i < f->ranges.nr && f->ranges.items[i].begin <= addr; i++) {
		const struct flat_range *r = &f->ranges.items[i];

		if (addr < r->end && (!found || r->scope->depth >= found->depth))
			found = r->scope;
	}
	return found;
}

const struct flat_row *flat_line(const struct flat *f, uint64_t addr)
{
	const struct flat_row *found = NULL;

	for (size_t i = 0; i < f->rows.nr && f->rows.items[i].begin <= addr; i++)
		if (addr < f->rows.items[i].end)
			found = &f->rows.items[i];
	return found;
}
