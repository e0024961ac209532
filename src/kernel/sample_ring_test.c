// SPDX-License-Identifier: Apache-2.0
/* The kernel's part is played here: a memfd is the ring, whose data stands in it twice. */
#include "kernel/sample_ring.h"
#include "test.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 1 << 20, RECORD_MAX = 64 << 10 };

struct machine {
	int fd;
	size_t page;
	uint8_t *all, *data;
	uint64_t *consumer_pos, *producer_pos;
	struct sample_ring ring;
	uint64_t nr_put, nr_got;
	int answer; /* of each record */
};

static void set_up(struct machine *m)
{
	*m = (struct machine){ .page = (size_t)sysconf(_SC_PAGESIZE) };
	m->fd = memfd_create("ring", MFD_CLOEXEC);
	ASSERT(m->fd >= 0);
	ASSERT_OK(ftruncate(m->fd, (off_t)(2 * m->page + 2 * SIZE)));
	m->all = mmap(NULL, 2 * m->page + 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	ASSERT(m->all != MAP_FAILED);
	m->consumer_pos = (uint64_t *)(void *)m->all;
	m->producer_pos = (uint64_t *)(void *)(m->all + m->page);
	m->data = m->all + 2 * m->page;
	ASSERT_OK(sample_ring_open(&m->ring, m->fd, SIZE));
}

static void tear_down(struct machine *m)
{
	sample_ring_close(&m->ring);
	ASSERT_OK(munmap(m->all, 2 * m->page + 2 * SIZE));
	close(m->fd);
}

static void write_at(struct machine *m, uint64_t at, uint8_t byte)
{
	m->data[at % SIZE] = m->data[at % SIZE + SIZE] = byte;
}

/* Of `size` bytes, the first eight of which are its number, the others the number's low ones. */
static bool put(struct machine *m, uint32_t size, uint32_t bits)
{
	uint64_t at = *m->producer_pos, end = at + BPF_RINGBUF_HDR_SZ + (size + 7) / 8 * 8;
	uint32_t head[2] = { size | bits, 0 };

	if (end - *m->consumer_pos > SIZE)
		return false;
	for (size_t i = 0; i < sizeof(head); i++)
		write_at(m, at + i, ((uint8_t *)head)[i]);
	for (size_t i = 0; i < size; i++)
		write_at(m, at + BPF_RINGBUF_HDR_SZ + i,
			 i < 8 ? (uint8_t)(m->nr_put >> 8 * i) : (uint8_t)m->nr_put);
	*m->producer_pos = end;
	m->nr_put++;
	return true;
}

static int check(void *ctx, void *record, size_t size)
{
	struct machine *m = ctx;
	const uint8_t *bytes = record;
	uint64_t number;

	memcpy(&number, record, sizeof(number));
	ASSERT_EQ(number, m->nr_got);
	for (size_t i = 8; i < size; i++)
		ASSERT_EQ(bytes[i], (uint8_t)number);
	m->nr_got++;
	return m->answer;
}

static int take(struct machine *m)
{
	return sample_ring_take(&m->ring, check, m);
}

TEST(records_of_all_sizes_round_and_round)
{
	struct machine m;
	uint32_t size = 8;

	set_up(&m);
	for (int round = 0; round < 40; round++) {
		while (put(&m, size, 0))
			size = 8 + (size * 31 + 17) % RECORD_MAX;
		ASSERT_OK(take(&m));
		ASSERT_EQ(m.nr_got, m.nr_put);
		ASSERT_EQ(*m.consumer_pos, *m.producer_pos);
	}
	ASSERT(*m.producer_pos > UINT64_C(20) * SIZE);
	tear_down(&m);
}

/* Whatever wraps around stands in one piece. */
TEST(one_as_large_as_the_ring)
{
	struct machine m;

	set_up(&m);
	ASSERT(put(&m, 100, 0));
	ASSERT_OK(take(&m));
	ASSERT(put(&m, SIZE - BPF_RINGBUF_HDR_SZ, 0));
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 2);
	tear_down(&m);
}

TEST(a_part_of_it_is_mapped)
{
	struct machine m;

	set_up(&m);
	while (put(&m, 1000, 0))
		;
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.ring.window_size, SAMPLE_RING_WINDOW);
	ASSERT(*m.producer_pos <= m.ring.window_at + m.ring.window_size);
	tear_down(&m);
}

TEST(what_is_being_written_is_waited_for)
{
	struct machine m;

	set_up(&m);
	ASSERT(put(&m, 24, 0));
	ASSERT(put(&m, 24, BPF_RINGBUF_BUSY_BIT));
	ASSERT(put(&m, 24, 0));
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 1);
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 1);
	write_at(&m, 32 + 3, 0); /* the bit */
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 3);
	tear_down(&m);
}

TEST(what_was_discarded_is_passed_over)
{
	struct machine m;

	set_up(&m);
	ASSERT(put(&m, 4000, BPF_RINGBUF_DISCARD_BIT));
	m.nr_got++;
	ASSERT(put(&m, 24, 0));
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 2);
	tear_down(&m);
}

TEST(who_ends_it_has_taken_what_was_given)
{
	struct machine m;

	set_up(&m);
	ASSERT(put(&m, 24, 0));
	ASSERT(put(&m, 24, 0));
	m.answer = -ENOMEM;
	ASSERT_EQ(take(&m), -ENOMEM);
	ASSERT_EQ(m.nr_got, 1);
	m.answer = 0;
	ASSERT_OK(take(&m));
	ASSERT_EQ(m.nr_got, 2);
	tear_down(&m);
}
