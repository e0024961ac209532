// SPDX-License-Identifier: Apache-2.0
/* Members, strings and Symbols of a JVM. */
#include "runtime/hotspot/hotspot_vm.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#include <errno.h>
#include <string.h>

enum { REPLACEMENT = 0xfffd };

static uint64_t extend(uint64_t value, struct hotspot_field f)
{
	unsigned int shift = 64 - 8 * f.size;

	return f.is_signed ? (uint64_t)((int64_t)(value << shift) >> shift) : value;
}

uint64_t hotspot_get(struct hotspot_field f, const void *copy, size_t size)
{
	uint64_t value = 0;

	if (!f.size || f.size > sizeof(value) || f.offset > size || f.size > size - f.offset)
		return 0;
	memcpy(&value, (const uint8_t *)copy + f.offset, f.size);
	return extend(value, f);
}

int hotspot_read(const struct hotspot_vm *vm, struct hotspot_field f, uint64_t addr, uint64_t *ret)
{
	uint64_t value = 0;
	int r;

	if (!f.size || f.size > sizeof(value))
		return -ENOENT;
	r = runtime_read(vm->target, addr + f.offset, &value, f.size);
	if (r)
		return r;
	*ret = extend(value, f);
	return 0;
}

/* A piece up to the end of a page at a time: what is behind it may not be there. */
ssize_t hotspot_read_string(const struct hotspot_vm *vm, uint64_t addr, char *ret, size_t size)
{
	size_t len = 0;

	if (!addr || !size)
		return -EFAULT;
	while (len < size - 1) {
		size_t part = 64 - (addr + len) % 64;
		char piece[64];
		const char *end;
		int r;

		part = part < size - 1 - len ? part : size - 1 - len;
		r = runtime_read(vm->target, addr + len, piece, part);
		if (r)
			return r;
		end = memchr(piece, 0, part);
		if (end)
			part = (size_t)(end - piece);
		memcpy(ret + len, piece, part);
		len += part;
		if (end)
			break;
	}
	ret[len] = '\0';
	return (ssize_t)len;
}

/* ----- modified UTF-8 ----- */

/* One code unit of UTF-16 at data[*pos]; -1 if there is none that is well formed: one byte is gone
 * over. */
static int32_t next_unit(const uint8_t *data, size_t len, size_t *pos)
{
	uint8_t a = data[*pos];
	size_t left = len - *pos;

	if (a && a < 0x80) {
		*pos += 1;
		return a;
	}
	if ((a & 0xe0) == 0xc0 && left >= 2 && (data[*pos + 1] & 0xc0) == 0x80) {
		int32_t unit = (a & 0x1f) << 6 | (data[*pos + 1] & 0x3f);

		if (unit >= 0x80 || !unit) {
			*pos += 2;
			return unit;
		}
	} else if ((a & 0xf0) == 0xe0 && left >= 3 && (data[*pos + 1] & 0xc0) == 0x80 &&
		   (data[*pos + 2] & 0xc0) == 0x80) {
		int32_t unit =
			(a & 0x0f) << 12 | (data[*pos + 1] & 0x3f) << 6 | (data[*pos + 2] & 0x3f);

		if (unit >= 0x800) {
			*pos += 3;
			return unit;
		}
	}
	*pos += 1;
	return -1;
}

static uint32_t next_character(const uint8_t *data, size_t len, size_t *pos)
{
	int32_t high = next_unit(data, len, pos), low;
	size_t behind = *pos;

	if (high < 0 || !high) /* a NUL would end what it is put into */
		return REPLACEMENT;
	if ((high & 0xf800) != 0xd800)
		return (uint32_t)high;
	if (high >= 0xdc00 || behind >= len)
		return REPLACEMENT;
	low = next_unit(data, len, &behind);
	if (low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	*pos = behind;
	return 0x10000 + (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff));
}

size_t hotspot_utf8(const void *data, size_t len, char *ret, size_t size)
{
	size_t pos = 0, done = 0;

	while (pos < len) {
		char out[4];
		size_t n = utf8_put(next_character(data, len, &pos), out);

		if (n >= size - done)
			break;
		memcpy(ret + done, out, n);
		done += n;
	}
	ret[done] = '\0';
	return done;
}

/* ----- Symbols ----- */

/* In the upper half of _length_and_refcount (13, 14), else a member of its own. */
static int read_symbol_length(const struct hotspot_vm *vm, uint64_t symbol, uint32_t *ret)
{
	const struct hotspot_fields *f = &vm->fields;
	uint64_t value = 0;
	int r;

	if (hotspot_has(f->symbol_length)) {
		r = hotspot_read(vm, f->symbol_length, symbol, &value);
	} else {
		r = hotspot_read(vm, f->symbol_length_and_refcount, symbol, &value);
		value >>= 16;
	}
	if (r)
		return r;
	*ret = (uint32_t)value & 0xffff;
	return 0;
}

ssize_t hotspot_read_symbol(const struct hotspot_vm *vm, uint64_t symbol, char *ret, size_t size)
{
	uint8_t body[HOTSPOT_SYMBOL_MAX];
	uint32_t len;
	int r;

	if (!symbol || !size || !hotspot_has(vm->fields.symbol_body))
		return -EINVAL;
	r = read_symbol_length(vm, symbol, &len);
	if (r)
		return r;
	if (len > sizeof(body))
		len = sizeof(body);
	if (len)
		r = runtime_read(vm->target, symbol + vm->fields.symbol_body.offset, body, len);
	if (r)
		return r;
	return (ssize_t)hotspot_utf8(body, len, ret, size);
}

int hotspot_read_symbol_at(const struct hotspot_vm *vm, uint64_t constants, uint32_t index,
			   uint64_t *ret)
{
	uint64_t length, entry;
	int r;

	if (!index)
		return -EINVAL;
	if (hotspot_has(vm->fields.constants_length)) {
		r = hotspot_read(vm, vm->fields.constants_length, constants, &length);
		if (r)
			return r;
		if (index >= length)
			return -EINVAL;
	}
	r = runtime_read(vm->target, constants + vm->sizes.constants + 8 * (uint64_t)index, &entry,
			 sizeof(entry));
	if (r)
		return r;
	/* The lowest bit marks what is not resolved yet, up to JDK 8. */
	entry &= ~(uint64_t)1;
	if (!entry)
		return -EINVAL;
	*ret = entry;
	return 0;
}

/* ----- options ----- */

/* JDK 8 has 1,500 in a product build. */
enum { FLAGS_MAX = 4096, FLAG_SIZE_MAX = 128 };

int hotspot_read_flag(const struct hotspot_vm *vm, const char *name, bool *ret)
{
	size_t size = vm->sizes.flag;
	uint8_t copy[FLAG_SIZE_MAX], value;
	uint64_t flags, nr;
	char text[64];
	int r;

	if (!vm->at_flags || !vm->at_nr_flags || !size || size > sizeof(copy))
		return -ENOENT;
	r = runtime_read(vm->target, vm->at_flags, &flags, sizeof(flags));
	if (!r)
		r = runtime_read(vm->target, vm->at_nr_flags, &nr, sizeof(nr));
	if (r)
		return r;
	for (uint64_t i = 0; i < nr && i < FLAGS_MAX; i++) {
		ssize_t len;

		r = runtime_read(vm->target, flags + i * size, copy, size);
		if (r)
			return r;
		/* The last one has no name. */
		len = hotspot_read_string(vm, hotspot_get(vm->fields.flag_name, copy, size), text,
					  sizeof(text));
		if (len == -ESRCH)
			return -ESRCH;
		if (len < 0 || strcmp(text, name) != 0)
			continue;
		r = runtime_read(vm->target, hotspot_get(vm->fields.flag_addr, copy, size), &value,
				 sizeof(value));
		if (!r)
			*ret = value != 0;
		return r;
	}
	return -ENOENT;
}
