// SPDX-License-Identifier: Apache-2.0
#include "unwind/jit_image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dwarf/cfi.h"
#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "util/cleanup.h"

enum {
	SECTION_MAX = 1 << 20,
	CIES_TIMES = 4, /* what is read of CIEs: a section's size, so many times */
	ALL_SLOTS = (1 << UNWIND_CFA_OFF2_SLOT) - 1, /* r10 is nobody's to keep */
};

/* A section's entries, one by one. */
struct entries {
	struct cfi_section section;
	struct cfi_arch arch;
	uint32_t at, left; /* `left`: bytes of CIEs that may be read yet */
	bool has_cie;
	struct cfi_cie cie;
};

/*
 * What a linker has put into memory has its relocations there only: object files' sections that are
 * loaded are read from where they are.
 */
static int read_loaded(const struct jit_image *image, const struct elf_section *s, size_t max,
		       struct elf_data *ret)
{
	_cleanup_free_ uint8_t *data = NULL;

	if (!s->size || s->size > max)
		return -ENOENT;
	data = malloc(s->size);
	if (!data)
		return -ENOMEM;
	if (image->read(image->ctx, s->addr, data, (uint32_t)s->size))
		return -ENOENT;
	ret->size = s->size;
	ret->data = TAKE_PTR(data);
	return 0;
}

static int read_section(const struct jit_image *image, const struct elf_file *elf,
			const struct elf_section *s, struct elf_data *ret)
{
	size_t max = *image->left < SECTION_MAX ? *image->left : SECTION_MAX;
	bool loaded = elf->type == ET_REL && s->flags & SHF_ALLOC && s->addr;
	int r = loaded ? read_loaded(image, s, max, ret) : elf_file_section_data(elf, s, max, ret);

	if (!r)
		*image->left -= ret->size;
	return r;
}

/* The CIE of an FDE, unless it was the last one's. */
static bool find_cie(struct entries *e, uint32_t offset)
{
	struct cfi_entry entry;

	if (e->has_cie && e->cie.offset == offset)
		return true;
	e->has_cie = false;
	if (cfi_entry_at(&e->section, offset, &entry) <= 0 || !entry.is_cie ||
	    entry.next - entry.offset > e->left)
		return false;
	e->left -= entry.next - entry.offset;
	e->has_cie = !cfi_parse_cie(&e->section, &e->arch, &entry, &e->cie);
	return e->has_cie;
}

/* The next FDE that can be read. */
static bool next_fde(struct entries *e, struct cfi_fde *ret)
{
	struct cfi_entry entry;

	while (cfi_entry_at(&e->section, e->at, &entry) > 0) {
		e->at = entry.next;
		if (!entry.is_cie && find_cie(e, entry.cie) &&
		    !cfi_parse_fde(&e->section, &entry, &e->cie, ret) && ret->start < ret->end)
			return true;
	}
	return false;
}

/* Nothing else is to be proved by where it leads to. */
static bool is_usable(const struct unwind_rule *rule)
{
	return rule->cfa == CFA_REG && RULE_RA(rule) == RA_AT_CFA && !rule->flags;
}

static int rule_at(const struct entries *e, const struct cfi_fde *fde, uint64_t pc,
		   struct jit_code *ret)
{
	_cleanup_free_ struct cfi_rows *rows = calloc(1, sizeof(*rows));
	union cfi_rule rule;

	if (!rows)
		return -ENOMEM;
	cfi_rows_begin(rows, &e->arch, &e->section, &e->cie, fde);
	while (cfi_rows_next(rows) > 0) {
		if (pc < rows->start || pc >= rows->end)
			continue;
		if (cfi_row_rule(rows, &rule) || !is_usable(&rule.rule))
			return -ENOENT;
		*ret = (struct jit_code){ .start = fde->start,
					  .end = fde->end,
					  .all = rows->start <= fde->start && rows->end >= fde->end,
					  .rule = rule.rule };
		return 0;
	}
	return -ENOENT;
}

/* What is looked for in each section, and found. */
struct search {
	uint64_t pc;
	struct jit_code *code; /* NULL: the range is looked for */
	uint64_t start, end;
};

/* 0: go on; 1: found. */
static int search_section(struct entries *e, struct search *s)
{
	struct cfi_fde fde;
	int r;

	while (next_fde(e, &fde)) {
		s->start = fde.start < s->start ? fde.start : s->start;
		s->end = fde.end > s->end ? fde.end : s->end;
		if (!s->code || s->pc < fde.start || s->pc >= fde.end)
			continue;
		r = rule_at(e, &fde, s->pc, s->code);
		return r ? r : 1;
	}
	return 0;
}

/* 1: found; 0: not; -ENOENT: nobody may say anything else; -ENOMEM. */
static int search_image(const struct jit_image *image, uint16_t machine, struct search *s)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame" };
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int r = elf_file_open_memory(image->bytes, image->size, &elf);

	if (r || elf->machine != machine)
		return r == -ENOMEM ? r : -ENOENT;
	for (size_t i = 0; i < 2 && !r; i++) {
		const struct elf_section *section = elf_file_section(elf, names[i]);
		struct elf_data data = { 0 };
		struct entries e = { .left = 0 };

		if (!section || read_section(image, elf, section, &data))
			continue;
		e.section = (struct cfi_section){ .data = data.data,
						  .size = (uint32_t)data.size,
						  .addr = section->addr,
						  .eh_frame = !i };
		e.left = CIES_TIMES * e.section.size;
		r = cfi_arch_init(&e.arch, machine, ALL_SLOTS);
		if (!r)
			r = search_section(&e, s);
		free(data.data);
	}
	return r;
}

int jit_image_find(const struct jit_image *image, uint16_t machine, uint64_t pc,
		   struct jit_code *ret)
{
	struct search s = { .pc = pc, .code = ret };
	int r = search_image(image, machine, &s);

	return r == 1 ? 0 : r ? r : -ENOENT;
}

int jit_image_name(const struct jit_image *image, uint16_t machine, uint64_t pc,
		   char ret[static JIT_NAME_MAX])
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct elf_symbol *found;
	struct elf_symbols symbols;
	int r = elf_file_open_memory(image->bytes, image->size, &elf);

	if (r || elf->machine != machine || elf->type == ET_REL)
		return r == -ENOMEM ? r : -ENOENT;
	if (elf_symbols_bytes(elf) > SECTION_MAX)
		return -ENOENT;
	r = elf_symbols_read(elf, &symbols);
	if (r)
		return r;
	found = elf_symbols_find(&symbols, pc);
	if (found && found->name[0])
		snprintf(ret, JIT_NAME_MAX, "%s", found->name);
	else
		r = -ENOENT;
	elf_symbols_fini(&symbols);
	return r;
}

int jit_image_range(const struct jit_image *image, uint16_t machine, uint64_t *ret_start,
		    uint64_t *ret_end)
{
	struct search s = { .start = UINT64_MAX };
	int r = search_image(image, machine, &s);

	if (r || s.start >= s.end)
		return r ? r : -ENOENT;
	*ret_start = s.start;
	*ret_end = s.end;
	return 0;
}
