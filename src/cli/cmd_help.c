// SPDX-License-Identifier: Apache-2.0
/*
 * `sonde help`: the help texts and the manual page, all out of the tables of commands and options.
 */
#include "cli/command.h"

#include "util/log.h"

#include <errno.h>
#include <stdio.h>

struct help_options {
	bool help, man;
};

static const struct option_spec help_specs[] = {
	{ .name = "man",
	  .help = "print the manual page sonde(1) as roff",
	  .offset = offsetof(struct help_options, man) },
	{ .letter = 'h',
	  .name = "help",
	  .help = "print this",
	  .offset = offsetof(struct help_options, help) },
	OPTIONS_END,
};

void help_print_overview(FILE *out)
{
	fputs("usage: sonde COMMAND [OPTIONS]\n\n"
	      "A profiler for a whole Linux machine: every process, without restarting or changing "
	      "any.\n\n",
	      out);
	for (const struct command *const *c = commands; *c; c++)
		fprintf(out, "  %-10s %s\n", (*c)->name, (*c)->summary);
	fputs("\n'sonde help COMMAND' says more; 'sonde --version' which version this is.\n", out);
}

void help_print_command(const struct command *command, FILE *out)
{
	fprintf(out, "usage: sonde %s%s%s\n\n%s\n", command->name, *command->usage ? " " : "",
		command->usage, command->description);
	options_print(command->options, out);
}

/* Text as roff: '-' would become a hyphen, and a line must not begin with a control character. */
static void print_roff(const char *text, FILE *out)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (line_start && *text == '\n') {
			fputs(".PP\n", out);
			continue;
		}
		if (*text == '-')
			fputs("\\-", out);
		else if (*text == '\\')
			fputs("\\e", out);
		else
			fputc(*text, out);
		line_start = *text == '\n';
	}
}

static void print_manual_options(const struct option_spec *spec, FILE *out)
{
	char label[64];

	for (; spec->name; spec++) {
		const char *text = option_label(spec, label, sizeof(label));

		if (spec->hidden)
			continue;
		fputs(".TP\n.B ", out);
		print_roff(spec->letter ? text : text + 4, out);
		fputc('\n', out);
		print_roff(spec->help, out);
		if (spec->value)
			fprintf(out, " (default %s)", spec->value);
		fputc('\n', out);
	}
}

/* What is read and written that no option names. */
static void print_surroundings(FILE *out)
{
	fputs(".SH FILES\n"
	      ".TP\n.I /var/cache/sonde/symbols\n"
	      "Tables of the functions, inlined calls and lines of the files that were met, one "
	      "for each\nbuild, so that they are made once. Where they are for other users than "
	      "root:\n.IR ~/.cache/sonde/symbols .\n"
	      "The oldest ones go when there is too much; all of it may be removed at any time. A "
	      "folder\nthat others can write to is not used.\n"
	      ".TP\n.I /usr/lib/debug\n"
	      "Debug files are looked for here, beside each file, and in its own folder "
	      "\\fI.debug\\fR.\n"
	      ".SH ENVIRONMENT\n"
	      ".TP\n.B XDG_CACHE_HOME\n"
	      "If it is an absolute path, the tables are in its\n.I sonde/symbols\n"
	      "instead, for root too.\n"
	      ".TP\n.B NO_COLOR\n"
	      "If it is set and not empty, what is printed has no colours (it has them on a "
	      "terminal only).\n"
	      ".TP\n.B TERM\nThe terminal that\n.B sonde top\ndraws on.\n",
	      out);
}

void help_print_manual(FILE *out)
{
	fputs(".TH SONDE 1 \"\" \"sonde " SONDE_VERSION "\"\n.SH NAME\n"
	      "sonde \\- profile a whole Linux machine\n.SH SYNOPSIS\n",
	      out);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(out, ".B sonde %s\n", (*c)->name);
		print_roff((*c)->usage, out);
		fputs(*(*c)->usage ? "\n.br\n" : ".br\n", out);
	}
	fputs(".SH COMMANDS\n", out);
	for (const struct command *const *c = commands; *c; c++) {
		fprintf(out, ".SS sonde %s\n", (*c)->name);
		print_roff((*c)->description, out);
		print_manual_options((*c)->options, out);
	}
	print_surroundings(out);
	fputs(".SH EXIT STATUS\n"
	      "0 on success, 1 on an error, 2 if the command line makes no sense.\n"
	      ".B sonde record\nwith COMMAND: COMMAND's own exit status, 128 + N if signal N ended "
	      "it.\n",
	      out);
}

static int help_run(int argc, char **argv)
{
	struct help_options options = { 0 };
	const struct command *command;
	int first;

	if (options_parse(help_specs, "help", argc, argv, &options, &first) < 0)
		return EXIT_USAGE;
	if (options.man) {
		help_print_manual(stdout);
		return EXIT_OK;
	}
	if (first == argc && !options.help) {
		help_print_overview(stdout);
		return EXIT_OK;
	}
	command = options.help ? &command_help : command_find(argv[first]);
	if (!command)
		return command_unknown(argv[first]);
	help_print_command(command, stdout);
	return EXIT_OK;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a command",
	.usage = "[COMMAND]",
	.description =
		"Prints what COMMAND does and its options; without COMMAND the list of commands.\n",
	.options = help_specs,
	.run = help_run,
};
