// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of processes, and pages of it that never come: userfaultfd's, which nobody serves.
 */
#include "process/memory.h"

#include "process/proc_identity.h"
#include "process/proc_stat.h"
#include "process/server_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/clock.h"

enum { PAGE = 4096, NOBODY = 65534, SOMEBODY = 65533, OF_ONE_USER_MAX = 4 };

static char here[PAGE * 300] = "here";

struct other {
	pid_t pid;
	uint64_t absent; /* a page of it that never comes */
};

/* With all the privilege that this takes. */
static int open_userfaultfd(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	return fd < 0 || ioctl(fd, UFFDIO_API, &api) ? -1 : fd;
}

/* At `where`, in place of what is there; 0: anywhere. */
static uint64_t make_absent_page(int fd, uint64_t where)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap((void *)(uintptr_t)where, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0), -1, 0);

	reg.range.start = (uintptr_t)page;
	reg.range.len = PAGE;
	return page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &reg) ? 0 : (uintptr_t)page;
}

/* Where this program's arguments are, above the stack. */
static uint64_t page_of_arguments(void)
{
	char path[] = "/proc/self/stat", text[1024];
	uint64_t at = 0;
	FILE *f = fopen(path, "re");
	char *field;

	ASSERT(f && fgets(text, sizeof(text), f));
	fclose(f);
	field = strrchr(text, ')');
	for (int i = 2; field && i < 48; i++)
		field = strchr(field + 1, ' ');
	ASSERT(field);
	at = strtoull(field, NULL, 10) & -(uint64_t)PAGE;
	return at;
}

static struct {
	int userfaultfd, pipe;
	uint64_t where;
} job; /* of the process that is started */

/* On a stack of its own: the first thread's may be on the page that goes. */
static void *do_job(void *arg)
{
	uint64_t absent = make_absent_page(job.userfaultfd, job.where);

	if (write(job.pipe, &absent, sizeof(absent)) < 0)
		_exit(1);
	pause();
	return arg;
}

/* A process of that user, which waits until it is killed. */
static struct other start_process(uid_t user, uint64_t absent)
{
	struct other o = { 0 };
	pthread_t thread;
	int fds[2];

	ASSERT_OK(pipe(fds));
	o.pid = fork();
	if (!o.pid) {
		job.userfaultfd = open_userfaultfd();
		job.pipe = fds[1];
		job.where = absent;
		if (!setresuid(user, user, user) && !pthread_create(&thread, NULL, do_job, NULL))
			pthread_join(thread, NULL);
		_exit(1);
	}
	close(fds[1]);
	ASSERT_EQ(read(fds[0], &o.absent, sizeof(o.absent)), (ssize_t)sizeof(o.absent));
	ASSERT(o.absent);
	close(fds[0]);
	return o;
}

static struct other start_other(uid_t user)
{
	return start_process(user, 0);
}

static void end_other(const struct other *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
}

static int read_here(pid_t pid)
{
	char text[5];
	int r = process_read_memory(pid, (uintptr_t)here, text, sizeof(text));

	if (!r)
		ASSERT_STR(text, "here");
	return r;
}

static int read_absent(const struct other *o)
{
	char byte;

	return process_read_memory(o->pid, o->absent, &byte, 1);
}

TEST(reads_by_a_child_are_as_without_one)
{
	struct other o = start_other(SOMEBODY);
	char *big = malloc(sizeof(here));

	for (int guarded = 0; guarded < 2; guarded++) {
		memory_guard_begin(guarded ? MEMORY_GUARDED_ALWAYS : MEMORY_UNGUARDED, NULL);
		ASSERT_OK(read_here(o.pid));
		ASSERT_OK(read_here(getpid()));
		here[sizeof(here) - 1] = 0;
		ASSERT_OK(process_read_memory(o.pid, (uintptr_t)here, big, sizeof(here)));
		ASSERT_OK(memcmp(big, here, sizeof(here)));
		ASSERT_EQ(process_read_memory(o.pid, 1, big, 8), -EFAULT);
		ASSERT_EQ(process_read_memory(1 << 22, (uintptr_t)here, big, 8), -ESRCH);
		if (guarded)
			memory_guard_end();
	}
	free(big);
	end_other(&o);
	ASSERT_EQ(memory_guard_given_up(NULL), 0);
}

/* All of it, in small pieces. */
static size_t read_all_maps(pid_t pid, char *to, size_t size)
{
	struct process_maps maps;
	size_t nr = 0;
	int n = 1;

	ASSERT_OK(process_open_maps(pid, &maps));
	for (; n > 0; nr += (size_t)n) {
		n = process_read_maps(&maps, to + nr, size - nr < 500 ? size - nr : 500);
		ASSERT(n >= 0 && nr + (size_t)n < size);
	}
	process_close_maps(&maps);
	to[nr] = '\0';
	return nr;
}

/* Of the file of its first mapping that has one, this program: sanitizers map memory before that.
 */
static void check_map_file(pid_t pid, const char *maps)
{
	const char *line = strstr(maps, "memory_test");
	unsigned long long start, end;
	struct stat st, own;
	int fd = -1;

	ASSERT_PTR_NONNULL(line);
	while (line > maps && line[-1] != '\n')
		line--;
	ASSERT_EQ(sscanf(line, "%llx-%llx", &start, &end), 2);
	ASSERT_EQ(process_open_map_file(pid, start, end + PAGE, &fd), -ENOENT);
	ASSERT_OK(process_open_map_file(pid, start, end, &fd));
	ASSERT_OK(fstat(fd, &st));
	ASSERT_OK(stat("/proc/self/exe", &own));
	ASSERT_EQ(st.st_ino, own.st_ino);
	ASSERT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

TEST(what_takes_the_lock_of_mappings_is_read_by_a_child_as_well)
{
	struct other o = start_other(SOMEBODY), hangs = start_other(NOBODY);
	char *maps[2] = { malloc(1 << 20), malloc(1 << 20) }, command[2][4096];
	size_t nr[2];
	int n[2];

	for (int guarded = 0; guarded < 2; guarded++) {
		memory_guard_begin(guarded ? MEMORY_GUARDED_ALWAYS : MEMORY_UNGUARDED, NULL);
		nr[guarded] = read_all_maps(o.pid, maps[guarded], 1 << 20);
		n[guarded] = process_read_command(o.pid, command[guarded], sizeof(command[0]));
		check_map_file(o.pid, maps[guarded]);
	}
	ASSERT(nr[0] > 500 && nr[0] == nr[1]);
	ASSERT_OK(memcmp(maps[0], maps[1], nr[0]));
	ASSERT(n[0] > 0 && n[0] == n[1]);
	ASSERT_OK(memcmp(command[0], command[1], (size_t)n[0]));
	ASSERT_EQ(process_read_command(1 << 22, command[0], 1), -ENOENT);
	/* Who is not waited for any more is not asked for these, either. */
	ASSERT_EQ(read_absent(&hangs), -ETIMEDOUT);
	ASSERT_EQ(process_read_command(hangs.pid, command[0], 1), -ETIMEDOUT);
	memory_guard_end();
	free(maps[0]);
	free(maps[1]);
	end_other(&o);
	end_other(&hangs);
}

TEST(an_environment_is_that_of_the_process)
{
	char *text = NULL;
	size_t size = 0;
	pid_t pid = fork();

	if (!pid) {
		execle("/bin/sleep", "sleep", "1000", NULL, (char *[]){ "A=1", "B=2", NULL });
		_exit(1);
	}
	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	/* That of the process before exec is another one. */
	while (!process_read_environ(pid, &text, &size) && size != 8)
		free(text);
	ASSERT_EQ(size, 8);
	ASSERT_OK(memcmp(text, "A=1\0B=2", 8));
	free(text);
	memory_guard_end();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void count_turn(void *nr)
{
	++*(int *)nr;
}

TEST(a_page_that_never_comes_holds_nobody_up)
{
	int nr_turns = 0;
	struct other hangs = start_other(NOBODY), good = start_other(SOMEBODY);
	int32_t pid;

	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	ASSERT_OK(read_here(hangs.pid));
	memory_guard_meanwhile(count_turn, &nr_turns);
	ASSERT_EQ(read_absent(&hangs), -ETIMEDOUT);
	memory_guard_meanwhile(NULL, NULL);
	ASSERT(nr_turns > 10);
	ASSERT_EQ(memory_guard_given_up(&pid), 1);
	ASSERT_EQ(pid, hangs.pid);
	/* Once is enough. */
	ASSERT_EQ(read_here(hangs.pid), -ETIMEDOUT);
	ASSERT_EQ(memory_guard_given_up(NULL), 1);
	ASSERT_OK(read_here(good.pid));
	memory_guard_end();
	end_other(&hangs);
	end_other(&good);
}

/* The kernel reads nothing but memory that it has at hand for /proc/PID/cmdline. */
TEST(what_a_process_was_called_as_is_not_waited_for)
{
	struct other hangs = start_process(NOBODY, page_of_arguments());
	static struct proc_identity id;

	ASSERT_OK(proc_identity_read(hangs.pid, NULL, &id));
	ASSERT_STR(id.command, "");
	ASSERT_EQ(id.uid, NOBODY);
	end_other(&hangs);
}

TEST(one_user_has_a_few_of_these)
{
	struct other many[OF_ONE_USER_MAX + 4], good = start_other(SOMEBODY), root = start_other(0);
	uint64_t before = memory_guard_given_up(NULL);

	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++) {
		many[i] = start_other(NOBODY);
		ASSERT_EQ(read_absent(&many[i]), -ETIMEDOUT);
	}
	ASSERT(memory_guard_given_up(NULL) - before <= OF_ONE_USER_MAX);
	ASSERT_OK(read_here(good.pid));
	ASSERT_OK(read_here(root.pid));
	memory_guard_end();
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++)
		end_other(&many[i]);
	end_other(&good);
	end_other(&root);
}

/* To our children, but this one. */
static void signal_readers(pid_t other, int signal)
{
	char path[64], pids[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	ASSERT_PTR_NONNULL(f);
	ASSERT_PTR_NONNULL(fgets(pids, sizeof(pids), f));
	fclose(f);
	for (char *at = pids, *next; strtol(at, &next, 10) > 0; at = next)
		if (strtol(at, NULL, 10) != other)
			kill((pid_t)strtol(at, NULL, 10), signal);
}

/* With a child that does nothing: what is read is read without it. */
static void read_with_stopped_child(uid_t user, int of_present)
{
	struct other o = start_other(user);

	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	memory_guard_tick();
	signal_readers(o.pid, SIGSTOP);
	ASSERT_EQ(read_here(o.pid), of_present);
	ASSERT_EQ(read_absent(&o), -ETIMEDOUT);
	memory_guard_end();
	end_other(&o);
}

int __real_proc_stat_read(int32_t pid, struct proc_stat *ret);
int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret);

static pid_t goes_on_when_looked_at;

/* That one goes on just before, and waits for what comes next. */
int __wrap_proc_stat_read(int32_t pid, struct proc_stat *ret)
{
	int r;

	if (goes_on_when_looked_at) {
		signal_readers(goes_on_when_looked_at, SIGCONT);
		goes_on_when_looked_at = 0;
		do
			r = __real_proc_stat_read(pid, ret);
		while (!r && ret->state != 'S' && !usleep(1000));
		return r;
	}
	return __real_proc_stat_read(pid, ret);
}

/* On a busy machine: neither the child nor we had a CPU until then. */
TEST(an_answer_that_comes_when_nobody_waits_for_it_any_more_is_heard)
{
	struct other o = start_other(NOBODY);

	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	memory_guard_tick();
	signal_readers(o.pid, SIGSTOP);
	goes_on_when_looked_at = o.pid;
	ASSERT_OK(read_here(o.pid));
	ASSERT_EQ(goes_on_when_looked_at, 0);
	ASSERT_EQ(memory_guard_given_up(NULL), 0);
	memory_guard_end();
	end_other(&o);
}

TEST(what_is_at_hand_of_our_own_user_waits_for_no_child)
{
	read_with_stopped_child(0, 0);
	read_with_stopped_child(NOBODY, -ETIMEDOUT);
}

TEST(a_child_that_was_killed_is_replaced)
{
	struct other o = start_other(SOMEBODY);
	uint64_t end = now_ns() + UINT64_C(60000000000);

	memory_guard_begin(MEMORY_GUARDED_ALWAYS, NULL);
	ASSERT_OK(read_here(o.pid));
	signal_readers(o.pid, SIGKILL);
	while (read_here(o.pid) && now_ns() < end)
		usleep(1000);
	ASSERT_OK(read_here(o.pid));
	memory_guard_end();
	end_other(&o);
}

TEST(file_systems_that_the_kernel_answers_for)
{
	static const char *const local[] = { "8:0", "253:16", "btrfs-1", "overlay-3", "mtd-0" };
	static const char *const others[] = { "0:39",	"0:41-fuse", "8:1-fuseblk", "9p-1",
					      "ceph-4", "",	     "vboxsf-0.1" };

	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		ASSERT(bdi_is_local(local[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ASSERT(!bdi_is_local(others[i]));
}

TEST_SKIP_REASON()
{
	if (geteuid())
		return "needs root: other users' processes";
	return open_userfaultfd() >= 0 ? NULL : "no userfaultfd here";
}
