/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading protobuf that is too large to be unpacked at once: a message is walked field by field,
 * and what is small in it is unpacked by protobuf-c into memory that is used again for the next.
 *
 * Input is hostile. Nothing is read beyond the given size, nothing recurses (pprof.proto and
 * otlp.proto have no message that holds itself), and what unpacks to more than WIRE_MESSAGE_MAX is
 * refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
	WIRE_FIXED32 = 5,
};

/* A single message that unpacks to more is not from a profile of this world. */
#define WIRE_MESSAGE_MAX ((size_t)256 << 20)

struct wire {
	const uint8_t *at, *end;
};

struct wire_field {
	uint32_t number;
	uint8_t type;	     /* enum wire_type */
	uint64_t value;	     /* of a number */
	const uint8_t *data; /* of WIRE_BYTES */
	size_t size;
};

static inline struct wire wire_of(const void *data, size_t size)
{
	const uint8_t *at = (const uint8_t *)data;

	return (struct wire){ at, size ? at + size : at };
}

/* The next field: 1; 0 at the end; -EBADMSG. */
int wire_next(struct wire *w, struct wire_field *ret);
/* The next number of a packed field of varints: 1; 0; -EBADMSG. */
int wire_varint(struct wire *w, uint64_t *ret);

/* Memory of one unpacked message at a time. */
struct wire_memory {
	struct wire_block *blocks;
	size_t used; /* of the first block */
	size_t total;
	int error; /* why the last unpacking failed, if it was for memory */
};

void wire_memory_fini(struct wire_memory *m);
/*
 * Unpacks a message (a protobuf-c descriptor), which lives until the next call. 0; -EBADMSG;
 * -E2BIG; -ENOMEM.
 */
int wire_unpack(struct wire_memory *m, const void *descriptor, const void *data, size_t size,
		void *ret_message);
