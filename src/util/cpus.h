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
/* Parses "0-3,5" into bits; -EINVAL. */
int cpu_list_parse(const char *text, uint64_t bits[CPUS_MAX / 64]);
