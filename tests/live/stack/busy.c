// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that never stand still, each in a chain of its own: busy SPINNING NAPPING. Those that
 * nap wake up some 10,000 times a second. Prints "ready" when all are at work.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define KNOWN __attribute__((noinline, noclone))

static volatile unsigned int sink;
static int nr_at_work;

static inline void at_work(void)
{
	__atomic_add_fetch(&nr_at_work, 1, __ATOMIC_RELEASE);
}

KNOWN static void spin(void)
{
	for (int i = 0; i < 100000; i++)
		sink++;
}

KNOWN static void spin_even(void)
{
	at_work();
	for (;;)
		spin();
}

KNOWN static void spin_odd(void)
{
	at_work();
	for (;;) {
		spin();
		sink++;
	}
}

/* Deeper than the copy of the stack that an event takes. */
KNOWN static void spin_deep(int depth)
{
	volatile char room[1000];

	room[0] = (char)depth;
	if (depth)
		spin_deep(depth - 1);
	else
		spin_even();
	sink += (unsigned int)room[0];
}

KNOWN static void nap(void)
{
	const struct timespec time = { .tv_nsec = 20000 };

	at_work();
	for (;;) {
		nanosleep(&time, NULL);
		sink++;
	}
}

static void *spinner(void *arg)
{
	intptr_t n = (intptr_t)arg;

	if (n % 3 == 2)
		spin_deep(100);
	else if (n % 3)
		spin_odd();
	else
		spin_even();
	return NULL;
}

static void *napper(void *arg)
{
	nap();
	return arg;
}

int main(int argc, char **argv)
{
	int nr_spin = argc > 1 ? atoi(argv[1]) : 3, nr_nap = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t id;

	for (intptr_t i = 0; i < nr_spin + nr_nap; i++)
		if (pthread_create(&id, NULL, i < nr_spin ? spinner : napper, (void *)i))
			return 1;
	while (__atomic_load_n(&nr_at_work, __ATOMIC_ACQUIRE) < nr_spin + nr_nap)
		sched_yield();
	puts("ready");
	fflush(stdout);
	pthread_join(id, NULL);
	return 0;
}
