// SPDX-License-Identifier: Apache-2.0
/*
 * What an agent has to bear: `crowd KIND NUMBER`, until it is killed or its standard input ends.
 *
 *	processes N	N at once, each called c-NUMBER, which work a little and sleep
 *	short N		N a minute, one after the other, each executed anew and called s-NUMBER
 *	mappings N	one process with N executable mappings, which works in the last of them
 *	threads N	one process with N threads, called t-NUMBER, which work in turn
 *	forks N		as many forks as a CPU makes, N of them at a time
 *	execs N		N processes that execute themselves again and again
 *	work MS NAME	(what short ones do) under that name
 *
 * A line "PID NAME" tells of each process of the first two kinds, "ready" that all are there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MINUTE_NS UINT64_C(60000000000)
#define MS_NS	  UINT64_C(1000000)

enum { STACK_SIZE = 32 << 10, PAGE = 4096 };

static char self[4096];

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* All work is there, of this thread's time. */
static __attribute__((noinline)) void crowd_work(uint64_t ms)
{
	uint64_t end = clock_of(CLOCK_THREAD_CPUTIME_ID) + ms * MS_NS;

	while (clock_of(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void set_name(char kind, uint64_t number)
{
	char name[16];

	snprintf(name, sizeof(name), "%c-%u", kind, (unsigned)number);
	prctl(PR_SET_NAME, name);
}

static pid_t start(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	/* It may have ended before that. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	return 0;
}

static int wait_for_end(void)
{
	char c;

	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
		;
	return 0;
}

/* --- processes -------------------------------------------------------------------------------- */

/* A millisecond of each `period`, all of them one after the other. */
static __attribute__((noreturn)) void live(char kind, uint64_t number, uint64_t all)
{
	uint64_t period = all * 2 * MS_NS, next;

	set_name(kind, number);
	next = clock_of(CLOCK_MONOTONIC) / period * period + number * 2 * MS_NS;
	for (;;) {
		/* What a busy machine kept it from doing it does not do later. */
		do
			next += period;
		while (next < clock_of(CLOCK_MONOTONIC));
		sleep_until(next);
		crowd_work(1);
	}
}

static int processes(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++) {
		pid_t pid = start();

		if (!pid)
			live('c', i, nr);
		if (pid < 0)
			return 1;
		printf("%d c-%u\n", (int)pid, (unsigned)i);
	}
	return wait_for_end();
}

static int shorts(uint64_t a_minute)
{
	uint64_t period = MINUTE_NS / a_minute, next = clock_of(CLOCK_MONOTONIC);
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	puts("ready");
	for (unsigned i = 0;; i++) {
		pid_t pid = start();
		char name[16];

		snprintf(name, sizeof(name), "s-%u", i);
		if (!pid) {
			execl(self, self, "work", "4", name, (char *)NULL);
			_exit(1);
		}
		if (pid < 0)
			return 1;
		printf("%d %s\n", (int)pid, name);
		fflush(stdout);
		if (poll(&in, 1, 0))
			return 0;
		next += period;
		if (next < clock_of(CLOCK_MONOTONIC))
			next = clock_of(CLOCK_MONOTONIC);
		sleep_until(next);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static int storm(uint64_t width, void (*what)(void))
{
	for (uint64_t i = 0; i < width; i++) {
		pid_t pid = start();

		if (!pid)
			for (;;)
				what();
		if (pid < 0)
			return 1;
	}
	return wait_for_end();
}

static void fork_one(void)
{
	pid_t pid = start();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* The process stays, its image is another one each time. */
static void exec_self(void)
{
	execl(self, self, "again", (char *)NULL);
	_exit(1);
}

/* --- one large process ------------------------------------------------------------------------ */

#if defined(__x86_64__)
/* mov $20000000,%ecx; 1: dec %ecx; jnz 1b; ret */
static const uint8_t code[] = { 0xb9, 0x00, 0x2d, 0x31, 0x01, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#else
/* movz w9,#0x2d00; movk w9,#0x131,lsl 16; 1: subs w9,w9,#1; b.ne 1b; ret */
static const uint32_t code[] = { 0x5285a009, 0x72a02629, 0x71000529, 0x54ffffe1, 0xd65f03c0 };
#endif

/* Every other page may not be touched: each is a mapping of its own. */
static int mappings(uint64_t nr)
{
	size_t size = nr * 2 * PAGE;
	uint8_t *at =
		mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *last = at + size - 2 * PAGE;
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	if (at == MAP_FAILED)
		return 1;
	prctl(PR_SET_NAME, "m-0");
	if (mprotect(last, PAGE, PROT_READ | PROT_WRITE))
		return 1;
	memcpy(last, code, sizeof(code));
	for (uint64_t i = 0; i < nr; i++)
		if (mprotect(at + i * 2 * PAGE, PAGE, PROT_READ | PROT_EXEC))
			return perror("mprotect"), 1;
	__builtin___clear_cache((char *)last, (char *)last + sizeof(code));
	puts("ready");
	fflush(stdout);
	while (!poll(&in, 1, 0)) {
		((void (*)(void))(uintptr_t)last)();
		crowd_work(5);
	}
	return 0;
}

static uint64_t nr_threads;

static void *thread(void *number)
{
	live('t', (uint64_t)(uintptr_t)number, nr_threads);
}

static int threads(uint64_t nr)
{
	pthread_attr_t attr;
	pthread_t id;

	nr_threads = nr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	for (uint64_t i = 0; i < nr; i++) {
		int r = pthread_create(&id, &attr, thread, (void *)(uintptr_t)i);

		if (r)
			return fprintf(stderr, "thread %u: %s\n", (unsigned)i, strerror(r)), 1;
	}
	return wait_for_end();
}

/* ---------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	uint64_t nr = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 1;
	if (!strcmp(kind, "again"))
		exec_self();
	if (!strcmp(kind, "work") && argc == 4) {
		prctl(PR_SET_NAME, argv[3]);
		crowd_work(nr);
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!nr)
		return 2;
	if (!strcmp(kind, "processes"))
		return processes(nr);
	if (!strcmp(kind, "short"))
		return shorts(nr);
	if (!strcmp(kind, "mappings"))
		return mappings(nr);
	if (!strcmp(kind, "threads"))
		return threads(nr);
	if (!strcmp(kind, "forks"))
		return storm(nr, fork_one);
	if (!strcmp(kind, "execs"))
		return storm(nr, exec_self);
	return 2;
}
