// SPDX-License-Identifier: Apache-2.0
/* Tables that are read from a disk, one rule at a time. */
#include "unwind/table_spill.h"
#include "unwind/table_image.h"
#include "unwind/unwind_store.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "abi/sample.h"

enum { BUCKETS = 3000, RULES = 500, START = 0x1000, TRUSTED = 0, SOMEBODY = 54321 };

static struct table_spill spill;

static void set_up(void)
{
	const char *root = getenv("SONDE_BUILD_ROOT");
	int folder = open(root ? root : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ASSERT(folder >= 0);
	table_spill_init(&spill);
	ASSERT_OK(table_spill_use(&spill, folder));
}

static void tear_down(void)
{
	close(spill.folder);
	table_spill_fini(&spill);
}

/* Two rows in two of three buckets; rules differ by `number`. */
static struct unwind_table *table_of(uint32_t nr_buckets, int number)
{
	struct unwind_table *t = calloc(1, sizeof(*t));

	*t = (struct unwind_table){
		.start = START,
		.nr_buckets = nr_buckets,
		.nr_rules = RULES,
		.buckets = calloc(nr_buckets, sizeof(uint32_t)),
		.rows = calloc(2 * (size_t)nr_buckets, sizeof(uint32_t)),
		.rules = calloc(RULES, sizeof(*t->rules)),
	};
	t->rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	for (int i = 1; i < RULES; i++)
		t->rules[i] = (struct unwind_rule){ .cfa = CFA_REG,
						    .cfa_reg = 7,
						    .cfa_off = 8 * (number + i) };
	for (uint32_t i = 0; i < nr_buckets; i++) {
		t->buckets[i] = BUCKET(t->nr_rows, i % 3 ? 2 : 0);
		if (i % 3) {
			t->rows[t->nr_rows++] = ROW(i % 7, i % RULES);
			t->rows[t->nr_rows++] = ROW(200, (i + 1) % RULES);
		}
	}
	return t;
}

/* At how many addresses a file's table says something else than `table`. */
static int differ(uint32_t file, const struct unwind_table *table)
{
	uint64_t end = START + ((uint64_t)table->nr_buckets << BUCKET_SHIFT) + 512;
	int n = 0;

	for (uint64_t addr = START - 300; addr < end; addr += 3) {
		struct unwind_rule rule;

		ASSERT_OK(table_spill_find(&spill, file, addr, &rule));
		n += memcmp(&rule, unwind_table_find(table, addr), sizeof(rule)) != 0;
	}
	return n;
}

TEST(each_address_has_the_rule_that_the_table_has)
{
	struct unwind_table *one = table_of(BUCKETS, 0), *other = table_of(BUCKETS, 1000);
	struct unwind_rule rule;

	set_up();
	ASSERT_OK(table_spill_put(&spill, 1, TRUSTED, one));
	ASSERT_OK(table_spill_put(&spill, 2, TRUSTED, other));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(differ(1, one), 0);
		ASSERT_EQ(differ(2, other), 0);
	}
	ASSERT_ERR(table_spill_find(&spill, 3, START, &rule), ENOENT);
	/* The number is another file's: nothing of the old one is remembered. */
	ASSERT_OK(table_spill_put(&spill, 1, TRUSTED, other));
	ASSERT_EQ(differ(1, other), 0);
	table_spill_drop(&spill, 2);
	ASSERT(!table_spill_has(&spill, 2));
	ASSERT_ERR(table_spill_find(&spill, 2, START + 512, &rule), ENOENT);
	unwind_table_free(one);
	unwind_table_free(other);
	tear_down();
}

TEST(what_a_child_built_is_kept_too_and_can_be_loaded)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };
	struct unwind_table *table = table_of(BUCKETS, 0), *built, *again;
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct unwind_store s;

	set_up();
	ASSERT_OK(table_image_write(fd, table));
	ASSERT_OK(fcntl(fd, F_ADD_SEALS, TABLE_IMAGE_SEALS));
	ASSERT_OK(table_image_open(fd, 0, &built));
	ASSERT_OK(table_spill_put(&spill, 1, TRUSTED, built));
	unwind_table_free(built);
	ASSERT_EQ(differ(1, table), 0);
	ASSERT_OK(table_spill_open(&spill, 1, &again));
	table_spill_drop(&spill, 1);
	ASSERT_OK(unwind_store_init(&s, &no_maps, 4 << 20));
	ASSERT_OK(unwind_store_load(&s, 1, again));
	ASSERT_EQ(s.files[1].state, FILE_STATE_LOADED);
	ASSERT_EQ(s.files[1].nr_buckets, BUCKETS);
	unwind_store_fini(&s);
	unwind_table_free(again);
	unwind_table_free(table);
	tear_down();
}

static uint32_t put_all(uint32_t file, uint32_t nr, uint32_t owner,
			const struct unwind_table *table)
{
	uint32_t nr_there = 0;

	for (uint32_t i = 0; i < nr; i++) {
		ASSERT_OK(table_spill_put(&spill, file + i, owner, table));
		nr_there++;
	}
	return file + nr_there;
}

static uint32_t nr_of(uint32_t file, uint32_t end)
{
	uint32_t nr = 0;

	for (; file < end; file++)
		nr += table_spill_has(&spill, file);
	return nr;
}

TEST(one_user_leaves_room_for_others_and_the_longest_unused_goes)
{
	struct unwind_table *table = table_of(30, 0);
	uint32_t victims, end;
	struct unwind_rule rule;

	set_up();
	victims = put_all(1, 10, TRUSTED, table);
	end = put_all(victims, SPILL_FILES_MAX, SOMEBODY, table);
	ASSERT_EQ(nr_of(1, victims), 10);
	ASSERT_EQ(nr_of(victims, end), SPILL_FILES_MAX / SPILL_PART);
	ASSERT(table_spill_has(&spill, end - 1));
	/* Those that are trusted may have all, and of these stays what is used. */
	ASSERT_OK(table_spill_find(&spill, 3, START, &rule));
	put_all(end, SPILL_FILES_MAX - 1, TRUSTED, table);
	ASSERT_EQ(spill.tables.nr, SPILL_FILES_MAX);
	ASSERT(table_spill_has(&spill, 3));
	ASSERT(!table_spill_has(&spill, 4));
	unwind_table_free(table);
	tear_down();
}

TEST(bytes_are_bounded)
{
	/* 16 MB each. */
	struct unwind_table *table = table_of(1700000, 0);
	uint64_t one;

	set_up();
	ASSERT_OK(table_spill_put(&spill, 1, SOMEBODY, table));
	one = spill.bytes;
	put_all(2, 5, SOMEBODY, table);
	ASSERT(spill.bytes <= SPILL_BYTES_MAX / SPILL_PART);
	ASSERT(spill.bytes + one > SPILL_BYTES_MAX / SPILL_PART);
	for (uint32_t i = 1; i < 7; i++)
		table_spill_drop(&spill, i);
	ASSERT_EQ(spill.bytes, 0);
	unwind_table_free(table);
	tear_down();
}

/* As on a disk that is full. */
TEST(what_cannot_be_written_is_not_there)
{
	struct unwind_table *table = table_of(BUCKETS, 0);
	struct rlimit limit = { 5000, RLIM_INFINITY };

	set_up();
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_OK(setrlimit(RLIMIT_FSIZE, &limit));
	ASSERT_ERR(table_spill_put(&spill, 1, TRUSTED, table), EFBIG);
	limit.rlim_cur = RLIM_INFINITY;
	ASSERT_OK(setrlimit(RLIMIT_FSIZE, &limit));
	ASSERT(!table_spill_has(&spill, 1));
	ASSERT_EQ(spill.bytes, 0);
	ASSERT_OK(table_spill_put(&spill, 1, TRUSTED, table));
	ASSERT_EQ(differ(1, table), 0);
	unwind_table_free(table);
	tear_down();
}

TEST(a_folder_in_memory_is_of_no_use)
{
	int shm = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	set_up();
	if (shm >= 0)
		ASSERT_ERR(table_spill_use(&spill, shm), ENOTSUP);
	close(shm);
	tear_down();
}
