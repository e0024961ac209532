/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line number programs, DWARF 2 to 5: address -> source file and line. No I/O; bounded for hostile
 * input by the caps below. Rows are in the order of addresses, as a look-up wants them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	LINE_FILES_MAX = 1 << 20, /* of one program */
	LINE_ROWS_MAX = 64 << 20, /* of one program; a byte of it makes one row at most */
	LINE_PATH_MAX = 4096,	  /* longer paths are cut at the front */
	/* All paths of one program; large ones of real files have 2 MB. The rest are "". */
	LINE_PATHS_MAX = 64 << 20,
};

/*
 * From `addr` on, until the next row. A row with LINE_END ends a sequence: nothing is known from
 * there on.
 */
struct line_row {
	uint64_t addr;
	uint32_t file;	 /* index into files, or UINT32_MAX: not known */
	uint32_t line;	 /* 1-based; 0: code that belongs to no line, whatever its file says */
	uint16_t column; /* 1-based; 0: none; beyond 65535: 0 */
	uint16_t flags;	 /* LINE_* */
};

enum {
	LINE_END = 1 << 0,
	LINE_IS_STMT = 1 << 1,
};

/*
 * Rows have ascending addresses, no two the same. Where sequences of a program overlap, the one
 * that begins first (at one address: stands first) keeps what it covers.
 */
struct line_table {
	struct line_row *rows;
	size_t nr_rows;
	/* Cleaned of "//", "/./"; joined with directory and compilation directory. */
	const char **files;
	size_t nr_files;
	/*
	 * The program's own number of file `i` -> index here: numbers are 1-based up to DWARF 4 and
	 * 0-based in 5; line_table_file() knows.
	 */
	uint16_t version;
	void *memory; /* private */
};

struct line_source {
	const uint8_t *line, *str, *line_str; /* sections; NULL if absent */
	size_t line_size, str_size, line_str_size;
	const uint8_t *str_offsets; /* for DW_FORM_strx in a header; usually NULL */
	size_t str_offsets_size;
};

/*
 * Runs the program at `offset` of .debug_line. Sequences that begin at 0 or at a tombstone (what
 * linkers write for discarded code: 0, 1, -1, -2) are left out. 0; -EBADMSG: nothing of it makes
 * sense; -ENOTSUP: a version that we don't know; -ENOMEM. A program that breaks off gives the rows
 * before. `comp_dir` and `name` are the unit's, "" if not known; `name` is the only file where the
 * program has none. `address_size` 0 is 8.
 */
int line_table_read(const struct line_source *source, uint64_t offset, const char *comp_dir,
		    const char *name, uint8_t address_size, struct line_table *ret);
void line_table_fini(struct line_table *table);
/* The index of the file that the program (and DW_AT_decl_file, call_file) numbers `number`. */
uint32_t line_table_file(const struct line_table *table, uint64_t number);
