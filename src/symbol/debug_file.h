/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a program's debug information is in, besides itself: separate debug files (by
 * build-id and by .gnu_debuglink), dwz supplementary files, .dwo and .dwp. Found below the roots
 * that the caller names: our own, and that of the process's mount namespace. Non-logging: what was
 * wrong is reported through `complain`.
 *
 * Believed only if it is the right one: build-ids equal; where the file has none, the debug link's
 * CRC; of dwz the build-id in the link; of .dwo the unit's id.
 */
#pragma once

#include "dwarf/debug_info.h"
#include "elf/elf_file.h"

struct debug_files;

struct debug_search {
	/* Open directories (O_PATH), tried in turn; borrowed. Typically "/" and /proc/PID/root. */
	const int *roots;
	size_t nr_roots;
	const char *path; /* of the ELF file below these roots, for debug links and .dwp; NULL */
	/*
	 * Something is there and can't be used ("/usr/lib/debug/x.debug: build-id differs, not
	 * used"). May be NULL. The text lives until it returns.
	 */
	void (*complain)(void *ctx, const char *text);
	void *ctx;
	/* Bytes of decompressed sections held at a time; beyond it -EFBIG (only symbols are had).
	 */
	size_t max_bytes;
};

/*
 * Finds what there is and reads the sections. Both ELF files are borrowed. 0 also if there is
 * nothing: then debug_files_dwarf() has no sections. -ENOMEM, -EFBIG.
 */
int debug_files_open(const struct elf_file *elf, const struct debug_search *search,
		     struct debug_files **ret);
void debug_files_free(struct debug_files *files);
static inline void debug_files_free_p(struct debug_files **files)
{
	debug_files_free(*files);
}
/* The separate debug file (whose .symtab is wanted too), or NULL. */
const struct elf_file *debug_files_elf(const struct debug_files *files);
/* What dwarf_read_units() takes; lives as long as `files`. */
const struct dwarf_source *debug_files_dwarf(const struct debug_files *files);

/*
 * Which files there are now, without reading them: a hash over path, size, mtime and inode of what
 * debug_files_open() would use or try. A table that was made with another one is out of date.
 * Cheap: a few fstatat() and the notes of `elf`. `.dwo` files are not looked at.
 */
uint64_t debug_files_fingerprint(const struct elf_file *elf, const struct debug_search *search);
