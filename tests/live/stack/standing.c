// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that stand, each in another chain of functions and another system call, for comparison
 * with what a debugger says: standing NR_THREADS. It prints "ready" when all stand, or a line
 * "eintr NAME" and ends if a wait that nobody interrupts fails with EINTR.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define KNOWN __attribute__((noinline, noclone))

static int never[2]; /* a pipe that nobody writes to */
static int epoll_fd;
static volatile int sink;

static void failed(const char *name)
{
	if (errno != EINTR)
		return;
	printf("eintr %s\n", name);
	fflush(stdout);
	_exit(3);
}

KNOWN static void stand_in_sleep(void)
{
	sleep(100000);
	sink++;
}

KNOWN static void stand_in_read(void)
{
	char c;

	if (read(never[0], &c, 1) < 0)
		failed("read");
	sink++;
}

KNOWN static void stand_in_poll(void)
{
	struct pollfd p = { .fd = never[0], .events = POLLIN };

	if (poll(&p, 1, -1) < 0)
		failed("poll");
	sink++;
}

KNOWN static void stand_in_epoll(void)
{
	struct epoll_event event;

	if (epoll_wait(epoll_fd, &event, 1, -1) < 0)
		failed("epoll_wait");
	sink++;
}

KNOWN static void stand_in_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(never[0], &set);
	if (select(never[0] + 1, &set, NULL, NULL, NULL) < 0)
		failed("select");
	sink++;
}

KNOWN static void stand_in_semaphore(void)
{
	sem_t sem;

	sem_init(&sem, 0, 0);
	if (sem_wait(&sem) < 0)
		failed("sem_wait");
	sink++;
}

KNOWN static void stand_in_condition(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
	sink++;
}

static void (*const stands[])(void) = {
	stand_in_sleep,	 stand_in_read,	     stand_in_poll,	 stand_in_epoll,
	stand_in_select, stand_in_semaphore, stand_in_condition,
};

enum { NR_STANDS = sizeof(stands) / sizeof(stands[0]) };

KNOWN static void descend(intptr_t depth, intptr_t which)
{
	if (depth)
		descend(depth - 1, which);
	else
		stands[which]();
	sink++;
}

/* A frame whose size is not known before it runs: its caller is found by the frame pointer. */
KNOWN static void with_room(intptr_t which)
{
	volatile char *room = __builtin_alloca((size_t)which * 16 + 32);

	room[0] = 1;
	descend(which, which);
	sink += room[0];
}

static int compare(const void *a, const void *b)
{
	with_room(*(const intptr_t *)a);
	return *(const int *)b;
}

/* By way of a library's function that calls back. */
KNOWN static void in_callback(intptr_t which)
{
	intptr_t two[2] = { which, which };

	qsort(two, 2, sizeof(two[0]), compare);
	sink++;
}

static void *thread(void *arg)
{
	intptr_t n = (intptr_t)arg;

	if (n / NR_STANDS % 2)
		in_callback(n % NR_STANDS);
	else
		with_room(n % NR_STANDS);
	return NULL;
}

int main(int argc, char **argv)
{
	intptr_t nr = argc > 1 ? atoi(argv[1]) : 14;
	pthread_attr_t attr;
	pthread_t id;

	epoll_fd = epoll_create1(0);
	if (pipe(never) || epoll_fd < 0)
		return 1;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (intptr_t i = 0; i < nr; i++)
		if (pthread_create(&id, &attr, thread, (void *)i))
			return 1;
	puts("ready");
	fflush(stdout);
	pthread_join(id, NULL);
	return 0;
}
