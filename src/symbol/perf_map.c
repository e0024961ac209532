// SPDX-License-Identifier: Apache-2.0
/*
 * The names that a JIT wrote for its code, each valid until a later line covers its addresses.
 *
 * The file is read backwards, a chunk at a time: the first line found that has an address is the
 * one that counts, and names of code that is new stand near the end. What a line covers is found by
 * bisection in the sorted addresses; those that have their name are jumped over.
 *
 * The file is written by the profiled process, and /tmp is anybody's: nothing is followed, waited
 * for or believed that the process's user could not have made for it.
 */
#include "symbol/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/hex.h"
#include "util/open_in_root.h"
#include "util/read_file.h"
#include "util/sorted.h"

enum {
	STATUS_MAX = 64 << 10,
	CHUNK = 64 << 10, /* longer than any line that is read as a whole */
};

struct line {
	uint64_t start, end;
	const char *name;
	uint32_t name_len; /* at most PERF_MAP_NAME_MAX */
};

struct wanted {
	uint64_t address;
	uint64_t name; /* where it is in the file */
	uint32_t name_len;
	uint32_t number; /* the caller's */
	uint32_t next;	 /* itself, or behind it: the way to the first that has no name yet */
};

struct perf_search {
	int fd;
	uint64_t begin,
		at;   /* what is left to be looked at; `at` is behind a line, or its newline */
	bool in_line; /* `at` is within a line: it is longer than a chunk */
	size_t nr, nr_left;
	struct wanted *wanted; /* sorted, and one behind the last */
	uint32_t *places;      /* of the caller's numbers in `wanted` */
	char chunk[CHUNK];
};

/* --- lines ------------------------------------------------------------------------------------ */

/* Some write a prefix. */
static const char *parse_address(const char *p, const char *end, uint64_t *ret)
{
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	return hex_parse(p, end, ret);
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

static bool parse_line(const char *p, const char *end, struct line *ret)
{
	const char *word;
	uint64_t size;
	size_t len;

	p = parse_address(skip_blanks(p, end), end, &ret->start);
	if (!p)
		return false;
	word = skip_blanks(p, end);
	if (word == p)
		return false;
	p = parse_address(word, end, &size);
	if (!p || !size || ret->start + size < ret->start)
		return false;
	word = skip_blanks(p, end);
	if (word == p)
		return false;
	while (end > word && (unsigned char)end[-1] <= ' ')
		end--;
	len = strnlen(word, (size_t)(end - word));
	if (!len)
		return false;
	ret->end = ret->start + size;
	ret->name = word;
	ret->name_len = (uint32_t)(len < PERF_MAP_NAME_MAX ? len : PERF_MAP_NAME_MAX);
	return true;
}

/* --- the search ------------------------------------------------------------------------------- */

/* The first from `i` on that has no name; shortens the way for the next one who asks. */
static size_t without_name(struct wanted *wanted, size_t i)
{
	while (wanted[i].next != i) {
		wanted[i].next = wanted[wanted[i].next].next;
		i = wanted[i].next;
	}
	return i;
}

static size_t first_at_or_above(const struct perf_search *s, uint64_t address)
{
	return sorted_before(s->nr, i, s->wanted[i].address < address);
}

/* `at` is where `p` is in the file. */
static void take_line(struct perf_search *s, uint64_t at, const char *p, const char *end)
{
	struct line line;
	size_t i;

	if (!parse_line(p, end, &line))
		return;
	for (i = without_name(s->wanted, first_at_or_above(s, line.start));
	     i < s->nr && s->wanted[i].address < line.end; i = without_name(s->wanted, i)) {
		s->wanted[i].name = at + (uint64_t)(line.name - p);
		s->wanted[i].name_len = line.name_len;
		s->wanted[i].next = (uint32_t)i + 1;
		s->nr_left--;
	}
}

/* A line that is longer than a chunk: only its begin is read. */
static int take_long_line(struct perf_search *s, uint64_t at)
{
	ssize_t n = read_at(s->fd, at, s->chunk, CHUNK);

	if (n > 0)
		take_line(s, at, s->chunk, s->chunk + n);
	s->in_line = false;
	s->at = at ? at - 1 : 0;
	return n < 0 ? (int)n : 0;
}

/* The lines of one chunk, the last one first; one that does not begin in it is left for the next.
 */
static int take_chunk(struct perf_search *s)
{
	uint64_t base = s->at - s->begin > CHUNK ? s->at - CHUNK : s->begin;
	ssize_t n = read_at(s->fd, base, s->chunk, (size_t)(s->at - base));
	const char *end = s->chunk + n, *newline;

	if (n < (ssize_t)(s->at - base)) {
		s->at = s->begin; /* cut off meanwhile */
		return n < 0 ? (int)n : 0;
	}
	while ((newline = memrchr(s->chunk, '\n', (size_t)(end - s->chunk)))) {
		uint64_t at = base + (uint64_t)(newline + 1 - s->chunk);

		if (s->in_line)
			return take_long_line(s, at);
		take_line(s, at, newline + 1, end);
		end = newline;
	}
	if (base > s->begin) {
		s->in_line = end == s->chunk + n;
		s->at = s->in_line ? base : base + (uint64_t)(end - s->chunk);
		return 0;
	}
	/* Of a longer file the begin may be a part of a line. */
	s->at = s->begin;
	if (base)
		return 0;
	if (s->in_line)
		return take_long_line(s, 0);
	take_line(s, base, s->chunk, end);
	return 0;
}

int perf_search_run(struct perf_search *s, size_t size)
{
	uint64_t stop = s->at - s->begin > size ? s->at - size : s->begin;
	int r = 0;

	while (s->nr_left && s->at > stop && !r)
		r = take_chunk(s);
	return r ? r : s->nr_left && s->at > s->begin;
}

static int compare_wanted(const void *a_, const void *b_)
{
	const struct wanted *a = a_, *b = b_;

	return a->address < b->address ? -1 : a->address > b->address;
}

int perf_search_new(int fd, const uint64_t *addresses, size_t nr, struct perf_search **ret)
{
	_cleanup_(perf_search_free_p) struct perf_search *s = calloc(1, sizeof(*s));
	struct stat st;

	if (!s) {
		close(fd);
		return -ENOMEM;
	}
	s->fd = fd;
	if (nr >= UINT32_MAX)
		return -EFBIG;
	s->wanted = calloc(nr + 1, sizeof(*s->wanted));
	s->places = calloc(nr + 1, sizeof(*s->places));
	if (!s->wanted || !s->places)
		return -ENOMEM;
	if (fstat(fd, &st))
		return -errno;
	s->at = (uint64_t)st.st_size;
	s->begin = s->at > PERF_MAP_SIZE_MAX ? s->at - PERF_MAP_SIZE_MAX : 0;
	s->nr = s->nr_left = nr;
	for (size_t i = 0; i < nr; i++)
		s->wanted[i] = (struct wanted){ .address = addresses[i], .number = (uint32_t)i };
	qsort(s->wanted, nr, sizeof(*s->wanted), compare_wanted);
	for (size_t i = 0; i <= nr; i++)
		s->wanted[i].next = (uint32_t)i;
	for (size_t i = 0; i < nr; i++)
		s->places[s->wanted[i].number] = (uint32_t)i;
	*ret = TAKE_PTR(s);
	return 0;
}

void perf_search_free(struct perf_search *s)
{
	if (!s)
		return;
	close(s->fd);
	free(s->wanted);
	free(s->places);
	free(s);
}

int perf_search_name(const struct perf_search *s, size_t i, char ret[static PERF_MAP_NAME_MAX + 1])
{
	const struct wanted *w = &s->wanted[s->places[i]];
	int r;

	if (!w->name_len)
		return -ENOENT;
	/* It may have been written to meanwhile. */
	r = read_all_at(s->fd, w->name, ret, w->name_len);
	ret[r ? 0 : w->name_len] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return *ret ? 0 : -ENOENT;
}

/* --- the file --------------------------------------------------------------------------------- */

struct owner {
	int pid; /* in the process's own PID namespace */
	bool nested;
	uid_t uid;
};

/* O_PATH: nothing is asked of it yet. */
static int find_map(int root_fd, const char *path, bool cached, int *ret)
{
	const int flags = O_PATH | O_NOFOLLOW;
	_cleanup_close_ int tmp_fd = -1;
	int r = -EINVAL, fd;

	if (cached)
		r = open_in_root_cached(root_fd, path, flags, ret);
	if (r == -EINVAL)
		r = open_in_root(root_fd, path, flags, ret);
	if (r != -ENOSYS && r != -EPERM)
		return r;
	/* An old sandbox: then without any link, also not one of /tmp itself. */
	tmp_fd = openat(root_fd, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tmp_fd < 0)
		return -errno;
	fd = openat(tmp_fd, strrchr(path, '/') + 1, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* `pid`: by which we know the process, 0: ours is the root. */
static int open_below_root(int root_fd, int pid, const struct owner *owner,
			   const struct perf_map_guard *guard, int *ret)
{
	_cleanup_close_ int path_fd = -1, fd = -1;
	struct statx type;
	struct stat st;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "tmp/perf-%d.map", owner->pid);
	r = find_map(root_fd, path, pid && guard->cached, &path_fd);
	if (r)
		return r == -ELOOP || r == -ENXIO || r == -ENOTDIR ? -ENOENT : r;
	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &type))
		return -errno;
	if (!S_ISREG(type.stx_mode))
		return -ENOENT;
	if (!guard->may_open(guard, pid, path_fd))
		return -EAGAIN;
	r = open_found(path_fd, &fd);
	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	/* A hard link would lend us somebody else's file. */
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1 || (st.st_uid && st.st_uid != owner->uid))
		return -ENOENT;
	*ret = TAKE_FD(fd);
	return 0;
}

static const char *field(const char *status, const char *name)
{
	const char *p = strstr(status, name);

	return p ? p + strlen(name) : NULL;
}

/* 0, or -ESRCH if the process is gone. */
static int read_owner(int proc_fd, struct owner *ret)
{
	_cleanup_free_ char *status = NULL;
	unsigned int real, effective;
	const char *p;
	char *end;
	int r = read_file_at(proc_fd, "status", STATUS_MAX, &status, NULL);

	if (r)
		return r == -ENOENT ? -ESRCH : r;
	p = field(status, "\nUid:");
	if (!p || sscanf(p, "%u %u", &real, &effective) != 2)
		return -EINVAL;
	ret->uid = effective;
	/* One for each namespace that we see it in, its own last. Without the line there are none.
	 */
	p = field(status, "\nNSpid:");
	for (unsigned int i = 0; p; i++) {
		long pid = strtol(p, &end, 10);

		if (end == p || *p == '\n')
			break;
		/* It is just being buried, and has no number any more. */
		if (pid <= 0)
			return -ESRCH;
		ret->pid = (int)pid;
		ret->nested = i > 0;
		p = *end == '\n' ? NULL : end;
	}
	return 0;
}

int perf_map_user(int pid, uint32_t *ret)
{
	_cleanup_close_ int proc_fd = -1;
	struct owner owner = { 0 };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = read_owner(proc_fd, &owner);
	if (!r)
		*ret = owner.uid;
	return r;
}

/* Of a process that is gone we know no user: only root's file and our own are believed. */
int perf_map_open_gone(int pid, const struct perf_map_guard *guard, int *ret)
{
	const struct owner owner = { .pid = pid, .uid = geteuid() };
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return open_below_root(fd, 0, &owner, guard, ret);
}

int perf_map_open(int pid, const struct perf_map_guard *guard, int *ret)
{
	_cleanup_close_ int proc_fd = -1, root_fd = -1, own_root_fd = -1;
	struct owner owner = { .pid = pid };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return errno == ENOENT ? perf_map_open_gone(pid, guard, ret) : -errno;
	r = read_owner(proc_fd, &owner);
	if (r == -ESRCH)
		return perf_map_open_gone(pid, guard, ret);
	if (r)
		return r;
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd >= 0)
		return open_below_root(root_fd, pid, &owner, guard, ret);
	/* A zombie has no root any more; one of another namespace had another /tmp, most likely. */
	if ((errno != ENOENT && errno != ESRCH) || owner.nested)
		return errno == ESRCH ? -ENOENT : -errno;
	own_root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (own_root_fd < 0)
		return -errno;
	return open_below_root(own_root_fd, 0, &owner, guard, ret);
}
