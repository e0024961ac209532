// SPDX-License-Identifier: Apache-2.0
#include "cli/off_cpu.h"

#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char weighted[] = "weighted=";

/* "250us", "1ms"; nanoseconds without a unit. -EINVAL: none, or more than `max`. */
static int parse_time(const char *text, uint64_t max, uint64_t *ret)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "", 1 }, { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	size_t len = strspn(text, "0123456789.");
	double number;
	char *end;

	number = strtod(text, &end);
	if (!len || end != text + len)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		number *= units[i].ns;
		if (number > (double)max)
			return -EINVAL;
		*ret = (uint64_t)number;
		return 0;
	}
	return -EINVAL;
}

static int parse_mode(const char *mode, struct off_cpu_options *ret)
{
	int r;

	if (strncmp(mode, weighted, strlen(weighted)))
		return option_fraction(mode, &ret->chance);
	ret->chance = 1;
	r = parse_time(mode + strlen(weighted), OFF_CPU_WEIGHT_MAX_NS, &ret->weight_ns);
	return !r && !ret->weight_ns ? -EINVAL : r;
}

int off_cpu_source(const struct off_cpu_wanted *wanted, const struct config *config,
		   const char *command, struct source_spec *ret)
{
	const char *mode = wanted->mode;
	struct off_cpu_options o = { .chance = wanted->threshold,
				     .waker = wanted->waker,
				     .kick = wanted->kick };

	*ret = (struct source_spec){ .kind = SOURCE_NONE };
	if (mode && wanted->threshold) {
		log_error("give either %s or %s, not both", config_label(config, "off-cpu").text,
			  config_label(config, "off-cpu-threshold").text);
		return -EINVAL;
	}
	if (mode && parse_mode(mode, &o)) {
		log_error(
			"%s takes a number from 0 to 1, or weighted=TIME with a TIME of at most a "
			"second (1ms, 250us), not '%s'; see 'sonde help %s'",
			config_label(config, "off-cpu").text, mode, command);
		return -EINVAL;
	}
	if (wanted->least && parse_time(wanted->least, UINT32_MAX * 1000000000ull, &o.least_ns)) {
		log_error("%s takes a time (10us, 1ms), not '%s'; see 'sonde help %s'",
			  config_label(config, "off-cpu-min").text, wanted->least, command);
		return -EINVAL;
	}
	if (!o.chance) {
		if (!wanted->least && !wanted->waker)
			return 0;
		log_error("--off-cpu-%s is of --off-cpu, which was not given; see 'sonde help %s'",
			  wanted->least ? "min" : "waker", command);
		return -EINVAL;
	}
	*ret = (struct source_spec){ .kind = SOURCE_SLEEPS,
				     .value = VALUE_SLEPT_NS,
				     .at = "sleeps",
				     .type = "off_cpu",
				     .off_cpu = o };
	return 0;
}
