// SPDX-License-Identifier: Apache-2.0
#include "agent/output_dir.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MAX = 64 << 10, NAMES_MAX = 64 };

static char folder[] = "/tmp/sonde_output_dir_test_XXXXXX";

static const char *set_up(void)
{
	ASSERT(mkdtemp(folder));
	return folder;
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ASSERT_EQ(system(command), 0);
}

static struct output_dir *open_dir(void)
{
	struct output_dir *d;

	ASSERT_OK(output_dir_open(folder, REPORT_OTLP, MAX, &d));
	return d;
}

static char names[NAMES_MAX][256];

/* All names there, sorted; how many. */
static int list(void)
{
	struct dirent **entries;
	int nr = scandir(folder, &entries, NULL, alphasort), kept = 0;

	ASSERT(nr >= 2 && nr < NAMES_MAX);
	for (int i = 0; i < nr; i++) {
		if (strcmp(entries[i]->d_name, ".") && strcmp(entries[i]->d_name, ".."))
			snprintf(names[kept++], sizeof(names[0]), "%s", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return kept;
}

static void make_file(const char *name, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT(fd >= 0);
	ASSERT_EQ(ftruncate(fd, (off_t)size), 0);
}

static bool exists(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

static void put(struct output_dir *d, size_t size)
{
	static const char data[MAX];

	ASSERT_OK(output_dir_put(d, data, size));
}

TEST(names_are_numbered_and_end_as_the_format_wants)
{
	struct output_dir *d;

	set_up();
	d = open_dir();
	put(d, 100);
	put(d, 100);
	ASSERT_EQ(list(), 2);
	ASSERT_EQ(strncmp(names[0], "000000000001-2", 14), 0);
	ASSERT_EQ(strncmp(names[1], "000000000002-2", 14), 0);
	ASSERT_STR(names[0] + strlen(names[0]) - 9, "Z.otlp.gz");
	ASSERT_EQ(output_dir_stats(d).files, 2);
	ASSERT_EQ(output_dir_stats(d).bytes, 8192);
	output_dir_free(d);
	tear_down();
}

/* In a folder where anybody may write. */
TEST(files_of_others_are_none_of_ours)
{
	static const char last[] = "999999999999-20260101T000000Z.otlp.gz";
	struct output_dir *d;
	char path[256];

	if (geteuid()) {
		printf("# skipped: needs root\n");
		return;
	}
	set_up();
	make_file(last, 1 << 30);
	snprintf(path, sizeof(path), "%s/%s", folder, last);
	ASSERT_OK(chown(path, 4711, 4711));
	d = open_dir();
	put(d, 100);
	ASSERT_EQ(output_dir_stats(d).files, 1);
	output_dir_free(d);
	ASSERT(exists(last));
	/* But whose folder it is, his files are. */
	ASSERT_OK(chown(folder, 4711, 4711));
	d = open_dir();
	ASSERT_EQ(output_dir_stats(d).files, 2);
	output_dir_free(d);
	tear_down();
}

/* A file of ours is never created under its name, nor written there: it is moved. */
TEST(a_name_appears_when_its_file_is_whole)
{
	char events[16384] __attribute__((aligned(8)));
	size_t moved = 0, hidden = 0;
	struct output_dir *d;
	ssize_t size;
	int fd;

	set_up();
	d = open_dir();
	fd = inotify_init1(IN_CLOEXEC);
	ASSERT(inotify_add_watch(fd, folder, IN_CREATE | IN_MODIFY | IN_MOVED_TO) >= 0);
	for (int i = 0; i < 5; i++)
		put(d, 30000);
	size = read(fd, events, sizeof(events));
	ASSERT(size > 0);
	for (ssize_t at = 0; at < size;) {
		const struct inotify_event *e = (void *)(events + at);

		if (e->mask & IN_MOVED_TO)
			moved++;
		else
			hidden += e->name[0] == '.';
		ASSERT(e->mask & IN_MOVED_TO || e->name[0] == '.');
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	ASSERT_EQ(moved, 5);
	ASSERT(hidden >= 10);
	close(fd);
	output_dir_free(d);
	tear_down();
}

TEST(the_oldest_make_room)
{
	struct output_dir *d;

	set_up();
	d = open_dir();
	for (int i = 0; i < 40; i++) {
		put(d, 5000); /* two blocks */
		ASSERT(output_dir_stats(d).bytes <= MAX);
	}
	ASSERT_EQ(list(), 8);
	ASSERT_EQ(atoll(names[0]), 33);
	ASSERT_EQ(atoll(names[7]), 40);
	ASSERT_EQ(output_dir_stats(d).removed, 32);
	put(d, MAX);
	ASSERT_EQ(list(), 1);
	ASSERT_ERR(output_dir_put(d, folder, (size_t)MAX + 1), EFBIG);
	ASSERT_EQ(list(), 1);
	output_dir_free(d);
	tear_down();
}

TEST(a_restart_goes_on_with_what_is_there)
{
	struct output_dir *d;

	set_up();
	d = open_dir();
	put(d, 5000);
	put(d, 5000);
	output_dir_free(d);
	make_file(".000000000003-20260101T000000Z.otlp.gz.tmp", 500); /* it was killed */
	make_file("000000000099-20260101T000000Z.otlp.gz", 4096);
	d = open_dir();
	ASSERT(!exists(".000000000003-20260101T000000Z.otlp.gz.tmp"));
	ASSERT_EQ(output_dir_stats(d).bytes, 5 * 4096);
	put(d, MAX - 3 * 4096);
	ASSERT_EQ(list(), 3);
	ASSERT_EQ(atoll(names[0]), 2);
	ASSERT_EQ(atoll(names[1]), 99);
	ASSERT_EQ(atoll(names[2]), 100);
	output_dir_free(d);
	tear_down();
}

/* It had another format before. */
TEST(files_of_both_formats_are_ours)
{
	struct output_dir *d;

	set_up();
	d = open_dir();
	put(d, 20000);
	put(d, 20000);
	output_dir_free(d);
	make_file(".000000000003-20260101T000000Z.pb.gz.tmp", 500);
	ASSERT_OK(output_dir_open(folder, REPORT_PPROF, MAX, &d));
	ASSERT_EQ(output_dir_stats(d).files, 2);
	for (int i = 0; i < 2; i++)
		put(d, 20000);
	ASSERT_EQ(list(), 3);
	ASSERT_EQ(strncmp(names[0], "000000000002-2", 14), 0);
	ASSERT_STR(names[0] + strlen(names[0]) - 9, "Z.otlp.gz");
	ASSERT_EQ(strncmp(names[2], "000000000004-2", 14), 0);
	ASSERT_STR(names[2] + strlen(names[2]) - 7, "Z.pb.gz");
	output_dir_free(d);
	d = open_dir();
	put(d, MAX);
	ASSERT_EQ(list(), 1);
	ASSERT_EQ(atoll(names[0]), 5);
	output_dir_free(d);
	tear_down();
}

TEST(files_of_others_stay)
{
	static const char *const others[] = {
		"notes.txt",
		"1-20260101T000000Z.otlp.gz",
		"000000000001-20260101T000000Z.otlp",
		"000000000001-20260101T000000Z.pb",
		"000000000001-20260101T000000Z.pb.gz.gz",
		"000000000001-20260141T000000Z.otlp.gz",
		"000000000001-20260101T000000Z.otlp.gz.gz",
		"9000000000001-20260101T000000Z.otlp.gz",
		".000000000001-20260101T000000Z.otlp.tmp",
		".tmp",
	};
	struct output_dir *d;
	char path[128];

	set_up();
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		make_file(others[i], MAX);
	snprintf(path, sizeof(path), "%s/000000000007-20260101T000000Z.otlp.gz", folder);
	ASSERT_EQ(mkdir(path, 0700), 0);
	d = open_dir();
	ASSERT_EQ(output_dir_stats(d).files, 0);
	for (int i = 0; i < 20; i++)
		put(d, 30000);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ASSERT(exists(others[i]));
	output_dir_free(d);
	tear_down();
}

TEST(files_may_be_taken_out)
{
	struct output_dir *d;
	int nr, fd;

	set_up();
	d = open_dir();
	for (int i = 0; i < 3; i++)
		put(d, 20000);
	nr = list();
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < nr; i++)
		ASSERT_EQ(unlinkat(fd, names[i], 0), 0);
	close(fd);
	put(d, MAX);
	ASSERT_EQ(list(), 1);
	ASSERT_EQ(output_dir_stats(d).removed, 0);
	/* All of it, even. */
	tear_down();
	put(d, 10);
	ASSERT_EQ(list(), 1);
	ASSERT_EQ(output_dir_stats(d).files, 1);
	ASSERT_EQ(atoll(names[0]), 5);
	output_dir_free(d);
	tear_down();
}

/* Its folder is gone, and what is in its place cannot be had for a while. */
TEST(what_is_in_the_way_may_go_again)
{
	struct output_dir *d;
	int fd;

	set_up();
	d = open_dir();
	put(d, 10);
	tear_down();
	fd = open(folder, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ASSERT(fd >= 0);
	close(fd);
	ASSERT_ERR(output_dir_put(d, "x", 1), ENOTDIR);
	ASSERT_ERR(output_dir_put(d, "x", 1), ENOTDIR);
	ASSERT_OK(unlink(folder));
	/* Another agent has been quicker, and has written more. */
	ASSERT_OK(mkdir(folder, 0700));
	make_file("000000000017-20240102T030405Z.otlp.gz", 1);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_OK(flock(fd, LOCK_EX));
	ASSERT_ERR(output_dir_put(d, "x", 1), EWOULDBLOCK);
	ASSERT_ERR(output_dir_put(d, "x", 1), EWOULDBLOCK);
	ASSERT_EQ(list(), 1);
	close(fd);
	put(d, 10);
	ASSERT_EQ(list(), 2);
	ASSERT_EQ(atoll(names[1]), 18);
	ASSERT_EQ(output_dir_stats(d).files, 2);
	output_dir_free(d);
	tear_down();
}

/* The disk is full, as far as this process goes. */
TEST(what_cannot_be_written_leaves_nothing)
{
	static const char data[20000];
	struct rlimit limit;
	struct output_dir *d;

	set_up();
	d = open_dir();
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 10000;
	ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ASSERT_ERR(output_dir_put(d, data, sizeof(data)), EFBIG);
	ASSERT_EQ(list(), 0);
	ASSERT_EQ(output_dir_stats(d).bytes, 0);
	put(d, 5000);
	ASSERT_EQ(list(), 1);
	ASSERT_EQ(atoll(names[0]), 1);
	output_dir_free(d);
	tear_down();
}

TEST(one_process_writes)
{
	struct output_dir *d, *second;

	set_up();
	d = open_dir();
	log_set_level(LOG_LEVEL_ERROR);
	ASSERT_ERR(output_dir_open(folder, REPORT_OTLP, MAX, &second), EWOULDBLOCK);
	output_dir_free(d);
	d = open_dir();
	output_dir_free(d);
	tear_down();
	/* It is made, but not what it is in. */
	d = open_dir();
	output_dir_free(d);
	tear_down();
	ASSERT_ERR(output_dir_open("/tmp/sonde_no_such_folder/x", REPORT_OTLP, MAX, &d), ENOENT);
	ASSERT_ERR(output_dir_open("/etc/passwd", REPORT_OTLP, MAX, &d), ENOTDIR);
}
