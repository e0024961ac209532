// SPDX-License-Identifier: Apache-2.0
/*
 * The names that a JIT wrote for its code, each valid until a later line covers its addresses.
 *
 * The lines are read from the last one backwards, so that the newest are kept when there are too
 * many, and sorted by address. One sweep over them, with the newest of those that are open on top
 * of a heap, makes segments that don't overlap.
 *
 * The file is written by the profiled process, and /tmp is anybody's: nothing is followed, waited
 * for or believed that the process's user could not have made for it.
 */
#include "symbol/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/hex.h"
#include "util/open_in_root.h"
#include "util/read_file.h"
#include "util/vec.h"

enum {
	STATUS_MAX = 64 << 10,
};

struct line {
	uint64_t start, end;
	uint32_t name;	   /* in the text */
	uint32_t name_len; /* at most PERF_MAP_NAME_MAX */
	uint32_t order;	   /* 0 is the last line of the text */
	uint32_t copy;	   /* in `names` once a segment has it, else 0 */
};

struct segment {
	uint64_t start, end;
	uint32_t name; /* in `names` */
};

struct perf_map {
	VEC(struct segment) segments; /* sorted, apart from each other */
	VEC(char) names;
};

struct sweep {
	struct perf_map *map;
	const char *text;
	VEC(struct line) lines;
	VEC(uint32_t) heap; /* lines that are open, the newest on top */
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

static bool parse_line(const char *text, const char *p, const char *end, struct line *ret)
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
	ret->name = (uint32_t)(word - text);
	ret->name_len = (uint32_t)(len < PERF_MAP_NAME_MAX ? len : PERF_MAP_NAME_MAX);
	ret->copy = 0;
	return true;
}

static int compare_lines(const void *a_, const void *b_)
{
	const struct line *a = a_, *b = b_;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int read_lines(struct sweep *s, size_t size)
{
	const char *end = s->text + size, *begin;
	struct line line;
	int r = 0;

	for (; end > s->text && s->lines.nr < PERF_MAP_LINES_MAX && !r; end = begin - 1) {
		begin = memrchr(s->text, '\n', (size_t)(end - s->text));
		begin = begin ? begin + 1 : s->text;
		if (parse_line(s->text, begin, end, &line)) {
			line.order = (uint32_t)s->lines.nr;
			r = vec_push(&s->lines, line);
		}
		if (begin == s->text)
			break;
	}
	return r;
}

/* --- the sweep -------------------------------------------------------------------------------- */

static bool is_newer(const struct sweep *s, uint32_t a, uint32_t b)
{
	return s->lines.items[a].order < s->lines.items[b].order;
}

static int heap_push(struct sweep *s, uint32_t line)
{
	size_t i = s->heap.nr;
	int r = vec_push(&s->heap, line);

	if (r)
		return r;
	for (; i && is_newer(s, line, s->heap.items[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap.items[i] = s->heap.items[(i - 1) / 2];
	s->heap.items[i] = line;
	return 0;
}

static void heap_pop(struct sweep *s)
{
	uint32_t *items = s->heap.items, line = items[--s->heap.nr];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->heap.nr) {
		if (child + 1 < s->heap.nr && is_newer(s, items[child + 1], items[child]))
			child++;
		if (!is_newer(s, items[child], line))
			break;
		items[i] = items[child];
		i = child;
	}
	items[i] = line;
}

static int copy_name(struct sweep *s, struct line *line)
{
	struct perf_map *m = s->map;
	int r = vec_reserve(&m->names, m->names.nr + line->name_len + 1);

	if (r)
		return r;
	memcpy(m->names.items + m->names.nr, s->text + line->name, line->name_len);
	line->copy = (uint32_t)m->names.nr;
	m->names.nr += line->name_len;
	m->names.items[m->names.nr++] = '\0';
	return 0;
}

static int emit(struct sweep *s, struct line *line, uint64_t start, uint64_t end)
{
	size_t nr = s->map->segments.nr;
	struct segment *last = nr ? &s->map->segments.items[nr - 1] : NULL;
	int r;

	if (!line->copy) {
		r = copy_name(s, line);
		if (r)
			return r;
	}
	if (last && last->end == start && last->name == line->copy) {
		last->end = end;
		return 0;
	}
	return vec_push(&s->map->segments, (struct segment){ start, end, line->copy });
}

static int sweep(struct sweep *s)
{
	struct line *lines = s->lines.items;
	uint64_t at = 0, until;
	size_t next = 0;
	int r = 0;

	while (!r) {
		struct line *top;

		while (s->heap.nr && lines[s->heap.items[0]].end <= at)
			heap_pop(s);
		if (!s->heap.nr && next == s->lines.nr)
			break;
		if (!s->heap.nr)
			at = lines[next].start;
		for (; next < s->lines.nr && lines[next].start == at && !r; next++)
			r = heap_push(s, (uint32_t)next);
		if (r)
			break;
		top = &lines[s->heap.items[0]];
		until = top->end;
		if (next < s->lines.nr && lines[next].start < until)
			until = lines[next].start;
		r = emit(s, top, at, until);
		at = until;
	}
	return r;
}

int perf_map_parse(const char *text, size_t size, struct perf_map **ret)
{
	_cleanup_(perf_map_free_p) struct perf_map *m = calloc(1, sizeof(*m));
	struct sweep s = { .map = m, .text = text };
	int r;

	if (!m)
		return -ENOMEM;
	if (size > PERF_MAP_SIZE_MAX)
		s.text += size - PERF_MAP_SIZE_MAX;
	/* Offset 0 means that a name is not copied yet. */
	r = vec_push(&m->names, '\0');
	if (!r)
		r = read_lines(&s, size - (size_t)(s.text - text));
	if (!r && s.lines.nr) {
		qsort(s.lines.items, s.lines.nr, sizeof(*s.lines.items), compare_lines);
		r = sweep(&s);
	}
	vec_free(&s.lines);
	vec_free(&s.heap);
	if (r)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	vec_free(&m->segments);
	vec_free(&m->names);
	free(m);
}

const char *perf_map_find(const struct perf_map *m, uint64_t addr)
{
	size_t low = 0, high = m->segments.nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->segments.items[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->segments.nr || addr < m->segments.items[low].start)
		return NULL;
	return m->names.items + m->segments.items[low].name;
}

/* --- the file --------------------------------------------------------------------------------- */

struct owner {
	int pid; /* in the process's own PID namespace */
	bool nested;
	uid_t uid;
};

static int open_map(int root_fd, const char *path, int *ret)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	int r = open_in_root(root_fd, path, flags, ret), fd;
	_cleanup_close_ int tmp_fd = -1;

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

static int read_all(int fd, off_t size, char **ret, size_t *ret_size)
{
	off_t at = size > PERF_MAP_SIZE_MAX ? size - PERF_MAP_SIZE_MAX : 0;
	_cleanup_free_ char *text = malloc((size_t)(size - at) + 1);
	ssize_t n;

	if (!text)
		return -ENOMEM;
	n = read_at(fd, (uint64_t)at, text, (size_t)(size - at));
	if (n < 0)
		return (int)n;
	*ret = TAKE_PTR(text);
	*ret_size = (size_t)n;
	return 0;
}

static int read_below(int root_fd, const struct owner *owner, struct perf_map **ret)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;
	size_t size = 0;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "tmp/perf-%d.map", owner->pid);
	r = open_map(root_fd, path, &fd);
	if (r)
		return r == -ELOOP || r == -ENXIO || r == -ENOTDIR ? -ENOENT : r;
	if (fstat(fd, &st))
		return -errno;
	/* A hard link would lend us somebody else's file. */
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1 || (st.st_uid && st.st_uid != owner->uid))
		return -ENOENT;
	r = read_all(fd, st.st_size, &text, &size);
	return r ? r : perf_map_parse(text, size, ret);
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

static int read_own(const struct owner *owner, struct perf_map **ret)
{
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return read_below(fd, owner, ret);
}

int perf_map_read(int pid, struct perf_map **ret)
{
	_cleanup_close_ int proc_fd = -1, root_fd = -1;
	/* Of a process that is gone we know no user: only root's file and our own are believed. */
	struct owner owner = { .pid = pid, .uid = geteuid() };
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return errno == ENOENT ? read_own(&owner, ret) : -errno;
	r = read_owner(proc_fd, &owner);
	if (r == -ESRCH)
		return read_own(&owner, ret);
	if (r)
		return r;
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd >= 0)
		return read_below(root_fd, &owner, ret);
	/* A zombie has no root any more; one of another namespace had another /tmp, most likely. */
	if ((errno == ENOENT || errno == ESRCH) && !owner.nested)
		return read_own(&owner, ret);
	return errno == ESRCH ? -ENOENT : -errno;
}
