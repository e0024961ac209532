// SPDX-License-Identifier: Apache-2.0
#include "record/program.h"
#include "unwinder/runtimes.h"
#include "util/cleanup.h"
#include "util/find_executable.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 4096, DEPTH_MAX = 4 };

/* What a shell's words end with, in a script or in what stands behind -c. */
#define BETWEEN_WORDS " \t\n\"'`;|&()<>=$"

static bool is_env(const char *program)
{
	return !strcmp(basename(program), "env");
}

/* sh, bash, dash, zsh ... */
static bool is_shell(const char *program)
{
	size_t len = strlen(program);

	return len >= 2 && !strcmp(program + len - 2, "sh");
}

/* Options of env's and what it sets. */
static bool is_of_env(const char *word)
{
	return *word == '-' || strchr(word, '=');
}

static bool read_head(const char *path, char ret[static HEAD_SIZE])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, HEAD_SIZE - 1);

	ret[n < 0 ? 0 : n] = '\0';
	return n > 0;
}

/* The program of a script's first line; that of env is what it is told to find. */
static bool find_interpreter(const char *head, char ret[static HEAD_SIZE])
{
	char line[HEAD_SIZE], *name, *save = NULL;

	if (head[0] != '#' || head[1] != '!')
		return false;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(head + 2, "\n"), head + 2);
	name = strtok_r(line, " \t", &save);
	if (name && is_env(name))
		do
			name = strtok_r(NULL, " \t", &save);
		while (name && is_of_env(name));
	return name && snprintf(ret, HEAD_SIZE, "%s", name) < HEAD_SIZE;
}

/* Of all words that are names of runtimes' programs. */
static uint32_t named_in(const char *text)
{
	char words[HEAD_SIZE], *save = NULL;
	uint32_t found = 0;

	snprintf(words, sizeof(words), "%s", text);
	for (char *word = strtok_r(words, BETWEEN_WORDS, &save); word;
	     word = strtok_r(NULL, BETWEEN_WORDS, &save))
		found |= runtimes_of_name(word);
	return found;
}

/* What a program that is no runtime's may start: what its arguments name, or a script has. */
static uint32_t started_by(char *const *argv, const char *program)
{
	char head[HEAD_SIZE];
	uint32_t found = 0;

	for (char *const *arg = argv; *arg; arg++)
		found |= named_in(*arg);
	if (is_shell(program) && argv[1] && argv[1][0] != '-' && read_head(argv[1], head))
		found |= named_in(head);
	return found;
}

uint32_t runtimes_of_command(char *const *argv)
{
	char name[HEAD_SIZE], path[PATH_MAX], head[HEAD_SIZE];
	uint32_t in_scripts = 0, found;

	if (is_env(argv[0]))
		for (argv++; *argv && is_of_env(*argv);)
			argv++;
	if (!*argv)
		return 0;
	if (find_executable(argv[0], path))
		return 0;
	for (int i = 0; i < DEPTH_MAX && read_head(path, head) && find_interpreter(head, name);
	     i++) {
		in_scripts |= named_in(head);
		if (find_executable(name, path))
			return in_scripts;
	}
	found = runtimes_of_program(path);
	return found ? found : in_scripts | started_by(argv, path);
}
