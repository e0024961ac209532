// SPDX-License-Identifier: Apache-2.0
/*
 * A CPython of any bytes: as an ELF file, and as the debug offsets of a process. Code is told in
 * ranges that are sorted and apart, and offsets are within what is read with them.
 */
#include "fuzz.h"
#include "runtime/python/python_file.h"
#include "runtime/python/python_offsets.h"

#include <stdlib.h>

static void check_ranges(const struct code_range *items, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (items[i].end < items[i].start || (i && items[i].start < items[i - 1].end))
			abort();
}

static void read_file(const uint8_t *data, size_t size)
{
	struct python_dso *dso;
	struct elf_file *elf;

	if (elf_file_open_memory(data, size, &elf))
		return;
	if (!python_file_read(elf, NULL, &dso)) {
		if (!dso->dso.interpreter_functions.nr || dso->minor < 6 ||
		    dso->nr_gaps > PYTHON_GAPS_MAX)
			abort();
		check_ranges(dso->dso.interpreter_functions.items,
			     dso->dso.interpreter_functions.nr);
		check_ranges(dso->dso.hidden.items, dso->dso.hidden.nr);
		python_file_free(dso);
	}
	elf_file_free(elf);
}

FUZZER(data, size)
{
	struct python_record r;
	struct python_layout l;

	read_file(data, size);
	if (!python_offsets_parse(data, size, &r, &l) &&
	    (r.ts_size > 255 || r.co_size > 255 || r.f_size > 255 ||
	     l.code_size > PYTHON_CODE_SIZE_MAX))
		abort();
	return 0;
}
