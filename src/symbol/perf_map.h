/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /tmp/perf-PID.map: names of code that a JIT made. "START SIZE name" a line, hexadecimal, with or
 * without 0x; later lines win over earlier ones that they overlap.
 *
 * Such a file is the profiled process's, as long as it likes, and only some of its code was ever
 * sampled: so it is never held in memory, but searched for given addresses, a piece at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_search;

enum {
	PERF_MAP_SIZE_MAX = 256 << 20, /* of a longer map only its end is looked at */
	PERF_MAP_NAME_MAX = 1024,      /* a longer name is cut */
};

/* What keeps maps from being waited for whose file system has a server that does not answer. */
struct perf_map_guard {
	bool cached; /* the way to it may lead there: only what the kernel has in its memory */
	/* Of what an O_PATH descriptor found: may it be opened and read? */
	bool (*may_open)(const struct perf_map_guard *guard, int pid, int path_fd);
};

/*
 * Opens the map of process `pid` out of its own mount namespace, under the name that its own PID
 * namespace gives it; only a regular file of the process's own user (or root) is believed.
 * -ENOENT if it has none, -EAGAIN if it may not be opened.
 */
int perf_map_open(int pid, const struct perf_map_guard *guard, int *ret_fd);
/* Of a process that is gone, whose number may be another's now: root's file or ours. */
int perf_map_open_gone(int pid, const struct perf_map_guard *guard, int *ret_fd);

/* The process's user. 0, or -ESRCH if it is gone. */
int perf_map_user(int pid, uint32_t *ret);

/* Takes `fd` over in any case; the addresses are copied. 0 or negative errno. */
int perf_search_new(int fd, const uint64_t *addresses, size_t nr, struct perf_search **ret);
void perf_search_free(struct perf_search *s);
static inline void perf_search_free_p(struct perf_search **s)
{
	perf_search_free(*s);
}
/*
 * Goes on for about `size` bytes, from the end of the file to its begin. 1: there is more to look
 * at; 0: all addresses have their names, or there is no more. Bad lines are passed over.
 */
int perf_search_run(struct perf_search *s, size_t size);
/* The name of address number `i` of those asked for: 0, or -ENOENT. */
int perf_search_name(const struct perf_search *s, size_t i, char ret[static PERF_MAP_NAME_MAX + 1]);
