/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded reader of ELF files, made for hostile and truncated input: every offset is checked,
 * every size capped, nothing is mmapped (a file that shrinks while mapped would be a SIGBUS).
 *
 * Both byte orders and both classes are recognised; 64-bit little-endian is read, anything else is
 * -ENOTSUP. Sections are optional: stripped section tables and memory images work by segments.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ELF_SECTIONS_MAX = 65536 * 4,
	ELF_SEGMENTS_MAX = 4096,
	ELF_BUILD_ID_MAX = 64,
};

struct elf_section {
	const char *name; /* "" if it has none; lives as long as the elf_file */
	uint32_t type;	  /* SHT_* */
	uint64_t flags;	  /* SHF_* */
	uint64_t addr, offset, size;
	uint32_t link, info;
	uint64_t entsize;
};

struct elf_segment {
	uint32_t type;	/* PT_* */
	uint32_t flags; /* PF_* */
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct elf_file {
	uint16_t machine; /* EM_X86_64, EM_AARCH64, ... */
	uint16_t type;	  /* ET_EXEC, ET_DYN, ET_REL, ET_CORE */
	uint64_t entry;
	struct elf_section *sections;
	size_t nr_sections;
	struct elf_segment *segments;
	size_t nr_segments;
	int fd; /* the file behind it; -1: an image in memory */
	const uint8_t *memory;
	uint64_t size;
	/* What reading it may take at a time, as far as who opened it cares; 0: he does not. For
	 * what is large in some files. */
	uint64_t memory_max;
	char *names; /* private */
};

/* Bytes of a file; `data` is the caller's after success (free it). A NUL byte stands behind them.
 */
struct elf_data {
	uint8_t *data;
	size_t size;
};

/* Takes ownership of `fd` on success. 0, -ENOEXEC (no ELF file), -ENOTSUP, -ENOMEM, -EIO ... */
int elf_file_open_fd(int fd, struct elf_file **ret);
int elf_file_open(const char *path, struct elf_file **ret);
/* An image in memory, borrowed: it must outlive the elf_file. */
int elf_file_open_memory(const void *data, size_t size, struct elf_file **ret);
void elf_file_free(struct elf_file *elf);
static inline void elf_file_free_p(struct elf_file **elf)
{
	elf_file_free(*elf);
}

/* The first section of that name, or NULL. ".debug_foo" also finds a lone ".zdebug_foo". */
const struct elf_section *elf_file_section(const struct elf_file *elf, const char *name);
/*
 * A section's contents, decompressed if need be (SHF_COMPRESSED zlib and zstd, .zdebug_*); at most
 * `max` bytes, else -EFBIG. SHT_NOBITS is -ENOENT. A section that the file cuts off is -ENODATA, a
 * corrupt compressed one -EBADMSG, an unknown compression -ENOTSUP.
 */
int elf_file_section_data(const struct elf_file *elf, const struct elf_section *section, size_t max,
			  struct elf_data *ret);
/* How many bytes that would be, as far as it is known without reading them; 0: none. */
uint64_t elf_file_section_size(const struct elf_file *elf, const struct elf_section *section);
/* Plain bytes of the file. -ENODATA beyond its end. */
int elf_file_read(const struct elf_file *elf, uint64_t offset, void *buf, size_t size);
/*
 * Bytes at an address of the file's own address space, by PT_LOAD; -EFAULT if none has them all in
 * the file (.bss is none: what is not stored is not claimed to be zero).
 */
int elf_file_read_vaddr(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t size);
/* The first segment of that type, or NULL. */
const struct elf_segment *elf_file_segment(const struct elf_file *elf, uint32_t type);
/* The NT_GNU_BUILD_ID note, by section or segment: its length, or -ENOENT. */
int elf_file_build_id(const struct elf_file *elf, uint8_t ret[static ELF_BUILD_ID_MAX]);
/*
 * The bias that a mapping of `offset` bytes into the file at `start` implies: start - vaddr of the
 * byte at `offset`. Executable PT_LOADs only; -ENOENT if none covers the offset's page.
 */
int elf_file_bias(const struct elf_file *elf, uint64_t start, uint64_t offset, uint64_t *ret);
