/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second source of samples, beside the CPUs' clocks: tasks that pass a tracepoint of the kernel,
 * or a probe in a program. For tests only, as yet.
 *
 * A source is the sampler's object once more, of which another program is loaded: as a program of
 * its own type, with walkers of that type, since a program changes to others of its type only, and
 * with scratch memory of its own, since sources interrupt each other. All else is shared: tables of
 * processes and code, known stacks, the ring, losses.
 */
#pragma once

#include "kernel/walkers.h"

struct source_spec {
	const char *at; /* NULL: there is none; a raw tracepoint, "sched_switch", or a function,
			   "uprobe:FILE:FUNCTION" */
	enum sample_value value;
};

struct source {
	struct bpf_object *object; /* NULL: not open */
	const char *at;		   /* borrowed */
	struct bpf_program *program;
	struct bpf_link *link; /* NULL: not attached */
	struct walkers walkers;
};

/* What its samples are, as a profile calls that: "calls" in "count". */
const char *source_type(enum sample_value value);
const char *source_unit(enum sample_value value);
/*
 * Loads the program for `at` out of `object`, over the maps of `sampler`, the same object loaded.
 * `object` was opened only, its configuration has been set, and it is taken over. Nothing is
 * sampled yet. `whole`: the program that has all runtimes' steps, see walkers_can_be_called().
 */
int source_open(struct source *s, const char *at, bool whole, const struct bpf_object *sampler,
		struct bpf_object *object, char *const *loader);
/* -ENOENT: there is no such tracepoint, file or function. */
int source_attach(struct source *s);
void source_detach(struct source *s);
void source_close(struct source *s);
/* Kernel memory of what is the source's own. */
size_t source_bytes(const struct source *s);
/* How many samples the kernel did not take: see walkers_program_misses(). */
uint64_t source_misses(const struct source *s);
