// SPDX-License-Identifier: Apache-2.0
/*
 * Mangled names, and debug information's plain ones, in full and short: whatever they are, a string
 * that fits comes out, and soon. The D demangler's memory is lost if an allocation of it fails
 * (demangle.c says why): that is no leak to report.
 */
#include "fuzz.h"
#include "symbol/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_SIZE = 8192 };

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:xmalloc\nleak:xrealloc\n";
}

static void check(const char *name, enum symbol_language language, enum demangle_style style,
		  size_t size)
{
	char *buf = malloc(size);

	if (!buf)
		return;
	if (demangle_name(name, language, style, buf, size) != buf || strnlen(buf, size) == size)
		abort();
	/* What is not mangled comes back as it is, as far as it fits. */
	if (!strpbrk(name, "_$%") && style == DEMANGLE_FULL && strncmp(name, buf, size - 1))
		abort();
	free(buf);
}

FUZZER(data, size)
{
	char *name;

	if (size > NAME_MAX_SIZE)
		return 0;
	name = malloc(size + 1);
	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	for (int style = 0; style < DEMANGLE_STYLE_MAX_; style++) {
		check(name, SYMBOL_LANGUAGE_UNKNOWN, (enum demangle_style)style, 4096);
		check(name, SYMBOL_LANGUAGE_UNKNOWN, (enum demangle_style)style, 16);
		check(name, SYMBOL_LANGUAGE_UNKNOWN, (enum demangle_style)style, 1);
	}
	for (int language = 1; language < SYMBOL_LANGUAGE_MAX_; language++)
		check(name, (enum symbol_language)language, DEMANGLE_SHORT, 4096);
	free(name);
	return 0;
}
