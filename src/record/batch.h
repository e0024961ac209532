/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples out of the ring that wait: until the turn's events are read, or while a table is built.
 * Raw records of a thread have mostly the same pages of its stack: such a page is kept once, so
 * that many more of them find room.
 */
#pragma once

#include "util/vec.h"

#include <stdint.h>

struct pending {
	uint64_t time_ns;
	uint32_t at; /* in batch.bytes */
	uint32_t size;
	uint32_t nr_pages; /* whose places in batch.pages stand behind the record; 0: it is whole */
};

enum { BATCH_PLACES = 1024 }; /* pages that are remembered: 64 threads' */

struct batch_place {
	uint64_t key; /* of thread and address */
	uint32_t at;  /* in batch.pages */
	uint32_t size;
};

/* Zeroes are an empty one. */
struct batch {
	VEC(struct pending) pending;
	VEC(uint8_t) bytes;
	VEC(uint8_t) pages;
	VEC(uint8_t) whole; /* a record that was put together */
	struct batch_place places[BATCH_PLACES];
};

void batch_fini(struct batch *b);
/* Forgets all records, but keeps memory for as many again. */
void batch_clear(struct batch *b);
size_t batch_bytes(const struct batch *b);
/* Keeps a record; -ENOMEM: the batch would be larger than `max`; -EINVAL: it makes no sense. */
int batch_add(struct batch *b, const void *record, size_t size, size_t max);
/* A raw record, as if it had brought no stack along; -EINVAL, too: it has brought none. */
int batch_add_without_stack(struct batch *b, const void *record, size_t size, size_t max);
/*
 * The record as it came, aligned to 8 bytes; it is valid until the next call. 0 or -ENOMEM.
 */
int batch_get(struct batch *b, const struct pending *p, const uint8_t **ret, size_t *ret_size);
