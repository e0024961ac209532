/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the JSON formats share: strings, and times in milliseconds. Out of it comes valid JSON,
 * whatever goes in (RFC 8259).
 */
#pragma once

#include "profile/profile.h"

#include <stdio.h>

/* The string in quotes; control characters become '_', broken UTF-8 '?', as profile_clean_text()
 * does it. 0 or -ENOMEM. */
int json_put_string(FILE *out, const char *s);
/* Nanoseconds as milliseconds with all their digits: "-0.25", "1700000000000.123456". */
void json_put_ms(FILE *out, int64_t ns);

/* `"name":[` and one value an item, `i` being its index, `]`. */
#define JSON_COLUMN(out, name, nr, ...)                                                            \
	do {                                                                                       \
		fputs("\"" name "\":[", (out));                                                    \
		for (size_t i = 0; i < (nr); i++) {                                                \
			if (i)                                                                     \
				fputc(',', (out));                                                 \
			fprintf((out), __VA_ARGS__);                                               \
		}                                                                                  \
		fputc(']', (out));                                                                 \
	} while (0)
