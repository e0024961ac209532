// SPDX-License-Identifier: Apache-2.0
/* The symbols of an ELF file of any bytes: sorted, and what covers an address is one of them. */
#include "fuzz.h"
#include "elf/elf_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_UP_MAX = 200 };

static void look_up(const struct elf_symbols *symbols, uint64_t addr)
{
	const struct elf_symbol *s = elf_symbols_find(symbols, addr);

	if (s && (s < symbols->items || s >= symbols->items + symbols->nr || s->addr > addr ||
		  (s->size && addr - s->addr >= s->size)))
		abort();
}

static void check(const struct elf_symbols *symbols)
{
	for (size_t i = 0; i < symbols->nr; i++) {
		const struct elf_symbol *s = &symbols->items[i];

		if ((i && s[-1].addr >= s->addr) || !*s->name || strchr(s->name, '@'))
			abort();
		if (i >= LOOKED_UP_MAX)
			continue;
		look_up(symbols, s->addr - 1);
		look_up(symbols, s->addr);
		look_up(symbols, s->addr + s->size);
		look_up(symbols, s->addr + 64);
	}
}

FUZZER(data, size)
{
	struct elf_symbols symbols;
	struct elf_file *elf;
	int r;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	r = elf_symbols_read(elf, &symbols);
	if (!r) {
		check(&symbols);
		r = elf_symbols_end(&symbols, elf);
		if (r)
			elf_symbols_fini(&symbols);
	}
	elf_file_free(elf);
	if (r) {
		if (r != -ENOMEM)
			abort();
		return 0;
	}
	check(&symbols);
	elf_symbols_fini(&symbols);
	return 0;
}
