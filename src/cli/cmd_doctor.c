// SPDX-License-Identifier: Apache-2.0
/* `sonde doctor`: the table of requirements.h, with what this machine answers. */
#include "cli/command.h"

#include "kernel/kernel_rows.h"
#include "kernel/requirements.h"
#include "kernel/walkers.h"
#include "cli/term.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>

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

/* The last line in which the verifier says something of the program, not of its own work. */
static const char *verdict_of(char *reason)
{
	const char *verdict = "";
	char *line, *save = NULL;

	for (line = strtok_r(reason, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "libbpf: ", 8) && strncmp(line, "processed ", 10) &&
		    strncmp(line, "--", 2) && strncmp(line, "verification time", 17) &&
		    strncmp(line, "stack depth", 11))
			verdict = line;
	return verdict;
}

/* Not a requirement, but what comes of it: the programs that sample and walk, each loaded. */
static void print_program(const char *what, const char *program, bool colours)
{
	const struct requirement q = { what, REQUIREMENT_USEFUL, NULL };
	struct requirement_result result = { 0 };
	struct walker_report report;

	walkers_try(program, &report);
	result.ok = !report.error;
	if (result.ok)
		snprintf(result.detail, sizeof(result.detail), "%u instructions verified, %zu kB",
			 report.verified, (size_t)report.bytes / 1024);
	else
		snprintf(result.detail, sizeof(result.detail), "%s: %.*s", strerror(-report.error),
			 (int)sizeof(result.detail) / 2, verdict_of(report.reason));
	snprintf(result.fix, sizeof(result.fix),
		 "without, its frames are missing; please report this, with 'sonde record -v'");
	print_requirement(&q, &result, colours);
}

static void print_programs(bool colours)
{
	char what[64], program[64];

	if (!walkers_can_be_called()) {
		print_program("sampler, with all walkers", "sample_cpu_whole", colours);
		return;
	}
	print_program("sampler", "sample_cpu", colours);
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		if (!walkers_name(id))
			continue;
		snprintf(what, sizeof(what), "walker of %s", walkers_name(id));
		snprintf(program, sizeof(program), WALKER_PREFIX "%s", walkers_name(id));
		print_program(what, program, colours);
	}
}

static void print_kernel_rows(bool colours)
{
	const struct requirement q = { "kernel stacks by rows", REQUIREMENT_INFO, NULL };
	struct requirement_result result = { 0 };
	struct kernel_rows_report report;

	kernel_rows_try(-1, &report);
	result.ok = !report.error;
	if (result.ok)
		snprintf(result.detail, sizeof(result.detail),
			 "%u of %u unwind entries can be followed, %zu kB",
			 report.entries - report.helper, report.entries,
			 (size_t)report.bytes / 1024);
	else
		snprintf(result.detail, sizeof(result.detail), "%s", report.reason);
	snprintf(result.fix, sizeof(result.fix),
		 "bpf_get_stack() is used: samples in the kernel cost more");
	print_requirement(&q, &result, colours);
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
	print_programs(colours);
	print_kernel_rows(colours);
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
