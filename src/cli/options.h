/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options out of one table: name, argument, default, help, type, range, and where the
 * value goes. Parser, help text and manual page are made from the same lines.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
	OPTION_FLAG,	/* bool */
	OPTION_NUMBER,	/* uint32_t, from min to max */
	OPTION_SECONDS, /* double, decimals allowed, from 1 ms to max seconds */
	OPTION_SIZE,	/* uint64_t bytes, "64M", from min to max */
	OPTION_STRING,	/* const char *, not empty; points into argv */
	OPTION_CHOICE,	/* bool: the second of two words, `arg` is "one|other" */
	OPTION_PIDS,	/* struct pid_list; "1,2,3", several times if wished, each PID kept once */
};

enum { PIDS_MAX = 256 };

struct pid_list {
	int32_t pids[PIDS_MAX];
	size_t nr;
};

struct option_spec {
	char letter;	   /* 0: long only */
	const char *name;  /* without the dashes; NULL ends the table */
	const char *arg;   /* the argument's name in the help text; NULL for a flag */
	const char *value; /* default, in the form that a person would type; NULL: zero */
	const char *help;
	enum option_type type;
	size_t offset; /* of the value in the command's options struct */
	uint64_t min, max;
	const char *max_name; /* what bounds it, if that is not `max` but the machine */
	bool hidden;	      /* for tests: works, but is not in the help */
};

#define OPTIONS_END                                                                                \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/*
 * Sets the table's defaults in *values (zeroed by the caller), then what argv says. Logging. 0 and
 * the index of the first argument that is no option, or -EINVAL after one line on stderr that says
 * what is wrong. `command` is what the help is asked for by.
 */
int options_parse(const struct option_spec *specs, const char *command, int argc, char **argv,
		  void *values, int *ret_first);
/* The help text of all options that are not hidden, two columns. */
void options_print(const struct option_spec *specs, FILE *out);
/* "-F, --frequency HZ" */
const char *option_label(const struct option_spec *spec, char *buf, size_t size);
