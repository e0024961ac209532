/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes records out of a BPF ring buffer (Linux's Documentation/bpf/ringbuf.rst says what is in
 * it), of which a part is mapped at a time: all of it would be resident at once, and twice, since
 * the kernel maps the data a second time behind itself, for records that wrap around.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroes: none. */
struct sample_ring {
	int fd; /* borrowed */
	size_t size, page;
	uint64_t *consumer_pos;
	const uint64_t *producer_pos;
	const uint8_t *window;		 /* NULL: nothing is mapped */
	uint64_t window_at;		 /* the position of its first byte */
	size_t window_size, window_room; /* in use now; at least */
};

enum { SAMPLE_RING_WINDOW = 256 << 10 };

/* Of the map `fd`, whose data has `size` bytes. 0 or a negative errno. */
int sample_ring_open(struct sample_ring *r, int fd, size_t size);
void sample_ring_close(struct sample_ring *r);
/*
 * Calls `each` for every record there is, and for what comes meanwhile, a ring's worth at most, up
 * to one that is still being written. 0, or a negative errno, or what `each` has returned that is
 * negative; a record that was given to it is taken.
 */
int sample_ring_take(struct sample_ring *r, int (*each)(void *ctx, void *record, size_t size),
		     void *ctx);
