/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's options, all of one table (cli/options.h): the command line before the environment,
 * that before a file, that before the defaults.
 *
 * "samples-per-second" is --samples-per-second or -samples-per-second, SONDE_SAMPLES_PER_SECOND,
 * and in a file a line "samples-per-second = 20", or the same without '='; '#' begins a
 * comment, in a line behind a blank. A flag's value is true or false. The table has options
 * "config" (a string) and "print-config", "help", "version", "copyright", whichever it wants: those
 * are of the command line only, but for the file, which SONDE_CONFIG may name.
 */
#pragma once

#include "cli/options.h"

enum { CONFIG_OPTIONS_MAX = OPTIONS_MAX };

/* A variable of another name than ours, which others set for programs like this one. */
struct config_variable {
	const char *variable, *option;
	const char *unit; /* that its number has, as an option's value: "ms"; NULL: none */
};

enum config_source {
	CONFIG_NOT_SET = 0,
	CONFIG_DEFAULT = 1,
	CONFIG_FILE = 2,
	CONFIG_ENVIRONMENT = 3,
	CONFIG_COMMAND_LINE = 4,
};

/* Where each option's value came from. */
struct config {
	const struct option_spec *specs;
	const char *others_prefix; /* of variables, beside ours; NULL: none */
	const char *command;
	const char *path;    /* of the file; NULL: none */
	char *file;	     /* its text, which values point into */
	const char *options; /* the caller's values */
	struct config_value {
		enum config_source source;
		const char *text;
		const char *unit;     /* behind it; NULL: none */
		unsigned line, order; /* which was said last */
		const char *variable; /* its name, of the environment; a '=' ends it */
	} values[CONFIG_OPTIONS_MAX];
	unsigned nr_set;
};

/*
 * Fills *values (`size` bytes; `config_path` is where in it the file's path goes). 0, and *ret is
 * the caller's; -EINVAL, or what reading the file failed with, after one line that says what is
 * wrong and where. Arguments are refused.
 *
 * `variables` (NULL: none) ends with an empty one. Of those that are set and not empty the last
 * counts, the option's own variable before them; a value that is wrong is left aside, with a
 * warning, as they are for other programs, too. `others_prefix` (or NULL) is another program's
 * with the same options: OTHERS_SAMPLES_PER_SECOND counts, but behind ours.
 *
 * Of an option and its `instead` the one counts that was said nearer to the user: in a place that
 * goes before, or later in the same one. The other one is as not given. Of two variables, which
 * have no order, both count.
 */
int config_read(const struct option_spec *specs, const struct config_variable *variables,
		const char *others_prefix, const char *command, int argc, char **argv, void *values,
		size_t size, const char *const *config_path, struct config *ret);
void config_fini(struct config *config);
/*
 * Logging, in the form that the configuration asks for, which is known by then: variables that are
 * close to an option's name and none, and options that are ignored, all in one line.
 */
void config_tell(const struct config *config);

struct config_label {
	char text[512];
};

/*
 * How a message calls that option: "agent.conf:3: include" or "SONDE_INCLUDE", if its value came
 * from there; else "--include". `config`: NULL if the command has none. Options with other names of
 * the same value count, too.
 */
struct config_label config_label(const struct config *config, const char *option);
/* The values and where they came from, in the form of a file. */
void config_print(const struct config *config, FILE *out);
