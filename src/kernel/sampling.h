/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampling program hangs on: a perf event on the clock of each CPU, or another one, opened
 * and closed as CPUs come and go (util/cpus.h). Part of bpf_sampler; apart so that tests need no
 * BPF.
 */
#pragma once

#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;

/* Another one than the clock: attr.type and config of perf_event_open(). */
struct sampling_event {
	uint32_t type; /* PERF_TYPE_* */
	uint64_t config;
	uint64_t period; /* a sample each so many; not 0 */
};

/* By CPU number. */
struct sampling_cpu {
	struct bpf_link *link; /* NULL: none */
	int fd;		       /* the event's, which the link owns */
	bool online;
};

struct sampling {
	struct bpf_program *program;
	uint32_t frequency_hz;
	bool idle;
	struct sampling_event event; /* period 0: the clock, at frequency_hz */
	bool paused;
	const uint64_t *only_cpus; /* bits, CPUS_MAX of them; NULL: all */
	VEC(struct sampling_cpu) cpus;
};

/* A cpu_change of a struct sampling. */
int sampling_set_cpu(void *ctx, uint32_t cpu, bool online);
/*
 * From now on at this frequency, on all CPUs, or on none and the error is returned. Each CPU's
 * event is opened before the one in its place is closed.
 */
int sampling_set_frequency(struct sampling *s, uint32_t frequency_hz);
/*
 * No samples until it is called again: events are switched off, or not opened if they come then.
 * The first error; all CPUs were told nevertheless.
 */
int sampling_pause(struct sampling *s, bool paused);
void sampling_fini(struct sampling *s);
