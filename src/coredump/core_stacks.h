/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads and stacks of a core file: `sonde core`. The walker, the unwind tables and the names
 * are the recorder's; registers and memory come from the core, code from the core and from files.
 */
#pragma once

#include "coredump/core_files.h"
#include "symbolize/decoder.h"
#include "unwinder/unwinder.h"

struct core_options {
	const char *path;
	struct core_search search;
	uint32_t max_frames;
	struct symbolizer_options symbolizer;
};

struct core_thread {
	int32_t tid;
	const char *name;      /* "" if not known: cores have the main thread's only */
	uint32_t virtual_name; /* as in struct live_stack */
	uint32_t stack;	       /* index into the profile's */
	const char *problem;   /* what is doubtful about the stack; NULL: nothing; static */
	bool overflowed;       /* its stack did, and it died of that */
};

struct core_stacks {
	struct elf_file *elf;
	struct elf_core *core;
	struct core_files files;
	VEC(struct core_thread) threads; /* the one that died of the signal is the first */
	struct profile profile;
	/* private */
	struct unwinder unwinder;
	struct decoder decoder;
	struct process *proc;
	uint32_t unknown; /* the file of code whose own is missing */
	bool has_unknown;
	uint64_t zeros_read; /* bytes that were looked at for stacks of zeros */
};

/*
 * Reads the core, finds its files, walks its threads, and names their frames. Logging: says what
 * is wrong with the core in one line. 0 or negative errno.
 */
int core_stacks_read(const struct core_options *options, struct core_stacks **ret);
void core_stacks_free(struct core_stacks *s);
static inline void core_stacks_free_p(struct core_stacks **s)
{
	core_stacks_free(*s);
}
