/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles 64-bit little-endian ELF files in memory, for tests of what reads them.
 *
 *	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
 *	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
 *					       0x1000, code, sizeof(code));
 *	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, text, text);
 *	elf_writer_symbol(w, SHT_SYMTAB, "main", STB_GLOBAL, STT_FUNC, text, 0x1000, 16);
 *	elf_writer_build_id(w, id, 20);
 *	image = elf_writer_finish(w, &size); // the writer is gone, the image is yours: free() it
 *
 * Section addresses are kept: allocated sections of ascending addresses stand in the file as far
 * apart as in memory (up to 1 MB of gap), at offsets congruent to the address modulo 4096. To make
 * a malformed file, finish a good one and patch it through elf_image_*(). Aborts on misuse.
 */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct elf_writer;

struct elf_writer *elf_writer_new(uint16_t type, uint16_t machine);
/* For a writer that is not finished. */
void elf_writer_free(struct elf_writer *w);

/* Adds a section and returns its index (from 1 on). The data is copied; NULL is zeros. */
unsigned int elf_writer_section(struct elf_writer *w, const char *name, uint32_t type,
				uint64_t flags, uint64_t addr, const void *data, size_t size);
void elf_writer_section_link(struct elf_writer *w, unsigned int section, uint32_t link,
			     uint32_t info, uint64_t entsize);
/* A segment from the begin of section `first` to the end of section `last`. */
void elf_writer_segment(struct elf_writer *w, uint32_t type, uint32_t flags, unsigned int first,
			unsigned int last);
/* A symbol of .symtab (`table` SHT_SYMTAB) or .dynsym (SHT_DYNSYM). */
void elf_writer_symbol(struct elf_writer *w, uint32_t table, const char *name, unsigned int bind,
		       unsigned int type, unsigned int section, uint64_t value, uint64_t size);
/* A section (and PT_NOTE segment) of one note, owner with its NUL. Returns the section's index. */
unsigned int elf_writer_note(struct elf_writer *w, const char *section, const char *owner,
			     uint32_t type, const void *desc, size_t size);
/* The note .note.gnu.build-id. */
void elf_writer_build_id(struct elf_writer *w, const void *id, size_t size);
/* The file gets no section table: only its segments tell what it has. */
void elf_writer_no_section_table(struct elf_writer *w);

/* The finished file, the caller's to free(); the writer is freed. */
void *elf_writer_finish(struct elf_writer *w, size_t *ret_size);

/* Parts of a finished image, to patch. */
Elf64_Ehdr *elf_image_header(void *image);
Elf64_Shdr *elf_image_section(void *image, unsigned int index);
Elf64_Phdr *elf_image_segment(void *image, unsigned int index);
/* The index of the section of that name; aborts if there is none. */
unsigned int elf_image_section_index(void *image, const char *name);
/* The image as a file (memfd): its descriptor. */
int elf_image_fd(const void *image, size_t size);
