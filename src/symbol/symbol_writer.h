/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the image of a symbol table (symbol_image.h): strings, functions and files once each,
 * scopes, and two streams of rows. Rows go to the descriptor as they come, the rest is held until
 * the end. Private to src/symbol; used by the builder, and by tests to make images of any content.
 *
 * Order of use: scopes, functions, files and strings at any time; all range rows; then all line
 * rows; finish. Nothing of it is an image before finish() wrote the header.
 */
#pragma once

#include "symbol/symbol_image.h"

#include <stddef.h>
#include <stdint.h>

struct symbol_writer;

/* `fd` is borrowed; it is empty and seekable. */
int symbol_writer_new(int fd, struct symbol_writer **ret);
void symbol_writer_free(struct symbol_writer *w);
static inline void symbol_writer_free_p(struct symbol_writer **w)
{
	symbol_writer_free(*w);
}

/* Each of these: 0 and its number, -ENOMEM, or -EFBIG. Equal things have equal numbers. */
int symbol_writer_string(struct symbol_writer *w, const char *s, uint32_t *ret);
/* The string, until the next one is added. */
const char *symbol_writer_text(const struct symbol_writer *w, uint32_t string);
int symbol_writer_function(struct symbol_writer *w, const struct image_function *function,
			   uint32_t *ret);
/* "" is 0. */
int symbol_writer_file(struct symbol_writer *w, const char *path, uint32_t *ret);

/* An inlined call, or (`parent` 0) a function. Not shared: each call makes one. Its offset. */
struct symbol_scope {
	uint32_t function, parent;
	uint32_t call_file, call_line, call_column;
};
int symbol_writer_scope(struct symbol_writer *w, const struct symbol_scope *scope, uint32_t *ret);

/*
 * Appends a row to the ranges, or, after symbol_writer_begin_lines(), to the lines. Addresses
 * ascend; a row at the last one's address replaces it, one that says the same is left out.
 */
int symbol_writer_row(struct symbol_writer *w, const struct image_row *row);
int symbol_writer_begin_lines(struct symbol_writer *w);

/* Sets what is not the writer's own: flags, fingerprint and base. The header after that. */
int symbol_writer_finish(struct symbol_writer *w, struct image_header *header);
