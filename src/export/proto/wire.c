// SPDX-License-Identifier: Apache-2.0
/* See wire.h. The encoding: protobuf.dev/programming-guides/encoding. */
#include "export/proto/wire.h"

#include <errno.h>
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_SIZE = 64 * 1024, ALIGNMENT = 16 };

struct wire_block {
	struct wire_block *next;
	size_t cap;
	_Alignas(ALIGNMENT) char data[];
};

int wire_varint(struct wire *w, uint64_t *ret)
{
	const uint8_t *at = w->at;
	uint64_t value = 0;

	if (at == w->end)
		return 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		if (at == w->end)
			return -EBADMSG;
		value |= (uint64_t)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80)) {
			w->at = at;
			*ret = value;
			return 1;
		}
	}
	return -EBADMSG;
}

static int take(struct wire *w, uint64_t size, const uint8_t **ret)
{
	if (size > (size_t)(w->end - w->at))
		return -EBADMSG;
	*ret = w->at;
	w->at += size;
	return 1;
}

int wire_next(struct wire *w, struct wire_field *ret)
{
	struct wire at = *w;
	struct wire_field f = { 0 };
	const uint8_t *data = NULL;
	uint64_t key, value = 0;
	int r;

	r = wire_varint(&at, &key);
	if (r <= 0)
		return r;
	if (!(key >> 3) || key >> 3 > (1u << 29) - 1)
		return -EBADMSG;
	f.number = (uint32_t)(key >> 3);
	f.type = key & 7;
	switch (f.type) {
	case WIRE_VARINT:
		r = wire_varint(&at, &f.value);
		break;
	case WIRE_BYTES:
		r = wire_varint(&at, &value);
		if (r > 0)
			r = take(&at, value, &f.data);
		f.size = (size_t)value;
		break;
	case WIRE_FIXED64:
	case WIRE_FIXED32:
		value = f.type == WIRE_FIXED64 ? 8 : 4;
		r = take(&at, value, &data);
		for (uint64_t i = 0; r > 0 && i < value; i++)
			f.value |= (uint64_t)data[i] << (8 * i);
		break;
	default: /* groups, which proto3 does not have */
		r = -EBADMSG;
	}
	if (r <= 0)
		return -EBADMSG;
	*w = at;
	*ret = f;
	return 1;
}

static void *allocate(void *ctx, size_t size)
{
	struct wire_memory *m = ctx;
	struct wire_block *b;
	char *p;

	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (size > WIRE_MESSAGE_MAX || m->total + size > WIRE_MESSAGE_MAX) {
		m->error = -E2BIG;
		return NULL;
	}
	if (!m->blocks || m->blocks->cap - m->used < size) {
		size_t cap = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		b = malloc(sizeof(*b) + cap);
		if (!b) {
			m->error = -ENOMEM;
			return NULL;
		}
		*b = (struct wire_block){ .next = m->blocks, .cap = cap };
		m->blocks = b;
		m->used = 0;
	}
	p = m->blocks->data + m->used;
	m->used += size;
	m->total += size;
	return p;
}

/* Memory goes back as a whole. */
static void release(void *ctx, void *pointer)
{
	(void)ctx;
	(void)pointer;
}

static void reset(struct wire_memory *m)
{
	struct wire_block *b;

	/* One block of the usual size stays: most messages never need another. */
	while ((b = m->blocks) && (b->next || b->cap > BLOCK_SIZE)) {
		m->blocks = b->next;
		free(b);
	}
	m->used = m->total = 0;
	m->error = 0;
}

void wire_memory_fini(struct wire_memory *m)
{
	reset(m);
	free(m->blocks);
	*m = (struct wire_memory){ 0 };
}

int wire_unpack(struct wire_memory *m, const void *descriptor, const void *data, size_t size,
		void *ret_message)
{
	ProtobufCAllocator allocator = { .alloc = allocate, .free = release, .allocator_data = m };
	ProtobufCMessage *message;

	reset(m);
	/* protobuf-c takes NULL for no message, and for no data. */
	message = protobuf_c_message_unpack(descriptor, &allocator, size,
					    size ? data : (const void *)"");
	if (!message)
		return m->error ? m->error : -EBADMSG;
	*(ProtobufCMessage **)ret_message = message;
	return 0;
}
