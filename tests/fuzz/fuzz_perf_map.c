// SPDX-License-Identifier: Apache-2.0
/*
 * A perf map of any bytes: at each address near the begin and the end of a line's code, the name
 * must be that of the last line that covers it, as a slow and simple reader finds it.
 */
#include "symbol/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 100 };

struct line {
	uint64_t start, size;
	char name[64];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static void compare(const struct perf_map *m, const struct line *lines, size_t nr, uint64_t addr)
{
	const char *want = slow_find(lines, nr, addr), *got = perf_map_find(m, addr);

	if (!want != !got || (want && strcmp(want, got)))
		abort();
}

static void compare_all(const struct perf_map *m, const char *text, size_t size)
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
	for (size_t i = 0; i < nr; i++) {
		compare(m, lines, nr, lines[i].start - 1);
		compare(m, lines, nr, lines[i].start);
		compare(m, lines, nr, lines[i].start + lines[i].size - 1);
		compare(m, lines, nr, lines[i].start + lines[i].size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map *m;
	int r = perf_map_parse((const char *)data, size, &m);

	if (r) {
		if (r != -ENOMEM)
			abort();
		return 0;
	}
	(void)perf_map_find(m, 0);
	(void)perf_map_find(m, UINT64_MAX);
	compare_all(m, (const char *)data, size);
	perf_map_free(m);
	return 0;
}
