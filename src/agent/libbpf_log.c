// SPDX-License-Identifier: Apache-2.0
#include "agent/libbpf_log.h"
#include "util/log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

static int print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level == LIBBPF_DEBUG || log_get_level() < LOG_LEVEL_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = '\0';
	log_debug("%s", line);
	return 0;
}

void libbpf_log_to_debug(void)
{
	libbpf_set_print(print);
}
