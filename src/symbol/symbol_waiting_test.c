// SPDX-License-Identifier: Apache-2.0
/* Files whose tables are still to be built: how many of them a store keeps open, and whose. */
#include "symbol/symbol_store.h"
#include "symbol/test_complaints.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "elf_writer.h"
#include "util/cleanup.h"

/* What the test is about takes two users. */
TEST_SKIP_REASON()
{
	return geteuid() ? "needs root, to have files of others" : NULL;
}

enum { TABLE_MEMORY = 64 << 10 };

/* With one that builds, and little memory for that. */
static struct symbol_store *open_small_store(struct complaints *c)
{
	struct symbol_store_options options = {
		.cache_dir = "", .table_memory = TABLE_MEMORY, .complain = take_complaint, .ctx = c
	};
	struct symbol_store *s = NULL;

	ASSERT_OK(symbol_store_new(&options, &s));
	return s;
}

/* With a builder that never ends. */
static struct symbol_store *open_store(size_t max_waiting, struct complaints *c)
{
	static char shell[] = "/bin/sh", option[] = "-c", command[] = "exec sleep 100";
	static char *builder[] = { shell, option, command, shell, NULL };
	struct symbol_store_options options = { .cache_dir = "",
						.max_waiting = max_waiting,
						.builder = builder,
						.quick_patience_ms = 1,
						.complain = take_complaint,
						.ctx = c };
	struct symbol_store *s = NULL;

	ASSERT_OK(symbol_store_new(&options, &s));
	return s;
}

/* Asks for a file that nobody else has, or a copy; is it among those that wait then? */
static bool waits_as(struct symbol_store *s, uid_t owner, const uint32_t *owner_of_copy,
		     uint64_t number, uint32_t *ret_id)
{
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct symbol_file file = { .path = "/made/up", .owner = owner_of_copy };
	_cleanup_close_ int fd = -1;
	size_t size;

	elf_writer_build_id(w, &number, sizeof(number));
	image = elf_writer_finish(w, &size);
	fd = elf_image_fd(image, size);
	ASSERT_OK(fchown(fd, owner, owner));
	ASSERT_OK(file_identity_of_memory(image, size, &file.identity));
	ASSERT_OK(elf_file_open_fd(dup(fd), &elf));
	file.elf = elf;
	file.fd = fd;
	ASSERT_OK(symbol_store_want(s, &file, ret_id));
	return symbol_store_state(s, *ret_id) == SYMBOL_STATE_BUILDING;
}

static bool waits(struct symbol_store *s, uid_t owner, uint64_t number, uint32_t *ret_id)
{
	return waits_as(s, owner, NULL, number, ret_id);
}

TEST(who_has_many_files_leaves_room_for_others)
{
	enum { MOST = 32, SHARE = 8, MANY = 100, ONE = 1234, ANOTHER = 1235 };
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(MOST, &c);
	uint32_t ids[MANY], id;
	int nr = 0;

	for (uint32_t i = 0; i < MANY; i++)
		nr += waits(s, ONE, i, &ids[i]);
	ASSERT_EQ(nr, SHARE);
	ASSERT_EQ(c.nr, 1);
	ASSERT_STR(c.last, "/made/up: too many files of its owner wait for their symbols; it has "
			   "none, nor may others");
	ASSERT(waits(s, ANOTHER, MANY, &id));
	/* Root's always do. */
	for (uint32_t i = 1; i <= MOST; i++)
		ASSERT(waits(s, 0, MANY + i, &id));
	ASSERT(!waits(s, ANOTHER, 2 * MANY, &id));
}

/* Copies are in descriptors of ours. */
TEST(who_has_many_copied_files_leaves_room_for_others)
{
	enum { MOST = 32, SHARE = 8, MANY = 100 };
	const uint32_t one = 1234, root = 0;
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(MOST, &c);
	uint32_t id;
	int nr = 0;

	for (uint32_t i = 0; i < MANY; i++)
		nr += waits_as(s, geteuid(), &one, i, &id);
	ASSERT_EQ(nr, SHARE);
	for (uint32_t i = 1; i <= MOST; i++)
		ASSERT(waits_as(s, geteuid(), &root, MANY + i, &id));
}

TEST(what_nobody_needs_any_more_leaves_its_place)
{
	enum { MOST = 32, SHARE = 8, ONE = 1234 };
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(MOST, &c);
	uint32_t ids[SHARE], id;

	for (uint32_t i = 0; i < SHARE; i++)
		ASSERT(waits(s, ONE, i, &ids[i]));
	ASSERT(!waits(s, ONE, SHARE, &id));
	symbol_store_drop(s, ids[0]);
	ASSERT(waits(s, ONE, SHARE + 1, &id));
}

TEST(builders_that_never_end_are_not_waited_for)
{
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(0, &c);
	uint32_t id;

	ASSERT(waits(s, 0, 1, &id));
	ASSERT_EQ(symbol_store_wait(s, 1, NULL, NULL), 1);
	ASSERT(!symbol_store_table(s, id));
	ASSERT_STR(c.last,
		   "/made/up: reading its symbols does not end; it has none, nor may others");
}

static bool has_table(struct symbol_store *s, uid_t owner, uint64_t number, uint32_t *ret_id)
{
	waits(s, owner, number, ret_id);
	symbol_store_wait(s, 0, NULL, NULL);
	return symbol_store_state(s, *ret_id) != SYMBOL_STATE_FAILED;
}

TEST(tables_of_one_owner_leave_memory_for_others)
{
	enum { MANY = 200, ONE = 1234, ANOTHER = 1235 };
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_small_store(&c);
	uint32_t id, last = 0;
	uint64_t nr = 0;

	while (nr < MANY && has_table(s, ONE, nr, &id)) {
		last = id;
		nr++;
	}
	ASSERT(nr > 0 && nr < MANY);
	ASSERT_EQ(c.nr, 3);
	ASSERT(has_table(s, ANOTHER, MANY, &id));
	for (uint64_t i = 1; i <= MANY; i++)
		ASSERT(has_table(s, 0, MANY + i, &id));
	ASSERT(!has_table(s, ONE, MANY * 2 + 1, &id));
	/* What nobody wants any more is no one's. */
	symbol_store_drop(s, last);
	ASSERT(has_table(s, ONE, MANY * 2 + 2, &id));
}
