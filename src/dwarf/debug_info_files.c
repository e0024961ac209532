// SPDX-License-Identifier: Apache-2.0
/*
 * Which source files a unit's numbers mean. Its own line table comes first. A function that is
 * declared in another unit (link-time optimization, dwz, Go and Rust across packages) has a number
 * of that unit's table: of such a table only the header is read, and the files that are asked for
 * are appended to those of the unit that is read.
 */
#include "dwarf/debug_info_internal.h"

#include "dwarf/dwarf_defs.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/* Of other units' files that are kept for the units to come. */
	FOREIGN_CACHED_MAX = 16 << 20,
};

static void drop_foreign(struct dwarf_reading *rd)
{
	for (size_t i = 0; i < rd->foreign.nr; i++) {
		line_files_fini(&rd->foreign.items[i].files);
		free(rd->foreign.items[i].indexes);
	}
	rd->foreign.nr = 0;
	rd->foreign_cached = 0;
	map_clear(&rd->foreign_of);
}

void dwarf_files_clear(struct dwarf_reading *rd)
{
	if (rd->has_lines)
		rd->lines.nr_files = rd->nr_own_files;
	rd->unit_number++;
	if (rd->foreign_cached > FOREIGN_CACHED_MAX)
		drop_foreign(rd);
}

void dwarf_files_fini(struct dwarf_reading *rd)
{
	if (rd->has_lines)
		line_table_fini(&rd->lines);
	drop_foreign(rd);
	vec_free(&rd->foreign);
	map_fini(&rd->foreign_of);
	map_fini(&rd->lines_seen);
}

static struct line_source source_of(const struct dwarf_sections *s)
{
	return (struct line_source){ .line = s->line.data,
				     .str = s->str.data,
				     .line_str = s->line_str.data,
				     .line_size = s->line.size,
				     .str_size = s->str.size,
				     .line_str_size = s->line_str.size,
				     .str_offsets = s->str_offsets.data,
				     .str_offsets_size = s->str_offsets.size };
}

/* How long the program at `offset` says that it is. */
static uint64_t program_size(const struct dwarf_span *line, uint64_t offset)
{
	struct cfi_reader r = dwarf_reader_at(line, offset);
	uint8_t offset_size;
	uint64_t length = cfi_length(&r, &offset_size);

	return length < cfi_left(&r) ? length : cfi_left(&r);
}

int dwarf_load_lines(struct dwarf_reading *rd, const struct dwarf_cu *cu)
{
	const struct dwarf_sections *s = &rd->main.s;
	struct line_source source = source_of(s);
	bool seen;
	int err;

	if (rd->has_lines && cu->has_stmt_list && cu->stmt_list == rd->lines_offset) {
		rd->lines.nr_rows = 0;
		return 0;
	}
	if (rd->has_lines)
		line_table_fini(&rd->lines);
	rd->has_lines = false;
	/* Partial units have no code; their program is that of units to come. */
	if (!cu->has_stmt_list || cu->type == DW_UT_partial || !s->line.data)
		return 0;
	if (!dwarf_spend(&rd->budget, program_size(&s->line, cu->stmt_list)))
		return 0;
	seen = map_get(&rd->lines_seen, cu->stmt_list);
	err = seen ? 0 : map_put(&rd->lines_seen, cu->stmt_list, 1);
	if (err)
		return err;
	err = line_table_read(&source, cu->stmt_list, cu->comp_dir, cu->name,
			      cu->encoding.address_size, &rd->lines);
	if (err)
		return err == -ENOMEM ? err : 0;
	rd->has_lines = true;
	rd->lines_offset = cu->stmt_list;
	rd->nr_own_files = rd->files_cap = rd->lines.nr_files;
	if (seen)
		rd->lines.nr_rows = 0;
	return 0;
}

/* The files of `cu`, of which only some of them may be wanted. */
static int read_foreign(struct dwarf_reading *rd, const struct dwarf_cu *cu,
			struct dwarf_foreign *ret)
{
	const struct dwarf_sections *s = &cu->file->s;
	struct line_source source = source_of(s);
	struct dwarf_foreign f = { .files.comp_dir = cu->comp_dir };
	struct line_header header = { 0 };
	int err;

	if (!s->line.data || !*cu->file->budget)
		goto empty;
	err = line_header_read(&source, cu->stmt_list, &f.files, &header);
	if (err == -ENOMEM) {
		line_files_fini(&f.files);
		return err;
	}
	if (err)
		goto empty;
	dwarf_spend(cu->file->budget, header.program - (s->line.data + cu->stmt_list));
	f.version = header.version;
	f.indexes = calloc(f.files.starts.nr + 1, sizeof(*f.indexes));
	if (!f.indexes) {
		line_files_fini(&f.files);
		return -ENOMEM;
	}
	rd->foreign_cached += f.files.paths.cap + f.files.starts.cap * 8 + sizeof(f);
	*ret = f;
	return 0;
empty:
	line_files_fini(&f.files);
	*ret = (struct dwarf_foreign){ 0 };
	return 0;
}

static int find_foreign(struct dwarf_reading *rd, const struct dwarf_cu *cu,
			struct dwarf_foreign **ret)
{
	uint64_t *known = map_get(&rd->foreign_of, (uintptr_t)cu);
	struct dwarf_foreign f;
	int err;

	if (known) {
		*ret = &rd->foreign.items[*known];
		return 0;
	}
	err = vec_reserve(&rd->foreign, rd->foreign.nr + 1);
	if (!err)
		err = map_put(&rd->foreign_of, (uintptr_t)cu, rd->foreign.nr);
	if (!err)
		err = read_foreign(rd, cu, &f);
	if (err)
		return err;
	rd->foreign.items[rd->foreign.nr++] = f;
	*ret = &rd->foreign.items[rd->foreign.nr - 1];
	return 0;
}

static int append_file(struct dwarf_reading *rd, const char *path, uint32_t *ret)
{
	struct line_table *lines = &rd->lines;
	const char **p;
	size_t cap;

	if (lines->nr_files >= rd->files_cap) {
		cap = 2 * rd->files_cap + 16;
		p = realloc(lines->files, cap * sizeof(*p));
		if (!p)
			return -ENOMEM;
		lines->files = p;
		rd->files_cap = cap;
	}
	lines->files[lines->nr_files] = path;
	*ret = lines->nr_files++;
	return 0;
}

static int foreign_file(struct dwarf_reading *rd, const struct dwarf_cu *cu, uint64_t number,
			uint32_t *ret)
{
	struct dwarf_foreign *f;
	uint64_t at;
	int err;

	err = find_foreign(rd, cu, &f);
	if (err)
		return err;
	at = f->version >= 5 ? number : number - 1;
	if (at >= f->files.starts.nr)
		return 0;
	/* The indexes are of the unit that was read when they were made. */
	if (f->unit_number != rd->unit_number) {
		memset(f->indexes, 0, f->files.starts.nr * sizeof(*f->indexes));
		f->unit_number = rd->unit_number;
	}
	if (!f->indexes[at]) {
		err = append_file(rd, f->files.paths.items + f->files.starts.items[at],
				  &f->indexes[at]);
		if (err)
			return err;
		f->indexes[at]++; /* 0: none yet */
	}
	*ret = f->indexes[at] - 1;
	return 0;
}

int dwarf_unit_file(struct dwarf_reading *rd, const struct dwarf_cu *cu,
		    const struct dwarf_value *number, uint32_t *ret)
{
	uint64_t n = dwarf_value_number(number, UINT64_MAX);
	uint32_t file;

	if (n == UINT64_MAX || !rd->has_lines || !cu->has_stmt_list)
		return 0;
	if (cu->stmt_list != rd->lines_offset || cu->file == &rd->alt)
		return foreign_file(rd, cu, n, ret);
	file = line_table_file(&rd->lines, n);
	if (file < rd->nr_own_files)
		*ret = file;
	return 0;
}
