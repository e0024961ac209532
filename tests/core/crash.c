// SPDX-License-Identifier: Apache-2.0
/*
 * Dies in a known way: crash HOW. Each chain is main -> outer -> middle -> what HOW says, with
 * `inner` inlined into middle where there is debug information to say so.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KNOWN __attribute__((noipa))

static volatile uint64_t sink;
static int nr_ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

KNOWN void die_segv(void)
{
	*(volatile int *)0x10 = 1;
	sink++;
}

KNOWN void die_fpe(void)
{
	volatile int zero = 0;

#if defined(__x86_64__)
	sink = (uint64_t)(7 / zero);
#else
	raise(SIGFPE); /* aarch64 divides by zero without a signal */
#endif
	sink++;
}

KNOWN void die_abort(void)
{
	abort();
}

KNOWN void die_call(void)
{
	void (*volatile nowhere)(void) = NULL;

	nowhere();
	sink++;
}

/* With the default action, the core is written in the handler's frame of the second signal. */
KNOWN void on_signal(int signo)
{
	sink = (uint64_t)signo;
	die_abort();
	sink++;
}

KNOWN void die_handler(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	sink++;
}

KNOWN uint64_t recurse(uint64_t n)
{
	volatile char fill[256];

	fill[n % sizeof(fill)] = (char)n;
	return recurse(n + 1) + (uint64_t)fill[n % sizeof(fill)];
}

KNOWN void die_overflow(void)
{
	sink = recurse(0);
}

/* Stands until somebody kills or dumps it. */
KNOWN void stand(void)
{
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

KNOWN void wait_here(void)
{
	pthread_mutex_lock(&lock);
	nr_ready++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	for (;;)
		pause();
}

KNOWN void *thread(void *arg)
{
	wait_here();
	sink++;
	return arg;
}

KNOWN void start_threads(int nr)
{
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (int i = 0; i < nr; i++)
		if (pthread_create(&id, &attr, thread, NULL))
			exit(3);
	pthread_mutex_lock(&lock);
	while (nr_ready < nr)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static const struct {
	const char *name;
	void (*die)(void);
	int nr_threads;
} ways[] = {
	{ "segv", die_segv, 0 },       { "fpe", die_fpe, 0 },
	{ "abort", die_abort, 0 },     { "call", die_call, 0 },
	{ "handler", die_handler, 0 }, { "overflow", die_overflow, 0 },
	{ "threads", die_segv, 100 },  { "some", die_abort, 3 },
	{ "stand", stand, 3 },
};

static inline __attribute__((always_inline)) void inner(int way)
{
	start_threads(ways[way].nr_threads);
	ways[way].die();
	sink++;
}

KNOWN void middle(int way)
{
	inner(way);
	sink++;
}

KNOWN void outer(int way)
{
	middle(way);
	sink++;
}

int main(int argc, char **argv)
{
	for (unsigned int i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name))
			outer((int)i);
	return 2;
}
