// SPDX-License-Identifier: Apache-2.0
/* `sonde doctor`: the table of requirements.h, with what this machine answers; and which versions
 * of runtimes are known, or processes have. */
#include "cli/command.h"

#include "kernel/kernel_rows.h"
#include "kernel/requirements.h"
#include "kernel/walkers.h"
#include "cli/target.h"
#include "cli/term.h"
#include "process/proc_stat.h"
#include "process/process.h"
#include "profile/profile.h"
#include "unwinder/runtimes.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct doctor_options {
	struct pid_list pids;
	bool help;
};

static const struct option_spec doctor_specs[] = {
	{ .letter = 'p',
	  .name = "pid",
	  .arg = "PID,...",
	  .help = "tell which runtimes these processes have, and whether their frames are shown",
	  .type = OPTION_PIDS,
	  .offset = offsetof(struct doctor_options, pids) },
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

/* --- runtimes --------------------------------------------------------------------------------- */

static void print_known(void)
{
	puts("\nRuntimes whose frames are shown (of others native frames are), by version:");
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		char text[256];

		if (!runtimes[id] || !runtimes[id]->probe)
			continue;
		if (!runtimes[id]->knows) {
			printf("     %-24s docs/%s.md says which\n", runtimes[id]->language,
			       runtimes[id]->name);
			continue;
		}
		runtime_known_versions(runtimes[id], text, sizeof(text));
		printf("     %-24s %s %s\n", runtimes[id]->language, runtimes[id]->product, text);
	}
	puts("'sonde doctor -p PID' tells which ones a process has.");
}

struct look {
	bool colours;
	uint32_t nr, nr_unsupported;
};

/* `why`: it is not as it should be, and why; NULL: it is. */
static void print_runtime(struct look *look, const struct runtime_ops *ops,
			  const struct runtime_about *about, const char *path, const char *why)
{
	const char *colour = term_start(look->colours, why ? TERM_YELLOW : TERM_GREEN);
	char text[PATH_MAX];

	profile_clean_text(path, strlen(path), text, sizeof(text));
	printf("%s%-4s%s %-24s %s, %s\n", colour, why ? "no" : "yes", term_reset(look->colours),
	       ops->language, *about->version ? about->version : "of no known version", text);
	if (why)
		printf("%-29s %s\n", "", why);
	look->nr++;
	look->nr_unsupported += why != NULL;
}

static void print_unsupported(void *ctx, const struct mapped_file *file,
			      const struct runtime_ops *ops, const struct runtime_about *about)
{
	char why[384];

	runtime_about_unsupported(ops, about, why, sizeof(why));
	print_runtime(ctx, ops, about, file->path, why);
}

static void print_instance(struct look *look, const struct runtime_instance *i)
{
	const char *why = NULL;

	if (i->dso->unknown || i->error == -ENOTSUP)
		return; /* print_unsupported() */
	if (i->error == -EAGAIN)
		why = "it has not begun yet";
	else if (i->error == -EBADMSG)
		why = "what the process has of it makes no sense: only native frames are shown";
	else if (i->error)
		why = strerror(-i->error);
	print_runtime(look, i->dso->ops, &i->about, i->held->path, why);
}

/* Logging. */
static int print_process(int32_t pid, struct process_table *table, struct look *look)
{
	struct runtimes r;
	struct process_runtimes *list = NULL;
	struct process *proc;
	uint32_t before = look->nr;
	struct proc_stat stat;
	char path[PATH_MAX];
	int error;

	if (!proc_stat_read(pid, &stat) && proc_stat_is_kernel_thread(&stat)) {
		printf("process %d:\n     a thread of the kernel: its frames are the kernel's\n",
		       pid);
		return 0;
	}
	error = process_get(table, pid, &proc);
	if (error == -EACCES || error == -EPERM)
		return target_tell_forbidden(pid), error;
	if (error)
		return log_err(error, "cannot read what process %d maps", pid);
	printf("process %d:\n", pid);
	for (size_t i = 0; i < proc->mappings.nr; i++) {
		const struct mapping *m = &proc->mappings.items[i];
		struct mapped_file *file = table->files.items[m->file];

		if (m->file == MAPPING_ANON || process_open_file(table, proc, m, file) >= 0)
			continue;
		profile_clean_text(file->path, strlen(file->path), path, sizeof(path));
		printf("     cannot read %s: %s\n", path, strerror(-file->error));
	}
	runtimes_init(&r, table);
	r.tell = print_unsupported;
	r.tell_ctx = look;
	runtimes_update(&r, proc, &list, now_ns());
	for (uint32_t i = 0; list && i < list->nr; i++)
		print_instance(look, list->items[i]);
	if (look->nr == before)
		puts("     no runtime: its frames are native ones");
	process_runtimes_free(list);
	runtimes_fini(&r);
	return 0;
}

static int print_processes(struct pid_list *pids, bool colours)
{
	struct look look = { .colours = colours };
	int failed = 0;

	if (target_check_pids(pids))
		return EXIT_ERROR;
	for (size_t i = 0; i < pids->nr; i++) {
		struct process_table table;
		int r = process_table_init(&table);

		if (r)
			return log_err(r, "cannot begin"), EXIT_ERROR;
		failed |= print_process(pids->pids[i], &table, &look);
		process_table_fini(&table);
	}
	return failed || look.nr_unsupported ? EXIT_ERROR : EXIT_OK;
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
		log_error("'%s': doctor takes no arguments, processes are named by -p PID; see "
			  "'sonde help doctor'",
			  argv[first]);
		return EXIT_USAGE;
	}
	if (options.pids.nr)
		return print_processes(&options.pids, colours);
	for (size_t i = 0; i < nr_requirements; i++) {
		struct requirement_result result = { 0 };

		requirements[i].probe(&result);
		print_requirement(&requirements[i], &result, colours);
		if (!result.ok && requirements[i].level == REQUIREMENT_NEEDED)
			nr_missing++;
	}
	if (nr_missing) {
		print_known();
		printf("\n%d of what 'sonde record' needs %s missing.\n", nr_missing,
		       nr_missing == 1 ? "is" : "are");
		return EXIT_ERROR;
	}
	print_programs(colours);
	print_kernel_rows(colours);
	print_known();
	puts("\n'sonde record' can run here.");
	return EXIT_OK;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "tell whether this machine can be profiled, and what to do if not",
	.usage = "[-p PID,...]",
	.description =
		"Tries each thing that 'sonde record' needs and prints yes or no, what it "
		"found, and how\n"
		"to put right what is missing. Exits with 0 if everything needed is there, "
		"else 1.\n"
		"Run it as the user who is to record: as root, usually.\n"
		"Then it lists the languages whose frames are shown, by version. With -p it "
		"tells that alone, of\n"
		"what these processes have: which versions, in which files; and exits with 1 "
		"if one is not supported.\n",
	.options = doctor_specs,
	.run = doctor_run,
};
