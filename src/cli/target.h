/* SPDX-License-Identifier: Apache-2.0 */
/* Is there what the user wants recorded? Asked before anything starts. All logging. */
#pragma once

#include "cli/options.h"

/*
 * Of --memory-limit. 14 MiB are there with nothing sampled; a quarter is for the profile, a third
 * for the tables.
 */
#define MEMORY_LIMIT_MIN (UINT64_C(32) << 20)
#define MEMORY_LIMIT_MAX (UINT64_C(64) << 30)

/*
 * Takes those out that have ended, with a line about each. 0, or -ESRCH after one line: none is
 * left, or one of them is a thread.
 */
int target_check_pids(struct pid_list *pids);
/* Says that a process may not be read, and who could. */
void target_tell_forbidden(int32_t pid);
/* 0, or -ENOENT, -EACCES after a line: `name` cannot be run (by PATH, as execvp() looks it up). */
int target_check_command(const char *name);
/*
 * 0, or -ENOTSUP after a line about the first thing that this machine lacks: "cannot WHAT: ...".
 */
int target_check_requirements(const char *what);
/* 0, or -ERANGE after a line: the kernel does not sample so often. */
int target_check_frequency(uint32_t frequency_hz);
