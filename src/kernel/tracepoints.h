/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's tracepoints, as tracefs lists them: wherever that is mounted, or by a mount of our
 * own that nobody sees and that ends with us.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The folder "events": a descriptor, or -errno if there is no tracefs to be had. */
int tracepoints_open(void);
/* perf's number of one. -ENOENT: there is none. */
int tracepoints_id(int events, const char *group, const char *name, uint64_t *ret);
/*
 * Calls `each` for all groups (`group` NULL), or all names of a group. 0 or -errno (-ENOENT: there
 * is no such group).
 */
int tracepoints_each(int events, const char *group, void (*each)(void *ctx, const char *name),
		     void *ctx);
/* Can a program hang on it as on a raw tracepoint? Those of single system calls are none. */
bool tracepoint_is_raw(const char *name);
