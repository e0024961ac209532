// SPDX-License-Identifier: Apache-2.0
#include "agent/probability.h"

#include "util/clock.h"

#include <sys/random.h>

void probability_init(struct probability *p, const struct probability_options *options)
{
	*p = (struct probability){ .options = *options, .state = options->seed };
}

/* Of a seed: what comes out for it is the same everywhere. */
static uint32_t next_of_seed(struct probability *p)
{
	p->state = p->state * 1664525 + 1013904223;
	return p->state >> 16;
}

uint32_t probability_draw(struct probability *p)
{
	uint32_t random;

	if (p->options.seed)
		return next_of_seed(p) % PROBABILITY_ALWAYS;
	/* All remainders are equally likely below the largest multiple, hardly less so above. Early
	 * after boot there may be no random numbers yet. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)(now_ns() / 1000);
	return random % PROBABILITY_ALWAYS;
}
