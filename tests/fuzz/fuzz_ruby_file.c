// SPDX-License-Identifier: Apache-2.0
/* A libruby of any bytes, as an ELF file: code is told in ranges that are sorted and apart. */
#include "fuzz.h"
#include "runtime/ruby/ruby_file.h"

#include <stdlib.h>
#include <string.h>

static void check_ranges(const struct code_range *items, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (items[i].end < items[i].start || (i && items[i].start < items[i - 1].end))
			abort();
}

FUZZER(data, size)
{
	struct elf_file *elf;
	char version[16];
	struct ruby_dso *dso;
	const char *why;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!ruby_file_read(elf, version, &dso, &why)) {
		if (!memchr(dso->version, 0, sizeof(dso->version)) ||
		    dso->text.end < dso->text.start || dso->data.end < dso->data.start)
			abort();
		if (!dso->dso.interpreter_functions.nr)
			abort();
		check_ranges(dso->dso.interpreter_functions.items,
			     dso->dso.interpreter_functions.nr);
		check_ranges(dso->dso.hidden.items, dso->dso.hidden.nr);
		ruby_file_free(dso);
	}
	elf_file_free(elf);
	return 0;
}
