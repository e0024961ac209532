/* SPDX-License-Identifier: Apache-2.0 */
/* What line_program.c (the machine) and line_program_header.c (the header, its files) share. */
#pragma once

#include "dwarf/cfi_read.h"
#include "dwarf/line_program.h"
#include "util/vec.h"

/* The files of a program while they are collected: paths one behind the other. */
struct line_files {
	VEC(char) paths;      /* NUL-terminated each; the first is "" */
	VEC(uint32_t) starts; /* of each file's path in `paths` */
	VEC(const char *) dirs;
	uint16_t version;
	const char *comp_dir;
};

struct line_header {
	uint16_t version;
	uint8_t offset_size; /* 4, or 8 in the 64-bit format */
	uint8_t min_inst_length;
	uint8_t max_ops; /* never 0 */
	uint8_t default_is_stmt;
	int8_t line_base;
	uint8_t line_range;	       /* never 0 */
	uint8_t opcode_base;	       /* never 0 */
	const uint8_t *opcode_lengths; /* opcode_base - 1 of them */
	const uint8_t *program, *end;
};

/*
 * Reads the header at `offset` and its tables. Tables that break off give the files before. 0,
 * -EBADMSG, -ENOTSUP or -ENOMEM; `files` is to be freed in any case.
 */
int line_header_read(const struct line_source *source, uint64_t offset, struct line_files *files,
		     struct line_header *ret);
/* Adds `name` of directory number `dir`. 0 or -ENOMEM; beyond the caps the file gets no path. */
int line_files_add(struct line_files *files, const char *name, uint64_t dir);
void line_files_fini(struct line_files *files);
