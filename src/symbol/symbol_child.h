/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that build tables for a store: starting one, and what it does. Private to
 * src/symbol.
 *
 * A child is told by arguments ("key=value", see symbol_child.c) and descriptors: 3 the ELF file,
 * 4 the image, 5 complaints (a line each) to its parent, 6 its lifeline, from 7 on the roots that
 * debug files are looked for in, then the cache's folder.
 *
 * The lifeline is a pipe whose other end is our process's alone: when that ends, however it does,
 * the kernel kills the child, unless it was told to stay. (PR_SET_PDEATHSIG would end it with the
 * thread that started it.)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
	uint32_t nr_roots;
	const char *path;
	uint64_t memory;
	bool no_debug_info;
	bool idle; /* lowest priority; else a normal one */
	/* A claim (symbol_cache.h) that out_fd is of; cache_dir -1: the image stays in out_fd. */
	int cache_dir;
	const char *key;
	uint64_t cache_size;
};

struct symbol_child {
	pid_t pid;    /* 0: none */
	int messages; /* to read complaints from; its end is the child's */
	int lifeline[2];
};

#define SYMBOL_CHILD_NONE ((struct symbol_child){ .messages = -1, .lifeline = { -1, -1 } })

int symbol_child_start(const struct symbol_child_spec *spec, struct symbol_child *ret);
/* SCHED_IDLE and the like, or as other processes. -EPERM: we may not raise it. */
int symbol_child_set_idle(const struct symbol_child *child, bool idle);
/* It need not end with us. */
void symbol_child_let_stay(const struct symbol_child *child);
/* Lets it stay, and forgets it. */
void symbol_child_leave(struct symbol_child *child);
/*
 * Takes its status (of waitpid()); -ECHILD if another took it. `kill_it`: kills it first, and does
 * not wait for long.
 */
int symbol_child_end(struct symbol_child *child, bool kill_it, int *ret_status);
