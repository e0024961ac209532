// SPDX-License-Identifier: Apache-2.0
/*
 * /proc/PID/maps as a stream: the file of a big process has megabytes, only a window of it is held.
 */
#include "process/process_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "process/memory.h"
#include "process/proc_stat.h"
#include "util/cleanup.h"

/* A line is at most a path of PATH_MAX and some 100 bytes; longer ones are dropped. */
enum { WINDOW_SIZE = 64 * 1024 };

static const char *last_newline(const char *text, size_t size)
{
	return memrchr(text, '\n', size);
}

static int stream(struct process_maps *maps, char *window,
		  int (*each)(void *ctx, const struct maps_entry *entry), void *ctx)
{
	size_t nr = 0, total = 0;
	int n = 1;

	while (n > 0) {
		const char *newline;
		size_t whole;
		int r;

		n = process_read_maps(maps, window + nr, WINDOW_SIZE - nr);
		if (n < 0)
			return n == -ENOENT ? -ESRCH : n;
		nr += (size_t)n;
		total += (size_t)n;
		newline = n ? last_newline(window, nr) : NULL;
		whole = newline ? (size_t)(newline - window) + 1 : n && nr < WINDOW_SIZE ? 0 : nr;
		r = maps_parse(window, whole, each, ctx);
		if (r)
			return r;
		memmove(window, window + whole, nr - whole);
		nr -= whole;
	}
	return total > INT32_MAX ? INT32_MAX : (int)total;
}

int proc_maps_read(int32_t pid, int (*each)(void *ctx, const struct maps_entry *entry), void *ctx)
{
	_cleanup_free_ char *window = malloc(WINDOW_SIZE);
	struct process_maps maps;
	int r;

	if (!window)
		return -ENOMEM;
	r = process_open_maps(proc_living_thread(pid), &maps);
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	r = stream(&maps, window, each, ctx);
	process_close_maps(&maps);
	return r;
}

struct end_of {
	uint64_t addr, end;
};

static int find_end(void *ctx, const struct maps_entry *entry)
{
	struct end_of *e = ctx;

	if (e->addr < entry->start || e->addr >= entry->end)
		return 0;
	e->end = entry->end;
	return 1;
}

uint64_t process_mapping_end(int32_t pid, uint64_t addr)
{
	struct end_of e = { .addr = addr };

	return proc_maps_read(pid, find_end, &e) < 0 ? 0 : e.end;
}

int32_t proc_living_thread(int32_t pid)
{
	_cleanup_(closedir_p) DIR *dir = NULL;
	struct dirent *entry;
	struct proc_stat stat;
	char path[64];

	if (proc_stat_read(pid, &stat) || stat.state != 'Z' || stat.nr_threads <= 1)
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		int32_t tid = (int32_t)strtol(entry->d_name, NULL, 10);

		/* /proc/TID is there though not listed. */
		if (tid > 0 && tid != pid && !proc_stat_read(tid, &stat) && stat.state != 'Z' &&
		    stat.state != 'X')
			return tid;
	}
	return pid;
}
