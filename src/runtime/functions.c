// SPDX-License-Identifier: Apache-2.0
#include "runtime/functions.h"

#include "elf/elf_symbols.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* They are read in the recorder itself; CPython's own are about a megabyte. */
enum { SYMBOL_BYTES_MAX = 16 << 20 };

bool runtime_name_in(const char *name, const char *const *list)
{
	size_t len = strcspn(name, ".");

	for (; *list; list++) {
		size_t wanted = strlen(*list);
		bool prefix = wanted && (*list)[wanted - 1] == '*';

		wanted -= prefix;
		if ((prefix ? len >= wanted : len == wanted) && !memcmp(name, *list, wanted))
			return true;
	}
	return false;
}

int runtime_find_functions(const struct elf_file *elf, const char *const *interpreters,
			   const char *const *hidden, struct runtime_dso *dso)
{
	_cleanup_(elf_symbols_fini) struct elf_symbols symbols = { 0 };
	int r;

	if (elf_symbols_bytes(elf) > SYMBOL_BYTES_MAX)
		return -ENOTSUP;
	r = elf_symbols_read(elf, &symbols);
	for (size_t i = 0; !r && i < symbols.nr; i++) {
		const struct elf_symbol *s = &symbols.items[i];
		struct code_range range = { s->addr, s->addr + s->size };
		bool loop = runtime_name_in(s->name, interpreters);

		if (!s->size || (!loop && !runtime_name_in(s->name, hidden)))
			continue;
		if (dso->hidden.nr && dso->hidden.items[dso->hidden.nr - 1].end > range.start)
			continue;
		if (loop)
			r = vec_push(&dso->interpreter_functions, range);
		if (!r)
			r = vec_push(&dso->hidden, range);
	}
	return r ? r : dso->interpreter_functions.nr ? 0 : -ENOTSUP;
}

uint64_t runtime_find_key(const struct elf_file *elf, uint64_t function)
{
	uint8_t code[24];

	if (elf->machine != EM_X86_64 || elf_file_read_vaddr(elf, function, code, sizeof(code)))
		return 0;
	/* mov N(%rip), %edi */
	for (size_t at = 0; at + 6 <= sizeof(code); at++) {
		int32_t off;

		if (code[at] != 0x8b || code[at + 1] != 0x3d)
			continue;
		memcpy(&off, code + at + 2, sizeof(off));
		return function + at + 6 + (uint64_t)(int64_t)off;
	}
	return 0;
}

void runtime_dso_fini(struct runtime_dso *dso)
{
	vec_free(&dso->interpreter_functions);
	vec_free(&dso->hidden);
	vec_free(&dso->functions);
}
