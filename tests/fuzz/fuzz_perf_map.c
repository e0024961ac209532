// SPDX-License-Identifier: Apache-2.0
/*
 * A perf map of any bytes: at each address near the begin and the end of a line's code, the name
 * must be that of the last line that covers it, as a slow and simple reader finds it.
 */
#include "fuzz.h"
#include "symbol/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINES_MAX = 100 };

struct line {
	uint64_t start, size;
	char name[64];
};

static bool hex(const char **at, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *begin = *at;
	uint64_t n = 0;

	for (; **at && strchr(digits, **at); ++*at)
		n = n << 4 | (uint64_t)(strchr(digits, **at) - digits);
	*ret = n;
	return *at > begin && *at - begin <= 16 && *(*at)++ == ' ';
}

/*
 * Only lines of the plainest form. False if there is any other, whose meaning is not this fuzzer's
 * to say.
 */
static bool plain_line(const char *text, size_t len, struct line *ret)
{
	char copy[120];
	const char *at = copy;
	uint64_t end;

	if (len >= sizeof(copy) || memchr(text, '\0', len))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (!hex(&at, &ret->start) || !hex(&at, &ret->size) || !ret->size || !*at ||
	    __builtin_add_overflow(ret->start, ret->size, &end) || strlen(at) >= sizeof(ret->name))
		return false;
	for (const char *c = at; *c; c++) {
		if (*c <= ' ' || *c > '~')
			return false;
	}
	memcpy(ret->name, at, strlen(at) + 1);
	return true;
}

static const char *slow_find(const struct line *lines, size_t nr, uint64_t addr)
{
	while (nr--) {
		if (addr - lines[nr].start < lines[nr].size)
			return lines[nr].name;
	}
	return NULL;
}

/* NULL: no memory for it. */
static struct perf_search *search(int fd, const uint64_t *addresses, size_t nr)
{
	struct perf_search *s;
	int r = perf_search_new(fcntl(fd, F_DUPFD_CLOEXEC, 0), addresses, nr, &s);

	if (r == -ENOMEM)
		return NULL;
	if (r)
		abort();
	while ((r = perf_search_run(s, 1000)) > 0)
		;
	if (r)
		abort();
	return s;
}

static void compare(int fd, const struct line *lines, size_t nr)
{
	static uint64_t addresses[4 * LINES_MAX];
	char got[PERF_MAP_NAME_MAX + 1];
	struct perf_search *s;

	for (size_t i = 0; i < nr; i++) {
		addresses[4 * i] = lines[i].start - 1;
		addresses[4 * i + 1] = lines[i].start;
		addresses[4 * i + 2] = lines[i].start + lines[i].size - 1;
		addresses[4 * i + 3] = lines[i].start + lines[i].size;
	}
	s = search(fd, addresses, 4 * nr);
	for (size_t i = 0; s && i < 4 * nr; i++) {
		const char *want = slow_find(lines, nr, addresses[i]);
		int r = perf_search_name(s, i, got);

		if (!r != !!want || (want && strcmp(want, got)))
			abort();
	}
	perf_search_free(s);
}

static void compare_all(int fd, const char *text, size_t size)
{
	static struct line lines[LINES_MAX];
	size_t nr = 0;

	while (size) {
		const char *newline = memchr(text, '\n', size);
		size_t len = newline ? (size_t)(newline - text) : size;

		if (nr == LINES_MAX || !plain_line(text, len, &lines[nr++]))
			return;
		text += newline ? len + 1 : len;
		size -= newline ? len + 1 : len;
	}
	compare(fd, lines, nr);
}

FUZZER(data, size)
{
	static const uint64_t ends[] = { UINT64_MAX, 0 };
	int fd = memfd_create("fuzz_perf_map", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	perf_search_free(search(fd, ends, 2));
	compare_all(fd, (const char *)data, size);
	close(fd);
	return 0;
}
