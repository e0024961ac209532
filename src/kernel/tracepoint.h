/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second source of samples, beside the CPUs' clocks: what tasks do when they pass a tracepoint of
 * the kernel. For tests only, as yet.
 *
 * A source is the sampler's object once more, of which another program is loaded: as a program of
 * its own type, with walkers of that type, since a program changes to others of its type only, and
 * with scratch memory of its own, since sources interrupt each other. All else is shared: tables of
 * processes and code, known stacks, the ring, losses.
 */
#pragma once

#include "kernel/walkers.h"

struct tracepoint_source {
	struct bpf_object *object; /* NULL: not open */
	struct bpf_program *program;
	struct bpf_link *link; /* NULL: not attached */
	struct walkers walkers;
};

/*
 * Loads `program` of `object`, which was opened only and is taken over, over the maps of `sampler`,
 * the same object loaded. Nothing is sampled yet.
 */
int tracepoint_open(struct tracepoint_source *t, const struct bpf_object *sampler,
		    struct bpf_object *object, const char *program, char *const *loader);
/* `name`: of a raw tracepoint, such as sched_switch. */
int tracepoint_attach(struct tracepoint_source *t, const char *name);
void tracepoint_detach(struct tracepoint_source *t);
void tracepoint_close(struct tracepoint_source *t);
/* Kernel memory of what is the source's own. */
size_t tracepoint_bytes(const struct tracepoint_source *t);
/* How many samples the kernel did not take: see walkers_program_misses(). */
uint64_t tracepoint_misses(const struct tracepoint_source *t);
