// SPDX-License-Identifier: Apache-2.0
/*
 * Reads HotSpot's exported tables out of a process: arrays of entries, whose strides and offsets
 * are exported too, and the strings that they point to. A table has thousands of entries of three
 * strings each, close together: they are read a page at a time.
 *
 * The tables may be half made (their constructors run while ld.so loads libjvm), or of a hostile
 * process: nothing here takes more than ENTRIES_MAX entries and PAGES_MAX reads.
 */
#include "runtime/hotspot/hotspot_vm_internal.h"
#include "runtime/words.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

enum {
	PAGE_SIZE = 4096,
	SLOTS = 128,	     /* pages that are kept: half a megabyte */
	PAGES_MAX = 16384,   /* that are read: libjvm's tables and names take about 150 */
	ENTRIES_MAX = 16384, /* of a table; real ones have 1,400 to 2,100 in all */
	STRIDE_MAX = 256,
};

struct page {
	uint64_t addr; /* 0: none */
	uint8_t data[PAGE_SIZE];
};

struct pages {
	const struct runtime_target *target;
	uint32_t nr_read;
	struct page slots[SLOTS];
};

static int find_page(struct pages *p, uint64_t addr, const uint8_t **ret)
{
	struct page *slot = &p->slots[addr / PAGE_SIZE % SLOTS];
	uint64_t start = addr & ~(uint64_t)(PAGE_SIZE - 1);
	int r;

	if (!start)
		return -EFAULT;
	if (slot->addr != start) {
		if (p->nr_read++ >= PAGES_MAX)
			return -EBADMSG;
		slot->addr = 0;
		r = runtime_read(p->target, start, slot->data, PAGE_SIZE);
		if (r)
			return r;
		slot->addr = start;
	}
	*ret = slot->data;
	return 0;
}

static int read_bytes(struct pages *p, uint64_t addr, void *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t in_page = (addr + done) % PAGE_SIZE;
		size_t part = PAGE_SIZE - in_page;
		const uint8_t *page = NULL;
		int r = find_page(p, addr + done, &page);

		if (r)
			return r;
		part = part < size - done ? part : size - done;
		memcpy((uint8_t *)to + done, page + in_page, part);
		done += part;
	}
	return 0;
}

static int read_u64(struct pages *p, uint64_t addr, uint64_t *ret)
{
	return read_bytes(p, addr, ret, sizeof(*ret));
}

/* Cut if it is longer: nothing that long is wanted. NULL is an empty one. */
static int read_string(struct pages *p, uint64_t addr, char ret[static HOTSPOT_NAME_MAX])
{
	size_t len = 0;

	while (addr && len < HOTSPOT_NAME_MAX - 1) {
		size_t in_page = (addr + len) % PAGE_SIZE;
		size_t part = PAGE_SIZE - in_page;
		const uint8_t *page = NULL, *end;
		int r = find_page(p, addr + len, &page);

		if (r)
			return r;
		part = part < HOTSPOT_NAME_MAX - 1 - len ? part : HOTSPOT_NAME_MAX - 1 - len;
		end = memchr(page + in_page, 0, part);
		if (end)
			part = (size_t)(end - page) - in_page;
		memcpy(ret + len, page + in_page, part);
		len += part;
		if (end)
			break;
	}
	ret[len] = '\0';
	return 0;
}

/* Where a table stands and how long its entries are; *at_ret 0: it is not exported. */
static int read_table(struct pages *p, uint64_t table, uint64_t stride, uint64_t *at_ret,
		      uint64_t *stride_ret)
{
	uint64_t bias = p->target->bias, at = 0, size = 0;
	int r;

	if (!table || !stride) {
		*at_ret = 0;
		return 0;
	}
	r = read_u64(p, table + bias, &at);
	if (!r)
		r = read_u64(p, stride + bias, &size);
	if (r)
		return r;
	/* Before libjvm is relocated and its constructors have run. */
	if (!at || !size)
		return -EAGAIN;
	if (size > STRIDE_MAX || size < 2 * sizeof(uint64_t))
		return -EBADMSG;
	*at_ret = at;
	*stride_ret = size;
	return 0;
}

/* An exported offset in an entry of `stride` bytes, of something of `size` bytes. */
static int read_offset(struct pages *p, uint64_t symbol, uint64_t stride, size_t size,
		       uint64_t *ret)
{
	uint64_t offset;
	int r;

	if (!symbol)
		return -EBADMSG;
	r = read_u64(p, symbol + p->target->bias, &offset);
	if (r)
		return r;
	if (offset > stride - size)
		return -EBADMSG;
	*ret = offset;
	return 0;
}

struct member_layout {
	uint64_t stride, type, field, type_string, is_static, offset, address;
};

static int read_member_layout(struct pages *p, const struct hotspot_symbols *s, uint64_t stride,
			      struct member_layout *ret)
{
	int r = read_offset(p, s->struct_type_name, stride, 8, &ret->type);

	ret->stride = stride;
	r = r ?: read_offset(p, s->struct_field_name, stride, 8, &ret->field);
	r = r ?: read_offset(p, s->struct_type_string, stride, 8, &ret->type_string);
	r = r ?: read_offset(p, s->struct_is_static, stride, 4, &ret->is_static);
	r = r ?: read_offset(p, s->struct_offset, stride, 8, &ret->offset);
	return r ?: read_offset(p, s->struct_address, stride, 8, &ret->address);
}

/* Takes over one entry whose type is wanted. */
static int take_entry(struct pages *p, const struct member_layout *layout, const uint8_t *entry,
		      const char *type, struct hotspot_vm *vm)
{
	char field[HOTSPOT_NAME_MAX], type_string[HOTSPOT_NAME_MAX];
	struct hotspot_member member = {
		.type = type,
		.field = field,
		.type_string = type_string,
		.offset = word_at(entry, layout->offset),
		.address = word_at(entry, layout->address),
	};
	uint32_t is_static;
	int r = read_string(p, word_at(entry, layout->field), field);

	if (r)
		return r;
	memcpy(&is_static, entry + layout->is_static, sizeof(is_static));
	member.is_static = is_static != 0;
	if (!hotspot_wants_member(&member))
		return 0;
	r = read_string(p, word_at(entry, layout->type_string), type_string);
	return r ?: hotspot_take_member(vm, &member);
}

static int read_members(struct pages *p, const struct hotspot_symbols *s, struct hotspot_vm *vm)
{
	char type[HOTSPOT_NAME_MAX] = "";
	uint64_t at, stride, type_addr = 0;
	struct member_layout layout;
	bool wanted = false;
	int r = read_table(p, s->structs, s->struct_stride, &at, &stride);

	if (!r && !at)
		r = -EBADMSG;
	r = r ?: read_member_layout(p, s, stride, &layout);
	for (uint32_t i = 0; !r; i++, at += stride) {
		uint8_t entry[STRIDE_MAX];
		uint64_t addr;

		r = i < ENTRIES_MAX ? read_bytes(p, at, entry, stride) : -EBADMSG;
		if (r)
			break;
		addr = word_at(entry, layout.type);
		if (!addr)
			return 0; /* the last one */
		/* Entries of a type stand together, and its name is one string. */
		if (addr != type_addr) {
			r = read_string(p, addr, type);
			type_addr = addr;
			wanted = hotspot_wants_type(type);
		}
		if (!r && wanted)
			r = take_entry(p, &layout, entry, type, vm);
	}
	return r;
}

/* A table of names and numbers, which `take` gets. */
static int read_numbers(struct pages *p, const uint64_t symbols[static 4], size_t size,
			void (*take)(struct hotspot_vm *vm, const char *name, uint64_t value),
			struct hotspot_vm *vm)
{
	uint64_t at, stride, name_at = 0, value_at = 0;
	int r = read_table(p, symbols[0], symbols[1], &at, &stride);

	if (r || !at)
		return r;
	r = read_offset(p, symbols[2], stride, 8, &name_at);
	r = r ?: read_offset(p, symbols[3], stride, size, &value_at);
	for (uint32_t i = 0; !r; i++, at += stride) {
		char name[HOTSPOT_NAME_MAX];
		uint8_t entry[STRIDE_MAX];
		uint64_t value = 0;

		r = i < ENTRIES_MAX ? read_bytes(p, at, entry, stride) : -EBADMSG;
		if (r)
			break;
		if (!word_at(entry, name_at))
			return 0;
		r = read_string(p, word_at(entry, name_at), name);
		if (r)
			break;
		memcpy(&value, entry + value_at, size);
		take(vm, name, value);
	}
	return r;
}

int hotspot_tables_read(const struct hotspot_symbols *s, struct hotspot_vm *vm)
{
	const uint64_t types[] = { s->types, s->type_stride, s->type_name, s->type_size };
	const uint64_t ints[] = { s->int_constants, s->int_stride, s->int_name, s->int_value };
	const uint64_t longs[] = { s->long_constants, s->long_stride, s->long_name, s->long_value };
	_cleanup_free_ struct pages *pages = calloc(1, sizeof(*pages));
	int r;

	if (!pages)
		return -ENOMEM;
	pages->target = vm->target;
	r = read_members(pages, s, vm);
	r = r ?: read_numbers(pages, types, 8, hotspot_take_size, vm);
	r = r ?: read_numbers(pages, ints, 4, hotspot_take_constant, vm);
	return r ?: read_numbers(pages, longs, 8, hotspot_take_constant, vm);
}
