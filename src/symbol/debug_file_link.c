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

#include "dwarf/cfi_read.h"

enum {
	DW_UT_split_compile = 5,
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

int debug_dwo_has(const void *data, size_t size, uint64_t id)
{
	struct cfi_reader r = reader_of(data, size);
	bool told = false;

	while (cfi_left(&r)) {
		uint64_t length = cfi_u32(&r);
		size_t offset_size = 4;
		struct cfi_reader unit;

		if (length == UINT32_MAX) {
			length = cfi_u64(&r);
			offset_size = 8;
		}
		if (r.failed || length > cfi_left(&r))
			break;
		unit = (struct cfi_reader){ r.pos, r.pos + length, false };
		r.pos += length;
		if (cfi_u16(&unit) < 5 || cfi_u8(&unit) != DW_UT_split_compile)
			continue;
		cfi_take(&unit, 1 + offset_size); /* size of an address, abbreviations */
		if (cfi_u64(&unit) == id && !unit.failed)
			return 1;
		told = true;
	}
	return told ? 0 : -ENOENT;
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
