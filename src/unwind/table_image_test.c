// SPDX-License-Identifier: Apache-2.0
/* A table that was built by a process which is not believed: whole, or refused. */
#include "unwind/table_image.h"
#include "unwind/unwind_store.h"
#include "bpf/host/walk_host.h"
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/sample.h"
#include "util/cleanup.h"

enum { BUCKETS = 70000, RUNTIME = 3, HEADER = 48, RULE = sizeof(struct unwind_rule) };

/* Two rows in each bucket, but none in every third. */
static struct unwind_table *table_of(void)
{
	struct unwind_table *t = calloc(1, sizeof(*t));

	*t = (struct unwind_table){
		.start = 0x1000,
		.nr_buckets = BUCKETS,
		.nr_rules = 3,
		.nr_bad_fdes = 7,
		.buckets = calloc(BUCKETS, sizeof(uint32_t)),
		.rows = calloc(2 * BUCKETS, sizeof(uint32_t)),
		.rules = calloc(3, sizeof(*t->rules)),
	};
	t->rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	t->rules[1] = (struct unwind_rule){ .cfa = CFA_REG, .cfa_reg = 7, .cfa_off = 8 };
	t->rules[2] = (struct unwind_rule){ .cfa = CFA_REG, .cfa_reg = 7, .cfa_off = 16 };
	t->rules[2].ra |= RUNTIME << RULE_RUNTIME_SHIFT;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		t->buckets[i] = BUCKET(t->nr_rows, i % 3 ? 2 : 0);
		if (i % 3) {
			t->rows[t->nr_rows++] = ROW(i % 7, 1);
			t->rows[t->nr_rows++] = ROW(200, 2);
		}
	}
	return t;
}

static int image_of(const struct unwind_table *table)
{
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ASSERT(fd >= 0);
	ASSERT_OK(table_image_write(fd, table));
	return fd;
}

static int open_image(int fd, struct unwind_table **ret)
{
	ASSERT_OK(fcntl(fd, F_ADD_SEALS, TABLE_IMAGE_SEALS));
	return table_image_open(fd, RUNTIME, ret);
}

static uint32_t cell_of(const struct unwind_store *s, uint32_t cell)
{
	return s->arena.segments[cell >> ARENA_SEGMENT_SHIFT]
		->cells[cell & (ARENA_SEGMENT_CELLS - 1)];
}

TEST(a_store_loads_it_as_the_table_itself)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };
	struct unwind_table *table = table_of(), *opened;
	struct unwind_store s;
	uint32_t differ = 0;

	ASSERT_OK(open_image(image_of(table), &opened));
	ASSERT_EQ(opened->nr_bad_fdes, 7);
	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, table));
	ASSERT_OK(unwind_store_load(&s, 2, opened));
	ASSERT_EQ(s.files[2].state, FILE_STATE_LOADED);
	ASSERT_EQ(s.files[2].start, s.files[1].start);
	ASSERT_EQ(s.files[2].nr_buckets, BUCKETS);
	for (uint32_t i = 0; i < BUCKETS + table->nr_rows; i++)
		differ +=
			cell_of(&s, s.files[1].buckets + i) != cell_of(&s, s.files[2].buckets + i);
	ASSERT_EQ(differ, 0);
	unwind_store_fini(&s);
	unwind_table_free(table);
	unwind_table_free(opened);
}

/* The image with `size` bytes written over it at `offset`. */
static int open_patched(uint64_t offset, const void *bytes, size_t size)
{
	struct unwind_table *table = table_of(), *opened = NULL;
	int fd = image_of(table), r;

	ASSERT_EQ(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
	r = open_image(fd, &opened);
	if (r)
		close(fd);
	unwind_table_free(opened);
	unwind_table_free(table);
	return r;
}

static int open_with_cell(uint32_t number, uint32_t cell)
{
	return open_patched(HEADER + 3 * RULE + number * sizeof(cell), &cell, sizeof(cell));
}

static int open_with_rule(struct unwind_rule rule)
{
	return open_patched(HEADER + 2 * RULE, &rule, sizeof(rule));
}

TEST(what_no_builder_writes_is_refused)
{
	const struct unwind_rule good = { .cfa = CFA_REG, .cfa_reg = 7, .cfa_off = 16 };
	struct unwind_rule rule = good;
	uint64_t odd_start = 0x1001;

	ASSERT_OK(open_with_rule(good));
	ASSERT_ERR(open_patched(0, "x", 1), EBADMSG);
	ASSERT_ERR(open_patched(8, &odd_start, 8), EBADMSG);
	ASSERT_ERR(open_patched(16, "\xff\xff\xff\xff", 4), EBADMSG); /* buckets */
	ASSERT_ERR(open_patched(20, "\x00\x00\x00\x00", 4), EBADMSG); /* rows */
	ASSERT_ERR(open_patched(24, "\x00\x00\x00\x00", 4), EBADMSG); /* rules */
	ASSERT_ERR(open_patched(24, "\x04\x00\x00\x00", 4), EBADMSG);
	/* A bucket that begins elsewhere, one row of the next one's; rows out of order; a rule that
	 * is not there. */
	ASSERT_ERR(open_with_cell(1, BUCKET(1, 2)), EBADMSG);
	ASSERT_ERR(open_with_cell(1, BUCKET(0, 3)), EBADMSG);
	ASSERT_ERR(open_with_cell(BUCKETS - 1, BUCKET(0xffffff, 2)), EBADMSG);
	ASSERT_ERR(open_with_cell(BUCKETS + 1, ROW(0, 2)), EBADMSG);
	ASSERT_ERR(open_with_cell(BUCKETS + 20001, ROW(255, 3)), EBADMSG);
	rule.cfa = CFA_RUNTIME;
	ASSERT_ERR(open_with_rule(rule), EBADMSG);
	rule = good;
	rule.cfa_reg = UNWIND_REGS_MAX;
	ASSERT_ERR(open_with_rule(rule), EBADMSG);
	rule = good;
	rule.ra = RA_IN_REG;
	rule.ra_off = -1;
	ASSERT_ERR(open_with_rule(rule), EBADMSG);
	rule = good;
	rule.ra = (RUNTIME + 1) << RULE_RUNTIME_SHIFT;
	ASSERT_ERR(open_with_rule(rule), EBADMSG);
	rule = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_COMPLETE };
	ASSERT_ERR(open_with_rule(rule), EBADMSG);
	ASSERT_ERR(open_patched(HEADER, &good, sizeof(good)), EBADMSG);
}

TEST(a_file_that_may_change_is_refused)
{
	struct unwind_table *table = table_of(), *opened;
	int fd = image_of(table);

	ASSERT_ERR(table_image_open(fd, RUNTIME, &opened), EBADMSG);
	ASSERT_OK(ftruncate(fd, HEADER - 1));
	ASSERT_ERR(open_image(fd, &opened), EBADMSG);
	close(fd);
	unwind_table_free(table);
}
