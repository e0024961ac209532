// SPDX-License-Identifier: Apache-2.0
/*
 * Line number programs: any bytes as .debug_line, and the same bytes as its string sections. Units
 * are read one behind the other, as their lengths say. Rows must ascend, name files that there
 * are, and end.
 */
#include "fuzz.h"
#include "dwarf/line_program.h"

#include <stdlib.h>
#include <string.h>

enum { UNITS_MAX = 16 };

static void check(const struct line_table *table)
{
	for (size_t i = 0; i < table->nr_rows; i++) {
		const struct line_row *row = &table->rows[i];

		if (i && row->addr <= row[-1].addr)
			abort();
		if (row->file != UINT32_MAX && row->file >= table->nr_files)
			abort();
	}
	if (table->nr_rows && !(table->rows[table->nr_rows - 1].flags & LINE_END))
		abort();
	if (table->nr_rows && table->rows[0].flags & LINE_END)
		abort();
	for (size_t i = 0; i < table->nr_files; i++) {
		if (strlen(table->files[i]) >= LINE_PATH_MAX)
			abort();
	}
	if (line_table_file(table, UINT64_MAX) != UINT32_MAX)
		abort();
}

FUZZER(data, size)
{
	const struct line_source source = { data, data, data, size, size, size, data, size };
	struct line_table table;
	size_t offset = 0;

	for (unsigned int i = 0; i < UNITS_MAX && size - offset > 4; i++) {
		uint32_t length;

		if (!line_table_read(&source, offset, "/comp", "unit.c", 8, &table)) {
			check(&table);
			line_table_fini(&table);
		}
		memcpy(&length, data + offset, sizeof(length));
		if (length >= size - offset - 4)
			break;
		offset += 4 + length;
	}
	return 0;
}
