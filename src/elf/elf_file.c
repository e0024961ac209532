// SPDX-License-Identifier: Apache-2.0
/*
 * The bounded ELF reader: header, segments, sections, their contents, notes, addresses.
 *
 * Only the header must be right. A program header table or a section table that the file cuts off,
 * or that is larger than any real one, counts as absent: the other one still serves. Reading is by
 * pread() or from a borrowed image; elf_decompress.c has the compressed sections.
 */
#include "elf/elf_file.h"
#include "elf/elf_file_internal.h"
#include "elf/elf_note.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Of section names; a kernel with -ffunction-sections has less than 4 MB. */
	NAMES_MAX = 16 << 20,
	/* Headers that are read at once: a bounded buffer on the stack. */
	HEADERS_CHUNK = 64,
	/* Bytes of notes that are looked at for a build-id. It stands in the first few hundred. */
	NOTES_MAX = 64 << 10,
	NOTES_TRIED_MAX = 256,
};

int elf_file_read(const struct elf_file *elf, uint64_t offset, void *buf, size_t size)
{
	if (offset > elf->size || size > elf->size - offset)
		return -ENODATA;
	if (!elf->memory)
		return read_all_at(elf->fd, offset, buf, size); /* -ENODATA: it shrank */
	if (size)
		memcpy(buf, elf->memory + offset, size);
	return 0;
}

static int check_ident(const uint8_t ident[static EI_NIDENT])
{
	if (memcmp(ident, ELFMAG, SELFMAG))
		return -ENOEXEC;
	if (ident[EI_CLASS] == ELFCLASS32 || ident[EI_DATA] == ELFDATA2MSB)
		return -ENOTSUP;
	if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
		return -ENOEXEC;
	return 0;
}

static int read_header(const struct elf_file *elf, Elf64_Ehdr *ret)
{
	int r;

	/* The identification first: a tiny 32-bit file is still one that we do not support. */
	r = elf_file_read(elf, 0, ret->e_ident, sizeof(ret->e_ident));
	if (!r)
		r = check_ident(ret->e_ident);
	if (!r)
		r = elf_file_read(elf, 0, ret, sizeof(*ret));
	return r == -ENODATA ? -ENOEXEC : r;
}

static bool table_fits(const struct elf_file *elf, uint64_t offset, uint64_t nr, size_t entry)
{
	return offset && offset < elf->size && nr <= (elf->size - offset) / entry;
}

/*
 * Section 0 holds what is too large for the header: the number of sections and of segments, and
 * the index of the names.
 */
static void extended_numbers(const struct elf_file *elf, const Elf64_Ehdr *header,
			     uint64_t *nr_sections, uint64_t *nr_segments, uint64_t *names_index)
{
	Elf64_Shdr zero = { 0 };

	*nr_sections = header->e_shnum;
	*nr_segments = header->e_phnum;
	*names_index = header->e_shstrndx;
	if (!header->e_shoff || header->e_shentsize != sizeof(zero) ||
	    elf_file_read(elf, header->e_shoff, &zero, sizeof(zero)))
		return;
	if (!header->e_shnum)
		*nr_sections = zero.sh_size;
	if (header->e_phnum == PN_XNUM && zero.sh_info)
		*nr_segments = zero.sh_info;
	if (header->e_shstrndx == SHN_XINDEX)
		*names_index = zero.sh_link;
}

static int read_segments(struct elf_file *elf, const Elf64_Ehdr *header, uint64_t nr)
{
	Elf64_Phdr chunk[HEADERS_CHUNK];
	_cleanup_free_ struct elf_segment *segments = NULL;
	int r;

	if (!nr || nr > ELF_SEGMENTS_MAX || header->e_phentsize != sizeof(*chunk) ||
	    !table_fits(elf, header->e_phoff, nr, sizeof(*chunk)))
		return 0;
	segments = calloc(nr, sizeof(*segments));
	if (!segments)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const Elf64_Phdr *from = &chunk[i % HEADERS_CHUNK];

		if (from == chunk) {
			size_t n = nr - i < HEADERS_CHUNK ? nr - i : HEADERS_CHUNK;

			r = elf_file_read(elf, header->e_phoff + i * sizeof(*chunk), chunk,
					  n * sizeof(*chunk));
			if (r)
				return r == -ENODATA ? 0 : r;
		}
		segments[i] = (struct elf_segment){
			.type = from->p_type,
			.flags = from->p_flags,
			.offset = from->p_offset,
			.vaddr = from->p_vaddr,
			.filesz = from->p_filesz,
			.memsz = from->p_memsz,
			.align = from->p_align,
		};
	}
	elf->segments = TAKE_PTR(segments);
	elf->nr_segments = nr;
	return 0;
}

/* The string table of section names; a file without one has sections all the same. */
static int read_names(const struct elf_file *elf, const struct elf_section *section, char **ret,
		      size_t *ret_size)
{
	_cleanup_free_ char *names = NULL;
	int r;

	if (section->type != SHT_STRTAB || section->size > NAMES_MAX)
		return -ENODATA;
	if (section->offset > elf->size || section->size > elf->size - section->offset)
		return -ENODATA;
	names = malloc(section->size + 1);
	if (!names)
		return -ENOMEM;
	r = elf_file_read(elf, section->offset, names, section->size);
	if (r)
		return r;
	names[section->size] = '\0';
	*ret = TAKE_PTR(names);
	*ret_size = section->size;
	return 0;
}

static int name_sections(struct elf_file *elf, struct elf_section *sections, const uint32_t *names,
			 uint64_t nr, uint64_t names_index)
{
	size_t size = 0;
	int r;

	if (names_index == SHN_UNDEF || names_index >= nr)
		return 0;
	r = read_names(elf, &sections[names_index], &elf->names, &size);
	if (r)
		return r == -ENODATA ? 0 : r;
	for (size_t i = 0; i < nr; i++) {
		if (names[i] < size)
			sections[i].name = elf->names + names[i];
	}
	return 0;
}

static int read_sections(struct elf_file *elf, const Elf64_Ehdr *header, uint64_t nr,
			 uint64_t names_index)
{
	Elf64_Shdr chunk[HEADERS_CHUNK];
	_cleanup_free_ struct elf_section *sections = NULL;
	_cleanup_free_ uint32_t *names = NULL;
	int r;

	if (!nr || nr > ELF_SECTIONS_MAX || header->e_shentsize != sizeof(*chunk) ||
	    !table_fits(elf, header->e_shoff, nr, sizeof(*chunk)))
		return 0;
	sections = calloc(nr, sizeof(*sections));
	names = calloc(nr, sizeof(*names));
	if (!sections || !names)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const Elf64_Shdr *from = &chunk[i % HEADERS_CHUNK];

		if (from == chunk) {
			size_t n = nr - i < HEADERS_CHUNK ? nr - i : HEADERS_CHUNK;

			r = elf_file_read(elf, header->e_shoff + i * sizeof(*chunk), chunk,
					  n * sizeof(*chunk));
			if (r)
				return r == -ENODATA ? 0 : r;
		}
		names[i] = from->sh_name;
		sections[i] = (struct elf_section){
			.name = "",
			.type = from->sh_type,
			.flags = from->sh_flags,
			.addr = from->sh_addr,
			.offset = from->sh_offset,
			.size = from->sh_size,
			.link = from->sh_link,
			.info = from->sh_info,
			.entsize = from->sh_entsize,
		};
	}
	r = name_sections(elf, sections, names, nr, names_index);
	if (r)
		return r;
	elf->sections = TAKE_PTR(sections);
	elf->nr_sections = nr;
	return 0;
}

/* `fd` stays the caller's on failure, so it is put into the elf_file only at the end. */
static int open_any(int fd, const uint8_t *memory, uint64_t size, struct elf_file **ret)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));
	uint64_t nr_sections, nr_segments, names_index;
	Elf64_Ehdr header;
	int r;

	if (!elf)
		return -ENOMEM;
	elf->fd = fd;
	elf->memory = memory;
	elf->size = size;
	r = read_header(elf, &header);
	if (!r) {
		elf->machine = header.e_machine;
		elf->type = header.e_type;
		elf->entry = header.e_entry;
		extended_numbers(elf, &header, &nr_sections, &nr_segments, &names_index);
		r = read_segments(elf, &header, nr_segments);
	}
	if (!r)
		r = read_sections(elf, &header, nr_sections, names_index);
	if (r) {
		elf->fd = -1;
		elf_file_free(elf);
		return r;
	}
	*ret = elf;
	return 0;
}

int elf_file_open_fd(int fd, struct elf_file **ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	/* Anything else has no size, and reading it may block for ever. */
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	return open_any(fd, NULL, (uint64_t)st.st_size, ret);
}

int elf_file_open(const char *path, struct elf_file **ret)
{
	/* Not blocking: the path may be a FIFO that somebody put there. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int r;

	if (fd < 0)
		return -errno;
	r = elf_file_open_fd(fd, ret);
	if (!r)
		TAKE_FD(fd);
	return r;
}

int elf_file_open_memory(const void *data, size_t size, struct elf_file **ret)
{
	static const uint8_t nothing;

	return open_any(-1, data ? data : &nothing, data ? size : 0, ret);
}

void elf_file_free(struct elf_file *elf)
{
	if (!elf)
		return;
	free(elf->segments);
	free(elf->sections);
	free(elf->names);
	if (elf->fd >= 0)
		close(elf->fd);
	free(elf);
}

const struct elf_section *elf_file_section(const struct elf_file *elf, const char *name)
{
	const struct elf_section *legacy = NULL;
	bool debug = !strncmp(name, ".debug_", 7);

	for (size_t i = 0; i < elf->nr_sections; i++) {
		const struct elf_section *section = &elf->sections[i];

		if (!strcmp(section->name, name))
			return section;
		if (debug && !legacy && !strncmp(section->name, ".z", 2) &&
		    !strcmp(section->name + 2, name + 1))
			legacy = section;
	}
	return legacy;
}

static bool is_compressed(const struct elf_section *section)
{
	return section->flags & SHF_COMPRESSED || !strncmp(section->name, ".zdebug_", 8);
}

int elf_file_section_data(const struct elf_file *elf, const struct elf_section *section, size_t max,
			  struct elf_data *ret)
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return -ENOENT;
	if (section->offset > elf->size || section->size > elf->size - section->offset)
		return -ENODATA;
	if (is_compressed(section))
		return elf_decompress(elf, section, max, ret);
	if (section->size > max)
		return -EFBIG;
	data = malloc(section->size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_file_read(elf, section->offset, data, section->size);
	if (r)
		return r;
	data[section->size] = 0;
	ret->data = TAKE_PTR(data);
	ret->size = section->size;
	return 0;
}

uint64_t elf_file_section_size(const struct elf_file *elf, const struct elf_section *section)
{
	if (section->type == SHT_NOBITS || section->type == SHT_NULL ||
	    section->offset > elf->size || section->size > elf->size - section->offset)
		return 0;
	return is_compressed(section) ? elf_decompressed_size(elf, section) : section->size;
}

int elf_file_read_vaddr(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t size)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *segment = &elf->segments[i];
		uint64_t skip = vaddr - segment->vaddr;
		int r;

		if (segment->type != PT_LOAD || vaddr < segment->vaddr || skip > segment->filesz ||
		    size > segment->filesz - skip || segment->offset > elf->size ||
		    skip > elf->size - segment->offset)
			continue;
		r = elf_file_read(elf, segment->offset + skip, buf, size);
		if (r != -ENODATA)
			return r;
	}
	return -EFAULT;
}

const struct elf_segment *elf_file_segment(const struct elf_file *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->nr_segments; i++) {
		if (elf->segments[i].type == type)
			return &elf->segments[i];
	}
	return NULL;
}

static int build_id_in(const struct elf_file *elf, uint64_t offset, uint64_t size,
		       uint8_t ret[static ELF_BUILD_ID_MAX])
{
	_cleanup_free_ uint8_t *data = NULL;
	int r;

	if (size > NOTES_MAX)
		size = NOTES_MAX;
	if (offset > elf->size)
		return -ENOENT;
	if (size > elf->size - offset)
		size = elf->size - offset;
	data = malloc(size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_file_read(elf, offset, data, size);
	if (r)
		return r == -ENODATA ? -ENOENT : r;
	r = elf_notes_build_id(data, size, 4, ELF_BUILD_ID_MAX, ret);
	return r == -ENOENT ? elf_notes_build_id(data, size, 8, ELF_BUILD_ID_MAX, ret) : r;
}

int elf_file_build_id(const struct elf_file *elf, uint8_t ret[static ELF_BUILD_ID_MAX])
{
	size_t tried = 0;
	int r;

	/* Segments first: there are few, and they are right also after the sections were stripped.
	 */
	for (size_t i = 0; i < elf->nr_segments && tried < NOTES_TRIED_MAX; i++) {
		if (elf->segments[i].type != PT_NOTE)
			continue;
		tried++;
		r = build_id_in(elf, elf->segments[i].offset, elf->segments[i].filesz, ret);
		if (r != -ENOENT)
			return r;
	}
	for (size_t i = 0; i < elf->nr_sections && tried < NOTES_TRIED_MAX; i++) {
		if (elf->sections[i].type != SHT_NOTE)
			continue;
		tried++;
		r = build_id_in(elf, elf->sections[i].offset, elf->sections[i].size, ret);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* How well a segment explains a mapping that begins `offset` bytes into the file; 0 is not at all.
 */
static int bias_rank(const struct elf_segment *segment, uint64_t offset, uint64_t page)
{
	uint64_t first = segment->offset & ~(page - 1), end;

	if (segment->type != PT_LOAD || !(segment->flags & PF_X) || !segment->filesz ||
	    __builtin_add_overflow(segment->offset, segment->filesz, &end))
		return 0;
	if (offset == first)
		return 3; /* the loader's own mapping of it */
	if (offset >= segment->offset && offset < end)
		return 2; /* a part: mprotect() split the mapping */
	return offset >= first && offset < end ? 1 : 0;
}

int elf_file_bias(const struct elf_file *elf, uint64_t start, uint64_t offset, uint64_t *ret)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct elf_segment *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		int rank = bias_rank(&elf->segments[i], offset, page);

		if (rank > best_rank) {
			best = &elf->segments[i];
			best_rank = rank;
		}
	}
	if (!best)
		return -ENOENT;
	*ret = start - (best->vaddr + (offset - best->offset));
	return 0;
}
