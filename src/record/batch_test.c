// SPDX-License-Identifier: Apache-2.0
/* Raw records that share pages of a stack are kept small, and come back as they were. */
#include "record/batch.h"
#include "abi/sample.h"
#include "test.h"
#include "unwinder/host_walk.h"

#include <string.h>

enum { NR_PAGES = 20, MAX = 1 << 20 };

static struct {
	struct sample_header header;
	struct sample_raw raw;
	__u64 kernel[3];
	uint8_t stack[NR_PAGES * RAW_PAGE];
} record;

static size_t make_record(uint64_t time_ns, uint32_t skip)
{
	record.header = (struct sample_header){ .type = SAMPLE_RAW, .tid = 7, .time_ns = time_ns };
	record.raw = (struct sample_raw){ .nr_pages = NR_PAGES,
					  .nr_kernel = 3,
					  .stack_start = 0x7fff0000 + skip,
					  .stack_size = sizeof(record.stack) - skip };
	for (uint32_t i = 0; i < NR_PAGES; i++)
		record.raw.pages[i] = (uint16_t)(i < 10 ? i : 2 * i);
	record.kernel[2] = time_ns;
	for (uint32_t i = 0; i < sizeof(record.stack); i++)
		record.stack[i] = (uint8_t)(i * 7 + i / RAW_PAGE);
	return sizeof(record) - skip;
}

TEST(pages_that_records_share_are_kept_once)
{
	struct batch b = { 0 };
	const uint8_t *got;
	size_t size, got_size, first;

	size = make_record(1, 8);
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	first = batch_bytes(&b);
	ASSERT(first > NR_PAGES * RAW_PAGE - 8);
	/* Another one, where the last page differs. */
	make_record(2, 8);
	record.stack[(NR_PAGES - 1) * RAW_PAGE] ^= 1;
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	ASSERT(batch_bytes(&b) - first < 2 * RAW_PAGE);
	ASSERT_OK(batch_get(&b, &b.pending.items[1], &got, &got_size));
	ASSERT_EQ(got_size, size);
	ASSERT(!memcmp(got, &record, size));
	make_record(1, 8);
	ASSERT_OK(batch_get(&b, &b.pending.items[0], &got, &got_size));
	ASSERT_EQ(got_size, size);
	ASSERT(!memcmp(got, &record, size));
	ASSERT_EQ(b.pending.items[0].time_ns, 1);
	batch_fini(&b);
}

TEST(another_thread_has_its_own_pages)
{
	struct batch b = { 0 };
	size_t size = make_record(1, 0), first;

	ASSERT_OK(batch_add(&b, &record, size, MAX));
	first = batch_bytes(&b);
	record.header.tid = 8;
	record.stack[5] ^= 1;
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	ASSERT(batch_bytes(&b) >= 2 * first - 64);
	batch_fini(&b);
}

TEST(other_records_are_kept_as_they_are)
{
	struct batch b = { 0 };
	struct sample_header hit = { .type = SAMPLE_HIT, .time_ns = 3, .hash = 5 };
	const uint8_t *got;
	size_t size;

	ASSERT_OK(batch_add(&b, &hit, sizeof(hit), MAX));
	/* A raw record that makes no sense: whoever walks it says so. */
	size = make_record(4, 0) - 1;
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	ASSERT_EQ(batch_add(&b, &hit, 8, MAX), -EINVAL);
	ASSERT_EQ(b.pending.nr, 2);
	ASSERT_OK(batch_get(&b, &b.pending.items[0], &got, &size));
	ASSERT_EQ(size, sizeof(hit));
	ASSERT(!memcmp(got, &hit, size));
	ASSERT_OK(batch_get(&b, &b.pending.items[1], &got, &size));
	ASSERT_EQ(size, sizeof(record) - 1);
	ASSERT(!memcmp(got, &record, size));
	batch_fini(&b);
}

TEST(a_full_batch_takes_nothing_and_loses_nothing)
{
	struct batch b = { 0 };
	size_t size = make_record(1, 0), max, before, got_size;
	const uint8_t *got;

	ASSERT_EQ(batch_add(&b, &record, size, size / 2), -ENOMEM);
	ASSERT_EQ(batch_bytes(&b), 0);
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	before = batch_bytes(&b);
	max = before + 3 * RAW_PAGE;
	record.header.tid = 8;
	ASSERT_EQ(batch_add(&b, &record, size, max), -ENOMEM);
	ASSERT_EQ(batch_bytes(&b), before);
	make_record(2, 0);
	record.stack[RAW_PAGE] ^= 1;
	ASSERT_OK(batch_add(&b, &record, size, max));
	ASSERT_OK(batch_get(&b, &b.pending.items[1], &got, &got_size));
	ASSERT(!memcmp(got, &record, size));
	/* And when it is used again. */
	batch_clear(&b);
	ASSERT_EQ(batch_bytes(&b), 0);
	record.stack[0] ^= 1;
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	ASSERT_OK(batch_get(&b, &b.pending.items[0], &got, &got_size));
	ASSERT(!memcmp(got, &record, size));
	batch_fini(&b);
}

TEST(a_raw_record_may_be_kept_without_its_stack)
{
	struct batch b = { 0 };
	struct sample_header hit = { .type = SAMPLE_HIT };
	size_t size = make_record(4, 16), got_size;
	const size_t fixed = size - record.raw.stack_size;
	const struct sample_raw *raw;
	struct stack_copy copy;
	const uint8_t *got;

	ASSERT_EQ(batch_add_without_stack(&b, &record, size, fixed), -ENOMEM);
	ASSERT_EQ(batch_add_without_stack(&b, &record, size - 1, MAX), -EINVAL);
	ASSERT_EQ(batch_add_without_stack(&b, &hit, sizeof(hit), MAX), -EINVAL);
	ASSERT_EQ(batch_bytes(&b), 0);
	ASSERT_OK(batch_add_without_stack(&b, &record, size, RAW_PAGE));
	ASSERT_EQ(b.pending.items[0].time_ns, 4);
	ASSERT_OK(batch_get(&b, &b.pending.items[0], &got, &got_size));
	ASSERT_EQ(got_size, fixed);
	raw = (const struct sample_raw *)(got + sizeof(struct sample_header));
	ASSERT_EQ(raw->nr_kernel, 3);
	ASSERT(!memcmp(raw + 1, record.kernel, sizeof(record.kernel)));
	ASSERT(stack_copy_of_raw(raw, got + got_size, &copy));
	ASSERT_EQ(copy.nr_pages, 0);
	ASSERT_EQ(raw->is_short, 1);
	batch_fini(&b);
}

/* A stall's worth of samples takes megabytes, once. */
TEST(what_a_burst_needed_is_given_back)
{
	enum { MANY = 200 };
	struct batch b = { 0 };
	size_t size = make_record(1, 0), burst;

	for (uint32_t i = 0; i < MANY; i++) {
		record.header.tid = i;
		record.stack[7] = (uint8_t)i;
		ASSERT_OK(batch_add(&b, &record, size, (size_t)MAX * MANY));
	}
	burst = b.pages.cap;
	ASSERT(burst > 4 << 20);
	/* The next one may be as large. */
	batch_clear(&b);
	ASSERT_EQ(b.pages.cap, burst);
	ASSERT_OK(batch_add(&b, &record, size, MAX));
	batch_clear(&b);
	ASSERT_EQ(b.pages.cap, 0);
	batch_fini(&b);
}
