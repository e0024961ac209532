// SPDX-License-Identifier: Apache-2.0
/*
 * The header of a line number program: DWARF 2-4 (DWARF 4 section 6.2.4: two lists of strings) and
 * 5 (section 6.2.4: tables whose columns the header describes). Out come the numbers that the
 * machine needs and the files' paths.
 *
 * Where the machine's program begins is told by the header's length, so a file table that makes no
 * sense costs names only, not the lines.
 */
#include "dwarf/line_program_internal.h"

#include "dwarf/dwarf_defs.h"
#include "dwarf/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	DW_LNCT_path = 1,
	DW_LNCT_directory_index = 2,

	/* Columns of a table: the header has one byte for their number. */
	COLUMNS_MAX = 255,
	/* A longer name counts as none: many may refer to one, and each looks for its end. */
	STRING_MAX = 3 * LINE_PATH_MAX,
};

/* --- paths ------------------------------------------------------------------------------------ */

struct path {
	char text[STRING_MAX];
	size_t len;
};

/* Also what a compiler on Windows wrote. */
static bool is_absolute(const char *s)
{
	if (s[0] == '/' || s[0] == '\\')
		return true;
	return ((s[0] | 0x20) >= 'a' && (s[0] | 0x20) <= 'z') && s[1] == ':' &&
	       (s[2] == '/' || s[2] == '\\');
}

/* Appends the parts of `s` between slashes, empty ones and "." left out. */
static void path_append(struct path *path, const char *s)
{
	if (s[0] == '/' && !path->len)
		path->text[path->len++] = '/';
	while (*s) {
		size_t len = strcspn(s, "/");

		if (len && !(len == 1 && s[0] == '.')) {
			if (len + 2 > sizeof(path->text) - path->len)
				return;
			if (path->len && path->text[path->len - 1] != '/')
				path->text[path->len++] = '/';
			memcpy(path->text + path->len, s, len);
			path->len += len;
		}
		s += len + (s[len] == '/');
	}
}

/* `dir` is the number that the program gives it. */
static void path_append_dir(struct path *path, const struct line_files *files, uint64_t dir)
{
	const char *own = NULL, *base = files->comp_dir;
	uint64_t index = files->version >= 5 ? dir : dir - 1;

	if (index < files->dirs.nr)
		own = files->dirs.items[index];
	/* In DWARF 5 directory 0 is the compilation directory again, or says it better. */
	if (files->version >= 5 && files->dirs.nr && is_absolute(files->dirs.items[0]))
		base = files->dirs.items[0];
	if (!own || (!is_absolute(own) && strcmp(own, base)))
		path_append(path, base);
	if (own)
		path_append(path, own);
}

int line_files_add(struct line_files *files, const char *name, uint64_t dir)
{
	struct path path;
	const char *text;
	size_t start;
	int r;

	if (files->starts.nr >= LINE_FILES_MAX)
		return 0;
	if (!name[0] || files->paths.nr > LINE_PATHS_MAX - LINE_PATH_MAX)
		return vec_push(&files->starts, 0);
	path.len = 0;
	if (!is_absolute(name))
		path_append_dir(&path, files, dir);
	path_append(&path, name);
	text = path.text;
	if (path.len >= LINE_PATH_MAX) {
		text += path.len - (LINE_PATH_MAX - 1);
		path.len = LINE_PATH_MAX - 1;
	}
	start = files->paths.nr;
	r = vec_reserve(&files->paths, start + path.len + 1);
	if (!r)
		r = vec_push(&files->starts, (uint32_t)start);
	if (r)
		return r;
	memcpy(files->paths.items + start, text, path.len);
	files->paths.items[start + path.len] = '\0';
	files->paths.nr = start + path.len + 1;
	return 0;
}

void line_files_fini(struct line_files *files)
{
	vec_free(&files->paths);
	vec_free(&files->starts);
	vec_free(&files->dirs);
}

static int add_dir(struct line_files *files, const char *name)
{
	if (files->dirs.nr >= LINE_FILES_MAX)
		return 0;
	if (strnlen(name, STRING_MAX) == STRING_MAX)
		name = "";
	return vec_push(&files->dirs, name);
}

/* --- strings ---------------------------------------------------------------------------------- */

/* The string at `offset` of a section; "" if there is none, or it has no end. */
static const char *string_at(const uint8_t *data, size_t size, uint64_t offset)
{
	size_t left = data && offset < size ? size - offset : 0;

	if (!left || !memchr(data + offset, 0, left < STRING_MAX ? left : STRING_MAX))
		return "";
	return (const char *)data + offset;
}

static const char *read_string(struct cfi_reader *r)
{
	const char *s = cfi_string(r);

	return s ? s : "";
}

/* The table of offsets has a header in DWARF 5 (section 7.26), and its own format. */
static const char *indexed_string(const struct line_source *source, uint64_t index)
{
	struct cfi_reader r = { .pos = source->str_offsets };
	size_t entry, header;

	if (!source->str_offsets)
		return "";
	r.end = r.pos + source->str_offsets_size;
	entry = cfi_u32(&r) == UINT32_MAX ? 8 : 4;
	header = entry == 8 ? 16 : 8;
	if (source->str_offsets_size < header ||
	    index >= (source->str_offsets_size - header) / entry)
		return "";
	r.pos = source->str_offsets + header + index * entry;
	return string_at(source->str, source->str_size, cfi_fixed(&r, entry));
}

/* --- the tables of DWARF 5 -------------------------------------------------------------------- */

struct value {
	const char *string; /* "" if it is a number */
	uint64_t number;
};

/* False: nothing behind it can be read. */
static bool read_form(struct cfi_reader *r, const struct line_source *source,
		      const struct line_header *header, uint64_t form, struct value *ret)
{
	const struct dwarf_encoding encoding = { header->version, 8, header->offset_size };
	struct dwarf_value v;

	if (!dwarf_form_read(&encoding, r, form, &v))
		return false;
	*ret = (struct value){ .string = "" };
	switch (v.form) {
	case DW_FORM_string:
		ret->string = (const char *)(uintptr_t)v.u;
		break;
	case DW_FORM_line_strp:
		ret->string = string_at(source->line_str, source->line_str_size, v.u);
		break;
	case DW_FORM_strp:
		ret->string = string_at(source->str, source->str_size, v.u);
		break;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		ret->string = indexed_string(source, v.u);
		break;
	default:
		ret->number = dwarf_value_number(&v, 0);
	}
	return true;
}

struct columns {
	unsigned int nr;
	struct {
		uint64_t content, form;
	} items[COLUMNS_MAX];
};

/* One table: directories, or files. 1: go on behind it, 0: it broke off, -ENOMEM. */
static int read_table(struct cfi_reader *r, const struct line_source *source,
		      const struct line_header *header, struct line_files *files, bool is_files)
{
	struct columns columns = { .nr = cfi_u8(r) };
	uint64_t nr;

	for (unsigned int i = 0; i < columns.nr; i++) {
		columns.items[i].content = cfi_uleb(r);
		columns.items[i].form = cfi_uleb(r);
	}
	nr = cfi_uleb(r);
	/* Entries may be empty, so that only the cap bounds their number. */
	if (r->failed || (columns.nr && nr > LINE_FILES_MAX))
		return 0;
	for (uint64_t i = 0; columns.nr && i < nr; i++) {
		const char *path = "";
		uint64_t dir = 0;
		int error;

		for (unsigned int j = 0; j < columns.nr; j++) {
			struct value v;

			if (!read_form(r, source, header, columns.items[j].form, &v))
				return 0;
			if (columns.items[j].content == DW_LNCT_path)
				path = v.string;
			else if (columns.items[j].content == DW_LNCT_directory_index)
				dir = v.number;
		}
		if (r->failed)
			return 0;
		error = is_files ? line_files_add(files, path, dir) : add_dir(files, path);
		if (error)
			return error;
	}
	return 1;
}

/* --- the header ------------------------------------------------------------------------------- */

/* The lists of DWARF 2 to 4, each ended by an empty name. */
static int read_lists(struct cfi_reader *r, struct line_files *files)
{
	const char *name;
	int error = 0;

	while (!error && (name = read_string(r))[0])
		error = add_dir(files, name);
	while (!error && (name = read_string(r))[0]) {
		uint64_t dir = cfi_uleb(r);

		cfi_uleb(r); /* time */
		cfi_uleb(r); /* length */
		if (!r->failed)
			error = line_files_add(files, name, dir);
	}
	return error;
}

/* The range of the unit, and the format; a unit that the section cuts off ends with it. */
static int read_length(struct cfi_reader *r, struct line_header *header)
{
	uint64_t length = cfi_length(r, &header->offset_size);

	if (r->failed)
		return -EBADMSG;
	if (length < cfi_left(r))
		r->end = r->pos + length;
	header->end = r->end;
	return 0;
}

static int read_numbers(struct cfi_reader *r, struct line_header *header)
{
	uint64_t header_length;

	header->version = (uint16_t)cfi_u16(r);
	if (r->failed)
		return -EBADMSG;
	if (header->version < 2 || header->version > 5)
		return -ENOTSUP;
	if (header->version >= 5)
		cfi_u16(r); /* sizes of an address and of a segment selector */
	header_length = cfi_fixed(r, header->offset_size);
	if (r->failed || header_length > cfi_left(r))
		return -EBADMSG;
	header->program = r->pos + header_length;
	header->min_inst_length = cfi_u8(r);
	header->max_ops = header->version >= 4 ? cfi_u8(r) : 1;
	if (!header->max_ops)
		header->max_ops = 1; /* not allowed; some assemblers wrote it */
	header->default_is_stmt = cfi_u8(r);
	header->line_base = (int8_t)cfi_u8(r);
	header->line_range = cfi_u8(r);
	header->opcode_base = cfi_u8(r);
	if (r->failed || !header->line_range || !header->opcode_base)
		return -EBADMSG;
	header->opcode_lengths = cfi_take(r, header->opcode_base - 1);
	return r->failed ? -EBADMSG : 0;
}

int line_header_read(const struct line_source *source, uint64_t offset, struct line_files *files,
		     struct line_header *ret)
{
	struct line_header header = { 0 };
	struct cfi_reader r;
	int error;

	if (!source->line || offset >= source->line_size)
		return -EBADMSG;
	r = (struct cfi_reader){ source->line + offset, source->line + source->line_size, false };
	error = read_length(&r, &header);
	if (!error)
		error = read_numbers(&r, &header);
	if (error)
		return error;
	r.end = header.program;
	if (r.pos > r.end)
		return -EBADMSG;
	files->version = header.version;
	error = vec_push(&files->paths, '\0');
	if (error)
		return error;
	if (header.version < 5) {
		error = read_lists(&r, files);
	} else {
		error = read_table(&r, source, &header, files, false);
		if (error > 0)
			error = read_table(&r, source, &header, files, true);
	}
	if (error < 0)
		return error;
	*ret = header;
	return 0;
}
