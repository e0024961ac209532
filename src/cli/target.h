/* SPDX-License-Identifier: Apache-2.0 */
/* Is there what the user wants recorded? Asked before anything starts. All logging. */
#pragma once

#include "cli/options.h"

/* 0, or -ESRCH after a line about the first that is no live process. */
int target_check_pids(const struct pid_list *pids);
/* 0, or -ENOENT, -EACCES after a line: `name` cannot be run (by PATH, as execvp() looks it up). */
int target_check_command(const char *name);
/* 0, or -ERANGE after a line: the kernel does not sample so often. */
int target_check_frequency(uint32_t frequency_hz);
