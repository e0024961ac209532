/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further sources of samples, beside the CPUs' clocks: sleeps of threads (docs/off-cpu.md), tasks
 * that come to a tracepoint or a probe, events of perf (docs/probes.md).
 *
 * A source is the sampler's object once more, of which another program is loaded: as a program of
 * its own type, with walkers of that type, since a program changes to others of its type only, and
 * with scratch memory of its own, since sources interrupt each other. Sources of one family do not,
 * or hardly ever (then a sample is lost and counted, NO_SCRATCH): they share walkers and scratch
 * memory. All else is shared by all: tables of processes and code, known stacks, the ring, losses.
 */
#pragma once

#include "kernel/off_cpu.h"
#include "kernel/sampling.h"
#include "kernel/walkers.h"
#include "util/cpus.h"

enum source_kind {
	SOURCE_NONE,
	SOURCE_SLEEPS,
	SOURCE_WAKERS, /* of these threads: no samples of its own */
	SOURCE_RAW_TRACEPOINT,
	SOURCE_TRACEPOINT, /* of a system call: by way of perf */
	SOURCE_UPROBE,
	SOURCE_URETPROBE,
	SOURCE_USDT,
	SOURCE_KPROBE,
	SOURCE_KRETPROBE,
	SOURCE_EVENT,
	SOURCE_KINDS_,
};

/* A place in a file where a probe is. */
struct source_site {
	uint64_t offset;    /* in the file */
	uint64_t semaphore; /* there, too: counts who looks; 0: none */
};

struct source_spec {
	enum source_kind kind;
	enum sample_value value;
	const char *at;			 /* as messages call it */
	const char *type;		 /* of its samples, as a profile calls that */
	const char *file;		 /* of uprobes and USDT */
	const char *name;		 /* a function, or a raw tracepoint */
	uint64_t tracepoint_id;		 /* of SOURCE_TRACEPOINT */
	const struct source_site *sites; /* of USDT */
	size_t nr_sites;
	struct argument_filter filter; /* of uprobes and USDT */
	uint32_t rate;		       /* so many samples a second, about; 0: all */
	struct sampling_event event;   /* of SOURCE_EVENT */
	struct off_cpu_options off_cpu;
};

struct source {
	struct bpf_object *object; /* NULL: not open */
	struct source_spec spec;   /* what it points to is borrowed */
	struct bpf_program *program;
	VEC(struct bpf_link *) links; /* none: not attached */
	struct sampling sampling;     /* of SOURCE_EVENT */
	struct cpu_set *cpus;	      /* its; NULL: not attached */
	struct walkers walkers;	      /* of the first of a family */
	bool has_scratch;	      /* it is that */
	struct off_cpu off_cpu;	      /* of SOURCE_SLEEPS */
};

/* The unit of its samples: "count". */
const char *source_unit(enum sample_value value);
/* How many samples are taken in each window of that length for `rate` a second: a fast one's
 * windows are some tenth of a second, so that they are not all at each second's begin. */
void source_rate_window(uint32_t rate, uint64_t *samples_ret, uint64_t *ns_ret);
/* Do both share walkers and scratch memory? */
bool source_same_family(enum source_kind a, enum source_kind b);
/*
 * Loads the program for `spec` out of `object`, over the maps of `sampler`, the same object loaded,
 * and of `first`, if there is already a source of its family. `object` was opened only, its
 * configuration has been set, and it is taken over. Nothing is sampled yet. `whole`: the program
 * that has all runtimes' steps, see walkers_can_be_called().
 */
int source_open(struct source *s, const struct source_spec *spec, bool whole,
		const struct bpf_object *sampler, const struct source *first,
		struct bpf_object *object, char *const *loader);
/* Makes room in what is the source's own; as often as the ring of samples is emptied. */
void source_drain(struct source *s);
/* Nanoseconds that its programs ran; 0: the kernel does not count. */
uint64_t source_run_ns(const struct source *s);
/* -ENOENT: there is no such tracepoint, file or function. `cpus`: for SOURCE_EVENT. */
int source_attach(struct source *s, struct cpu_set *cpus);
void source_detach(struct source *s);
void source_close(struct source *s);
/* Kernel memory of what is the source's own. */
size_t source_bytes(const struct source *s);
/* How many samples the kernel did not take: see walkers_program_misses(). */
uint64_t source_misses(const struct source *s);
