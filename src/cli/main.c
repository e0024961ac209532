// SPDX-License-Identifier: Apache-2.0
/*
 * sonde: the table of commands, and what belongs to none of them (--help, --version). What a
 * command does is in its cmd_<name>.c.
 */
#include "cli/command.h"

#include "kernel/walkers.h"
#include "process/file_copy.h"
#include "process/memory.h"
#include "unwinder/loader.h"
#include "cli/names.h"
#include "cli/suggest.h"
#include "util/log.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* One a line. */
/* clang-format off */
const struct command *const commands[] = {
	&command_record,
	&command_top,
	&command_stack,
	&command_core,
	&command_agent,
	&command_convert,
	&command_doctor,
	&command_help,
	NULL,
};
/* clang-format on */

const struct command *command_find(const char *name)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

int command_unknown(const char *name)
{
	const char *word = name + strspn(name, "-"), *kind = *name == '-' ? "option" : "command";
	struct suggestion s = { .word = word, .len = strlen(word) };
	bool is_option;

	for (const struct command *const *c = commands; *c; c++)
		suggest(&s, (*c)->name);
	suggest(&s, "version");
	is_option = s.best && (!strcmp(s.best, "version") ||
			       (*name == '-' && !strcmp(s.best, command_help.name)));
	if (s.best)
		log_error("unknown %s '%s'; did you mean '%s%s'? See 'sonde --help'", kind, name,
			  is_option ? "--" : "", s.best);
	else
		log_error("unknown %s '%s'; see 'sonde --help'%s", kind, name,
			  *name == '-' ? " (options of a command stand behind it)" : "");
	return EXIT_USAGE;
}

/* A word that is an option of the agent's, and of nobody else's. */
static bool is_agents_option(const char *word)
{
	const char *name = word + strspn(word, "-");
	char option[64];

	snprintf(option, sizeof(option), "%.*s", (int)strcspn(name, "="), name);
	return name != word && option_find(command_agent.options, option) &&
	       !option_find(command_record.options, option);
}

/*
 * The OpenTelemetry profiler has no commands: options alone, as its unit files have them, are the
 * agent's, if one of them can be nothing else.
 */
static bool is_agents_line(int argc, char **argv)
{
	for (int i = 1; *argv[1] == '-' && i < argc && strcmp(argv[i], "--"); i++)
		if (is_agents_option(argv[i]))
			return true;
	return false;
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/*
 * A reader of our output that goes away is an error to report (EPIPE), not a reason to die. A
 * handler and not SIG_IGN, which a recorded COMMAND would inherit.
 */
static void set_up_signals(void)
{
	struct sigaction action = { .sa_handler = ignore_signal, .sa_flags = SA_RESTART };

	sigaction(SIGPIPE, &action, NULL);
	/* An inherited SIG_IGN would take the exit status of COMMAND from us. */
	signal(SIGCHLD, SIG_DFL);
}

/*
 * What is freed goes back to the kernel at once. By default glibc raises its thresholds with the
 * sizes it sees and keeps what a big file's tables took: 43 MB instead of 21 MB after a few
 * compilers.
 */
static void set_up_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 64 << 10);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
}

/* What was printed must have arrived: --help into a full disk is an error like any other. Who has
 * read enough of it (head, a pager) needs not be told. */
static int flush_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != EPIPE)
		log_err(errno ? -errno : -EIO, "cannot write to standard output");
	return status == EXIT_OK ? EXIT_ERROR : status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;

	/* Not for people: what this very program starts to read a file, and then ends. */
	if (name && !strcmp(name, names_builder[1]))
		return symbol_store_builder_main(argc - 2, argv + 2);
	if (name && !strcmp(name, names_table_builder[1]))
		return loader_child_main(argc - 2, argv + 2);
	if (name && !strcmp(name, names_walker_loader[1]))
		return walkers_child_main(argc - 2, argv + 2);
	if (name && !strcmp(name, names_file_copier[1]))
		return file_copy_child_main(argc - 2, argv + 2);
	if (name && !strcmp(name, names_memory_reader[1]))
		return memory_child_main(argc - 2, argv + 2);
	set_up_signals();
	set_up_malloc();
	if (!name) {
		help_print_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help_print_overview(stdout);
		return flush_stdout(EXIT_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("sonde " SONDE_VERSION);
		return flush_stdout(EXIT_OK);
	}
	command = command_find(name);
	if (!command && is_agents_line(argc, argv))
		return flush_stdout(command_agent.run(argc, argv));
	if (!command)
		return command_unknown(name);
	return flush_stdout(command->run(argc - 1, argv + 1));
}
