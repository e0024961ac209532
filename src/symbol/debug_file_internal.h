/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What debug_file.c is made of: the parsing of links between files (debug_file_link.c: no I/O,
 * fuzzed), the opening of files below roots (debug_file_open.c), and the reading of sections
 * (debug_file_sections.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "dwarf/debug_info.h"
#include "elf/elf_file.h"

enum {
	DEBUG_PATH_MAX = 4096,
	DEBUG_LINK_MAX = 64 << 10, /* bytes of a section that holds a link; they have 200 at most */
};

/* --- links: what they hold points into their bytes -------------------------------------------- */

struct debug_link {
	const char *name; /* a file name, not a path: never with a '/', "." or ".." */
	uint32_t crc;
};

/* A supplementary file (dwz -m). */
struct debug_alt_link {
	const char *path;  /* absolute, or relative to the file that has the link; not "" */
	const uint8_t *id; /* its build-id, or the checksum that both .debug_sup have */
	size_t id_size;	   /* 1 to ELF_BUILD_ID_MAX */
};

/* The contents of .gnu_debuglink, .gnu_debugaltlink, .debug_sup. 0 or -EBADMSG. */
int debug_link_parse(const void *data, size_t size, struct debug_link *ret);
int debug_alt_link_parse(const void *data, size_t size, struct debug_alt_link *ret);
/* `is_alt`: of the supplementary file itself, which has no path then. */
int debug_sup_parse(const void *data, size_t size, bool is_alt, struct debug_alt_link *ret);

/* Whether a .debug_cu_index (DWARF 5 section 7.3.5.3, GNU's version 2) has that unit. */
bool debug_cu_index_has(const void *data, size_t size, uint64_t id);
/* Whether a .dwo has it: 1, 0, or -ENOENT if its units don't tell all. */
int debug_dwo_has(const struct dwarf_span *info, const struct dwarf_span *abbrev, uint64_t id);

/* --- paths: 0, or -ENAMETOOLONG --------------------------------------------------------------- */

struct debug_path {
	char text[DEBUG_PATH_MAX];
};

/* "/usr/lib/debug/.build-id/ab/cdef.debug"; -ENOENT for an id of one byte. */
int debug_path_of_build_id(const uint8_t *id, size_t size, struct debug_path *ret);
/* `name` itself if it is absolute, else `dir`/`name`. */
int debug_path_join(const char *dir, const char *name, struct debug_path *ret);
/* The folder of `path`: "" for "/x", "." for "x". */
int debug_path_dir(const char *path, struct debug_path *ret);
const char *debug_path_base(const char *path);
__attribute__((format(printf, 2, 3))) int debug_path_format(struct debug_path *ret,
							    const char *format, ...);

/* --- sections ------------------------------------------------------------------------------- */

enum { DEBUG_SECTIONS = 12 };

/* The sections of one file, in memory. */
struct section_set {
	struct dwarf_sections sections;
	uint8_t *memory[DEBUG_SECTIONS];
	size_t bytes;
};

void section_set_fini(struct section_set *set);
/*
 * Reads what there is of `elf`'s DWARF, at most `max` bytes; `split`: the sections of a .dwo or
 * .dwp. 0; -ENOENT without any; -EFBIG, -EBADMSG, ... and the section's name if one that is needed
 * can't be read.
 */
int section_set_load(const struct elf_file *elf, bool split, size_t max, struct section_set *ret,
		     const char **ret_bad);
bool debug_has_contents(const struct elf_file *elf, const char *section);
/* Whether .debug_info is as the assembler left it, its references not filled in. */
bool debug_needs_relocation(const struct elf_file *elf);

/* --- files ------------------------------------------------------------------------------------ */

/*
 * Opens a regular file for reading; no symbolic link and no ".." leads out of the root. Nothing
 * else is opened, so nothing blocks: -EINVAL. 0 or negative errno.
 */
int debug_open_below(int root_fd, const char *path, int *ret);
/* Looks only, and opens nothing: what it is (regular files only). */
int debug_stat_below(int root_fd, const char *path, struct stat *ret);
/* Where an open file is below that root, symbolic links resolved. 0 or -ENOENT. */
int debug_real_path(int root_fd, int fd, struct debug_path *ret);
/* The CRC-32 of a whole file, as debug links have it. -EFBIG: too large to be read for this. */
int debug_crc(int fd, uint32_t *ret);
