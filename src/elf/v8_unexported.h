/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 in a file that exports nothing of it, as Deno: where the tables of its builtins are, and which
 * version it is, by content. What is believed has to hold together: one pointer leads to the name
 * of the interpreter's entry; the names before and behind it are as many as one table of places has
 * builtins; two instructions side by side take that table's address and the code's; and in the code
 * every gap that the table tells of is filled with int3.
 *
 * Version::major_ and the following (src/utils/version.cc), BuiltinMetadata
 * (src/builtins/builtins.cc), EmbeddedData (src/snapshot/embedded/embedded-data.h) at 15.0; x86-64.
 * It reads most of a file, some 100 MB of Deno: files that do not export Node-API are not looked
 * at.
 */
#pragma once

#include "elf/elf_dynamic.h"

struct v8_blob {
	uint64_t code, code_size, data, data_size;
	uint64_t names; /* the first entry of the table of names */
	size_t nr;	/* builtins */
	bool is_one;	/* data and code are one, as up to 8.4 */
};

/* Whether the file exports Node-API, but not V8's version. */
bool v8_is_unexported(const struct elf_dynamic *dynamic);
/* The table of names alone, in any file; fills names and nr. As v8_unexported_blob(). */
int v8_unexported_names(const struct elf_file *elf, struct v8_blob *ret);
/* 0; -ENOENT: there is none, or it is not certain; -ENOMEM. */
int v8_unexported_blob(const struct elf_dynamic *dynamic, struct v8_blob *ret);
/* 100 * major + minor; 0: none of those that are known (15.0). */
uint16_t v8_unexported_version(const struct elf_file *elf);
/* The table that tells how many bytes each of `nr` bytecodes has; 0: it is not found. */
uint64_t v8_unexported_bytecode_sizes(const struct elf_file *elf, size_t nr);
