/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives the native and kernel frames of a profile their functions, inlined calls and lines: out of
 * the symbol tables of their files (symbol/symbol_store.h) and the kernel's own list.
 *
 * Tables are asked for as soon as a file is met (symbolizer_want), are built in the background, and
 * waited for at the end (symbolizer_wait). Frames wait at their file until its table is there.
 */
#pragma once

#include "elf/elf_file.h"
#include "profile/collect.h"
#include "runtime/runtime.h"
#include "symbol/code_names.h"
#include "symbol/symbol_store.h"

struct kallsyms;

/* How frames of runtimes are shown (unwinder/runtimes.h, not symbolizer.c); zeroes are the
 * defaults. */
struct runtime_names_options {
	bool interpreter_frames; /* also native frames that only implement a script frame */
	struct runtime_options runtime;
};

/* How frames are named; zeroes are the defaults. */
struct symbolizer_options {
	bool no_inlines;
	bool short_names; /* without parameters and template arguments */
	/* Frames of files stay addresses: somebody else names them, by the files' ids. */
	bool no_file_names;
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
	size_t max_waiting; /* as in symbol_store_options */
	/*
	 * A file whose full table is not there after so long has the names of its symbol tables
	 * alone; 0: SYMBOLIZER_PATIENCE_MS.
	 */
	uint32_t patience_ms;
	/* While tables are waited for, about four times a second; false gives it up. May be NULL.
	 */
	bool (*progress)(void *ctx, const struct symbol_progress *progress);
	void *progress_ctx;
};

enum { SYMBOLIZER_PATIENCE_MS = 20000 };

struct symbolizer_frames {
	VEC(uint32_t) items; /* frames of the profile */
};

/* A file of the profile and its table. */
struct symbolizer_file {
	struct symbolizer_frames waiting; /* for their names */
	uint32_t table; /* of the store; UINT32_MAX: not asked for, or it cannot be had */
	/* runtime_ops.hides of the runtime that it is, or NULL */
	bool (*hides)(const char *name, const char *source);
};

struct symbolizer {
	struct symbolizer_options options;
	struct profile *profile; /* borrowed */
	struct symbol_store *store;
	VEC(struct symbolizer_file) files; /* by file of the profile, as far as met */
	struct symbolizer_frames waiting;  /* of the kernel */
	struct map functions; /* table << 32 | its function -> the profile's function */
	size_t long_bytes;    /* of long names and paths of these functions */
	struct kallsyms *kernel;
	uint64_t kernel_read_ns; /* when `kernel` was read, or could not be; 0: never */
	uint64_t kernel_next_ns; /* when it may be read again */
	bool kernel_changed;	 /* since, other than `code` tells */
	struct code_names code;
};

int symbolizer_init(struct symbolizer *n, struct profile *profile,
		    const struct symbolizer_options *options);
void symbolizer_fini(struct symbolizer *n);
/*
 * Asks for the table of the profile's file `file`, and notes what identifies it (htlhash, Go build
 * id, where its code is): that alone with no_file_names. 0 also if it was asked for before. `hides`
 * (or NULL): inlined functions of these names are left out, unless interpreter_frames.
 */
int symbolizer_want(struct symbolizer *n, uint32_t file, const struct symbol_file *symbols,
		    bool (*hides)(const char *name, const char *source));
/* Takes in tables that are finished. Cheap; call it now and then. */
void symbolizer_tick(struct symbolizer *n);
/* Are there tables that are not finished? */
bool symbolizer_is_busy(const struct symbolizer *n);
/* Waits for all tables. */
void symbolizer_wait(struct symbolizer *n);
/* A frame that is new in the profile, of the kernel or a file, wants a name. 0 or -ENOMEM. */
int symbolizer_met(struct symbolizer *n, uint32_t frame);
/* Names the frames that wait and whose tables are there; again when more are. 0 or -ENOMEM. */
int symbolizer_apply(struct symbolizer *n);
/* Modules came or went: what is outside of the kernel's own code is looked up anew. */
void symbolizer_kernel_changed(struct symbolizer *n);
/* What BPF programs there are may not be known, since events were lost. */
void symbolizer_kernel_code_lost(struct symbolizer *n);
/* There is code in [start, start + len) since `time_ns`, of a BPF program or the like; its name or
 * "". */
void symbolizer_kernel_code(struct symbolizer *n, uint64_t time_ns, uint64_t start, uint64_t len,
			    const char *name);
/* It is gone: frames that wait have the name that it was told to have, or none. 0 or -ENOMEM. */
int symbolizer_kernel_code_gone(struct symbolizer *n, uint64_t start, uint64_t len,
				const char *name);
/* Where the kernel's own code is, if that was read: [*ret_start, *ret_end), else 0, 0. */
void symbolizer_kernel_text(const struct symbolizer *n, uint64_t *ret_start, uint64_t *ret_end);
/* The profile was collected. -ENOMEM: all files must be asked for again. */
int symbolizer_collected(struct symbolizer *n, const struct profile_collected *c);
