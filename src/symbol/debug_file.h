/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a program's debug information is in, besides itself: separate debug files (by
 * build-id and by .gnu_debuglink), dwz supplementary files, .dwo and .dwp. Found below the roots
 * that the caller names: our own, and that of the process's mount namespace. Non-logging: what was
 * wrong is reported through `complain`.
 *
 * Believed only if it is the right one: build-ids equal; where the file has none, the debug link's
 * CRC; of dwz the build-id in the link; of .dwo the unit's id. All of these can be copied, so it is
 * also to be root's, ours, or the program's owner's; below others' roots the owner's alone, who is
 * neither root nor us.
 */
#pragma once

#include "dwarf/debug_info.h"
#include "elf/elf_file.h"

struct debug_files;

enum {
	DEBUG_COMPLAINTS_MAX = 16,
	DEBUG_DWO_FILES = 4, /* that are kept; a unit's are asked for one after the other */
};

struct debug_search {
	/* Open directories (O_PATH), tried in turn; borrowed. Typically "/" and /proc/PID/root. */
	const int *roots;
	size_t nr_roots;
	/* How many of the first are of processes of other user namespaces than ours: a file there
	 * that is root's may be of a disk image that a user has mounted. */
	size_t nr_others_roots;
	const char *path; /* of the ELF file below these roots, for debug links and .dwp; NULL */
	const uint32_t *owner; /* of the ELF file; NULL: its descriptor's */
	/*
	 * Something is there and can't be used ("/usr/lib/debug/x.debug: build-id differs, not
	 * used"). May be NULL. The text lives until it returns. Each thing is said once, and no
	 * more than DEBUG_COMPLAINTS_MAX of them.
	 */
	void (*complain)(void *ctx, const char *text);
	void *ctx;
	/*
	 * Bytes of decompressed sections held at a time; what does not fit is not used. 0: only
	 * debug_files_elf() is wanted, and nobody complains that there is more.
	 */
	size_t max_bytes;
};

/*
 * Finds what there is and reads the sections. `elf` and `search`'s roots are borrowed. 0 also if
 * there is nothing: then debug_files_dwarf() has no sections. 1: there is debug information, but it
 * can't be used (too large, corrupt, its supplementary file too large; said by `complain`):
 * debug_files_dwarf() has no sections, debug_files_elf() is had all the same. -ENOTSUP: of a
 * relocatable file, not relocated; -ENOMEM.
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
/* The path of the file that the debug information is in, to be shown. Lives as long as `files`. */
const char *debug_files_path(const struct debug_files *files);
/* What dwarf_read_units() takes; lives as long as `files`. */
const struct dwarf_source *debug_files_dwarf(const struct debug_files *files);

/*
 * Which files there are now, without reading them: a hash over path, stat() of what
 * debug_files_open() would use: the first file there is by build-id; else all that the debug link
 * may mean; the supplementary file that `elf` itself names; .dwp. A table that was made with
 * another one is out of date. Cheap: a few fstat() and the notes and links of `elf`. `.dwo` files
 * are not looked at. Files that are not there don't count, so more roots give the same hash if
 * nothing is found there.
 */
uint64_t debug_files_fingerprint(const struct elf_file *elf, const struct debug_search *search);
