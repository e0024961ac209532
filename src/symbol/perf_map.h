/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /tmp/perf-PID.map: names of code that a JIT made. "START SIZE name" a line, hexadecimal, with or
 * without 0x; later lines win over earlier ones that they overlap.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct perf_map;

enum {
	/* Of a longer map only its end is read, and of more lines only the last ones. */
	PERF_MAP_SIZE_MAX = 256 << 20,
	PERF_MAP_LINES_MAX = 4 << 20,
	PERF_MAP_NAME_MAX = 4096, /* a longer one is cut */
};

/* Bad lines are passed over. 0 or -ENOMEM. */
int perf_map_parse(const char *text, size_t size, struct perf_map **ret);
/*
 * Reads the map of process `pid` out of its own mount namespace, under the name that its own PID
 * namespace gives it; only a regular file of the process's own user (or root) is believed.
 * -ENOENT if it has none.
 */
int perf_map_read(int pid, struct perf_map **ret);
void perf_map_free(struct perf_map *m);
static inline void perf_map_free_p(struct perf_map **m)
{
	perf_map_free(*m);
}
const char *perf_map_find(const struct perf_map *m, uint64_t addr);
