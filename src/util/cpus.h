/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs are online, and which came and went since the last look. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPUS_MAX = 8192 };

struct cpu_set;

/* Takes in a CPU that came (-ENODEV: it is not there, for all that the list says), or that went. */
typedef int cpu_change(void *ctx, uint32_t cpu, bool online);

int cpu_set_open(struct cpu_set **ret);
void cpu_set_free(struct cpu_set *set);
/*
 * From now on `change` is called for each CPU that is online and was not, or the other way round:
 * for all that are there now, and in cpu_set_sync(). A CPU is told to listeners in the order in
 * which they came; one that answers with an error is asked again at each cpu_set_sync() as long as
 * the list has the CPU, and those behind it then (the kernel lists a CPU before perf knows of it).
 * Returns as cpu_set_sync() does.
 */
int cpu_set_listen(struct cpu_set *set, cpu_change *change, void *ctx);
/* Calls the listener no more. */
void cpu_set_leave(struct cpu_set *set, void *ctx);
/* Tells what changed. The first error that is not -ENODEV; all CPUs were looked at nevertheless. */
int cpu_set_sync(struct cpu_set *set);
/* How many there are, by the list that was read last. */
uint32_t cpu_set_size(const struct cpu_set *set);
/* For how long a CPU has been on the list that a listener has not got; 0: there is none. */
uint64_t cpu_set_missing_ns(const struct cpu_set *set, uint32_t *ret_cpu);
/*
 * For the first listener, of a CPU that is online: a perf event on it, with the read_format
 * PERF_FORMAT_TOTAL_TIME_ENABLED. It stops for good when its CPU goes, even if that is back before
 * anybody looked (which is what suspending a machine does); cpu_set_sync() finds that out within
 * two seconds, or the second time that it is called, and reports both changes. The fd stays the
 * caller's; it is read until its CPU is reported gone, or -1 is given in its place.
 */
int cpu_set_watch(struct cpu_set *set, uint32_t cpu, int fd);
/* Parses "0-3,5" into bits; -EINVAL. */
int cpu_list_parse(const char *text, uint64_t bits[CPUS_MAX / 64]);
