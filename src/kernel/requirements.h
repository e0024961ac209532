/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording needs of this machine, as a table of probes: `sonde doctor` prints it, `sonde
 * record` stops at the first needed one that is missing. Each probe tries the very thing (a map, a
 * program, an event); none asks for the kernel's version. Everything that a probe opens is closed.
 *
 * To add one: a probe function and a line in the table; record.md has a list for people.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum requirement_level {
	REQUIREMENT_NEEDED, /* no recording without it */
	REQUIREMENT_USEFUL, /* a recording lacks something without it: `fix` says what */
	REQUIREMENT_INFO,   /* nothing depends on it, but it explains what one sees */
};

struct requirement_result {
	bool ok;
	char detail[160]; /* what was found */
	char fix[240];	  /* what to do; only meaningful if not ok */
};

struct requirement {
	const char *name;
	enum requirement_level level;
	/* Non-logging. Fills *ret, all of it. */
	void (*probe)(struct requirement_result *ret);
};

extern const struct requirement requirements[];
extern const size_t nr_requirements;

/* The first needed requirement that is not met, and its result; NULL if all are. */
const struct requirement *requirements_first_missing(struct requirement_result *ret);
/* The highest sampling frequency that the kernel takes now; 0 if it does not say. */
unsigned int requirements_max_frequency_hz(void);
