/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probabilistic profiling: of each interval it is drawn whether this machine is sampled in it, so
 * that a fleet is profiled at a part of the cost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PROBABILITY_ALWAYS = 100 };

struct probability_options {
	uint32_t threshold; /* a number below it means yes, of 0 to 99 */
	double interval_s;
	uint32_t seed; /* tests: of the numbers; 0: they are random */
};

struct probability {
	struct probability_options options;
	uint32_t state;
};

void probability_init(struct probability *p, const struct probability_options *options);
/* The next interval's number. */
uint32_t probability_draw(struct probability *p);
static inline bool probability_chooses(const struct probability *p, uint32_t number)
{
	return number < p->options.threshold;
}
