// SPDX-License-Identifier: Apache-2.0
/* A Perl of any bytes, as an ELF file: code is told in ranges that are sorted and apart. */
#include "fuzz.h"
#include "runtime/perl/perl_file.h"

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
	struct perl_dso *dso;
	unsigned int version;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!perl_file_read(elf, &version, &dso)) {
		if (dso->run.end < dso->run.start || !dso->catcher.start ||
		    dso->catcher.end < dso->catcher.start)
			abort();
		if (!dso->base.interpreter_functions.nr)
			abort();
		check_ranges(dso->base.interpreter_functions.items,
			     dso->base.interpreter_functions.nr);
		check_ranges(dso->base.hidden.items, dso->base.hidden.nr);
		perl_file_free(dso);
	}
	elf_file_free(elf);
	return 0;
}
