// SPDX-License-Identifier: Apache-2.0
#include "util/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic enum log_level max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	max_level = level;
}

enum log_level log_get_level(void)
{
	return max_level;
}

/* One write a line, so that lines of several threads do not mix. */
static void print_line(const char *fmt, va_list ap, int r)
{
	char line[1024];
	size_t len;

	len = (size_t)snprintf(line, sizeof(line), "sonde: ");
	vsnprintf(line + len, sizeof(line) - len, fmt, ap);
	len = strlen(line);
	if (r < 0)
		snprintf(line + len, sizeof(line) - len, ": %s", strerror(-r));
	len = strlen(line);
	if (len >= sizeof(line) - 1)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* there is nobody left to tell */
}

void log_print(enum log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	print_line(fmt, ap, 0);
	va_end(ap);
	errno = saved;
}

int log_err(int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(fmt, ap, r);
	va_end(ap);
	return r;
}

int err_new_at(int r, const char *file, int line)
{
	log_debug("error %d born at %s:%d", r, file, line);
	return r;
}
