// SPDX-License-Identifier: Apache-2.0
#include "kernel/sample_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A page for the reader's position, one for the writers', then the data. */
enum { PAGES_BEFORE_DATA = 2 };

static void *map(const struct sample_ring *r, int protection, size_t at, size_t size)
{
	void *p = mmap(NULL, size, protection, MAP_SHARED, r->fd, (off_t)at);

	return p == MAP_FAILED ? NULL : p;
}

int sample_ring_open(struct sample_ring *r, int fd, size_t size)
{
	int err;

	*r = (struct sample_ring){ .fd = fd, .size = size, .page = (size_t)sysconf(_SC_PAGESIZE) };
	r->window_room = size < SAMPLE_RING_WINDOW ? size : SAMPLE_RING_WINDOW;
	r->consumer_pos = map(r, PROT_READ | PROT_WRITE, 0, r->page);
	r->producer_pos = r->consumer_pos ? map(r, PROT_READ, r->page, r->page) : NULL;
	if (r->producer_pos)
		return 0;
	err = -errno;
	sample_ring_close(r);
	return err;
}

static void close_window(struct sample_ring *r)
{
	if (r->window)
		munmap((void *)r->window, r->window_size);
	r->window = NULL;
}

void sample_ring_close(struct sample_ring *r)
{
	close_window(r);
	if (r->producer_pos)
		munmap((void *)r->producer_pos, r->page);
	if (r->consumer_pos)
		munmap(r->consumer_pos, r->page);
	*r = (struct sample_ring){ .fd = -1 };
}

/* The bytes [at, at + size) of the ring, of a record: NULL and errno. */
static const uint8_t *look(struct sample_ring *r, uint64_t at, size_t size)
{
	uint64_t begin = at - at % r->page;
	size_t needed = (size_t)(at - begin) + size;

	if (r->window && at >= r->window_at && at + size <= r->window_at + r->window_size)
		return r->window + (at - r->window_at);
	close_window(r);
	needed = needed < r->window_room ? r->window_room : needed;
	r->window_size = (needed + r->page - 1) / r->page * r->page;
	r->window_at = begin;
	r->window = map(r, PROT_READ, PAGES_BEFORE_DATA * r->page + (size_t)begin % r->size,
			r->window_size);
	return r->window ? r->window + (at - begin) : NULL;
}

/* One record. 1; 0: it is still being written. */
static int take_one(struct sample_ring *r, uint64_t at,
		    int (*each)(void *ctx, void *record, size_t size), void *ctx)
{
	const uint8_t *header = look(r, at, BPF_RINGBUF_HDR_SZ), *record;
	uint32_t size;
	int err = 0;

	if (!header)
		return -errno;
	size = __atomic_load_n((const uint32_t *)(const void *)header, __ATOMIC_ACQUIRE);
	if (size & BPF_RINGBUF_BUSY_BIT)
		return 0;
	if (!(size & BPF_RINGBUF_DISCARD_BIT)) {
		if (size > r->size - BPF_RINGBUF_HDR_SZ)
			return -EBADMSG;
		record = look(r, at, BPF_RINGBUF_HDR_SZ + size);
		if (!record)
			return -errno;
		err = each(ctx, (void *)(record + BPF_RINGBUF_HDR_SZ), size);
	}
	size &= ~BPF_RINGBUF_DISCARD_BIT;
	at += (BPF_RINGBUF_HDR_SZ + (uint64_t)size + 7) & ~UINT64_C(7);
	__atomic_store_n(r->consumer_pos, at, __ATOMIC_RELEASE);
	return err < 0 ? err : 1;
}

int sample_ring_take(struct sample_ring *r, int (*each)(void *ctx, void *record, size_t size),
		     void *ctx)
{
	uint64_t until = *r->consumer_pos + r->size;
	int n = 1;

	while (n > 0 && *r->consumer_pos < until &&
	       *r->consumer_pos != __atomic_load_n(r->producer_pos, __ATOMIC_ACQUIRE))
		n = take_one(r, *r->consumer_pos, each, ctx);
	return n < 0 ? n : 0;
}
