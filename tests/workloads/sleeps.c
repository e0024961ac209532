// SPDX-License-Identifier: Apache-2.0
/*
 * sleeps SECONDS FILE: threads that sleep in several ways, each in a function of its own, and
 * measure it: what passed on the clock while they did not run. FILE gets a line a function: name,
 * nanoseconds, number of sleeps. (It takes some three seconds, whatever SECONDS says.)
 */
#include "workload.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { CROWD = 12, SHORT = 1000, MIDDLE = 50, PAGES = 256, MS = 1000000 };

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

int main(int argc, char **argv)
{
	static void *(*const others[])(void *) = {
		measure_dozes,	measure_hibernates, measure_polls,    measure_reads, writes,
		holds,		measure_locks,	    measure_travels,  moves,	     measure_faults,
		measure_blocks, measure_competes,   measure_competes,
	};
	enum { OTHERS = sizeof(others) / sizeof(others[0]) };
	pthread_t threads[CROWD + OTHERS];
	FILE *f;

	if (argc < 3 || pipe(pipes) || pipe(hold_fds))
		return 1;
	snprintf(file_path, sizeof(file_path), "%s.pages", argv[2]);
	for (int i = 0; i < CROWD + OTHERS; i++)
		if (pthread_create(&threads[i], NULL, i < CROWD ? measure_naps : others[i - CROWD],
				   NULL))
			return 1;
	for (int i = 0; i < CROWD + OTHERS; i++)
		pthread_join(threads[i], NULL);
	f = fopen(argv[2], "w");
	for (struct told *t = told; f && t->name; t++)
		fprintf(f, "%s %lld %lld\n", t->name, t->ns, t->nr);
	return !f || fclose(f);
}
