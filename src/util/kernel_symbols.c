// SPDX-License-Identifier: Apache-2.0
#include "util/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/hex.h"

enum { BLOCK = 64 << 10 }; /* the kernel writes a page a read(), whatever is asked for */

/* A line without its end, which is written into. */
static bool parse(char *line, char *end, struct kernel_symbol *ret)
{
	const char *p = hex_parse(line, end, &ret->address);
	char *tab;

	if (!p || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	ret->type = p[1];
	ret->name = p + 3;
	tab = memchr(ret->name, '\t', (size_t)(end - ret->name));
	ret->is_modules = tab != NULL;
	*(tab ? tab : end) = '\0';
	return true;
}

/* The whole lines of a text; what is behind them is moved to its begin, and `size` says how much.
 */
static int take_lines(char *text, size_t *size, kernel_symbol_fn take, void *ctx)
{
	char *line = text, *end = text + *size, *newline;
	struct kernel_symbol symbol;
	int r = 0;

	while (!r && (newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (parse(line, newline, &symbol))
			r = take(ctx, &symbol);
		line = newline + 1;
	}
	*size = (size_t)(end - line);
	memmove(text, line, *size);
	return r;
}

int kernel_symbols_walk_file(int fd, kernel_symbol_fn take, void *ctx)
{
	char text[BLOCK];
	size_t size = 0;
	ssize_t got;
	int r = 0;

	while (!r) {
		got = read(fd, text + size, sizeof(text) - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : 0;
		size += (size_t)got;
		r = take_lines(text, &size, take, ctx);
		if (size == sizeof(text)) /* no line is so long: go on behind its end */
			size = 0;
	}
	return r;
}

int kernel_symbols_walk(kernel_symbol_fn take, void *ctx)
{
	_cleanup_close_ int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : kernel_symbols_walk_file(fd, take, ctx);
}
