// SPDX-License-Identifier: Apache-2.0
/*
 * See mark.h. Without debug information, so that each variant has only what it is about. `from`
 * takes a return address where a language's own calls must lie between.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>

#include "mark.h"

void mark_from(const char *name, uintptr_t address);

struct search {
	uintptr_t address, bias;
};

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct search *s = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && s->address >= begin && s->address - begin < p->p_memsz)
			s->bias = info->dlpi_addr;
	}
	return 0;
}

void mark_from(const char *name, uintptr_t address)
{
	struct search s = { .address = address - 1 };

	dl_iterate_phdr(look, &s);
	printf("%s 0x%lx\n", name, (unsigned long)(s.address - s.bias));
}

void mark(const char *name)
{
	mark_from(name, (uintptr_t)__builtin_return_address(0));
}
