// SPDX-License-Identifier: Apache-2.0
/* The kernel's part is played here: a memfd is the CPUs' memory, another one the ring's positions.
 */
#include "kernel/hits.h"
#include "test.h"

#include <sys/mman.h>
#include <unistd.h>

enum { NR_CPUS = 2 };

struct machine {
	int hits_fd, ring_fd;
	struct cpu_hits *cpus;
	uint64_t *consumer_pos, *producer_pos;
	size_t size, page;
	struct hits_reader reader;
	uint64_t got[2 * CPU_HITS];
	size_t nr_got, stop_at;
};

static void *map_shared(int fd, size_t size)
{
	void *p;

	ASSERT_OK(ftruncate(fd, (off_t)size));
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT(p != MAP_FAILED);
	return p;
}

static void set_up(struct machine *m)
{
	*m = (struct machine){ .page = (size_t)sysconf(_SC_PAGESIZE), .stop_at = SIZE_MAX };
	m->hits_fd = memfd_create("hits", MFD_CLOEXEC);
	m->ring_fd = memfd_create("ring", MFD_CLOEXEC);
	ASSERT(m->hits_fd >= 0 && m->ring_fd >= 0);
	m->size = (NR_CPUS * sizeof(m->cpus[0]) + m->page - 1) / m->page * m->page;
	m->cpus = map_shared(m->hits_fd, m->size);
	m->consumer_pos = map_shared(m->ring_fd, 2 * m->page);
	m->producer_pos = m->consumer_pos + m->page / sizeof(uint64_t);
	ASSERT_OK(hits_open(&m->reader, m->hits_fd, NR_CPUS, m->ring_fd));
}

static void tear_down(struct machine *m)
{
	hits_close(&m->reader);
	ASSERT_OK(munmap(m->cpus, m->size));
	ASSERT_OK(munmap(m->consumer_pos, 2 * m->page));
	close(m->hits_fd);
	close(m->ring_fd);
}

/* As put_hit() in bpf/send.bpf.c. */
static bool put(struct machine *m, int cpu, uint64_t hash)
{
	struct cpu_hits *c = &m->cpus[cpu];

	if (c->head == c->may_write)
		return false;
	c->hits[c->head % CPU_HITS] = (struct sample_header){ .type = SAMPLE_HIT, .hash = hash };
	c->head++;
	return true;
}

static int keep(void *ctx, void *record, size_t size)
{
	struct machine *m = ctx;

	ASSERT_EQ(size, sizeof(struct sample_header));
	ASSERT(m->nr_got < 2 * CPU_HITS);
	m->got[m->nr_got++] = ((struct sample_header *)record)->hash;
	return m->nr_got == m->stop_at ? -1 : 0;
}

static void take(struct machine *m)
{
	m->nr_got = 0;
	ASSERT_OK(hits_take(&m->reader, keep, m));
}

TEST(a_hit_that_came_after_the_look_waits)
{
	struct machine m;

	set_up(&m);
	ASSERT(put(&m, 0, 1) && put(&m, 1, 2));
	hits_look(&m.reader);
	ASSERT(put(&m, 0, 3));
	take(&m);
	ASSERT_EQ(m.nr_got, 2);
	ASSERT_EQ(m.got[0], 1);
	ASSERT_EQ(m.got[1], 2);
	take(&m);
	ASSERT_EQ(m.nr_got, 0);
	hits_look(&m.reader);
	take(&m);
	ASSERT_EQ(m.nr_got, 1);
	ASSERT_EQ(m.got[0], 3);
	tear_down(&m);
}

TEST(hits_wait_for_what_lies_in_the_ring)
{
	struct machine m;

	set_up(&m);
	*m.producer_pos = 4096;
	ASSERT(put(&m, 0, 1));
	hits_look(&m.reader);
	*m.producer_pos = 8192; /* later than the hit */
	*m.consumer_pos = 4088; /* somebody is still writing the last record */
	take(&m);
	ASSERT_EQ(m.nr_got, 0);
	*m.consumer_pos = 4096;
	take(&m);
	ASSERT_EQ(m.nr_got, 1);
	tear_down(&m);
}

TEST(what_was_taken_makes_room_and_nothing_else)
{
	struct machine m;
	uint64_t i;

	set_up(&m);
	for (i = 0; i < CPU_HITS; i++)
		ASSERT(put(&m, 1, i));
	ASSERT(!put(&m, 1, i));
	hits_look(&m.reader);
	ASSERT(!put(&m, 1, i));
	m.stop_at = 10;
	ASSERT_EQ(hits_take(&m.reader, keep, &m), -1);
	m.stop_at = SIZE_MAX;
	/* That on which `each` failed is gone, as it is out of the ring. */
	for (i = 0; put(&m, 1, CPU_HITS + i); i++)
		;
	ASSERT_EQ(i, 10);
	hits_look(&m.reader);
	take(&m);
	ASSERT_EQ(m.nr_got, CPU_HITS);
	for (i = 0; i < CPU_HITS; i++)
		ASSERT_EQ(m.got[i], i + 10);
	tear_down(&m);
}
