// SPDX-License-Identifier: Apache-2.0
/* What libbpf says goes to our debug log; of the verifier's log the end, where it says what it does
 * not like. */
#include "kernel/libbpf_log.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

enum { LAST_LINES = 24 };

/* Where the last lines of `text` begin. */
static const char *last_lines(const char *text)
{
	const char *at = text + strlen(text);

	for (int nr = 0; at > text && nr <= LAST_LINES; nr += *at == '\n')
		at--;
	return at > text ? at + 1 : text;
}

void libbpf_log_words(const char *text)
{
	const char *at, *last = last_lines(text);

	for (at = text; *at; at += strspn(at, "\n")) {
		size_t len = strcspn(at, "\n");

		log_debug("%.*s", (int)len, at);
		at += len;
		if (at < last)
			at = last;
	}
}

static int print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;

	if (level == LIBBPF_DEBUG || log_get_level() < LOG_LEVEL_DEBUG ||
	    vasprintf(&text, fmt, ap) < 0)
		return 0;
	libbpf_log_words(text);
	return 0;
}

void libbpf_log_to_debug(void)
{
	libbpf_set_print(print);
}
