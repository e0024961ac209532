// SPDX-License-Identifier: Apache-2.0
/*
 * Links from one file to another: .gnu_debuglink and .gnu_debugaltlink (GDB's manual, "Debugging
 * Information in Separate Files"; dwz(1)), .debug_sup (DWARF 5 section 7.3.6), and which units a
 * .dwp or .dwo has. And the paths that are made of them. All input is hostile here.
 */
#include "symbol/debug_file_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dwarf/dwarf_defs.h"
#include "dwarf/dwarf_value.h"

enum {
	/* A .dwo has one unit of code, and its types'; the unit's abbreviation is the first. */
	UNITS_TRIED_MAX = 1 << 16,
	ABBREVS_TRIED_MAX = 16,

	SUP_VERSION_MIN = 2, /* the standard says 5; dwz writes 5, too */
	SUP_VERSION_MAX = 5,
};

/* Of no bytes, too: then there is no address to reckon with. */
static struct cfi_reader reader_of(const void *data, size_t size)
{
	const uint8_t *begin = data;

	return (struct cfi_reader){ begin, begin ? begin + size : NULL, false };
}

/* The string at r->pos, of at most DEBUG_PATH_MAX bytes; NULL. */
static const char *take_string(struct cfi_reader *r)
{
	size_t left = cfi_left(r);
	size_t max = left < DEBUG_PATH_MAX ? left : DEBUG_PATH_MAX;
	const uint8_t *begin = r->pos;
	const uint8_t *end = max ? memchr(begin, 0, max) : NULL;

	if (!end)
		return NULL;
	r->pos = end + 1;
	return (const char *)begin;
}

int debug_link_parse(const void *data, size_t size, struct debug_link *ret)
{
	struct cfi_reader r = reader_of(data, size);
	const char *name = take_string(&r);
	size_t used;
	uint32_t crc;

	if (!name || !name[0] || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EBADMSG;
	used = size - cfi_left(&r);
	cfi_take(&r, -used & 3);
	crc = (uint32_t)cfi_u32(&r);
	if (r.failed)
		return -EBADMSG;
	*ret = (struct debug_link){ name, crc };
	return 0;
}

int debug_alt_link_parse(const void *data, size_t size, struct debug_alt_link *ret)
{
	struct cfi_reader r = reader_of(data, size);
	const char *path = take_string(&r);
	size_t left = cfi_left(&r);

	if (!path || !path[0] || !left || left > ELF_BUILD_ID_MAX)
		return -EBADMSG;
	*ret = (struct debug_alt_link){ path, r.pos, left };
	return 0;
}

int debug_sup_parse(const void *data, size_t size, bool is_alt, struct debug_alt_link *ret)
{
	struct cfi_reader r = reader_of(data, size);
	uint64_t version = cfi_u16(&r);
	bool supplementary = cfi_u8(&r);
	const char *path = take_string(&r);
	uint64_t id_size = cfi_uleb(&r);
	const uint8_t *id;

	if (r.failed || version < SUP_VERSION_MIN || version > SUP_VERSION_MAX ||
	    supplementary != is_alt || !path || (!is_alt && !path[0]) || !id_size ||
	    id_size > ELF_BUILD_ID_MAX)
		return -EBADMSG;
	id = cfi_take(&r, id_size);
	if (!id)
		return -EBADMSG;
	*ret = (struct debug_alt_link){ path, id, id_size };
	return 0;
}

/* --- units ------------------------------------------------------------------------------------ */

bool debug_cu_index_has(const void *data, size_t size, uint64_t id)
{
	struct cfi_reader r = reader_of(data, size);
	uint64_t version = cfi_u32(&r), nr_units, nr_slots, slot, step;
	const uint8_t *slots;

	cfi_u32(&r); /* columns */
	nr_units = cfi_u32(&r);
	nr_slots = cfi_u32(&r);
	/* Version 5 has 16 bits of padding; GNU's has 32 bits of version. */
	if (r.failed || (version != 2 && (version & 0xffff) != 5) || !nr_units || !nr_slots ||
	    nr_slots & (nr_slots - 1) || nr_slots > cfi_left(&r) / sizeof(id))
		return false;
	slots = r.pos;
	slot = id & (nr_slots - 1);
	step = ((id >> 32) & (nr_slots - 1)) | 1;
	for (uint64_t n = 0; n < nr_slots; n++) {
		uint64_t signature;

		memcpy(&signature, slots + slot * sizeof(id), sizeof(id));
		if (signature == id)
			return true;
		if (!signature)
			return false;
		slot = (slot + step) & (nr_slots - 1);
	}
	return false;
}

/* Finds an abbreviation: `r` stands before its attributes then. */
static bool find_abbrev(struct cfi_reader *r, uint64_t code)
{
	for (unsigned int n = 0; n < ABBREVS_TRIED_MAX && !r->failed; n++) {
		uint64_t this_code = cfi_uleb(r), name, form;

		cfi_uleb(r); /* tag */
		cfi_u8(r);   /* whether it has children */
		if (!this_code || r->failed)
			return false;
		if (this_code == code)
			return true;
		do {
			name = cfi_uleb(r);
			form = cfi_uleb(r);
		} while (!r->failed && (name || form));
	}
	return false;
}

/* GNU's split DWARF 4 has the id as an attribute. `unit` stands behind the version. */
static int gnu_dwo_id(struct cfi_reader *unit, uint8_t offset_size, const void *abbrev,
		      size_t abbrev_size, uint64_t *ret)
{
	uint64_t offset = cfi_fixed(unit, offset_size), name, form;
	const struct dwarf_encoding encoding = { 4, (uint8_t)cfi_u8(unit), offset_size };
	struct cfi_reader r = reader_of(abbrev, abbrev_size);
	struct dwarf_value ignored;

	if (!cfi_take(&r, offset <= abbrev_size ? offset : SIZE_MAX) ||
	    !find_abbrev(&r, cfi_uleb(unit)))
		return -ENOENT;
	for (;;) {
		name = cfi_uleb(&r);
		form = cfi_uleb(&r);
		if (r.failed || (!name && !form))
			return -ENOENT;
		if (name == DW_AT_GNU_dwo_id && form == DW_FORM_data8) {
			*ret = cfi_u64(unit);
			return unit->failed ? -ENOENT : 0;
		}
		if (!dwarf_form_read(&encoding, unit, form, &ignored))
			return -ENOENT;
	}
}

/* The id of a unit, `unit` standing behind its length. -ENOENT: no split unit, or not to be had. */
static int unit_id(struct cfi_reader *unit, uint8_t offset_size, const void *abbrev,
		   size_t abbrev_size, uint64_t *ret)
{
	uint64_t version = cfi_u16(unit);

	if (version == 4)
		return gnu_dwo_id(unit, offset_size, abbrev, abbrev_size, ret);
	if (version != 5 || cfi_u8(unit) != DW_UT_split_compile)
		return -ENOENT;
	cfi_take(unit, 1 + offset_size); /* size of an address, abbreviations */
	*ret = cfi_u64(unit);
	return unit->failed ? -ENOENT : 0;
}

int debug_dwo_has(const struct dwarf_span *info, const struct dwarf_span *abbrev, uint64_t id)
{
	struct cfi_reader r = reader_of(info->data, info->size);
	bool told = false;

	for (unsigned int n = 0; n < UNITS_TRIED_MAX && cfi_left(&r); n++) {
		uint8_t offset_size;
		uint64_t length = cfi_length(&r, &offset_size), this_id;
		struct cfi_reader unit;

		if (r.failed || length > cfi_left(&r))
			break;
		unit = (struct cfi_reader){ r.pos, r.pos + length, false };
		r.pos += length;
		if (unit_id(&unit, offset_size, abbrev->data, abbrev->size, &this_id))
			continue;
		if (this_id == id)
			return 1;
		told = true;
	}
	return told && !cfi_left(&r) ? 0 : -ENOENT;
}

/* --- paths ------------------------------------------------------------------------------------ */

int debug_path_format(struct debug_path *ret, const char *format, ...)
{
	struct debug_path path;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path.text, sizeof(path.text), format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(path.text))
		return -ENAMETOOLONG;
	memcpy(ret->text, path.text, (size_t)n + 1);
	return 0;
}

int debug_path_of_build_id(const uint8_t *id, size_t size, struct debug_path *ret)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";

	if (size < 2 || size > ELF_BUILD_ID_MAX)
		return -ENOENT;
	for (size_t i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return debug_path_format(ret, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
}

int debug_path_join(const char *dir, const char *name, struct debug_path *ret)
{
	if (name[0] == '/')
		return debug_path_format(ret, "%s", name);
	return debug_path_format(ret, "%s/%s", dir, name);
}

int debug_path_dir(const char *path, struct debug_path *ret)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return debug_path_format(ret, ".");
	return debug_path_format(ret, "%.*s", (int)(slash - path), path);
}

const char *debug_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
