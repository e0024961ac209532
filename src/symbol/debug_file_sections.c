// SPDX-License-Identifier: Apache-2.0
/*
 * The DWARF sections of one file, read into memory under a cap. A section that is needed for
 * everything (units, abbreviations, strings, addresses) spoils the file if it can't be read; lines,
 * ranges and types are missed alone.
 */
#include "symbol/debug_file_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

static const struct {
	const char *name;
	size_t offset; /* of its span in struct dwarf_sections */
	bool needed;   /* without it the others are no use */
	bool is_index; /* of a .dwp: never with .dwo behind its name */
} kinds[DEBUG_SECTIONS] = {
#define SECTION(field, needed_, is_index_)                                                         \
	{                                                                                          \
		".debug_" #field, offsetof(struct dwarf_sections, field), needed_, is_index_       \
	}
	SECTION(info, true, false),	 SECTION(abbrev, true, false),
	SECTION(str, true, false),	 SECTION(str_offsets, true, false),
	SECTION(line, false, false),	 SECTION(line_str, false, false),
	SECTION(addr, true, false),	 SECTION(ranges, false, false),
	SECTION(rnglists, false, false), SECTION(types, false, false),
	SECTION(cu_index, true, true),	 SECTION(tu_index, false, true),
#undef SECTION
};

void section_set_fini(struct section_set *set)
{
	for (size_t i = 0; i < DEBUG_SECTIONS; i++)
		free(set->memory[i]);
	*set = (struct section_set){ 0 };
}

/*
 * All sections of that name, one behind the other: compilers put each type unit of a .dwo into a
 * section of its own. At most `max` bytes. -ENOENT: there is none with contents.
 */
static int load_section(const struct elf_file *elf, const char *name, size_t max,
			struct elf_data *ret)
{
	const struct elf_section *first = elf_file_section(elf, name);
	const struct elf_section *end;
	struct elf_data all, more;
	size_t cap;
	int r;

	if (!first || !first->size)
		return -ENOENT;
	r = elf_file_section_data(elf, first, max, &all);
	if (r)
		return r;
	cap = all.size;
	end = elf->sections + elf->nr_sections;
	for (const struct elf_section *s = first + 1; s < end; s++) {
		if (s->type == SHT_NOBITS || !s->size || strcmp(s->name, first->name))
			continue;
		r = elf_file_section_data(elf, s, max - all.size, &more);
		if (!r && all.size + more.size + 1 > cap) {
			uint8_t *p = realloc(all.data, (all.size + more.size) * 2 + 1);

			cap = (all.size + more.size) * 2 + 1;
			r = p ? 0 : -ENOMEM;
			if (p)
				all.data = p;
			else
				free(more.data);
		}
		if (r) {
			free(all.data);
			return r;
		}
		memcpy(all.data + all.size, more.data, more.size);
		all.size += more.size;
		free(more.data);
	}
	*ret = all;
	return 0;
}

int section_set_load(const struct elf_file *elf, bool split, size_t max, struct section_set *ret,
		     const char **ret_bad)
{
	_cleanup_(section_set_fini) struct section_set set = { 0 };

	for (size_t i = 0; i < DEBUG_SECTIONS; i++) {
		struct dwarf_span *span = (void *)((char *)&set.sections + kinds[i].offset);
		struct elf_data data;
		char name[32];
		int r;

		snprintf(name, sizeof(name), "%s%s", kinds[i].name,
			 split && !kinds[i].is_index ? ".dwo" : "");
		r = load_section(elf, name, max - set.bytes, &data);
		if (r == -ENOMEM || (r && r != -ENOENT && kinds[i].needed)) {
			*ret_bad = kinds[i].name;
			return r;
		}
		if (r)
			continue;
		set.memory[i] = data.data;
		set.bytes += data.size;
		*span = (struct dwarf_span){ data.data, data.size };
	}
	if (!set.sections.info.data || !set.sections.abbrev.data)
		return -ENOENT;
	*ret = set;
	set = (struct section_set){ 0 };
	return 0;
}

bool debug_has_contents(const struct elf_file *elf, const char *name)
{
	const struct elf_section *section = elf_file_section(elf, name);

	return section && section->type != SHT_NOBITS && section->size;
}

bool debug_needs_relocation(const struct elf_file *elf)
{
	const struct elf_section *info = elf_file_section(elf, ".debug_info");

	for (size_t i = 0; elf->type == ET_REL && info && i < elf->nr_sections; i++) {
		const struct elf_section *section = &elf->sections[i];

		if ((section->type == SHT_RELA || section->type == SHT_REL) && section->size &&
		    section->info == (size_t)(info - elf->sections))
			return true;
	}
	return false;
}
