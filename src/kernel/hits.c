// SPDX-License-Identifier: Apache-2.0
#include "kernel/hits.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t bytes_of(const struct hits_reader *h)
{
	return (h->nr_cpus * sizeof(h->cpus[0]) + h->page - 1) / h->page * h->page;
}

static const uint64_t *map_position(const struct hits_reader *h, int ring_fd, size_t at)
{
	void *p = mmap(NULL, h->page, PROT_READ, MAP_SHARED, ring_fd, (off_t)at);

	return p == MAP_FAILED ? NULL : p;
}

int hits_open(struct hits_reader *h, int hits_fd, uint32_t nr_cpus, int ring_fd)
{
	void *p;
	int err;

	*h = (struct hits_reader){ .nr_cpus = nr_cpus, .page = (size_t)sysconf(_SC_PAGESIZE) };
	h->seen = calloc(2 * (size_t)nr_cpus, sizeof(h->seen[0]));
	if (!h->seen)
		return -ENOMEM;
	h->taken = h->seen + nr_cpus;
	h->consumer_pos = map_position(h, ring_fd, 0);
	h->producer_pos = h->consumer_pos ? map_position(h, ring_fd, h->page) : NULL;
	p = h->producer_pos
		    ? mmap(NULL, bytes_of(h), PROT_READ | PROT_WRITE, MAP_SHARED, hits_fd, 0)
		    : MAP_FAILED;
	if (p == MAP_FAILED) {
		err = -errno;
		hits_close(h);
		return err;
	}
	h->cpus = p;
	for (uint32_t i = 0; i < nr_cpus; i++)
		__atomic_store_n(&h->cpus[i].may_write, CPU_HITS, __ATOMIC_RELEASE);
	return 0;
}

void hits_close(struct hits_reader *h)
{
	if (h->cpus)
		munmap(h->cpus, bytes_of(h));
	if (h->producer_pos)
		munmap((void *)h->producer_pos, h->page);
	if (h->consumer_pos)
		munmap((void *)h->consumer_pos, h->page);
	free(h->seen);
	*h = (struct hits_reader){ .cpus = NULL };
}

void hits_look(struct hits_reader *h)
{
	for (uint32_t i = 0; i < h->nr_cpus; i++)
		h->seen[i] = __atomic_load_n(&h->cpus[i].head, __ATOMIC_ACQUIRE);
	if (h->nr_cpus)
		h->ring_seen = __atomic_load_n(h->producer_pos, __ATOMIC_ACQUIRE);
}

int hits_take(struct hits_reader *h, int (*each)(void *ctx, void *record, size_t size), void *ctx)
{
	int r = 0;

	if (!h->nr_cpus || (int64_t)(*h->consumer_pos - h->ring_seen) < 0)
		return 0;
	for (uint32_t i = 0; i < h->nr_cpus; i++) {
		struct cpu_hits *c = &h->cpus[i];

		if (h->taken[i] == h->seen[i])
			continue;
		while (!r && h->taken[i] != h->seen[i])
			r = each(ctx, &c->hits[h->taken[i]++ & (CPU_HITS - 1)],
				 sizeof(struct sample_header));
		__atomic_store_n(&c->may_write, h->taken[i] + CPU_HITS, __ATOMIC_RELEASE);
	}
	return r;
}
