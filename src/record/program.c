// SPDX-License-Identifier: Apache-2.0
#include "record/program.h"
#include "unwinder/runtimes.h"
#include "util/cleanup.h"
#include "util/find_executable.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_SIZE = 256, DEPTH_MAX = 4 };

static bool is_env(const char *program)
{
	return !strcmp(basename(program), "env");
}

/* Options of env's and what it sets. */
static bool is_of_env(const char *word)
{
	return *word == '-' || strchr(word, '=');
}

/* The program of a script's first line; that of env is what it is told to find. */
static bool find_interpreter(const char *path, char ret[static HEAD_SIZE])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[HEAD_SIZE] = "", *name, *save = NULL;
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);

	if (n < 3 || head[0] != '#' || head[1] != '!')
		return false;
	head[strcspn(head, "\n")] = '\0';
	name = strtok_r(head + 2, " \t", &save);
	if (name && is_env(name))
		do
			name = strtok_r(NULL, " \t", &save);
		while (name && is_of_env(name));
	return name && snprintf(ret, HEAD_SIZE, "%s", name) < HEAD_SIZE;
}

uint32_t runtimes_of_command(char *const *argv)
{
	char name[HEAD_SIZE], path[PATH_MAX];

	if (is_env(argv[0]))
		for (argv++; *argv && is_of_env(*argv);)
			argv++;
	if (!*argv)
		return 0;
	if (find_executable(argv[0], path))
		return 0;
	for (int i = 0; i < DEPTH_MAX && find_interpreter(path, name); i++)
		if (find_executable(name, path))
			return 0;
	return runtimes_of_program(path);
}
