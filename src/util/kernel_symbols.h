/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of /proc/kallsyms, for who looks for some of them: "ADDRESS TYPE name[\t[module]]"
 * (Linux, kernel/kallsyms.c, s_show()). There are some 200,000: with fgets() and sscanf() they take
 * as long to be read as the kernel needs to write them. All names are symbol/kallsyms.h's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kernel_symbol {
	uint64_t address; /* 0: hidden, or a variable of each CPU */
	const char *name; /* until the next one comes */
	char type;	  /* as nm's: t, T, w, W are code */
	bool is_modules;
};

/* Another value than 0 ends the walk, which returns it. */
typedef int (*kernel_symbol_fn)(void *ctx, const struct kernel_symbol *symbol);

/* Calls `take` for each line, in their order; 0 at the end, -errno if they cannot be read. */
int kernel_symbols_walk(kernel_symbol_fn take, void *ctx);

/* For each line of a file with such lines; what is no such line is passed over. */
int kernel_symbols_walk_file(int fd, kernel_symbol_fn take, void *ctx);
