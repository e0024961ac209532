/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy the machine's CPUs were from one look to the next, as the kernel counts it. Samples tell
 * less on a busy machine: some are lost, and others come after they are wanted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct busy_look {
	uint64_t at_ns; /* 0: there was none */
	uint64_t ticks; /* of all CPUs that ran something, since boot */
};

/* Of /proc/stat; false: it does not tell. */
bool busy_look(struct busy_look *ret);
/* How many of `nr_cpus` were busy between two looks; -1: not known. */
double busy_cpus(const struct busy_look *from, const struct busy_look *to, long nr_cpus);
/* By samples that were taken `hz` times a second of each. */
double busy_by_samples(uint64_t samples, double seconds, uint32_t hz, long nr_cpus);
/* The ticks out of the text of /proc/stat; -EINVAL. */
int busy_parse(const char *text, uint64_t *ret_ticks);
