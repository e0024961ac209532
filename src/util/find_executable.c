// SPDX-License-Identifier: Apache-2.0
#include "util/find_executable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of an environment without $PATH. */
#define STANDARD_PATH "/bin:/usr/bin"

/* 0 if execve() would try to run it, else its error. */
static int check(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

int find_executable(const char *name, char ret[static PATH_MAX])
{
	const char *folder = getenv("PATH");
	int result = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strchr(name, '/'))
		return snprintf(ret, PATH_MAX, "%s", name) < PATH_MAX ? check(ret) : -ENAMETOOLONG;
	for (folder = folder ? folder : STANDARD_PATH;; folder++) {
		int len = (int)strcspn(folder, ":"), r;

		/* An empty one is the current folder. */
		if (snprintf(ret, PATH_MAX, "%.*s%s%s", len, folder, len ? "/" : "./", name) <
		    PATH_MAX) {
			r = check(ret);
			if (!r)
				return 0;
			if (r == -EACCES)
				result = r;
		}
		folder += len;
		if (!*folder)
			return result;
	}
}
