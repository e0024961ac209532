/* SPDX-License-Identifier: Apache-2.0 */
/* A factor around 1, give or take `part` at random, so that many hosts do not act together. */
#pragma once

#include <stdint.h>
#include <sys/random.h>

static inline double jitter(double part)
{
	uint32_t random;

	/* Early after boot there may be no random numbers yet. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return 1;
	return 1 + part * (2 * ((double)random / UINT32_MAX) - 1);
}
