/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that walks of processes need: the table of processes, the tables that the walkers read, and
 * the publisher (with its loader and runtimes), who fills these from that. A recording has one that
 * the kernel's walker reads too; a snapshot and a core have one for the host's alone.
 */
#pragma once

#include "unwinder/publisher.h"

/* Zeroes are the defaults, except for arena_bytes. */
struct unwinder_options {
	struct bpf_sampler *sampler; /* whose maps the tables are; NULL: memory of our own */
	size_t arena_bytes;	     /* for mappings and unwind tables, at most */
	size_t fixed_bytes; /* budget_share()'s, for advice; 0: there is no limit to raise */
	struct loader_wait wait;
	void (*drain)(void *ctx);	/* struct publisher */
	int (*spill_folder)(void *ctx); /* likewise */
	void *drain_ctx;		/* of both */
	char *const *table_builder;	/* struct loader */
	char *const *file_copier;	/* process_table_set_copier() */
	uint64_t copy_bytes;
	/* Of processes of a core: its machine, how to read its memory. */
	uint16_t machine;
	struct runtime_memory memory;
};

struct unwinder {
	struct process_table processes;
	struct unwind_store store;
	struct publisher publisher;
};

/* 0 or negative errno. It must not be moved. A zeroed one and one that failed may be finished. */
int unwinder_init(struct unwinder *u, const struct unwinder_options *options);
void unwinder_fini(struct unwinder *u);
