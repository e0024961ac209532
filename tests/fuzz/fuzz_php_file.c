// SPDX-License-Identifier: Apache-2.0
/* A PHP of any bytes, as an ELF file: code is told in ranges that are sorted and apart. */
#include "fuzz.h"
#include "runtime/php/php_file.h"

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
	struct php_version version;
	struct elf_file *elf;
	const char *why;
	struct php_dso *dso;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!php_file_read(elf, &dso, &version, &why)) {
		if (dso->record.nr_gaps > PHP_GAPS_MAX)
			abort();
		if (!dso->base.interpreter_functions.nr)
			abort();
		check_ranges(dso->base.interpreter_functions.items,
			     dso->base.interpreter_functions.nr);
		check_ranges(dso->base.hidden.items, dso->base.hidden.nr);
		php_file_free(dso);
	}
	elf_file_free(elf);
	return 0;
}
