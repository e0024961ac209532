// SPDX-License-Identifier: Apache-2.0
#include "symbol/perf_map.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/cleanup.h"

enum { SOMEBODY = 12345 };

/* --- text ------------------------------------------------------------------------------------- */

static int map_of(const char *text, size_t size)
{
	int fd = memfd_create("perf_map_test", MFD_CLOEXEC);

	ASSERT_EQ(write(fd, text, size), (ssize_t)size);
	return fd;
}

static int parse(const char *text)
{
	return map_of(text, strlen(text));
}

/* `run`: how much is looked at in a piece. */
static struct perf_search *search(int fd, const uint64_t *addresses, size_t nr, size_t run)
{
	struct perf_search *s = NULL;
	int r;

	ASSERT_OK(perf_search_new(fcntl(fd, F_DUPFD_CLOEXEC, 0), addresses, nr, &s));
	while ((r = perf_search_run(s, run)) > 0)
		;
	ASSERT_OK(r);
	return s;
}

static void expect_found(const struct perf_search *s, size_t i, const char *name)
{
	char found[PERF_MAP_NAME_MAX + 1] = "(nothing)";
	int r = perf_search_name(s, i, found);

	ASSERT(!r || r == -ENOENT);
	ck_assert_msg(!r == !!name && (r || !strcmp(found, name)), "number %zu is %s, not %s", i,
		      found, name ? name : "(nothing)");
}

static void expect(int fd, uint64_t address, const char *name)
{
	_cleanup_(perf_search_free_p) struct perf_search *s = search(fd, &address, 1, 1);

	expect_found(s, 0, name);
}

TEST(lines)
{
	_cleanup_close_ int m = parse("7f0000001000 40 LazyCompile:~main /app/index.js:1\n"
				      "0x7f0000002000 0X10 Foo::bar(int)\r\n"
				      " 7F0000003000\t10   spaces\n"
				      "7f0000004000 10 the last");

	expect(m, 0x7f0000000fff, NULL);
	expect(m, 0x7f0000001000, "LazyCompile:~main /app/index.js:1");
	expect(m, 0x7f000000103f, "LazyCompile:~main /app/index.js:1");
	expect(m, 0x7f0000001040, NULL);
	expect(m, 0x7f000000200f, "Foo::bar(int)");
	expect(m, 0x7f0000003000, "spaces");
	expect(m, 0x7f000000400f, "the last");
	expect(m, 0, NULL);
	expect(m, UINT64_MAX, NULL);
}

TEST(bad_lines_are_passed_over)
{
	_cleanup_close_ int m =
		parse("\n\n1000\n1000 10\n1000 10 \nx 10 a\n1000 x a\n1000 0 nothing\n"
		      "10000000000001000 10 long\n1000 10a\n0x 10 a\nfffffffffffffff0 20 wraps\n"
		      "2000 10 good\n");
	_cleanup_close_ int empty = parse("");

	expect(m, 0x1000, NULL);
	expect(m, 0xfffffffffffffff8, NULL);
	expect(m, 0x2000, "good");
	expect(empty, 0, NULL);
}

TEST(a_later_line_wins)
{
	_cleanup_close_ int m = parse("1000 100 outer\n"
				      "1040 20 inner\n"
				      "0ff0 20 before\n"
				      "10f0 20 behind\n"
				      "1050 1 byte\n"
				      "2000 10 old\n"
				      "2000 10 new\n");
	_cleanup_close_ int covered = parse("1040 20 inner\n"
					    "1000 100 outer\n");

	expect(m, 0xfef, NULL);
	expect(m, 0xff0, "before");
	expect(m, 0x100f, "before");
	expect(m, 0x1010, "outer");
	expect(m, 0x1040, "inner");
	expect(m, 0x1050, "byte");
	expect(m, 0x1051, "inner");
	expect(m, 0x1060, "outer");
	expect(m, 0x10f0, "behind");
	expect(m, 0x110f, "behind");
	expect(m, 0x1110, NULL);
	expect(m, 0x2005, "new");
	expect(covered, 0x1045, "outer");
}

/* Against the plainest way to say it. */
TEST(many_overlapping_lines)
{
	enum { NR = 3000, ADDRESSES = 5000, LONGEST = 400 };
	static int last[ADDRESSES + LONGEST];
	static uint64_t addresses[ADDRESSES + LONGEST];
	_cleanup_free_ char *text = malloc(NR * 32);
	char *at = text;

	ASSERT_PTR_NONNULL(text);
	srand(20);
	for (int i = 1; i <= NR; i++) {
		int start = 1 + rand() % (ADDRESSES - 1), size = 1 + rand() % (LONGEST - 1);

		at += snprintf(at, 32, "%x %x n%d\n", (unsigned int)start, (unsigned int)size, i);
		for (int a = start; a < start + size; a++)
			last[a] = i;
	}
	for (size_t a = 0; a < ADDRESSES + LONGEST; a++)
		addresses[a] = ADDRESSES + LONGEST - 1 - a;
	for (size_t run = 1; run <= 1 << 20; run <<= 10) {
		_cleanup_close_ int m = parse(text);
		_cleanup_(perf_search_free_p) struct perf_search *s =
			search(m, addresses, ADDRESSES + LONGEST, run);

		for (size_t i = 0; i < ADDRESSES + LONGEST; i++) {
			char name[16];

			snprintf(name, sizeof(name), "n%d", last[addresses[i]]);
			expect_found(s, i, last[addresses[i]] ? name : NULL);
		}
	}
}

TEST(a_long_name_is_cut)
{
	/* At each place of the piece that is read at a time. */
	enum { PIECE = 64 << 10, LONG = 3 * PIECE };
	_cleanup_free_ char *text = malloc(LONG + 200), *name = malloc(PERF_MAP_NAME_MAX + 1);

	ASSERT_PTR_NONNULL(text);
	ASSERT_PTR_NONNULL(name);
	memset(name, 'n', PERF_MAP_NAME_MAX);
	name[PERF_MAP_NAME_MAX] = '\0';
	for (size_t len = LONG - 100; len < LONG; len++) {
		size_t size = (size_t)snprintf(text, 100, "2000 10 before\n123456 10 ");
		_cleanup_close_ int m = -1;

		memset(text + size, 'n', len);
		memcpy(text + size + len, "\n3000 10 behind\n", 16);
		m = map_of(text, size + len + 16);
		expect(m, 0x2000, "before");
		expect(m, 0x123456, name);
		expect(m, 0x3000, "behind");
	}
}

/* Its first line would be a part of one. */
TEST(of_a_file_without_end_its_end_counts)
{
	static const char end[] = "\n2000 10 the end\n", cut[] = "123456 10 cut";
	_cleanup_close_ int fd = memfd_create("perf_map_test", MFD_CLOEXEC);

	ASSERT_OK(ftruncate(fd, PERF_MAP_SIZE_MAX));
	ASSERT_EQ(pwrite(fd, cut, strlen(cut), (off_t)strlen(end) - 2), (ssize_t)strlen(cut));
	ASSERT_EQ(pwrite(fd, end, strlen(end), PERF_MAP_SIZE_MAX), (ssize_t)strlen(end));
	expect(fd, 0x2000, "the end");
	expect(fd, 0x3456, NULL);
	expect(fd, 0x123456, NULL);
}

/* It takes what it says, not what the file has: here a million lines. */
TEST(a_search_takes_little_memory)
{
	enum { LINES = 1 << 20 };
	static const char line[] = "1000 10 a\n";
	_cleanup_free_ char *text = malloc(LINES * (sizeof(line) - 1));
	static const uint64_t missing = 0x2000;
	size_t before = mallinfo2().uordblks;
	_cleanup_close_ int m = -1;

	ASSERT_PTR_NONNULL(text);
	for (size_t i = 0; i < LINES; i++)
		memcpy(text + i * (sizeof(line) - 1), line, sizeof(line) - 1);
	m = map_of(text, LINES * (sizeof(line) - 1));
	{
		_cleanup_(perf_search_free_p) struct perf_search *s =
			search(m, &missing, 1, 1 << 30);

		expect_found(s, 0, NULL);
		ASSERT(mallinfo2().uordblks + mallinfo2().hblkhd < before + (16 << 20));
	}
}

/* --- files ------------------------------------------------------------------------------------ */

/* A /tmp of this test's own, if we may: the names of maps are not ours to choose. */
static bool own_tmp(void)
{
	return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
}

static const char *map_path(int pid)
{
	static char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	return path;
}

static void write_map(int pid, const char *text)
{
	_cleanup_close_ int fd =
		open(map_path(pid), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ASSERT(fd >= 0);
	ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static bool may_be_opened = true;
static unsigned int nr_questions;

static bool may_open(const struct perf_map_guard *g, int pid, int path_fd)
{
	(void)g;
	(void)pid;
	nr_questions++;
	ASSERT(fcntl(path_fd, F_GETFL) & O_PATH);
	return may_be_opened;
}

static struct perf_map_guard guard = { .may_open = may_open };

static void expect_map(int pid, const char *name)
{
	_cleanup_close_ int m = -1;

	if (name) {
		ASSERT_OK(perf_map_open(pid, &guard, &m));
		expect(m, 0x1000, name);
	} else {
		ASSERT_ERR(perf_map_open(pid, &guard, &m), ENOENT);
		ASSERT_EQ(m, -1);
	}
}

struct child {
	int pid;
	int pipe; /* it ends when this is closed */
};

static struct child start_child(uid_t uid)
{
	struct child c;
	int fds[2];
	char byte;

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	c = (struct child){ fork(), fds[1] };
	ASSERT(c.pid >= 0);
	if (!c.pid) {
		close(fds[1]);
		if (uid && setresuid(uid, uid, uid))
			_exit(1);
		_exit((int)read(fds[0], &byte, 1));
	}
	close(fds[0]);
	return c;
}

/* The child is a zombie then; who wants it gone waits for it. */
static void end_child(const struct child *c)
{
	siginfo_t info;

	close(c->pipe);
	ASSERT_OK(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT));
	ASSERT_EQ(info.si_status, 0);
}

TEST(of_this_process)
{
	own_tmp();
	unlink(map_path(getpid()));
	expect_map(getpid(), NULL);
	write_map(getpid(), "1000 10 here\n");
	expect_map(getpid(), "here");
	unlink(map_path(getpid()));
}

TEST(of_a_process_that_has_ended)
{
	struct child c = start_child(0);

	own_tmp();
	end_child(&c);
	write_map(c.pid, "1000 10 zombie\n");
	expect_map(c.pid, "zombie");
	ASSERT_EQ(waitpid(c.pid, NULL, 0), c.pid);
	write_map(c.pid, "1000 10 gone\n");
	expect_map(c.pid, "gone");
	unlink(map_path(c.pid));
	expect_map(c.pid, NULL);
}

/* What may never answer is found, and no more. */
TEST(a_map_that_may_not_be_opened_is_not)
{
	int fd;

	own_tmp();
	write_map(getpid(), "1000 10 here\n");
	may_be_opened = false;
	nr_questions = 0;
	ASSERT_ERR(perf_map_open(getpid(), &guard, &fd), EAGAIN);
	ASSERT_EQ(nr_questions, 1);
	may_be_opened = true;
	expect_map(getpid(), "here");
	/* It has just been opened: the kernel knows the way. */
	guard.cached = true;
	expect_map(getpid(), "here");
	guard.cached = false;
	unlink(map_path(getpid()));
}

TEST(only_regular_files_are_believed)
{
	const char *path = map_path(getpid());
	char other[80];

	own_tmp();
	unlink(path);
	snprintf(other, sizeof(other), "%s.other", path);
	write_map(getpid(), "1000 10 name\n");
	ASSERT_OK(rename(path, other));
	ASSERT_OK(symlink(other, path));
	expect_map(getpid(), NULL);
	unlink(path);
	ASSERT_OK(link(other, path));
	expect_map(getpid(), NULL);
	unlink(other);
	expect_map(getpid(), "name");
	unlink(path);
	ASSERT_OK(mkfifo(path, 0600));
	expect_map(getpid(), NULL);
	unlink(path);
	ASSERT_OK(mkdir(path, 0700));
	expect_map(getpid(), NULL);
	rmdir(path);
}

TEST(only_of_the_process_s_own_user_or_root)
{
	struct child c;

	/* Nobody but root can give a file away. */
	if (geteuid() || !own_tmp())
		return;
	c = start_child(SOMEBODY);
	write_map(c.pid, "1000 10 name\n");
	expect_map(c.pid, "name");
	ASSERT_OK(chown(map_path(c.pid), SOMEBODY + 1, 0));
	expect_map(c.pid, NULL);
	write_map(getpid(), "1000 10 name\n");
	ASSERT_OK(chown(map_path(getpid()), SOMEBODY, 0));
	expect_map(getpid(), NULL);
	end_child(&c);
	ASSERT_EQ(waitpid(c.pid, NULL, 0), c.pid);
	expect_map(c.pid, NULL);
}

TEST(of_the_process_s_own_user)
{
	char ready, go;
	int up[2], down[2], pid;

	if (geteuid() || !own_tmp())
		return;
	ASSERT_OK(pipe2(up, O_CLOEXEC));
	ASSERT_OK(pipe2(down, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		close(down[1]);
		if (setresuid(SOMEBODY, SOMEBODY, SOMEBODY))
			_exit(1);
		write_map(getpid(), "1000 10 theirs\n");
		_exit(write(up[1], "r", 1) != 1 || read(down[0], &go, 1));
	}
	close(up[1]);
	ASSERT_EQ(read(up[0], &ready, 1), 1);
	expect_map(pid, "theirs");
	close(down[1]);
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	/* Now nobody says whose it was. */
	expect_map(pid, NULL);
}

/* Process 1 of its own PID and mount namespace; its PID as we see it goes up the pipe. */
static void run_in_namespaces(int up, int down)
{
	char go;
	int pid;

	if (unshare(CLONE_NEWPID))
		_exit(1);
	pid = fork();
	if (pid) {
		ASSERT_EQ(write(up, &pid, sizeof(pid)), (ssize_t)sizeof(pid));
		close(down);
		_exit(waitpid(pid, NULL, 0) != pid);
	}
	ASSERT(own_tmp());
	write_map(getpid(), "1000 10 contained\n");
	ASSERT_EQ(write(up, "ready", 5), 5);
	_exit((int)read(down, &go, 1));
}

TEST(of_a_process_in_other_namespaces)
{
	int up[2], down[2], middle, pid;
	char from_both[sizeof(pid) + 5];
	size_t nr = 0;

	if (geteuid() || !own_tmp())
		return;
	ASSERT_OK(pipe2(up, O_CLOEXEC));
	ASSERT_OK(pipe2(down, O_CLOEXEC));
	middle = fork();
	if (!middle) {
		close(down[1]);
		run_in_namespaces(up[1], down[0]);
	}
	close(up[1]);
	close(down[0]);
	while (nr < sizeof(from_both)) {
		ssize_t n = read(up[0], from_both + nr, sizeof(from_both) - nr);

		ASSERT(n > 0);
		nr += (size_t)n;
	}
	/* Either of the two may have been the first. */
	memcpy(&pid, memcmp(from_both, "ready", 5) ? from_both : from_both + 5, sizeof(pid));
	write_map(pid, "1000 10 of our /tmp\n");
	write_map(1, "1000 10 of our process 1\n");
	expect_map(pid, "contained");
	close(down[1]);
	ASSERT_EQ(waitpid(middle, NULL, 0), middle);
}
