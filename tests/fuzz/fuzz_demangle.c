// SPDX-License-Identifier: Apache-2.0
/*
 * Mangled names: whatever they are, a string that fits comes out, and soon. The D demangler's
 * memory is lost if an allocation of it fails (demangle.c says why): that is no leak to report.
 */
#include "symbol/demangle.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_SIZE = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:xmalloc\nleak:xrealloc\n";
}

static void check(const char *name, size_t size)
{
	char *buf = malloc(size);

	if (!buf)
		return;
	if (demangle(name, buf, size) != buf || strnlen(buf, size) == size)
		abort();
	/* What is not mangled comes back as it is, as far as it fits. */
	if (name[0] != '_' && strncmp(name, buf, size - 1))
		abort();
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name;

	if (size > NAME_MAX_SIZE)
		return 0;
	name = malloc(size + 1);
	if (!name)
		return 0;
	memcpy(name, data, size);
	name[size] = '\0';
	check(name, 4096);
	check(name, 16);
	check(name, 1);
	free(name);
	return 0;
}
