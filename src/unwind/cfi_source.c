// SPDX-License-Identifier: Apache-2.0
#include "unwind/cfi_source.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/cfi_read.h"
#include "util/cleanup.h"
#include "util/vec.h"

void cfi_source_fini(struct cfi_source *source)
{
	free(source->data);
	free(source->index);
	free(source->cies);
	*source = (struct cfi_source){ 0 };
}

static uint64_t section_addr(const struct elf_file *elf, const char *name)
{
	const struct elf_section *section = elf_file_section(elf, name);

	return section ? section->addr : 0;
}

static int source_init(struct cfi_source *source, const struct elf_file *elf, uint8_t *data,
		       size_t size)
{
	struct cie_slot *cies = calloc(CIE_CACHE_SLOTS, sizeof(*cies));

	if (!cies)
		return -ENOMEM;
	*source = (struct cfi_source){ .data = data, .cies = cies };
	source->section.data = data;
	source->section.size = size;
	source->section.text_base = section_addr(elf, ".text");
	source->section.data_base = section_addr(elf, ".got");
	return 0;
}

enum {
	/* Decompressed, of what is stored: what compilers write shrinks to a third or an eighth. */
	RATIO_MAX = 64,
	RATIO_FREE = 1 << 20, /* whatever the ratio */
	/* No compiler's work: a CIE has some dozens of bytes, the largest functions some 10 KiB. */
	CIE_SIZE_MAX = 4096,
	ENTRY_SIZE_MAX = 4 << 20,
	PIECE = 64 << 10,
};

static bool is_bomb(const struct elf_file *elf, const struct elf_section *section)
{
	uint64_t size = elf_file_section_size(elf, section);

	return size > RATIO_FREE && size / RATIO_MAX > section->size;
}

static int from_section(const struct elf_file *elf, const char *name, struct cfi_source *ret)
{
	const struct elf_section *section = elf_file_section(elf, name);
	struct elf_data data;
	int r;

	if (!section || is_bomb(elf, section))
		return -ENOENT;
	r = elf_file_section_data(elf, section, CFI_SECTION_MAX, &data);
	if (r < 0)
		return r == -ENOMEM || r == -EFBIG ? r : -ENOENT;
	r = source_init(ret, elf, data.data, data.size);
	if (r < 0) {
		free(data.data);
		return r;
	}
	ret->section.addr = section->addr;
	return 0;
}

/* Where .eh_frame_hdr says that .eh_frame is. */
static int eh_frame_addr(const struct elf_file *elf, uint64_t *ret)
{
	const struct elf_segment *hdr = elf_file_segment(elf, PT_GNU_EH_FRAME);
	uint8_t buf[16] = { 0 };
	struct cfi_section section = { .data = buf, .size = sizeof(buf) };
	struct cfi_reader r = { buf + 4, buf + sizeof(buf), false };
	size_t size;

	if (!hdr)
		return -ENOENT;
	size = hdr->filesz < sizeof(buf) ? hdr->filesz : sizeof(buf);
	if (size < 8 || elf_file_read_vaddr(elf, hdr->vaddr, buf, size) < 0 || buf[0] != 1)
		return -ENOENT;
	section.data_base = hdr->vaddr;
	if (cfi_read_encoded(&r, buf[1], hdr->vaddr + 4, &section, ret) < 0)
		return -ENOENT;
	return 0;
}

/* How many bytes of the file lie at `addr` and behind it, within its segment. */
static uint64_t bytes_behind(const struct elf_file *elf, uint64_t addr)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		if (s->type == PT_LOAD && addr >= s->vaddr && addr - s->vaddr < s->filesz)
			return s->filesz - (addr - s->vaddr);
	}
	return 0;
}

/*
 * How many bytes, of at most `max`, the entries at `addr` have with their terminator. Reads their
 * lengths only, piece by piece: what follows them in the segment may be large, and no file at all.
 */
static int terminated_size(const struct elf_file *elf, uint64_t addr, uint64_t max, uint64_t *ret)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	uint64_t at = 0, have_at = 0, have = 0;

	if (!piece)
		return -ENOMEM;
	while (at + sizeof(uint32_t) <= max) {
		uint32_t size;

		if (at < have_at || at + sizeof(size) > have_at + have) {
			have_at = at;
			have = max - at < PIECE ? max - at : PIECE;
			if (elf_file_read_vaddr(elf, addr + at, piece, have) < 0)
				return -ENOENT;
		}
		memcpy(&size, piece + (at - have_at), sizeof(size));
		at += sizeof(size);
		/* 64-bit DWARF is for more than there may be. */
		if (!size || size > ENTRY_SIZE_MAX || size > max - at)
			break;
		at += size;
	}
	*ret = at;
	return 0;
}

static int from_segment(const struct elf_file *elf, struct cfi_source *ret)
{
	_cleanup_free_ uint8_t *data = NULL;
	uint64_t addr, size;
	int r;

	r = eh_frame_addr(elf, &addr);
	if (r < 0)
		return r;
	size = bytes_behind(elf, addr);
	if (!size)
		return -ENOENT;
	r = terminated_size(elf, addr, size, &size);
	if (r < 0)
		return r;
	if (size > CFI_SECTION_MAX)
		return -EFBIG;
	data = malloc(size);
	if (!data)
		return -ENOMEM;
	if (elf_file_read_vaddr(elf, addr, data, size) < 0)
		return -ENOENT;
	r = source_init(ret, elf, data, size);
	if (r < 0)
		return r;
	ret->section.addr = addr;
	ret->section.to_terminator = true;
	TAKE_PTR(data);
	return 0;
}

int cfi_source_eh_frame(const struct elf_file *elf, struct cfi_source *ret)
{
	int r = from_section(elf, ".eh_frame", ret);

	if (r == -ENOENT)
		r = from_segment(elf, ret);
	if (r < 0)
		return r;
	ret->section.eh_frame = true;
	return 0;
}

int cfi_source_debug_frame(const struct elf_file *elf, struct cfi_source *ret)
{
	int r = from_section(elf, ".debug_frame", ret);

	if (r == -ENOENT)
		r = from_section(elf, ".zdebug_frame", ret);
	/* What .eh_frame leaves open, or what debuggers only want. */
	return r == -EFBIG ? -ENOENT : r;
}

/* Will from_section() have it, as far as its header says? */
static bool is_plain(const struct elf_file *elf, const struct elf_section *section)
{
	return section && !(section->flags & SHF_COMPRESSED) && elf_file_section_size(elf, section);
}

uint64_t cfi_source_bytes(const struct elf_file *elf)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame" };
	uint64_t sum = 0, addr;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_section *section = elf_file_section(elf, names[i]);
		uint64_t size = section ? elf_file_section_size(elf, section) : 0;

		if (!i && !is_plain(elf, section) && !eh_frame_addr(elf, &addr))
			size += bytes_behind(elf, addr);
		sum += size < CFI_SECTION_MAX ? size : CFI_SECTION_MAX;
	}
	return sum;
}

const struct cie_slot *cfi_source_cie(struct cfi_source *source, const struct cfi_arch *arch,
				      uint32_t offset)
{
	struct cie_slot *slot = &source->cies[(offset * 0x9e3779b1u) >> 26];
	struct cfi_entry entry;

	_Static_assert(CIE_CACHE_SLOTS == 1 << (32 - 26), "the hash gives a slot");
	if (slot->used && slot->cie.offset == offset)
		return slot;
	*slot = (struct cie_slot){ .used = true };
	if (cfi_entry_at(&source->section, offset, &entry) <= 0 || entry.offset != offset ||
	    !entry.is_cie) {
		/* A body of nothing: cfi_parse_cie() refuses it and leaves its guess. */
		entry = (struct cfi_entry){ .offset = offset, .is_cie = true };
	}
	/* Each FDE may need another one of those that share a slot. */
	if (entry.next - entry.offset > CIE_SIZE_MAX)
		entry.next = entry.body;
	slot->error = cfi_parse_cie(&source->section, arch, &entry, &slot->cie);
	return slot;
}

static bool in_ranges(const struct code_range *ranges, size_t nr, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++)
		if (addr >= ranges[i].start && addr < ranges[i].end)
			return true;
	return false;
}

/*
 * Sorts by the upper 32 bits, stable: three passes of 11 bits. Linkers leave few files unsorted,
 * but those have many FDEs.
 */
static int sort_index(uint64_t *index, size_t nr)
{
	_cleanup_free_ uint64_t *other = malloc(nr * sizeof(*other) + 1);
	uint64_t *from = index, *to = other, *swap;
	uint32_t count[2048];

	if (!other)
		return -ENOMEM;
	for (unsigned int shift = 32; shift < 65; shift += 11) {
		uint32_t sum = 0, n;

		memset(count, 0, sizeof(count));
		for (size_t i = 0; i < nr; i++)
			count[from[i] >> shift & 2047]++;
		for (size_t i = 0; i < 2048; i++) {
			n = count[i];
			count[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < nr; i++)
			to[count[from[i] >> shift & 2047]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	memcpy(index, from, nr * sizeof(*index));
	return 0;
}

/* Discarded code's FDEs stay behind at address 0, or are empty: neither bad nor of use. */
static bool is_leftover(const struct cfi_fde *fde)
{
	return fde->start == 0 || fde->end == fde->start;
}

int cfi_source_index(struct cfi_source *source, const struct cfi_arch *arch,
		     const struct code_range *ranges, size_t nr_ranges)
{
	const struct cfi_section *section = &source->section;
	VEC(uint64_t) index = { 0 };
	struct cfi_entry entry;
	struct cfi_fde fde;
	uint64_t item, last = 0;
	bool sorted = true;
	int r;

	source->base = nr_ranges ? ranges[0].start : 0;
	/* Most FDEs have about 50 bytes; an exact count would cost another pass. */
	if (vec_reserve(&index, section->size / 48 + 16) < 0)
		return -ENOMEM;
	for (uint32_t at = 0; (r = cfi_entry_at(section, at, &entry)) > 0; at = entry.next) {
		const struct cie_slot *slot;

		if (entry.is_cie) {
			source->nr_bad_cies +=
				cfi_source_cie(source, arch, entry.offset)->error < 0;
			continue;
		}
		slot = cfi_source_cie(source, arch, entry.cie);
		if (cfi_parse_fde(section, &entry, &slot->cie, &fde) < 0) {
			source->nr_bad_fdes++;
			continue;
		}
		if (!in_ranges(ranges, nr_ranges, fde.start) || fde.end == fde.start) {
			source->nr_bad_fdes += !is_leftover(&fde);
			continue;
		}
		item = (fde.start - source->base) << 32 | entry.offset;
		sorted &= item >= last;
		last = item;
		if (vec_push(&index, item) < 0) {
			vec_free(&index);
			return -ENOMEM;
		}
	}
	source->nr_bad_fdes += r < 0;
	source->index = index.items;
	source->nr = index.nr;
	return sorted ? 0 : sort_index(source->index, source->nr);
}
