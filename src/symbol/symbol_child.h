/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that build tables for a store: starting one, and what it does. Private to
 * src/symbol.
 *
 * A child (util/child.h) is told by arguments ("key=value", see symbol_child.c) and descriptors: it
 * reads the ELF file and writes the image; its messages are complaints, a line each; further
 * descriptors are the roots that debug files are looked for in, then the cache's folder.
 */
#pragma once

#include "util/child.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SYMBOL_CHILD_ROOTS_MAX = 2,
	SYMBOL_CHILD_CPU_S = 120, /* of CPU time; the largest browsers take a quarter of it */
};

#define SYMBOL_CHILD_NAME "sonde-symbols"

enum symbol_child_status {
	SYMBOL_CHILD_OK = 0,
	SYMBOL_CHILD_FAILED = 1,
	SYMBOL_CHILD_NO_SPACE = 3, /* the image could not be written: disk full, quota */
};

struct symbol_child_spec {
	char *const *builder; /* argv of the program; NULL: fork */
	int elf_fd, out_fd;
	int roots[SYMBOL_CHILD_ROOTS_MAX];
	uint32_t nr_roots, nr_others_roots;
	uint32_t owner; /* of the file; its descriptor may be of a copy, which is ours */
	const char *path;
	uint64_t memory;
	bool no_debug_info;
	bool idle; /* lowest priority; else a normal one */
	/* A claim (symbol_cache.h) that out_fd is of; cache_dir -1: the image stays in out_fd. */
	int cache_dir;
	const char *key;
	uint64_t cache_size;
	uint64_t cache_room; /* a table that takes no more needs no cleaning of the cache */
};

int symbol_child_start(const struct symbol_child_spec *spec, struct child *ret);
