// SPDX-License-Identifier: Apache-2.0
#include "util/log.h"

#include "util/clock.h"
#include "util/utf8.h"

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

/* --- so many and no more ---------------------------------------------------------------------- */

enum { PLACES = 128 };

#define MINUTE_NS UINT64_C(60000000000)

/* Where messages come from, by their format. Two may share a place: then the later one has it. */
static struct place {
	const char *fmt;
	uint64_t begin_ns;
	unsigned said, unsaid;
} places[PLACES];

static atomic_flag places_taken = ATOMIC_FLAG_INIT;
static _Atomic unsigned limit;
static _Atomic uint64_t nr_unsaid;

void log_set_limit(unsigned per_minute)
{
	limit = per_minute;
}

uint64_t log_unsaid(void)
{
	return nr_unsaid;
}

/* *ret_unsaid: how many were not said before this one. */
static bool count(struct place *place, const char *fmt, unsigned *ret_unsaid)
{
	uint64_t now = now_ns();

	if (place->fmt != fmt || now - place->begin_ns >= MINUTE_NS) {
		*ret_unsaid = place->fmt == fmt ? place->unsaid : 0;
		*place = (struct place){ .fmt = fmt, .begin_ns = now };
	}
	if (place->said >= limit) {
		place->unsaid++;
		return false;
	}
	place->said++;
	return true;
}

/* Threads are few, and wait for some instructions only. */
static bool may_say(enum log_level level, const char *fmt, unsigned *ret_unsaid)
{
	struct place *place = &places[((uintptr_t)fmt * UINT64_C(0x9e3779b97f4a7c15)) >> 57];
	bool may;

	*ret_unsaid = 0;
	if (!limit || level > LOG_LEVEL_WARNING)
		return true;
	while (atomic_flag_test_and_set_explicit(&places_taken, memory_order_acquire))
		;
	may = count(place, fmt, ret_unsaid);
	atomic_flag_clear_explicit(&places_taken, memory_order_release);
	if (!may)
		nr_unsaid++;
	return may;
}

_Static_assert(PLACES == 1 << (64 - 57), "so many bits choose a place");

/* --- a line ----------------------------------------------------------------------------------- */

enum { MESSAGE_SIZE = 1016, ESCAPED_MAX = 6 };

static _Atomic bool in_json;

void log_set_json(bool json)
{
	in_json = json;
}

/* A message is one line, whatever others called their files: it may be read on a terminal. */
static void clean(char *message)
{
	for (char *s = message; *s;) {
		size_t len = utf8_len(s, SIZE_MAX);

		if (!len || utf8_is_control(s, len))
			*s++ = '?';
		else
			s += len;
	}
}

/* As JSON has strings; what is no UTF-8 becomes U+FFFD. */
static char *append_escaped(char *to, const char *text)
{
	for (const char *s = text; *s;) {
		size_t len = utf8_len(s, SIZE_MAX);

		if (!len || (len == 1 && utf8_is_control(s, len))) {
			to += snprintf(to, ESCAPED_MAX + 1, "\\u%04x",
				       len ? (unsigned char)*s : 0xfffdu);
			s++;
			continue;
		}
		if (*s == '"' || *s == '\\')
			*to++ = '\\';
		memcpy(to, s, len);
		to += len;
		s += len;
	}
	return to;
}

static size_t make_json(enum log_level level, const char *message, char *line, size_t size)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	struct timespec now;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(line, size, "{\"time\":\"%Y-%m-%dT%H:%M:%S", &tm);
	len += (size_t)snprintf(line + len, size - len, ".%03ldZ\",\"level\":\"%s\",\"message\":\"",
				now.tv_nsec / 1000000, names[level]);
	len = (size_t)(append_escaped(line + len, message) - line);
	memcpy(line + len, "\"}\n", 3);
	return len + 3;
}

/* One write a line, so that lines of several threads do not mix. */
static void print_line(enum log_level level, const char *fmt, va_list ap, int r)
{
	char message[MESSAGE_SIZE], line[MESSAGE_SIZE * ESCAPED_MAX + 128];
	unsigned unsaid;
	size_t len;

	if (!may_say(level, fmt, &unsaid))
		return;
	vsnprintf(message, sizeof(message), fmt, ap);
	len = strlen(message);
	if (r < 0)
		len += (size_t)snprintf(message + len, sizeof(message) - len, ": %s", strerror(-r));
	if (unsaid && len < sizeof(message))
		snprintf(message + len, sizeof(message) - len, " (%u more like this were not said)",
			 unsaid);
	if (in_json) {
		len = make_json(level, message, line, sizeof(line));
	} else {
		clean(message);
		len = (size_t)snprintf(line, sizeof(line), "sonde: %s\n", message);
	}
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
	print_line(level, fmt, ap, 0);
	va_end(ap);
	errno = saved;
}

int log_err(int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(LOG_LEVEL_ERROR, fmt, ap, r);
	va_end(ap);
	return r;
}

int err_new_at(int r, const char *file, int line)
{
	log_debug("error %d born at %s:%d", r, file, line);
	return r;
}
