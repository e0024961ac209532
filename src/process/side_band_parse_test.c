// SPDX-License-Identifier: Apache-2.0
/* Records written here, as the kernel writes them. */
#include "process/side_band_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

static struct {
	uint8_t bytes[65536 * 2];
	size_t nr;
} ring;
static struct side_events batch;

static void put(const void *data, size_t size)
{
	ASSERT(ring.nr + size <= sizeof(ring.bytes));
	memcpy(ring.bytes + ring.nr, data, size);
	ring.nr += size;
}

static void put_u32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_u64(uint64_t value)
{
	put(&value, sizeof(value));
}

static size_t begin(uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };
	size_t at = ring.nr;

	put(&header, sizeof(header));
	return at;
}

static void end(size_t at, uint64_t time)
{
	struct perf_event_header header;

	put_u32(7);
	put_u32(7);
	put_u64(time);
	put_u64(0);
	memcpy(&header, ring.bytes + at, sizeof(header));
	header.size = (uint16_t)(ring.nr - at);
	memcpy(ring.bytes + at, &header, sizeof(header));
}

static void put_text(const char *text)
{
	put(text, strlen(text) + 1);
	while (ring.nr % 8)
		put("", 1);
}

static void put_task(uint32_t type, uint64_t time, uint32_t pid, uint32_t ppid, uint32_t tid)
{
	size_t at = begin(type, 0);

	put_u32(pid);
	put_u32(ppid);
	put_u32(tid);
	put_u32(ppid);
	put_u64(time);
	end(at, time);
}

static void put_comm(uint64_t time, uint32_t pid, uint32_t tid, const char *comm, bool exec)
{
	size_t at = begin(PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);

	put_u32(pid);
	put_u32(tid);
	put_text(comm);
	end(at, time);
}

static void put_mmap(uint64_t time, uint32_t pid, uint64_t start, uint64_t len, const char *path,
		     uint16_t misc)
{
	size_t at = begin(PERF_RECORD_MMAP2, misc);

	put_u32(pid);
	put_u32(pid);
	put_u64(start);
	put_u64(len);
	put_u64(0x2000);
	put_u32(254);
	put_u32(1);
	put_u64(4711);
	put_u64(99);
	put_u32(5);
	put_u32(2);
	put_text(path);
	end(at, time);
}

static void put_ksymbol(uint64_t time, uint64_t start, uint32_t len, uint16_t flags)
{
	size_t at = begin(PERF_RECORD_KSYMBOL, 0);

	put_u64(start);
	put_u32(len);
	put_u32(PERF_RECORD_KSYMBOL_TYPE_BPF | (uint32_t)flags << 16);
	put_text("bpf_prog_1234_name");
	end(at, time);
}

static void put_lost(uint64_t time, uint64_t lost)
{
	size_t at = begin(PERF_RECORD_LOST, 0);

	put_u64(1);
	put_u64(lost);
	end(at, time);
}

/* From the heap, exactly as long: a read beyond it is ASan's to find. */
static int parse(size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, ring.bytes, size);
	batch.events.nr = batch.text.nr = 0;
	r = side_band_parse(copy, size, &batch);
	free(copy);
	return r;
}

static const char *text_of(size_t i)
{
	return batch.text.items + batch.events.items[i].text;
}

TEST(reads_each_kind)
{
	const struct side_event *e;

	put_task(PERF_RECORD_FORK, 10, 100, 50, 100);
	put_comm(20, 100, 100, "prog", true);
	put_mmap(30, 100, 0x1000, 0x3000, "/usr/bin/prog", PERF_RECORD_MISC_USER);
	put_comm(40, 100, 101, "worker", false);
	put_lost(50, 12);
	put_task(PERF_RECORD_EXIT, 60, 100, 50, 100);
	ASSERT_OK(parse(ring.nr));
	e = batch.events.items;
	ASSERT_EQ(batch.events.nr, 7);
	ASSERT(e[0].type == SIDE_FORK && e[0].pid == 100 && e[0].parent_pid == 50);
	ASSERT(e[1].type == SIDE_EXEC && e[1].pid == 100 && e[1].time_ns == 20);
	ASSERT(e[2].type == SIDE_COMM && e[2].pid == 100 && e[2].tid == 100);
	ASSERT_STR(text_of(2), "prog");
	ASSERT(e[3].type == SIDE_MMAP && e[3].start == 0x1000 && e[3].len == 0x3000);
	ASSERT(e[3].offset == 0x2000 && e[3].dev_major == 254 && e[3].dev_minor == 1);
	ASSERT_EQ(e[3].inode, 4711);
	ASSERT_STR(text_of(3), "/usr/bin/prog");
	ASSERT(e[4].type == SIDE_COMM && e[4].tid == 101);
	ASSERT(e[5].type == SIDE_LOST && e[5].lost == 12);
	ASSERT(e[6].type == SIDE_EXIT && e[6].pid == 100 && e[6].time_ns == 60);
	side_events_fini(&batch);
}

TEST(a_thread_is_no_process)
{
	const struct side_event *e;

	put_task(PERF_RECORD_FORK, 10, 100, 100, 101);
	ASSERT_OK(parse(ring.nr));
	e = batch.events.items;
	ASSERT_EQ(batch.events.nr, 1);
	ASSERT(e[0].type == SIDE_THREAD && e[0].pid == 100 && e[0].tid == 101);
	side_events_fini(&batch);
}

TEST(ends_of_threads_are_not_those_of_processes)
{
	const struct side_event *e;

	put_task(PERF_RECORD_EXIT, 11, 100, 100, 101);
	ASSERT_OK(parse(ring.nr));
	e = batch.events.items;
	ASSERT_EQ(batch.events.nr, 1);
	ASSERT(e[0].type == SIDE_THREAD_EXIT && e[0].pid == 100 && e[0].tid == 101);
	ASSERT_EQ(e[0].time_ns, 11);
	side_events_fini(&batch);
}

TEST(leaves_out_what_is_no_news)
{
	put_task(PERF_RECORD_FORK, 12, 0, 1, 0); /* another PID namespace's */
	put_task(PERF_RECORD_EXIT, 13, UINT32_MAX, 1, UINT32_MAX);
	put_mmap(14, UINT32_MAX, 0x1000, 0x1000, "[kernel]", PERF_RECORD_MISC_KERNEL);
	put_mmap(15, 100, 0x1000, 0, "/empty", 0);
	put_mmap(16, 100, UINT64_MAX, 2, "/wraps", 0);
	end(begin(PERF_RECORD_THROTTLE, 0), 17);
	end(begin(4711, 0), 18);
	ASSERT_OK(parse(ring.nr));
	ASSERT_EQ(batch.events.nr, 0);
	side_events_fini(&batch);
}

TEST(a_build_id_stands_where_the_inode_was)
{
	put_mmap(1, 100, 0x1000, 0x1000, "/x", PERF_RECORD_MISC_MMAP_BUILD_ID);
	ASSERT_OK(parse(ring.nr));
	ASSERT_EQ(batch.events.items[0].inode, 0);
	side_events_fini(&batch);
}

TEST(a_text_without_end_is_cut_at_the_record)
{
	size_t at = begin(PERF_RECORD_COMM, 0);

	put_u32(1);
	put_u32(1);
	put("abcdefgh", 8);
	end(at, 5);
	ASSERT_OK(parse(ring.nr));
	ASSERT_STR(text_of(0), "abcdefgh");
	side_events_fini(&batch);
}

/* Cut off at any byte: what is whole is read, the rest refused. */
TEST(cut_records_are_refused)
{
	size_t whole;

	put_comm(1, 100, 100, "prog", true);
	whole = ring.nr;
	put_mmap(2, 100, 0x1000, 0x3000, "/usr/bin/prog", 0);
	for (size_t size = whole + 1; size < ring.nr; size++) {
		ASSERT_ERR(parse(size), EBADMSG);
		ASSERT_EQ(batch.events.nr, 2);
	}
	ASSERT_OK(parse(0));
	side_events_fini(&batch);
}

TEST(code_of_bpf_programs_comes_and_goes)
{
	put_ksymbol(20, 0xffffffffc0001000, 0x80, 0);
	put_ksymbol(21, 0xffffffffc0001000, 0x80, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	put_ksymbol(22, UINT64_MAX - 8, 0x80, 0); /* round the end */
	ASSERT_OK(parse(ring.nr));
	ASSERT_EQ(batch.events.nr, 2);
	ASSERT_EQ(batch.events.items[0].type, SIDE_CODE);
	ASSERT_EQ(batch.events.items[0].time_ns, 20);
	ASSERT_EQ(batch.events.items[0].start, 0xffffffffc0001000);
	ASSERT_EQ(batch.events.items[0].len, 0x80);
	ASSERT_STR(batch.text.items + batch.events.items[0].text, "bpf_prog_1234_name");
	ASSERT_EQ(batch.events.items[1].type, SIDE_CODE_GONE);
	side_events_fini(&batch);
}

/* Each further event that hears of it makes it larger by a sample_id that nobody writes. */
TEST(kernel_code_is_told_at_its_time_whatever_stands_behind)
{
	static const uint64_t garbage[] = { 0, 1, UINT64_MAX };
	size_t used;

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		struct perf_event_header header;
		size_t at = ring.nr = 0;

		put_ksymbol(20, 0xffffffffc0001000, 0x80, 0);
		for (int k = 0; k < 6; k++)
			put_u64(garbage[i]);
		memcpy(&header, ring.bytes + at, sizeof(header));
		header.size = (uint16_t)ring.nr;
		memcpy(ring.bytes + at, &header, sizeof(header));
		batch.events.nr = batch.text.nr = 0;
		ASSERT_OK(side_band_parse_until(ring.bytes, ring.nr, 20, &batch, &used));
		ASSERT_EQ(used, ring.nr);
		ASSERT_EQ(batch.events.nr, 1);
		ASSERT_EQ(batch.events.items[0].time_ns, 20);
		ASSERT_EQ(batch.events.items[0].start, 0xffffffffc0001000);
	}
	side_events_fini(&batch);
}

TEST(lying_sizes_are_refused)
{
	static const uint16_t sizes[] = { 0, 1, 7, 8, 16, 31, 32, 39, 65535 };
	static const uint32_t types[] = {
		PERF_RECORD_FORK,  PERF_RECORD_EXIT,	PERF_RECORD_COMM,
		PERF_RECORD_MMAP2, PERF_RECORD_KSYMBOL, PERF_RECORD_LOST
	};

	memset(ring.bytes, 0x01, sizeof(ring.bytes));
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			struct perf_event_header header = { types[t], 0, sizes[s] };

			memcpy(ring.bytes, &header, sizeof(header));
			ASSERT_ERR(parse(64), EBADMSG);
		}
	side_events_fini(&batch);
}

TEST(later_records_stay)
{
	size_t used, first;

	put_comm(10, 1, 1, "a", false);
	first = ring.nr;
	put_comm(20, 1, 1, "b", false);
	put_comm(5, 1, 1, "c", false);
	batch.events.nr = batch.text.nr = 0;
	ASSERT_OK(side_band_parse_until(ring.bytes, ring.nr, 9, &batch, &used));
	ASSERT_EQ(used, 0);
	ASSERT_OK(side_band_parse_until(ring.bytes, ring.nr, 10, &batch, &used));
	ASSERT_EQ(used, first);
	ASSERT_EQ(batch.events.nr, 1);
	ASSERT_OK(side_band_parse_until(ring.bytes + used, ring.nr - used, 20, &batch, &used));
	ASSERT_EQ(used, ring.nr - first);
	ASSERT_EQ(batch.events.nr, 3);
	side_events_fini(&batch);
}

TEST(sorting_is_stable)
{
	char name[16];

	for (size_t i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%zu", i);
		put_comm(i * 7 % 10, 1, 1, name, i % 2);
	}
	ASSERT_OK(parse(ring.nr));
	side_events_sort(&batch);
	ASSERT_EQ(batch.events.nr, 1500);
	for (size_t i = 1; i < batch.events.nr; i++) {
		const struct side_event *a = &batch.events.items[i - 1], *b = a + 1;

		ASSERT(a->time_ns <= b->time_ns);
		ASSERT(a->time_ns < b->time_ns || a->text < b->text);
		if (a->type == SIDE_EXEC)
			ASSERT(b->type == SIDE_COMM && b->time_ns == a->time_ns);
	}
	side_events_fini(&batch);
}
