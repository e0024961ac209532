/* SPDX-License-Identifier: Apache-2.0 */
/* The file that execvp() would run. */
#pragma once

#include <limits.h>

/*
 * Writes the file's path: `name` itself if it has a '/', else the first that can be run in the
 * folders of $PATH. 0; -EACCES: what there is cannot be run; -ENOENT; another error of a path.
 */
int find_executable(const char *name, char ret[static PATH_MAX]);
