/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the native and kernel frames of a profile their functions, inlined calls and lines: out of
 * the symbol tables of their files (symbol/symbol_store.h) and the kernel's own list.
 *
 * Tables are asked for as soon as a file is met (naming_want), are built in the background, and
 * waited for at the end (naming_wait).
 */
#pragma once

#include "elf/elf_file.h"
#include "profile/profile.h"
#include "runtime/runtime.h"
#include "symbol/symbol_store.h"

struct kallsyms;

/* How frames of runtimes are shown (agent/runtimes.h, not naming.c); zeroes are the defaults. */
struct runtime_names_options {
	bool interpreter_frames; /* also native frames that only implement a script frame */
	struct runtime_options runtime;
};

/* How frames are named; zeroes are the defaults. */
struct naming_options {
	bool no_inlines;
	bool short_names; /* without parameters and template arguments */
	struct runtime_names_options runtimes;
	/*
	 * The program that builds tables, as in symbol_store_options. NULL: a fork of this one,
	 * which only programs without threads may do.
	 */
	char *const *builder;
	/*
	 * A folder that the paths of files are below, for debug files beside them; tried before our
	 * own "/". NULL: none.
	 */
	const char *root;
	/*
	 * A file whose full table is not there after so long has the names of its symbol tables
	 * alone; 0: NAMING_PATIENCE_MS.
	 */
	uint32_t patience_ms;
	/* While tables are waited for, about four times a second; false gives it up. May be NULL.
	 */
	bool (*progress)(void *ctx, const struct symbol_progress *progress);
	void *progress_ctx;
};

enum { NAMING_PATIENCE_MS = 20000 };

/* A file of the profile and its table. */
struct naming_file {
	uint32_t table; /* of the store; UINT32_MAX: not asked for, or it cannot be had */
	bool (*folds)(const char *name); /* runtime_ops.folds of the runtime that it is, or NULL */
};

struct naming {
	struct naming_options options;
	struct profile *profile; /* borrowed */
	struct symbol_store *store;
	VEC(struct naming_file) files; /* by file of the profile, as far as met */
	struct map functions;	       /* table << 32 | its function -> the profile's function */
	struct kallsyms *kernel;
	bool kernel_tried;
};

int naming_init(struct naming *n, struct profile *profile, const struct naming_options *options);
void naming_fini(struct naming *n);
/*
 * Asks for the table of the profile's file `file`, and notes what identifies it (htlhash, Go build
 * id, where its code is). 0 also if it was asked for before. `folds` (or NULL): inlined functions
 * of these names are left out, unless interpreter_frames.
 */
int naming_want(struct naming *n, uint32_t file, const struct symbol_file *symbols,
		bool (*folds)(const char *name));
/* Takes in tables that are finished. Cheap; call it now and then. */
void naming_tick(struct naming *n);
/* Waits for all tables. */
void naming_wait(struct naming *n);
/* The profile forgot its functions (profile_forget_names()); its files are what they were. */
void naming_forget(struct naming *n);
/* Names all frames without names whose tables are there; again when more are. 0 or -ENOMEM. */
int naming_apply(struct naming *n);
