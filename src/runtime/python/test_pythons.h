/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: the Pythons of this machine, or those of SONDE_PYTHONS (paths with colons between).
 */
#pragma once

#include "test.h"
#include "util/cleanup.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void test_python_fn(const char *path, unsigned int minor);

/* Calls `test` if it is a Python 3.6 or later that runs. */
static inline unsigned int test_one_python(const char *path, test_python_fn *test)
{
	char command[PATH_MAX + 100];
	unsigned int minor;
	FILE *f;
	int r;

	snprintf(command, sizeof(command),
		 "'%s' -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null", path);
	f = popen(command, "r");
	ASSERT(f);
	r = fscanf(f, "3 %u", &minor);
	pclose(f);
	if (r != 1 || minor < 6)
		return 0;
	test(path, minor);
	return 1;
}

/* How many there were. */
static inline unsigned int test_pythons(test_python_fn *test)
{
	static const char *const patterns[] = { "/root/.pyenv/versions/3.*/bin/python3",
						"/usr/bin/python3" };
	const char *only = getenv("SONDE_PYTHONS");
	unsigned int nr = 0;

	if (only) {
		_cleanup_free_ char *copy = strdup(only);

		for (char *at = copy, *path; (path = strsep(&at, ":"));)
			nr += test_one_python(path, test);
		return nr;
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			nr += test_one_python(found.gl_pathv[k], test);
		globfree(&found);
	}
	return nr;
}
