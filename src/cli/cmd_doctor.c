// SPDX-License-Identifier: Apache-2.0
/* `sonde doctor`: the table of requirements.h, with what this machine answers. */
#include "cli/command.h"

#include "agent/requirements.h"
#include "cli/term.h"
#include "util/log.h"

#include <stdio.h>

struct doctor_options {
	bool help;
};

static const struct option_spec doctor_specs[] = {
	{ .letter = 'h',
	  .name = "help",
	  .help = "print this",
	  .offset = offsetof(struct doctor_options, help) },
	OPTIONS_END,
};

static const struct {
	const char *missing; /* how bad it is */
	enum term_colour colour;
} levels[] = {
	[REQUIREMENT_NEEDED] = { "needed", TERM_RED },
	[REQUIREMENT_USEFUL] = { "useful", TERM_YELLOW },
	[REQUIREMENT_INFO] = { "not needed", TERM_DIM },
};

static void print_requirement(const struct requirement *q, const struct requirement_result *result,
			      bool colours)
{
	enum term_colour colour = result->ok ? TERM_GREEN : levels[q->level].colour;

	printf("%s%-4s%s %-24s %s\n", term_start(colours, colour), result->ok ? "yes" : "no",
	       term_reset(colours), q->name, result->detail);
	if (!result->ok)
		printf("%-4s   %-22s -> %s\n", "", levels[q->level].missing, result->fix);
}

static int doctor_run(int argc, char **argv)
{
	struct doctor_options options = { 0 };
	bool colours = term_colours(stdout);
	int first, nr_missing = 0;

	if (options_parse(doctor_specs, "doctor", argc, argv, &options, &first) < 0)
		return EXIT_USAGE;
	if (options.help) {
		help_print_command(&command_doctor, stdout);
		return EXIT_OK;
	}
	if (first != argc) {
		log_error("'%s': doctor takes no arguments; see 'sonde help doctor'", argv[first]);
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < nr_requirements; i++) {
		struct requirement_result result = { 0 };

		requirements[i].probe(&result);
		print_requirement(&requirements[i], &result, colours);
		if (!result.ok && requirements[i].level == REQUIREMENT_NEEDED)
			nr_missing++;
	}
	if (nr_missing) {
		printf("\n%d of what 'sonde record' needs %s missing.\n", nr_missing,
		       nr_missing == 1 ? "is" : "are");
		return EXIT_ERROR;
	}
	puts("\n'sonde record' can run here.");
	return EXIT_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "tell whether this machine can be profiled, and what to do if not",
	.usage = "",
	.description = "Tries each thing that 'sonde record' needs and prints yes or no, what it "
		       "found, and how\n"
		       "to put right what is missing. Exits with 0 if everything needed is there, "
		       "else 1.\n"
		       "Run it as the user who is to record: as root, usually.\n",
	.options = doctor_specs,
	.run = doctor_run,
};
