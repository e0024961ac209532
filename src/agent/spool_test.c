// SPDX-License-Identifier: Apache-2.0
#include "agent/spool.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[] = "/tmp/sonde_spool_test_XXXXXX";
static struct spool_file found[16];
static size_t nr_found;
static struct spool_problems problems;

static void set_up(void)
{
	ASSERT(mkdtemp(folder));
	log_set_level(LOG_LEVEL_ERROR);
}

static void run_in_folder(const char *command)
{
	char text[256];

	snprintf(text, sizeof(text), "cd %s && %s", folder, command);
	ASSERT_EQ(system(text), 0);
}

static void tear_down(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	ASSERT_EQ(system(command), 0);
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
}

static int on_found(void *ctx, const struct spool_file *file)
{
	(void)ctx;
	ASSERT(nr_found < 16);
	found[nr_found++] = *file;
	return 0;
}

static struct spool *open_spool(void)
{
	struct spool *s = NULL;

	nr_found = 0;
	ASSERT_OK(spool_open(folder, on_found, NULL, &problems, &s));
	return s;
}

static uint64_t put(struct spool *s, const char *text, uint64_t samples)
{
	struct spool_file file = { 0 };

	ASSERT_OK(spool_put(s, text, strlen(text), samples, &file));
	ASSERT_EQ(file.samples, samples);
	ASSERT_EQ(file.bytes, spool_bytes(strlen(text)));
	return file.number;
}

static bool has(const struct spool *s, uint64_t number, const char *text)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	int r = spool_get(s, number, &data, &size);

	ASSERT(!r || r == -EBADMSG);
	return !r && size == strlen(text) && !memcmp(data, text, size);
}

TEST(what_was_put_is_there_for_the_next)
{
	struct spool *s;

	set_up();
	s = open_spool();
	ASSERT_EQ(put(s, "one", 10), 1);
	ASSERT_EQ(put(s, "two", 20), 2);
	ASSERT_EQ(put(s, "three", 30), 3);
	ASSERT(has(s, 2, "two"));
	spool_remove(s, 2);
	spool_remove(s, 2);
	ASSERT(!has(s, 2, "two"));
	spool_free(s);
	run_in_folder("touch 000000000000.spool mine 4.spool && echo > .000000000004.tmp");
	s = open_spool();
	ASSERT_EQ(problems.corrupt, 0);
	ASSERT_EQ(nr_found, 2);
	ASSERT_EQ(found[0].number, 1);
	ASSERT_EQ(found[0].samples, 10);
	ASSERT_EQ(found[1].number, 3);
	ASSERT_EQ(found[1].samples, 30);
	ASSERT(has(s, 1, "one") && has(s, 3, "three"));
	ASSERT_EQ(put(s, "four", 1), 4);
	spool_free(s);
	run_in_folder("test -e mine -a -e 4.spool -a ! -e .000000000004.tmp");
	tear_down();
}

TEST(what_is_not_whole_is_none)
{
	static const char *const spoil[] = {
		"truncate -s 20 1.f",
		"truncate -s -1 1.f",
		"echo >> 1.f",
		"printf x | dd of=1.f bs=1 seek=3 conv=notrunc status=none",
		"printf x | dd of=1.f bs=1 seek=9 conv=notrunc status=none",
		("printf '\\377\\377\\377\\377\\377' | dd of=1.f bs=1 seek=18 status=none "
		 "conv=notrunc"),
		": > 1.f",
		"rm 1.f && ln -s /etc/passwd 1.f",
		"rm 1.f && mkfifo 1.f",
		"cp 2.f 1.f",
	};

	for (size_t i = 0; i < sizeof(spoil) / sizeof(*spoil); i++) {
		struct spool *s;

		set_up();
		s = open_spool();
		put(s, "a report", 10);
		put(s, "another report", 10);
		run_in_folder("for n in 1 2; do mv 00000000000$n.spool $n.f; done");
		run_in_folder(spoil[i]);
		run_in_folder("for n in 1 2; do mv $n.f 00000000000$n.spool; done");
		ASSERT(!has(s, 1, "a report"));
		ASSERT(has(s, 2, "another report"));
		spool_free(s);
		s = open_spool();
		ASSERT_EQ(problems.corrupt, 1);
		ASSERT_EQ(nr_found, 1);
		ASSERT_EQ(found[0].number, 2);
		/* A number that was somebody's is nobody else's. */
		ASSERT_EQ(put(s, "one more", 1), 3);
		spool_free(s);
		tear_down();
	}
}

/* Reading a process's memory where it has none is an I/O error, as of a disk that fails. */
static void make_failing(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ASSERT_OK(unshare(CLONE_NEWNS));
	ASSERT_OK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_OK(mount("/proc/self/mem", path, NULL, MS_BIND, NULL));
}

/* open() says ENXIO. */
static void make_socket(const char *name)
{
	struct sockaddr_un place = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(place.sun_path, sizeof(place.sun_path), "%s/%s", folder, name);
	ASSERT_OK(bind(fd, (struct sockaddr *)&place, sizeof(place)));
	close(fd);
}

TEST(a_file_that_cannot_be_read_costs_nothing_but_itself)
{
	struct spool *s;

	set_up();
	s = open_spool();
	put(s, "a report", 10);
	put(s, "another report", 20);
	spool_free(s);
	make_socket("000000000007.spool");
	s = open_spool();
	ASSERT_EQ(problems.corrupt, 0);
	ASSERT_EQ(problems.unread, 1);
	ASSERT_EQ(nr_found, 2);
	ASSERT_EQ(put(s, "one more", 1), 8);
	spool_free(s);
	if (!geteuid()) {
		make_failing("000000000001.spool");
		s = open_spool();
		ASSERT_EQ(problems.corrupt, 1);
		ASSERT_EQ(problems.unread, 1);
		ASSERT_EQ(nr_found, 2);
		ASSERT_EQ(found[0].number, 2);
		spool_free(s);
		run_in_folder("umount 000000000001.spool");
	}
	tear_down();
}

TEST(data_that_changed_is_found_when_it_is_read)
{
	struct spool *s;

	set_up();
	s = open_spool();
	put(s, "a report", 10);
	run_in_folder("printf X | dd of=000000000001.spool bs=1 seek=42 conv=notrunc status=none");
	ASSERT(!has(s, 1, "a report"));
	spool_free(s);
	tear_down();
}

TEST(nothing_is_left_of_what_could_not_be_written)
{
	struct rlimit limit, small = { 100, RLIM_INFINITY };
	struct spool_file file;
	char data[4096] = { 0 };
	struct spool *s;

	set_up();
	s = open_spool();
	signal(SIGXFSZ, SIG_IGN);
	ASSERT_OK(getrlimit(RLIMIT_FSIZE, &limit));
	small.rlim_max = limit.rlim_max;
	ASSERT_OK(setrlimit(RLIMIT_FSIZE, &small));
	ASSERT_EQ(spool_put(s, data, sizeof(data), 1, &file), -EFBIG);
	ASSERT_OK(setrlimit(RLIMIT_FSIZE, &limit));
	run_in_folder("test -z \"$(ls -A)\"");
	ASSERT_EQ(put(s, "a report", 1), 1);
	spool_free(s);
	tear_down();
}

/* What an attempt that failed could not remove either. */
TEST(what_is_left_of_an_attempt_is_in_nobodys_way)
{
	struct spool *s;

	set_up();
	s = open_spool();
	run_in_folder("echo half > .000000000001.tmp");
	ASSERT_EQ(put(s, "a report", 1), 1);
	ASSERT(has(s, 1, "a report"));
	run_in_folder("test ! -e .000000000001.tmp && mkdir .000000000002.tmp");
	ASSERT(spool_put(s, "x", 1, 1, &found[0]) < 0);
	spool_free(s);
	tear_down();
}

TEST(what_cannot_be_removed_is_told)
{
	struct spool *s;

	set_up();
	s = open_spool();
	put(s, "a report", 1);
	ASSERT_OK(spool_remove(s, 1));
	ASSERT_OK(spool_remove(s, 1));
	run_in_folder("mkdir 000000000001.spool");
	ASSERT(spool_remove(s, 1) < 0);
	spool_free(s);
	tear_down();
}

TEST(only_a_folder_of_ours_will_do)
{
	struct spool *s, *other = NULL;

	set_up();
	s = open_spool();
	ASSERT_EQ(spool_open(folder, on_found, NULL, &problems, &other), -EBUSY);
	spool_free(s);
	ASSERT_OK(chmod(folder, 0770));
	ASSERT_EQ(spool_open(folder, on_found, NULL, &problems, &other), -EPERM);
	ASSERT_OK(chmod(folder, 0755));
	spool_free(open_spool());
	ASSERT_EQ(spool_open("/dev/null", on_found, NULL, &problems, &other), -ENOTDIR);
	ASSERT_EQ(spool_open("/tmp/no/such/folder", on_found, NULL, &problems, &other), -ENOENT);
	ASSERT(!other);
	tear_down();
}
