// SPDX-License-Identifier: Apache-2.0
/*
 * sleeps SECONDS FILE [once]: threads that sleep in several ways, each in a function of its own,
 * and measure it: what passed on the clock while they did not run. FILE gets a line a function:
 * name, nanoseconds, number of sleeps. (It takes some three seconds, whatever SECONDS says; with
 * `once`, each sleeps once, for ten seconds.)
 */
#include "workload.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CROWD = 12, SHORT = 1000, MIDDLE = 50, PAGES = 256, MS = 1000000, LONG_MS = 10000 };

static struct told {
	const char *name;
	long long ns, nr;
} told[16];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2], hold_fds[2];
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static char file_path[4096];

static long long ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Since the last call in this thread: wall clock without what it ran. */
static long long off_cpu_ns(void)
{
	static __thread long long last;
	long long now = ns_of(CLOCK_MONOTONIC) - ns_of(CLOCK_THREAD_CPUTIME_ID), ns = now - last;

	last = now;
	return ns;
}

static void tell(const char *name, long long ns, long long nr)
{
	struct told *t = told;

	pthread_mutex_lock(&lock);
	while (t->name && t->name != name)
		t++;
	t->name = name;
	t->ns += ns;
	t->nr += nr;
	pthread_mutex_unlock(&lock);
}

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns % 1000000000, .tv_sec = ns / 1000000000 },
		  NULL);
}

/* Nothing but these two clocks' own calls is outside of what FUNCTION shows in its stacks. */
#define MEASURED(function, nr_times)                                                               \
	static void *measure_##function(void *arg)                                                 \
	{                                                                                          \
		(void)arg;                                                                         \
		off_cpu_ns();                                                                      \
		function(nr_times);                                                                \
		tell(#function, off_cpu_ns(), nr_times);                                           \
		return NULL;                                                                       \
	}

KNOWN void naps(int n)
{
	while (n--)
		sleep_ns(MS);
	sink++;
}
MEASURED(naps, SHORT)

KNOWN void dozes(int n)
{
	while (n--)
		sleep_ns(10 * MS);
	sink++;
}
MEASURED(dozes, MIDDLE)

KNOWN void hibernates(int n)
{
	while (n--)
		sleep_ns(2000l * MS);
	sink++;
}
MEASURED(hibernates, 1)

KNOWN void polls(int n)
{
	struct pollfd fd = { .fd = hold_fds[0], .events = POLLIN };

	while (n--)
		poll(&fd, 1, 10);
	sink++;
}
MEASURED(polls, MIDDLE)

KNOWN void reads(int n)
{
	char c;

	while (n--)
		sink += (uint64_t)read(pipes[0], &c, 1);
	sink++;
}
MEASURED(reads, MIDDLE)

static void *writes(void *arg)
{
	(void)arg;
	for (int i = 0; i < MIDDLE; i++) {
		sleep_ns(10 * MS);
		if (write(pipes[1], "", 1) != 1)
			_exit(1);
	}
	return NULL;
}

/* The holder lets go now and then. */
KNOWN void locks(int n)
{
	while (n--) {
		pthread_mutex_lock(&held);
		pthread_mutex_unlock(&held);
		sleep_ns(MS);
	}
	sink++;
}
MEASURED(locks, MIDDLE)

static void *holds(void *arg)
{
	(void)arg;
	for (int i = 0; i < MIDDLE; i++) {
		pthread_mutex_lock(&held);
		sleep_ns(10 * MS);
		pthread_mutex_unlock(&held);
		sleep_ns(MS);
	}
	return NULL;
}

/* Somebody moves it to another CPU while it sleeps. */
static pid_t moved_tid;

KNOWN void travels(int n)
{
	moved_tid = gettid();
	while (n--)
		sleep_ns(10 * MS);
	sink++;
}
MEASURED(travels, MIDDLE)

static void *moves(void *arg)
{
	cpu_set_t all, one;
	int cpu = 0;

	(void)arg;
	sched_getaffinity(0, sizeof(all), &all);
	for (int i = 0; i < 2 * MIDDLE; i++) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (moved_tid)
			sched_setaffinity(moved_tid, sizeof(one), &one);
		sleep_ns(5 * MS);
	}
	return NULL;
}

/* Pages of a file that are not in memory, and a file's way to the disk. */
KNOWN void faults(int n)
{
	int fd = open(file_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t size = PAGES * 4096;
	char *pages;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		_exit(1);
	while (n--) {
		pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (pages == MAP_FAILED)
			_exit(1);
		for (size_t i = 0; i < PAGES; i++)
			pages[i * 4096]++;
		msync(pages, size, MS_SYNC);
		munmap(pages, size);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	}
	close(fd);
	unlink(file_path);
	sink++;
}
MEASURED(faults, 10)

/* Until its child has ended nothing but a fatal signal wakes it: that is no interruptible sleep. */
static int rests(void *arg)
{
	(void)arg;
	sleep_ns(10 * MS);
	return 0;
}

KNOWN void blocks(int n)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	while (n--) {
		pid = clone(rests, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			_exit(1);
	}
	sink++;
}
MEASURED(blocks, MIDDLE)

/* Two of them have one CPU. */
KNOWN void competes(int n)
{
	long long until = ns_of(CLOCK_THREAD_CPUTIME_ID) + (long long)n * MS;
	cpu_set_t all, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	while (ns_of(CLOCK_THREAD_CPUTIME_ID) < until)
		sink++;
}
MEASURED(competes, 50)

/* Pages that somebody else brings, when time has passed. */
static int page_fd;
static char *pages;

KNOWN void lacks(int n)
{
	for (int i = 0; i < n; i++)
		sink += (uint64_t) * (volatile char *)(pages + i * 4096);
	sink++;
}
MEASURED(lacks, MIDDLE)

static void *brings(void *ms)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct uffd_msg m;

	while (read(page_fd, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_copy copy = { .src = (uintptr_t)page, .len = sizeof(page) };

		copy.dst = m.arg.pagefault.address & ~UINT64_C(4095);
		sleep_ns((long)(uintptr_t)ms * MS);
		ioctl(page_fd, UFFDIO_COPY, &copy);
	}
	return NULL;
}

/* Without it, as in some containers, nobody lacks any. */
static void share_pages(long ms)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	pthread_t thread;

	page_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.len = MIDDLE * 4096;
	pages = mmap(NULL, range.range.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	range.range.start = (uintptr_t)pages;
	if (page_fd < 0 || pages == MAP_FAILED)
		return;
	if (ioctl(page_fd, UFFDIO_API, &api) || ioctl(page_fd, UFFDIO_REGISTER, &range) ||
	    pthread_create(&thread, NULL, brings, (void *)(uintptr_t)ms))
		_exit(1);
}

/* --- once ------------------------------------------------------------------------------------- */

KNOWN void naps_long(int n)
{
	sleep_ns(LONG_MS * (long)MS);
	sink++;
}
MEASURED(naps_long, 1)

KNOWN void polls_long(int n)
{
	poll(&(struct pollfd){ .fd = hold_fds[0], .events = POLLIN }, 1, LONG_MS);
	sink++;
}
MEASURED(polls_long, 1)

/* A futex. */
KNOWN void waits_long(int n)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	sink++;
}
MEASURED(waits_long, 1)

KNOWN void reads_long(int n)
{
	char c;

	sink += (uint64_t)read(pipes[0], &c, 1);
	sink++;
}
MEASURED(reads_long, 1)

KNOWN void lacks_long(int n)
{
	lacks(1);
	sink++;
}
MEASURED(lacks_long, 1)

/* Uninterruptible. */
static int rests_long(void *arg)
{
	(void)arg;
	sleep_ns(LONG_MS * (long)MS);
	return 0;
}

KNOWN void blocks_long(int n)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid =
		clone(rests_long, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);

	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(1);
	sink++;
}
MEASURED(blocks_long, 1)

static int sleep_once(void)
{
	static void *(*const all[])(void *) = {
		measure_naps_long,  measure_polls_long,	 measure_waits_long,
		measure_reads_long, measure_blocks_long, measure_lacks_long,
	};
	enum { ALL = sizeof(all) / sizeof(all[0]) };
	pthread_t threads[ALL];
	int nr = ALL - (page_fd < 0);

	/* Until it lets go. */
	pthread_mutex_lock(&held);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, all[i], NULL))
			return 1;
	sleep_ns(LONG_MS * (long)MS);
	pthread_mutex_unlock(&held);
	if (write(pipes[1], "", 1) != 1)
		return 1;
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int sleep_often(void)
{
	static void *(*const others[])(void *) = {
		measure_dozes,	measure_hibernates, measure_polls,    measure_reads, writes,
		holds,		measure_locks,	    measure_travels,  moves,	     measure_faults,
		measure_blocks, measure_competes,   measure_competes, measure_lacks,
	};
	enum { OTHERS = sizeof(others) / sizeof(others[0]) };
	pthread_t threads[CROWD + OTHERS];
	int nr = CROWD + OTHERS - (page_fd < 0);

	for (int i = 0; i < nr; i++)
		if (pthread_create(&threads[i], NULL, i < CROWD ? measure_naps : others[i - CROWD],
				   NULL))
			return 1;
	for (int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	bool once = argc > 3 && !strcmp(argv[3], "once");
	FILE *f;

	if (argc < 3 || pipe(pipes) || pipe(hold_fds))
		return 1;
	snprintf(file_path, sizeof(file_path), "%s.pages", argv[2]);
	share_pages(once ? LONG_MS : 10);
	if (once ? sleep_once() : sleep_often())
		return 1;
	f = fopen(argv[2], "w");
	for (struct told *t = told; f && t->name; t++)
		fprintf(f, "%s %lld %lld\n", t->name, t->ns, t->nr);
	return !f || fclose(f);
}
