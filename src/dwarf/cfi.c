// SPDX-License-Identifier: Apache-2.0
/*
 * Entries, CIEs and FDEs: everything of call frame information but its instructions, which are in
 * cfi_rows.c.
 */
#include "dwarf/cfi.h"

#include <elf.h>
#include <errno.h>

#include "dwarf/cfi_internal.h"
#include "dwarf/cfi_read.h"

enum {
	PE_PTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_FUNCREL = 0x40,
	PE_ALIGNED = 0x50,
	PE_APPLICATION = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
	PE_COMPILERS_CHOICE = PE_PCREL | PE_SDATA4,
};

static const uint8_t x86_slots[UNWIND_SLOTS] = X86_SLOT_REGS;
static const uint8_t a64_slots[UNWIND_SLOTS] = A64_SLOT_REGS;

static void init_columns(struct cfi_arch *arch, unsigned int tracked)
{
	memset(arch->columns, CFI_COLUMN_IGNORED, sizeof(arch->columns));
	for (unsigned int i = 0; i < UNWIND_SLOTS; i++) {
		bool follow = i == 0 || (tracked & 1u << i);

		arch->columns[arch->slot_regs[i]] = follow ? i : CFI_COLUMN_UNTRACKED + i;
		arch->lost.rule.slot_off[i] = follow ? 0 : SLOT_LOST;
	}
	arch->columns[arch->ra_reg] = CFI_COLUMN_RA;
	arch->columns[arch->sp_reg] = CFI_COLUMN_SP;
}

int cfi_arch_init(struct cfi_arch *arch, uint16_t machine, unsigned int tracked)
{
	switch (machine) {
	case EM_X86_64:
		*arch = (struct cfi_arch){ .machine = machine,
					   .ra_reg = X86_RA,
					   .sp_reg = X86_RSP,
					   .fp_reg = X86_RBP,
					   .nr_regs = 16 };
		memcpy(arch->slot_regs, x86_slots, sizeof(x86_slots));
		/* r10 holds the CFA in the prologues of realigned functions; nobody saves it. */
		tracked |= 1u << 6;
		break;
	case EM_AARCH64:
		*arch = (struct cfi_arch){ .machine = machine,
					   .ra_reg = A64_LR,
					   .sp_reg = A64_SP,
					   .fp_reg = A64_FP,
					   .nr_regs = UNWIND_REGS_MAX };
		memcpy(arch->slot_regs, a64_slots, sizeof(a64_slots));
		break;
	default:
		return -ENOTSUP;
	}
	init_columns(arch, tracked);
	return 0;
}

static bool read_length(struct cfi_reader *r, bool *dwarf64, uint64_t *ret)
{
	uint8_t offset_size;

	*ret = cfi_length(r, &offset_size);
	*dwarf64 = offset_size == 8;
	return !r->failed && *ret <= cfi_left(r);
}

/* The CIE pointer: .eh_frame counts back from the field itself, .debug_frame from the start. */
static int read_cie_pointer(const struct cfi_section *s, struct cfi_reader *r,
			    struct cfi_entry *entry)
{
	uint64_t field = r->pos - s->data, id;

	if (s->eh_frame) {
		id = cfi_u32(r);
		entry->is_cie = id == 0;
		id = field - id;
	} else {
		id = entry->dwarf64 ? cfi_u64(r) : cfi_u32(r);
		entry->is_cie = id == (entry->dwarf64 ? UINT64_MAX : UINT32_MAX);
	}
	if (r->failed)
		return -EINVAL;
	entry->body = r->pos - s->data;
	/* An FDE of no CIE at all: keep it, as one whose CIE is bad. */
	entry->cie = id < s->size ? id : s->size;
	return 0;
}

int cfi_entry_at(const struct cfi_section *s, uint32_t offset, struct cfi_entry *ret)
{
	struct cfi_entry entry;
	struct cfi_reader r;
	uint64_t len;

	for (;;) {
		if (offset > s->size || s->size - offset < 4)
			return 0;
		entry = (struct cfi_entry){ .offset = offset };
		r = (struct cfi_reader){ s->data + offset, s->data + s->size, false };
		if (!read_length(&r, &entry.dwarf64, &len))
			return -EINVAL;
		if (len)
			break;
		/* Files of several linked parts may have a terminator inside. */
		if (s->to_terminator)
			return 0;
		offset = r.pos - s->data;
	}
	entry.next = r.pos - s->data + len;
	r.end = s->data + entry.next;
	if (read_cie_pointer(s, &r, &entry) < 0) {
		/* Too short even for that: an FDE of nothing. */
		entry.body = entry.next;
		entry.cie = s->size;
	}
	*ret = entry;
	return 1;
}

static int read_format(struct cfi_reader *r, uint8_t encoding, uint64_t *ret)
{
	switch (encoding & PE_FORMAT) {
	case PE_PTR:
	case PE_UDATA8:
	case PE_SDATA8:
		*ret = cfi_u64(r);
		break;
	case PE_ULEB128:
		*ret = cfi_uleb(r);
		break;
	case PE_SLEB128:
		*ret = cfi_sleb(r);
		break;
	case PE_UDATA2:
		*ret = cfi_u16(r);
		break;
	case PE_SDATA2:
		*ret = (int16_t)cfi_u16(r);
		break;
	case PE_UDATA4:
		*ret = cfi_u32(r);
		break;
	case PE_SDATA4:
		*ret = (int32_t)cfi_u32(r);
		break;
	default:
		return -ENOTSUP;
	}
	return r->failed ? -EINVAL : 0;
}

int cfi_read_encoded(struct cfi_reader *r, uint8_t encoding, uint64_t at,
		     const struct cfi_section *s, uint64_t *ret)
{
	uint64_t base = 0, v;
	int res;

	if (encoding == PE_OMIT || (encoding & PE_INDIRECT))
		return -ENOTSUP;
	switch (encoding & PE_APPLICATION) {
	case PE_PTR:
	case PE_FUNCREL: /* nothing to be relative to yet */
		break;
	case PE_PCREL:
		base = at;
		break;
	case PE_TEXTREL:
		base = s->text_base;
		break;
	case PE_DATAREL:
		base = s->data_base;
		break;
	case PE_ALIGNED:
		cfi_take(r, -at & 7);
		encoding = PE_PTR;
		break;
	default:
		return -ENOTSUP;
	}
	res = read_format(r, encoding, &v);
	if (res < 0)
		return res;
	*ret = v + base;
	return 0;
}

/* Steps over an encoded pointer that we have no use for (personality routines may be indirect). */
static int skip_encoded(struct cfi_reader *r, uint8_t encoding, uint64_t at)
{
	uint64_t v;

	if (encoding == PE_OMIT)
		return 0;
	if ((encoding & PE_APPLICATION) == PE_ALIGNED) {
		cfi_take(r, -at & 7);
		encoding = PE_PTR;
	}
	return read_format(r, encoding, &v);
}

static uint64_t addr_of(const struct cfi_section *s, const uint8_t *p)
{
	return s->addr + (p - s->data);
}

static int parse_augmentation(const struct cfi_section *s, struct cfi_reader *r,
			      const char *letters, struct cfi_cie *cie)
{
	uint64_t size = cfi_uleb(r);
	struct cfi_reader data;
	const uint8_t *p = cfi_take(r, size);
	uint8_t encoding;

	if (!p)
		return -EINVAL;
	cie->augmented = true;
	if (strchr(letters, 'R'))
		cie->encoding = s->eh_frame ? PE_COMPILERS_CHOICE : PE_PTR;
	data = (struct cfi_reader){ p, p + size, false };
	for (letters++; *letters; letters++) {
		switch (*letters) {
		case 'R':
			encoding = cfi_u8(&data);
			if (data.failed)
				return -EINVAL;
			cie->encoding = encoding;
			break;
		case 'P':
			encoding = cfi_u8(&data);
			if (skip_encoded(&data, encoding, addr_of(s, data.pos)) < 0)
				return -EINVAL;
			break;
		case 'L':
			cfi_u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* the return address is signed with the B key */
		case 'G': /* the frame's memory is tagged */
			break;
		default:
			/* Its data's size is unknown, so an encoding behind it can't be found. */
			return strchr(letters, 'R') ? -ENOTSUP : 0;
		}
	}
	return data.failed ? -EINVAL : 0;
}

/* Everything but the initial instructions. */
static int parse_cie_header(const struct cfi_section *s, const struct cfi_arch *arch,
			    struct cfi_reader *r, struct cfi_cie *cie)
{
	uint8_t version = cfi_u8(r);
	const char *letters = (const char *)r->pos;
	const uint8_t *nul = memchr(r->pos, 0, cfi_left(r));
	uint64_t ra;

	if (r->failed || !nul)
		return -EINVAL;
	if (version != 1 && version != 3 && version != 4)
		return -ENOTSUP;
	r->pos = nul + 1;
	if (version == 4) {
		cie->address_size = cfi_u8(r);
		cie->segment_size = cfi_u8(r);
		if (cie->address_size != 8 && cie->address_size != 4)
			return -ENOTSUP;
		if (cie->segment_size > 8)
			return -ENOTSUP;
	}
	if (!strcmp(letters, "eh")) {
		/* gcc 2: a pointer to its exception table */
		cfi_take(r, 8);
		letters = "";
	}
	cie->code_align = cfi_uleb(r);
	cie->data_align = cfi_sleb(r);
	ra = version == 1 ? cfi_u8(r) : cfi_uleb(r);
	if (r->failed)
		return -EINVAL;
	if (letters[0] == 'z') {
		int res = parse_augmentation(s, r, letters, cie);

		if (res < 0)
			return res;
	} else if (letters[0]) {
		return -ENOTSUP; /* without a size, what follows can't be told */
	}
	return ra == arch->ra_reg ? 0 : -ENOTSUP;
}

int cfi_parse_cie(const struct cfi_section *s, const struct cfi_arch *arch,
		  const struct cfi_entry *entry, struct cfi_cie *ret)
{
	struct cfi_reader r = { s->data + entry->body, s->data + entry->next, false };
	struct cfi_cie cie = {
		.offset = entry->offset,
		.address_size = 8,
		.encoding = s->eh_frame ? PE_COMPILERS_CHOICE : PE_PTR,
		.augmented = s->eh_frame,
		.end = entry->next,
	};
	int res;

	if (s->eh_frame) {
		/* What compilers use is the guess for a CIE of which nothing can be read... */
		*ret = cie;
		/* ...and plain pointers are what a CIE without augmentation means. */
		cie.encoding = PE_PTR;
		cie.augmented = false;
	}
	res = parse_cie_header(s, arch, &r, &cie);
	if (cie.augmented || res == 0)
		*ret = cie;
	if (res < 0)
		return res;
	ret->instructions = r.pos - s->data;
	return cfi_run_initial(s, arch, ret);
}

static int read_fde_address(const struct cfi_section *s, const struct cfi_cie *cie,
			    struct cfi_reader *r, uint64_t *ret)
{
	if (s->eh_frame)
		return cfi_read_encoded(r, cie->encoding, addr_of(s, r->pos), s, ret);
	cfi_take(r, cie->segment_size);
	*ret = cfi_fixed(r, cie->address_size);
	return r->failed ? -EINVAL : 0;
}

/* What nearly all FDEs look like: an address and a length of 4 bytes, no augmentation data. */
static bool parse_common_fde(const struct cfi_section *s, const struct cfi_reader *r,
			     struct cfi_fde *ret)
{
	uint32_t len;
	int32_t rel;

	if (cfi_left(r) < 9 || r->pos[8])
		return false;
	memcpy(&rel, r->pos, sizeof(rel));
	memcpy(&len, r->pos + 4, sizeof(len));
	if (len > INT32_MAX)
		return false;
	ret->start = addr_of(s, r->pos) + rel;
	ret->end = ret->start + len;
	ret->instructions = r->pos + 9 - s->data;
	ret->instructions_end = r->end - s->data;
	return ret->end >= ret->start;
}

int cfi_parse_fde(const struct cfi_section *s, const struct cfi_entry *entry,
		  const struct cfi_cie *cie, struct cfi_fde *ret)
{
	struct cfi_reader r = { s->data + entry->body, s->data + entry->next, false };
	struct cfi_fde fde;
	uint64_t len;
	int res;

	if (cie->encoding == PE_COMPILERS_CHOICE && cie->augmented && parse_common_fde(s, &r, ret))
		return 0;
	res = read_fde_address(s, cie, &r, &fde.start);
	if (res < 0)
		return res;
	/* The length has the address's size and signedness, and is relative to nothing. */
	if (s->eh_frame)
		res = read_format(
			&r, (cie->encoding & PE_APPLICATION) == PE_ALIGNED ? PE_PTR : cie->encoding,
			&len);
	else
		len = cfi_fixed(&r, cie->address_size);
	if (res < 0 || r.failed || len > UINT64_MAX - fde.start)
		return -EINVAL;
	fde.end = fde.start + len;
	if (cie->augmented)
		cfi_take(&r, cfi_uleb(&r));
	if (r.failed)
		return -EINVAL;
	fde.instructions = r.pos - s->data;
	fde.instructions_end = entry->next;
	*ret = fde;
	return 0;
}
