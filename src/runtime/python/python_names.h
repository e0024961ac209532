/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of CPython frames: a frame's words (python_abi.h) -> function, file, line, read from the
 * code object. Reads one code object, a string each, and the line table once; what was read is
 * remembered by (code object, cookie) in a bounded cache. Serves one process.
 */
#pragma once

#include "runtime/python/python_lines.h"
#include "runtime/runtime.h"

#include <stddef.h>
#include <stdint.h>

enum {
	PYTHON_CODE_SIZE_MAX = 256,	   /* of a code object, as far as its fields are read */
	PYTHON_NAME_MAX = 4096,		   /* bytes of UTF-8; a longer one is cut at a character */
	PYTHON_LINE_TABLE_MAX = 256 << 10, /* a longer one is not read: no lines */
	PYTHON_NAMES_MAX = 4096,	   /* code objects remembered */
	PYTHON_NAMES_BYTES = 8 << 20,	   /* of them all: then the memory begins anew */
};

/* Where the fields lie that names are made of; all in bytes. Made by attach(). */
struct python_layout {
	uint8_t minor;	       /* of 3.x */
	uint8_t free_threaded; /* another object header */
	uint16_t code_size;    /* so much of a code object is read; at most PYTHON_CODE_SIZE_MAX */
	uint16_t co_filename, co_name, co_firstlineno;
	uint16_t co_qualname;  /* 0: has none */
	uint16_t co_linetable; /* or co_lnotab */
	uint16_t str_length, str_state;
	uint16_t str_ascii;   /* text of an ASCII str: the size of a PyASCIIObject */
	uint16_t str_compact; /* text of another: the size of a PyCompactUnicodeObject */
	uint16_t bytes_length, bytes_data;
};

struct python_record;
struct python_names;

/* `record` and `layout` are used until python_names_free(). 0 or -ENOMEM. */
int python_names_new(const struct runtime_target *target, const struct python_record *record,
		     const struct python_layout *layout, struct python_names **ret);
void python_names_free(struct python_names *n);
static inline void python_names_free_p(struct python_names **n)
{
	python_names_free(*n);
}

/* As runtime_ops.symbolize(). */
int python_names_symbolize(struct python_names *n, const uint64_t *words, size_t nr,
			   const struct runtime_sink *sink);

/* The layout of 3.6 to 3.12, 64 bit; -ENOTSUP for another. From 3.13 on the process tells it. */
int python_layout_of(unsigned int minor, struct python_layout *ret);
