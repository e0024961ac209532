// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop_code.h"

#include "dwarf/cfi.h"
#include "elf/a64_insn.h"
#include "elf/x86_insn.h"
#include "util/cleanup.h"
#include "util/sorted.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CODE_MAX = 1 << 20, /* of a part of the loop; it has 40 to 90 KB */
	FDES_MAX = 1 << 20,
	EH_FRAME_MAX = 64 << 20,
	A64_BETWEEN_MAX = 3, /* instructions between the two that take an address */
	JUMPS_IN_MIN = 2,    /* into a cold part; a stray byte pattern is no jump */
};

int loop_work_add(struct loop_work *work, uint64_t amount)
{
	if (amount > LOOP_WORK_MAX - work->done)
		return -ENOTSUP;
	work->done += amount;
	return 0;
}

void loop_code_fini(struct loop_code *c)
{
	free(c->bytes);
}

struct loop_code loop_code_of(const struct elf_file *elf, uint64_t start, uint8_t *bytes,
			      size_t size)
{
	return (struct loop_code){ .bytes = bytes,
				   .size = size,
				   .start = start,
				   .arm = elf->machine == EM_AARCH64,
				   .fixed = elf->type == ET_EXEC };
}

int loop_code_read(const struct elf_file *elf, const struct code_range *range,
		   struct loop_work *work, struct loop_code *ret)
{
	struct loop_code c = loop_code_of(elf, range->start, NULL, range->end - range->start);
	int r;

	if (range->end <= range->start || c.size > CODE_MAX)
		return -ENOENT;
	r = loop_work_add(work, c.size);
	if (r)
		return r;
	c.bytes = malloc(c.size);
	if (!c.bytes)
		return -ENOMEM;
	r = elf_file_read_vaddr(elf, c.start, c.bytes, c.size);
	if (r) {
		loop_code_fini(&c);
		return r == -ENOMEM ? r : -ENOENT;
	}
	*ret = c;
	return 0;
}

uint32_t loop_code_word(const struct loop_code *c, size_t at)
{
	uint32_t word;

	memcpy(&word, c->bytes + at, sizeof(word));
	return word;
}

/* Where what looks like a jump at `at` leads to; 0: it is none. Bytes in the middle of another
 * instruction may look so. */
static uint64_t jump_at(const struct loop_code *c, size_t at)
{
	uint64_t pc = c->start + at;
	uint32_t insn;
	size_t op;

	if (!c->arm) {
		op = c->bytes[at] == 0x0f ? 1 : 0; /* jcc rel32; jmp rel32 */
		if (at + op + 5 > c->size ||
		    (op ? (c->bytes[at + 1] & 0xf0) != 0x80 : c->bytes[at] != 0xe9))
			return 0;
		return x86_rel32(c->bytes + at + op + 1, pc + op + 1);
	}
	if (at & 3 || at + 4 > c->size)
		return 0;
	insn = loop_code_word(c, at);
	if ((insn & 0xfc000000) == 0x14000000) /* b */
		return a64_branch_target(insn, pc);
	if ((insn & 0xff000010) == 0x54000000 || (insn & 0x7e000000) == 0x34000000)
		return pc + 4 * (uint64_t)a64_signed_bits(insn, 5, 19); /* b.cond, cbz */
	if ((insn & 0x7e000000) == 0x36000000)				/* tbz */
		return pc + 4 * (uint64_t)a64_signed_bits(insn, 5, 14);
	return 0;
}

/* The instruction that adds to register `reg`, some others later at most: compilers mix what has
 * nothing to do with each other. 0: there is none. */
static uint32_t page_offset(const struct loop_code *c, size_t at, uint32_t reg)
{
	for (size_t end = at + 4 * A64_BETWEEN_MAX; at <= end && at + 4 <= c->size; at += 4) {
		uint32_t insn = loop_code_word(c, at);

		if ((insn & 0xffc00000) == 0x91000000 && (insn & 31) == reg &&
		    (insn >> 5 & 31) == reg)
			return insn;
	}
	return 0;
}

uint64_t loop_code_address(const struct loop_code *c, size_t at)
{
	const uint8_t *p = c->bytes + at;
	uint64_t pc = c->start + at;
	uint32_t page, add;
	int64_t pages;

	if (c->arm) {
		if (at & 3 || at + 8 > c->size)
			return 0;
		/* adrp xN, page; add xN, xN, #offset */
		page = loop_code_word(c, at);
		add = page_offset(c, at + 4, page & 31);
		if ((page & 0x9f000000) != 0x90000000 || !add)
			return 0;
		pages = a64_signed_bits(page, 5, 19) * 4 + a64_bits(page, 29, 2);
		return (pc & ~0xfffull) + ((uint64_t)pages << 12) + (uint64_t)a64_bits(add, 10, 12);
	}
	/* mov $address, a register of 32 bits */
	if (c->fixed && at + 5 <= c->size && (p[0] & 0xf8) == 0xb8)
		return loop_code_word(c, at + 1);
	/* lea offset(%rip), a register */
	if (at + 7 > c->size || (p[0] | 4) != 0x4c || p[1] != 0x8d || (p[2] & 0xc7) != 5)
		return 0;
	return x86_rel32(p + 3, pc + 3);
}

/* --- the cold part --------------------------------------------------------------------------- */

static int compare_fdes(const void *a, const void *b)
{
	const struct loop_fde *x = a, *y = b;

	return x->range.start < y->range.start ? -1 : x->range.start > y->range.start;
}

void loop_fdes_fini(struct loop_fdes *fdes)
{
	vec_free(&fdes->all);
}

static int add_fdes(const struct cfi_section *section, const struct cfi_arch *arch,
		    struct loop_work *work, struct loop_fdes *fdes)
{
	struct cfi_entry entry, cie_entry;
	struct cfi_cie cie = { .offset = UINT32_MAX };
	struct cfi_fde fde;
	int r = 0;

	for (uint32_t at = 0; !r && cfi_entry_at(section, at, &entry) == 1; at = entry.next) {
		r = loop_work_add(work, LOOP_WORK_ENTRY);
		if (r || entry.is_cie)
			continue;
		if (cie.offset != entry.cie && (cfi_entry_at(section, entry.cie, &cie_entry) != 1 ||
						cfi_parse_cie(section, arch, &cie_entry, &cie))) {
			cie.offset = UINT32_MAX;
			continue;
		}
		cie.offset = entry.cie;
		if (cfi_parse_fde(section, &entry, &cie, &fde) || fde.end <= fde.start)
			continue;
		if (fdes->all.nr >= FDES_MAX)
			break;
		r = vec_push(&fdes->all, (struct loop_fde){ { fde.start, fde.end }, 0 });
	}
	return r;
}

int loop_fdes_read(const struct elf_file *elf, struct loop_work *work, struct loop_fdes *fdes)
{
	const struct elf_section *eh = elf_file_section(elf, ".eh_frame");
	_cleanup_free_ uint8_t *bytes = NULL;
	struct elf_data data;
	struct cfi_arch arch;
	int r;

	if (!eh)
		return -ENOENT;
	r = cfi_arch_init(&arch, elf->machine, 0);
	if (r)
		return -ENOENT;
	r = elf_file_section_data(elf, eh, EH_FRAME_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	bytes = data.data;
	r = add_fdes(&(struct cfi_section){ .data = data.data,
					    .size = (uint32_t)data.size,
					    .addr = eh->addr,
					    .eh_frame = true },
		     &arch, work, fdes);
	if (!r && fdes->all.nr)
		qsort(fdes->all.items, fdes->all.nr, sizeof(fdes->all.items[0]), compare_fdes);
	return r;
}

struct loop_fde *loop_fde_of(struct loop_fdes *fdes, uint64_t addr)
{
	size_t low = sorted_before(fdes->all.nr, i, fdes->all.items[i].range.start <= addr);

	return low && addr < fdes->all.items[low - 1].range.end ? &fdes->all.items[low - 1] : NULL;
}

/* Does the code at `range` jump into `hot`, elsewhere than to its begin? 1, 0, -ENOTSUP, -ENOMEM.
 */
static int jumps_back(const struct elf_file *elf, const struct code_range *range,
		      const struct code_range *hot, struct loop_work *work)
{
	_cleanup_(loop_code_fini) struct loop_code c = { 0 };
	int r = loop_code_read(elf, range, work, &c);

	for (size_t at = 0; !r && at < c.size; at++) {
		uint64_t to = jump_at(&c, at);

		if (to > hot->start && to < hot->end)
			return 1;
	}
	return r == -ENOENT ? 0 : r;
}

int runtime_find_cold(const struct elf_file *elf, struct loop_fdes *fdes,
		      const struct code_range *hot, struct loop_work *work, struct code_range *ret)
{
	_cleanup_(loop_code_fini) struct loop_code c = { 0 };
	int r = loop_code_read(elf, hot, work, &c);

	for (size_t i = 0; i < fdes->all.nr; i++)
		fdes->all.items[i].jumps = 0;
	for (size_t at = 0; !r && at < c.size; at++) {
		uint64_t to = jump_at(&c, at);
		struct loop_fde *f;

		if (!to || (to >= hot->start && to < hot->end))
			continue;
		r = loop_work_add(work, LOOP_WORK_SEARCH);
		f = r ? NULL : loop_fde_of(fdes, to);
		if (!f || ++f->jumps != JUMPS_IN_MIN)
			continue;
		r = jumps_back(elf, &f->range, hot, work);
		if (r == 1) {
			*ret = f->range;
			return 0;
		}
	}
	return r ? r : -ENOENT;
}

static bool is_hidden(const struct runtime_dso *dso, const struct code_range *range)
{
	for (size_t i = 0; i < dso->hidden.nr; i++)
		if (range->start < dso->hidden.items[i].end &&
		    dso->hidden.items[i].start < range->end)
			return true;
	return false;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int runtime_add_loop(struct runtime_dso *dso, const struct code_range *range)
{
	int r;

	if (is_hidden(dso, range))
		return 0;
	r = vec_push(&dso->interpreter_functions, *range);
	if (r)
		return r;
	qsort(dso->interpreter_functions.items, dso->interpreter_functions.nr, sizeof(*range),
	      compare_ranges);
	return runtime_hide(dso, range);
}

int runtime_hide(struct runtime_dso *dso, const struct code_range *range)
{
	int r;

	if (is_hidden(dso, range))
		return 0;
	r = vec_push(&dso->hidden, *range);
	if (r)
		return r;
	qsort(dso->hidden.items, dso->hidden.nr, sizeof(*range), compare_ranges);
	return 0;
}

static int add_cold(const struct elf_file *elf, struct loop_fdes *fdes, struct loop_work *work,
		    struct runtime_dso *dso)
{
	struct code_range cold;
	int r = runtime_find_cold(elf, fdes, &dso->interpreter_functions.items[0], work, &cold);

	if (r)
		return r == -ENOENT ? 0 : r;
	return runtime_add_loop(dso, &cold);
}

int runtime_add_cold(const struct elf_file *elf, struct loop_fdes *fdes, struct loop_work *work,
		     struct runtime_dso *dso)
{
	_cleanup_(loop_fdes_fini) struct loop_fdes own = { 0 };
	int r = 0;

	if (dso->interpreter_functions.nr != 1)
		return 0;
	if (!fdes) {
		r = loop_fdes_read(elf, work, &own);
		fdes = &own;
	}
	if (r)
		return r == -ENOENT ? 0 : r;
	return add_cold(elf, fdes, work, dso);
}
