// SPDX-License-Identifier: Apache-2.0
/* What of a cache's tables goes, and when. */
#include "symbol/symbol_store.h"
#include "symbol/test_store.h"
#include "test.h"

#include <sys/file.h>
#include <time.h>

static void set_age(uint8_t id, time_t seconds)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - seconds },
				     { .tv_sec = time(NULL) - seconds } };
	_cleanup_(closedir_p) DIR *dir = opendir(folder);
	const struct dirent *entry;
	char start[8];

	snprintf(start, sizeof(start), "%02x%02x", id, id);
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, start, 4))
			ASSERT_OK(utimensat(dirfd(dir), entry->d_name, times, 0));
}

TEST(those_unused_for_longest_go)
{
	struct symbol_store_options options = { .cache_dir = make_folder() };
	struct symbol_store *s;

	for (uint8_t id = 1; id <= 4; id++) {
		build_into_cache(id, "f");
		set_age(id, 1000 - id);
	}
	ASSERT(is_cached(1, "f")); /* used now */
	/* Two of the smallest blocks there are, when a sixteenth is free. */
	options.cache_size = 2 * 4096 + 1024;
	s = open_store(options);
	want(s, 5, "f");
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	symbol_store_free(s);
	ASSERT_EQ(count_files(".sym", NULL), 2);
	ASSERT(is_cached(1, "f") && is_cached(5, "f"));

	/* A new one drives out the older of them, and is usable also if it is itself too big. */
	set_age(1, 100);
	set_age(5, 50);
	s = open_store(options);
	want(s, 6, "f");
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	symbol_store_free(s);
	ASSERT(is_cached(6, "f") && is_cached(5, "f") && !is_cached(1, "f"));
	options.cache_size = 1;
	s = open_store(options);
	want(s, 7, "f");
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, 0, 0x1000), "f");
	symbol_store_free(s);
	ASSERT_EQ(count_files("", NULL), 0);
}

TEST(what_the_dead_left_is_removed)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	_cleanup_close_ int dead = -1, living = -1;

	make_folder();
	dead = open(in_folder("aa.1.tmp"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	living = open(in_folder("bb.1.tmp"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT(dead >= 0 && living >= 0);
	ASSERT_OK(flock(living, LOCK_EX));
	s = open_store((struct symbol_store_options){ .cache_dir = folder });
	want(s, 1, "f");
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_EQ(count_files(".tmp", NULL), 1);
	ASSERT_OK(access(in_folder("bb.1.tmp"), F_OK));
}

/* A cache that is always nearly full, as one of a machine that builds programs is. */
TEST(what_is_free_is_used_up_before_all_are_looked_at)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	_cleanup_close_ int dead = -1;
	char name[32];

	make_folder();
	for (int i = 0; i < 70; i++) {
		_cleanup_close_ int fd = -1;

		snprintf(name, sizeof(name), "old%d.1.sym", i);
		fd = open(in_folder(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		ASSERT(fd >= 0 && write(fd, name, sizeof(name)) == sizeof(name));
		ASSERT_OK(futimens(fd, (struct timespec[]){ { .tv_sec = 1 }, { .tv_sec = 1 } }));
	}
	s = open_store(
		(struct symbol_store_options){ .cache_dir = folder, .cache_size = 64 * 4096 });
	for (uint8_t id = 1; id <= 6; id++) {
		want(s, id, "f");
		ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
		/* The folder is looked through by the first that adds a table, and then by who
		 * finds no room. */
		if (id == 1)
			dead = open(in_folder("dead.1.tmp"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		ASSERT_EQ(count_files(".sym", NULL), id < 6 ? 59 + id : 60);
		ASSERT_EQ(count_files(".tmp", NULL), id < 6);
	}
}
