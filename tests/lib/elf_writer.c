// SPDX-License-Identifier: Apache-2.0
/*
 * The ELF writer of the tests: collects sections, segments and symbols, then lays them out as
 * header, segments, contents, section table. Numbers too large for the header go to section 0, and
 * section indices too large for a symbol to .symtab_shndx, as the gABI wants.
 */
#include "elf_writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	NR_TABLES = 2, /* .symtab, .dynsym */
	GAP_MAX = 1 << 20,
	ALIGN = 16,
	PAGE = 4096,
};

struct bytes {
	uint8_t *data;
	size_t size, cap;
};

struct writer_segment {
	uint32_t type, flags;
	unsigned int first, last;
};

struct symbol_table {
	struct bytes symbols, names, indices;
	bool extended; /* some index does not fit */
};

struct elf_writer {
	uint16_t type, machine;
	bool no_section_table;
	Elf64_Shdr *sections;
	uint8_t **contents;
	size_t nr_sections, cap_sections;
	struct writer_segment *segments;
	size_t nr_segments;
	struct bytes names;
	struct symbol_table tables[NR_TABLES];
};

static void check(bool fine)
{
	if (!fine)
		abort();
}

/* Twice, since the torture tests let single allocations fail: not those of the test itself. */
static void *must_resize(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		p = realloc(old, size);
	check(p);
	return p;
}

static void *must_zeros(size_t size)
{
	return memset(must_resize(NULL, size), 0, size);
}

static size_t append(struct bytes *b, const void *data, size_t size)
{
	size_t at = b->size;

	if (at + size > b->cap) {
		b->cap = (at + size) * 2;
		b->data = must_resize(b->data, b->cap);
	}
	if (data && size)
		memcpy(b->data + at, data, size);
	else if (size)
		memset(b->data + at, 0, size);
	b->size += size;
	return at;
}

static uint32_t append_string(struct bytes *b, const char *s)
{
	if (!b->size)
		append(b, "", 1);
	return *s ? (uint32_t)append(b, s, strlen(s) + 1) : 0;
}

struct elf_writer *elf_writer_new(uint16_t type, uint16_t machine)
{
	struct elf_writer *w = must_zeros(sizeof(*w));

	w->type = type;
	w->machine = machine;
	elf_writer_section(w, "", SHT_NULL, 0, 0, NULL, 0);
	return w;
}

void elf_writer_free(struct elf_writer *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->nr_sections; i++)
		free(w->contents[i]);
	for (size_t i = 0; i < NR_TABLES; i++) {
		free(w->tables[i].symbols.data);
		free(w->tables[i].names.data);
		free(w->tables[i].indices.data);
	}
	free(w->contents);
	free(w->sections);
	free(w->segments);
	free(w->names.data);
	free(w);
}

unsigned int elf_writer_section(struct elf_writer *w, const char *name, uint32_t type,
				uint64_t flags, uint64_t addr, const void *data, size_t size)
{
	size_t index = w->nr_sections++;
	uint8_t *copy = NULL;

	if (index == w->cap_sections) {
		w->cap_sections = w->cap_sections ? w->cap_sections * 2 : 16;
		w->sections = must_resize(w->sections, w->cap_sections * sizeof(*w->sections));
		w->contents = must_resize(w->contents, w->cap_sections * sizeof(*w->contents));
	}
	if (type != SHT_NOBITS && size) {
		copy = must_zeros(size);
		if (data)
			memcpy(copy, data, size);
	}
	w->contents[index] = copy;
	w->sections[index] = (Elf64_Shdr){
		.sh_name = append_string(&w->names, name),
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = addr,
		.sh_size = size,
		.sh_addralign = type == SHT_NULL ? 0 : 1,
	};
	return (unsigned int)index;
}

void elf_writer_section_link(struct elf_writer *w, unsigned int section, uint32_t link,
			     uint32_t info, uint64_t entsize)
{
	check(section < w->nr_sections);
	w->sections[section].sh_link = link;
	w->sections[section].sh_info = info;
	w->sections[section].sh_entsize = entsize;
}

void elf_writer_segment(struct elf_writer *w, uint32_t type, uint32_t flags, unsigned int first,
			unsigned int last)
{
	check(first <= last && last < w->nr_sections);
	w->segments = must_resize(w->segments, (w->nr_segments + 1) * sizeof(*w->segments));
	w->segments[w->nr_segments++] = (struct writer_segment){ type, flags, first, last };
}

void elf_writer_symbol(struct elf_writer *w, uint32_t table, const char *name, unsigned int bind,
		       unsigned int type, unsigned int section, uint64_t value, uint64_t size)
{
	struct symbol_table *t = &w->tables[table == SHT_DYNSYM];
	bool reserved = section == SHN_ABS || section == SHN_COMMON;
	uint32_t extended = section >= SHN_LORESERVE && !reserved ? section : 0;
	Elf64_Sym symbol = {
		.st_info = ELF64_ST_INFO(bind, type),
		.st_shndx = extended ? SHN_XINDEX : (uint16_t)section,
		.st_value = value,
		.st_size = size,
	};

	if (!t->symbols.size) {
		append(&t->symbols, NULL, sizeof(symbol));
		append(&t->indices, NULL, sizeof(extended));
	}
	symbol.st_name = append_string(&t->names, name);
	append(&t->symbols, &symbol, sizeof(symbol));
	append(&t->indices, &extended, sizeof(extended));
	t->extended |= extended != 0;
}

unsigned int elf_writer_note(struct elf_writer *w, const char *section, const char *owner,
			     uint32_t type, const void *desc, size_t size)
{
	static const uint8_t zeros[4];
	Elf64_Nhdr note = { (uint32_t)strlen(owner) + 1, (uint32_t)size, type };
	struct bytes b = { 0 };
	unsigned int index;

	append(&b, &note, sizeof(note));
	append(&b, owner, note.n_namesz);
	append(&b, zeros, -b.size & 3);
	append(&b, desc, size);
	append(&b, zeros, -b.size & 3);
	index = elf_writer_section(w, section, SHT_NOTE, SHF_ALLOC, 0, b.data, b.size);
	elf_writer_segment(w, PT_NOTE, PF_R, index, index);
	free(b.data);
	return index;
}

void elf_writer_build_id(struct elf_writer *w, const void *id, size_t size)
{
	elf_writer_note(w, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, size);
}

void elf_writer_no_section_table(struct elf_writer *w)
{
	w->no_section_table = true;
}

static void add_symbol_tables(struct elf_writer *w)
{
	static const char *const names[NR_TABLES][2] = { { ".symtab", ".strtab" },
							 { ".dynsym", ".dynstr" } };

	for (size_t i = 0; i < NR_TABLES; i++) {
		struct symbol_table *t = &w->tables[i];
		uint32_t type = i ? SHT_DYNSYM : SHT_SYMTAB;
		unsigned int strings, symbols, indices;

		if (!t->symbols.size)
			continue;
		strings = elf_writer_section(w, names[i][1], SHT_STRTAB, 0, 0, t->names.data,
					     t->names.size);
		symbols = elf_writer_section(w, names[i][0], type, 0, 0, t->symbols.data,
					     t->symbols.size);
		elf_writer_section_link(w, symbols, strings, 1, sizeof(Elf64_Sym));
		if (!t->extended)
			continue;
		indices = elf_writer_section(w, ".symtab_shndx", SHT_SYMTAB_SHNDX, 0, 0,
					     t->indices.data, t->indices.size);
		elf_writer_section_link(w, indices, symbols, 0, sizeof(uint32_t));
	}
}

static uint64_t place(const Elf64_Shdr *before, const Elf64_Shdr *section, uint64_t end)
{
	uint64_t gap, offset;

	if (!(section->sh_flags & SHF_ALLOC) || !section->sh_addr)
		return (end + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	gap = before ? section->sh_addr - before->sh_addr - before->sh_size : GAP_MAX;
	if (before && section->sh_addr >= before->sh_addr + before->sh_size && gap < GAP_MAX) {
		offset = before->sh_offset + (section->sh_addr - before->sh_addr);
		if (offset >= end)
			return offset;
	}
	return end + ((section->sh_addr - end) & (PAGE - 1));
}

/* Gives every section its place; returns where they end. */
static uint64_t lay_out(struct elf_writer *w)
{
	uint64_t end = sizeof(Elf64_Ehdr) + w->nr_segments * sizeof(Elf64_Phdr);
	const Elf64_Shdr *before = NULL;

	for (size_t i = 1; i < w->nr_sections; i++) {
		Elf64_Shdr *section = &w->sections[i];

		section->sh_offset = place(before, section, end);
		if (section->sh_type != SHT_NOBITS)
			end = section->sh_offset + section->sh_size;
		if ((section->sh_flags & SHF_ALLOC) && section->sh_addr)
			before = section;
	}
	return (end + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static Elf64_Phdr make_segment(const struct elf_writer *w, const struct writer_segment *segment)
{
	const Elf64_Shdr *first = &w->sections[segment->first], *last = &w->sections[segment->last];
	uint64_t last_filesz = last->sh_type == SHT_NOBITS ? 0 : last->sh_size;

	return (Elf64_Phdr){
		.p_type = segment->type,
		.p_flags = segment->flags,
		.p_offset = first->sh_offset,
		.p_vaddr = first->sh_addr,
		.p_paddr = first->sh_addr,
		.p_filesz = last->sh_offset + last_filesz - first->sh_offset,
		.p_memsz = last->sh_offset + last->sh_size - first->sh_offset,
		.p_align = segment->type == PT_LOAD ? PAGE : 4,
	};
}

static Elf64_Ehdr make_header(struct elf_writer *w, uint64_t table, size_t names_index)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = w->type,
		.e_machine = w->machine,
		.e_version = EV_CURRENT,
		.e_phoff = w->nr_segments ? sizeof(Elf64_Ehdr) : 0,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_phnum = (uint16_t)w->nr_segments,
	};
	Elf64_Shdr *zero = &w->sections[0];

	check(w->nr_segments < PN_XNUM || !w->no_section_table);
	if (w->no_section_table)
		return header;
	header.e_shoff = table;
	header.e_shnum = (uint16_t)w->nr_sections;
	header.e_shstrndx = (uint16_t)names_index;
	if (w->nr_sections >= SHN_LORESERVE) {
		header.e_shnum = 0;
		zero->sh_size = w->nr_sections;
	}
	if (names_index >= SHN_LORESERVE) {
		header.e_shstrndx = SHN_XINDEX;
		zero->sh_link = (uint32_t)names_index;
	}
	if (w->nr_segments >= PN_XNUM) {
		header.e_phnum = PN_XNUM;
		zero->sh_info = (uint32_t)w->nr_segments;
	}
	return header;
}

void *elf_writer_finish(struct elf_writer *w, size_t *ret_size)
{
	size_t names_index, size, table;
	Elf64_Ehdr header;
	uint8_t *image;

	add_symbol_tables(w);
	names_index = elf_writer_section(w, ".shstrtab", SHT_STRTAB, 0, 0, NULL, 0);
	w->sections[names_index].sh_size = w->names.size;
	w->contents[names_index] = w->names.data;
	w->names.data = NULL;
	table = lay_out(w);
	size = table + (w->no_section_table ? 0 : w->nr_sections * sizeof(Elf64_Shdr));
	image = must_zeros(size);
	header = make_header(w, table, names_index);
	memcpy(image, &header, sizeof(header));
	for (size_t i = 0; i < w->nr_segments; i++) {
		Elf64_Phdr segment = make_segment(w, &w->segments[i]);

		memcpy(image + sizeof(header) + i * sizeof(segment), &segment, sizeof(segment));
	}
	for (size_t i = 1; i < w->nr_sections; i++) {
		if (w->contents[i])
			memcpy(image + w->sections[i].sh_offset, w->contents[i],
			       w->sections[i].sh_size);
	}
	if (!w->no_section_table)
		memcpy(image + table, w->sections, w->nr_sections * sizeof(Elf64_Shdr));
	elf_writer_free(w);
	*ret_size = size;
	return image;
}

Elf64_Ehdr *elf_image_header(void *image)
{
	return image;
}

Elf64_Shdr *elf_image_section(void *image, unsigned int index)
{
	return (Elf64_Shdr *)((uint8_t *)image + elf_image_header(image)->e_shoff) + index;
}

Elf64_Phdr *elf_image_segment(void *image, unsigned int index)
{
	return (Elf64_Phdr *)((uint8_t *)image + elf_image_header(image)->e_phoff) + index;
}

unsigned int elf_image_section_index(void *image, const char *name)
{
	const Elf64_Ehdr *header = elf_image_header(image);
	const Elf64_Shdr *zero = elf_image_section(image, 0);
	size_t nr = header->e_shnum ? header->e_shnum : zero->sh_size;
	uint32_t names = header->e_shstrndx == SHN_XINDEX ? zero->sh_link : header->e_shstrndx;
	const char *strings = (char *)image + elf_image_section(image, names)->sh_offset;

	for (unsigned int i = 1; i < nr; i++) {
		if (!strcmp(strings + elf_image_section(image, i)->sh_name, name))
			return i;
	}
	abort();
}

int elf_image_fd(const void *image, size_t size)
{
	int fd = memfd_create("elf_image", MFD_CLOEXEC);

	check(fd >= 0 && write(fd, image, size) == (ssize_t)size);
	return fd;
}
