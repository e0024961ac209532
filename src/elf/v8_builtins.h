/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builtins of V8 in a file that has no names of local functions, as Debian's libnode: V8 itself
 * knows where each of them is (the embedded blob's table) and what it is called (for its logs), and
 * exports functions that lead there. Only what these tables say of each other makes them believed:
 * the builtins of one fill the code of the other without a gap, and all of them have names. Up to
 * 8.4 exported variables lead to both in one; names are found as v8_unexported.h does it, which
 * also finds the tables where nothing is exported.
 *
 * src/snapshot/embedded/embedded-data.h (LayoutDescription), src/builtins/builtins.cc
 * (BuiltinMetadata) at 7.8 to 14.6; x86-64.
 */
#pragma once

#include "elf/elf_file.h"

struct v8_builtin {
	uint64_t addr; /* in the file's own address space */
	uint32_t size;
	uint32_t name; /* where it begins in the names; as symbols have it, Builtins_NAME */
};

struct v8_builtins {
	struct v8_builtin *items; /* by address */
	size_t nr;
	char *names;
	size_t names_size;
};

/* 0; -ENOENT: there are none, or it is not certain where; -ENOMEM. */
int v8_builtins_read(const struct elf_file *elf, struct v8_builtins *ret);
void v8_builtins_fini(struct v8_builtins *builtins);
