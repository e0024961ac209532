// SPDX-License-Identifier: Apache-2.0
#include "record/cut_clock.h"

/* Less is what two looks at two clocks are wrong by. Nobody sends a machine to sleep for so short.
 */
#define LEAST_SLEEP_NS 10000000

void cut_clock_begin(struct cut_clock *c, uint64_t monotonic_ns, uint64_t asleep_ns)
{
	*c = (struct cut_clock){ .begin_ns = monotonic_ns, .asleep_ns = asleep_ns };
}

void cut_clock_look(struct cut_clock *c, uint64_t monotonic_ns, uint64_t asleep_ns)
{
	if (asleep_ns < c->asleep_ns + LEAST_SLEEP_NS)
		return;
	c->last_slept_ns = asleep_ns - c->asleep_ns;
	c->slept_ns += c->last_slept_ns;
	c->woke_ns = monotonic_ns;
	c->asleep_ns = asleep_ns;
}

void cut_clock_begin_earlier(struct cut_clock *c, uint64_t monotonic_ns)
{
	if (monotonic_ns < c->begin_ns)
		c->begin_ns = monotonic_ns;
}

uint64_t cut_clock_since(const struct cut_clock *c, uint64_t monotonic_ns)
{
	uint64_t slept = c->slept_ns;

	if (monotonic_ns < c->begin_ns)
		return 0;
	/* Samples come in the order of time: one from before an earlier sleep was seen long ago. */
	if (monotonic_ns < c->woke_ns)
		slept -= c->last_slept_ns;
	return monotonic_ns - c->begin_ns + slept;
}
