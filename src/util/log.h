/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the person at the terminal: one line each on stderr, "sonde: ...".
 *
 * Every function is either logging or non-logging. Below layer 4 only log_debug() is used, so that
 * each failure is reported once, by the first caller that knows what it means.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Each line an object: {"time":"2026-01-31T12:00:00.123Z","level":"warning","message":"..."} */
void log_set_json(bool json);
/*
 * Of a daemon: at most so many errors and warnings a minute that come from one place (one format);
 * the next one that is said tells how many were not. What is asked for (INFO, DEBUG) is not
 * limited. 0: there is no limit.
 */
void log_set_limit(unsigned per_minute);
/* How many were not said. */
uint64_t log_unsaid(void);

__attribute__((format(printf, 2, 3))) void log_print(enum log_level level, const char *fmt, ...);

/* Logs the message and ": <strerror(-r)>" behind it; returns r. */
__attribute__((format(printf, 2, 3))) int log_err(int r, const char *fmt, ...);

/* An error that nobody expects: remembers where it was born in the debug log; returns r. */
int err_new_at(int r, const char *file, int line);

#define err_new(r)     err_new_at((r), __FILE__, __LINE__)
#define log_error(...) log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_print(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)  log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
	do {                                                                                       \
		if (log_get_level() >= LOG_LEVEL_DEBUG)                                            \
			log_print(LOG_LEVEL_DEBUG, __VA_ARGS__);                                   \
	} while (0)
