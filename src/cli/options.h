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
	OPTION_FLAG,	 /* bool */
	OPTION_NUMBER,	 /* uint32_t, from min to max */
	OPTION_SECONDS,	 /* double, from 1 ms to max seconds: "2.5", "200ms", "1m30s" */
	OPTION_FRACTION, /* double, from 0 to 1 */
	OPTION_SIZE,	 /* uint64_t bytes, "64M", from min to max */
	OPTION_STRING,	 /* const char *, not empty; points into argv */
	OPTION_CHOICE,	 /* bool: the second of two words, `arg` is "one|other" */
	OPTION_LIST,	 /* struct text_list; several times if wished, and "one;another" */
	OPTION_PIDS,	 /* struct pid_list; "1,2,3", several times if wished, each PID kept once */
	OPTION_IGNORED,	 /* what another program has, and Sonde has no need of */
};

enum { PIDS_MAX = 256, OPTIONS_MAX = 128 /* in a table */ };

struct pid_list {
	int32_t pids[PIDS_MAX];
	size_t nr;
};

enum { TEXT_LIST_MAX = 64 };

/* In the order they were given; texts point into argv, and do not end with 0. */
struct text_list {
	struct list_text {
		const char *text;
		size_t len;
	} items[TEXT_LIST_MAX];
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
	const char *alone;    /* its value if nothing stands behind it; NULL: something must */
	const char *instead;  /* the option that says the same thing in another way; NULL: none */
	bool or_none;	      /* a time may be 0, too; a string or list empty, as if not given */
	bool hidden;	      /* for tests: works, but is not in the help */
	bool secret;	      /* nothing prints its value */
	bool endpoint;	      /* nothing prints a value that may have a secret in it */
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
/* What options_parse_told() tells of an option that was given; `text` is NULL for a flag. */
typedef void option_told_fn(void *ctx, const struct option_spec *spec, const char *text);
/*
 * options_parse() without defaults, and as other daemons have it: -name is as good as --name, and
 * --flag=false takes a flag back. `told` may be NULL.
 */
int options_parse_told(const struct option_spec *specs, const char *command, int argc, char **argv,
		       void *values, option_told_fn *told, void *ctx, int *ret_first);
/* The table's defaults. */
int options_set_defaults(const struct option_spec *specs, const char *command, void *values);
/*
 * One value that was given elsewhere, as `what` (which messages begin with); a flag's is true or
 * false, a list's is in place of what was there. Logging. `text` is kept.
 */
int option_set(const struct option_spec *spec, const char *command, const char *what,
	       const char *text, void *values);
/* As option_set(), of a value that may be left aside: what is wrong with it is a warning. */
int option_try(const struct option_spec *spec, const char *what, const char *text, void *values);
/* "0.25", "1e-3": from 0 to 1, or -EINVAL. */
int option_fraction(const char *text, double *ret);
/* NULL: there is none of that name. */
const struct option_spec *option_find(const struct option_spec *specs, const char *name);
/* ", did you mean 'PREFIXname'?", or "" if nothing is close. */
const char *option_suggestion(const struct option_spec *specs, const char *name, const char *prefix,
			      char *buf, size_t size);
/* The help text of all options that are not hidden, two columns. */
void options_print(const struct option_spec *specs, FILE *out);
/* "-F, --frequency HZ" */
const char *option_label(const struct option_spec *spec, char *buf, size_t size);
