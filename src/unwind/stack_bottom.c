// SPDX-License-Identifier: Apache-2.0
#include "unwind/stack_bottom.h"

#include <errno.h>
#include <string.h>

#include "elf/elf_dynamic.h"
#include "elf/elf_symbols.h"
#include "util/cleanup.h"

/* Without its parameters, which have changed. */
static const char greenlet[] = "_ZN8greenlet12UserGreenlet15inner_bootstrapE";

int stack_bottom_find(const struct elf_file *elf, uint64_t *ret)
{
	_cleanup_(elf_symbols_fini) struct elf_symbols symbols = { 0 };
	struct elf_dynamic dynamic;
	uint64_t init;
	int r;

	/* Symbols are read of that module only. */
	r = elf_dynamic_read(elf, &dynamic);
	if (!r)
		r = elf_dynamic_find(&dynamic, "PyInit__greenlet", &init);
	if (!r)
		r = elf_symbols_read(elf, &symbols);
	if (r)
		return r;
	for (size_t i = 0; i < symbols.nr; i++) {
		const char *name = symbols.items[i].name;

		if (strncmp(name, greenlet, strlen(greenlet)) || strchr(name, '.'))
			continue;
		*ret = symbols.items[i].addr;
		return 0;
	}
	return -ENOENT;
}
