/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `sonde`.
 *
 * To add the command "foo": write cmd_foo.c with `const struct command command_foo`, and name it in
 * the table in main.c and in meson.build. Help, the manual page and the look-up follow from it.
 */
#pragma once

#include "cli/options.h"

enum exit_code {
	EXIT_OK = 0,
	EXIT_ERROR = 1, /* said on stderr, one line, with what to do */
	EXIT_USAGE = 2, /* the command line makes no sense */
};

struct command {
	const char *name;
	const char *summary;	 /* one line for `sonde --help` */
	const char *usage;	 /* behind "sonde NAME": "[OPTIONS] [-- COMMAND]"; "" if none */
	const char *description; /* paragraphs for `sonde help NAME` and the manual page */
	const struct option_spec *options; /* ends with one without a name */
	/* argv[0] is the command's name; the result is the exit status. */
	int (*run)(int argc, char **argv);
};

/* All commands, NULL-terminated. */
extern const struct command *const commands[];
extern const struct command command_agent, command_convert, command_core, command_doctor,
	command_help, command_record, command_top, command_stack;

const struct command *command_find(const char *name);
/* Says that there is none of that name, and which one was meant; EXIT_USAGE. */
int command_unknown(const char *name);
/* `sonde --help`. */
void help_print_overview(FILE *out);
/* `sonde help NAME`. */
void help_print_command(const struct command *command, FILE *out);
/* The manual page sonde(1), roff. */
void help_print_manual(FILE *out);
