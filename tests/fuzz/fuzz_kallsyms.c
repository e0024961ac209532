// SPDX-License-Identifier: Apache-2.0
/* /proc/kallsyms: any text, cut anywhere. What is found must have stood in it. */
#include "fuzz.h"
#include "symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>

static void check_one(const struct kallsyms *k, const uint8_t *data, size_t size, uint64_t addr)
{
	const char *module = NULL, *name = kallsyms_find(k, addr, &module);

	if (name && (!*name || !memmem(data, size, name, strlen(name)) ||
		     !memmem(data, size, module, strlen(module))))
		abort();
}

FUZZER(data, size)
{
	struct kallsyms *k;

	if (kallsyms_parse((const char *)data, size, &k))
		return 0;
	/* The numbers in the text and their neighbours are where something may change. */
	for (size_t i = 0; i < size; i++) {
		char digits[17] = { 0 };
		uint64_t addr;

		if (i && data[i - 1] != '\n')
			continue;
		memcpy(digits, data + i, size - i < 16 ? size - i : 16);
		addr = strtoull(digits, NULL, 16);
		check_one(k, data, size, addr - 1);
		check_one(k, data, size, addr);
		check_one(k, data, size, addr + KALLSYMS_FUNCTION_MAX - 1);
		check_one(k, data, size, addr + KALLSYMS_FUNCTION_MAX);
	}
	kallsyms_free(k);
	return 0;
}
