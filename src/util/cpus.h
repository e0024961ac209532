/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online, and which came and went since the last look. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 };

struct cpu_set;

int cpu_set_open(struct cpu_set **ret);
void cpu_set_free(struct cpu_set *set);
/*
 * Calls `change` for each CPU that is online and was not at the last call (at first: all), or the
 * other way round; its error ends the call, and that CPU is tried again at the next one.
 */
int cpu_set_sync(struct cpu_set *set, int (*change)(void *ctx, uint32_t cpu, bool online),
		 void *ctx);
/*
 * For `change`, of a CPU that is online: a perf event on it, with the read_format
 * PERF_FORMAT_TOTAL_TIME_ENABLED. It stops for good when its CPU goes, even if that is back before
 * anybody looked (which is what suspending a machine does); cpu_set_sync() finds that out within
 * two seconds, and reports both changes. The fd stays the caller's; it is read until its CPU is
 * reported gone, or -1 is given in its place.
 */
int cpu_set_watch(struct cpu_set *set, uint32_t cpu, int fd);
/* Parses "0-3,5" into bits; -EINVAL. */
int cpu_list_parse(const char *text, uint64_t bits[CPUS_MAX / 64]);
