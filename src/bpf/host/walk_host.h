/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's walker as a library: the same code over tables and a memory reader of the caller's.
 * One build an architecture, so that an aarch64 core walks on x86-64. Thread-safe: a walk's state
 * is the caller's, and the current one is thread-local.
 */
#pragma once

#include "bpf/walk.bpf.h"

#include <stdbool.h>

/* What the walker reads: arrays as in the BPF maps. All borrowed. */
struct walk_tables {
	const struct unwind_file *files;
	__u32 nr_files;
	const struct unwind_rule *rules;
	__u32 nr_rules;
	struct arena_segment *const *segments; /* NULL: not there */
	__u32 nr_segments;
};

/* The rule of one frame in code that is in no file: where it runs, or its return address - 1. */
struct walk_known_rule {
	__u64 pc;
	struct unwind_rule rule;
};

/* Reads all of `size` bytes of the process's memory at `addr`, or fails with a negative errno. */
struct walk_memory {
	int (*read)(void *ctx, __u64 addr, void *to, __u32 size);
	void *ctx;
	/* Reads of the thread's stack; NULL: as all other memory. */
	int (*read_stack)(void *ctx, __u64 addr, void *to, __u32 size);
};

struct walk_input {
	__u16 machine; /* EM_X86_64 or EM_AARCH64 */
	__u64 pc;
	const __u64 *regs; /* UNWIND_REGS_MAX, by DWARF number */
	__u32 valid;	   /* bit N: regs[N] is known; 0: all are */
	struct unwind_process process;
	__u32 max_frames;
	__u64 address_mask;   /* 0: 48 bits */
	bool late;	      /* see struct walk */
	bool may_ask;	      /* likewise */
	bool deep;	      /* likewise; for tests */
	__u64 thread_pointer; /* fs base, tpidr_el0; 0: not known */
	__u32 walkers_off;    /* bit N: as if the kernel had refused the walker of runtime N */
	/* CALLER_CACHE_ENTRIES, all zero at first: what is remembered from walk to walk; NULL:
	 * nothing. */
	struct cached_rule *callers;
	/* CALLER_PLACES, likewise: with `callers` alone. */
	__u32 *places;
	/* RULE_CACHE_ENTRIES and LEAF_CACHE_ENTRIES, likewise; NULL: nothing. */
	struct cached_rule *rules, *leaves;
	/* Instead of RULE_FRAME_POINTER, of this walk alone: with nothing that is remembered. */
	const struct walk_known_rule *known;
	__u32 nr_known;
	/* What is known of functions in no file; NULL: nothing. */
	const struct anon_page *anon;
	/* The rule of an address of a file that is neither loaded nor given up, in its own address
	 * space: 0; else the walk ends there. NULL: it does. */
	int (*elsewhere)(void *ctx, __u32 file, __u64 addr, struct unwind_rule *ret);
	void *elsewhere_ctx;
};

/*
 * Walks from an interrupted frame. Returns how it ended (enum stop_reason, never STOP_NONE);
 * state->words[0 .. state->full.nr_words) are the frames, innermost first.
 */
int walk_host(const struct walk_tables *tables, const struct walk_memory *memory,
	      const struct walk_input *input, struct walk *state);

/* A kernel's code and rows, as in the BPF maps. Borrowed. */
struct walk_kernel {
	struct kernel_code code;
	const __u32 *cells;
	__u32 nr_cells;
	struct kernel_cache *cache;
	const struct kernel_mades *mades; /* NULL: there are none */
};

/*
 * Walks a stack of the kernel's (x86-64), which was interrupted there: enum kernel_walk_end.
 * state->words[0 .. state->kernel.nr) are the frames, innermost first.
 */
int walk_host_kernel(const struct walk_kernel *kernel, const struct walk_memory *memory, __u64 pc,
		     __u64 sp, __u64 fp, struct walk *state);
