/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes hits of known stacks out of the CPUs' own memory (struct cpu_hits), which is mapped here.
 * A hit's stack went through the ring before it: who reads looks at the hits, empties the ring, and
 * then takes the hits that it saw.
 */
#pragma once

#include "abi/sample.h"

#include <stddef.h>
#include <stdint.h>

/* Zeroes: none, nothing is there to be taken. */
struct hits_reader {
	struct cpu_hits *cpus;
	uint64_t *seen;	 /* of each CPU: how many there are */
	uint64_t *taken; /* of which */
	uint32_t nr_cpus;
	size_t page;
	/* The ring's, mapped for reading. */
	const uint64_t *consumer_pos, *producer_pos;
	uint64_t ring_seen;
};

/* From now on CPUs write hits. 0 or a negative errno. */
int hits_open(struct hits_reader *h, int hits_fd, uint32_t nr_cpus, int ring_fd);
void hits_close(struct hits_reader *h);
void hits_look(struct hits_reader *h);
/*
 * Calls `each` for every hit that was seen. Not if the ring was not emptied of all that was there
 * then, since somebody writes in its middle: another time. 0, or what `each` has returned.
 */
int hits_take(struct hits_reader *h, int (*each)(void *ctx, void *record, size_t size), void *ctx);
