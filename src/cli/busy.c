// SPDX-License-Identifier: Apache-2.0
#include "cli/busy.h"

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STAT_MAX = 16 << 20, /* thousands of CPUs and interrupts */
};

/* "cpu  USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ ...": those in USER include what guests ran, and
 * what the host took away (steal) ran nothing here. */
int busy_parse(const char *text, uint64_t *ret_ticks)
{
	static const bool counts[] = { true, true, true, false, false, true, true };
	uint64_t ticks = 0;
	char *end;

	if (strncmp(text, "cpu ", 4))
		return -EINVAL;
	text += 4;
	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		uint64_t n = strtoull(text, &end, 10);

		if (end == text)
			return -EINVAL;
		ticks += counts[i] ? n : 0;
		text = end;
	}
	*ret_ticks = ticks;
	return 0;
}

bool busy_look(struct busy_look *ret)
{
	_cleanup_free_ char *text = NULL;
	uint64_t ticks;
	size_t size;

	if (read_file_at(AT_FDCWD, "/proc/stat", STAT_MAX, &text, &size) ||
	    busy_parse(text, &ticks))
		return false;
	*ret = (struct busy_look){ now_ns(), ticks };
	return true;
}

/* Ticks and samples are whole, the time between is not: a few too many may fall into it. */
static double at_most(double cpus, long nr_cpus)
{
	return cpus > (double)nr_cpus ? (double)nr_cpus : cpus;
}

double busy_by_samples(uint64_t samples, double seconds, uint32_t hz, long nr_cpus)
{
	return seconds > 0 ? at_most((double)samples / seconds / hz, nr_cpus) : 0;
}

double busy_cpus(const struct busy_look *from, const struct busy_look *to, long nr_cpus)
{
	double busy_s, seconds;

	/* A CPU that goes takes its ticks along. */
	if (!from->at_ns || to->at_ns <= from->at_ns || to->ticks < from->ticks)
		return -1;
	busy_s = (double)(to->ticks - from->ticks) / (double)sysconf(_SC_CLK_TCK);
	seconds = (double)(to->at_ns - from->at_ns) / 1e9;
	return at_most(busy_s / seconds, nr_cpus);
}
