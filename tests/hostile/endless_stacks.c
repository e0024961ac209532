// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks that never come again: which of two functions calls is a bit of a random number, 400 deep.
 * endless_stacks THREADS: runs until it is killed.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DEPTH = 400 };

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int zero(uint64_t *x, int n);

__attribute__((noipa)) static int one(uint64_t *x, int n)
{
	volatile uint64_t spin = n ? 0 : 200000;

	while (spin)
		spin--;
	if (n)
		n = next(x) >> 40 & 1 ? one(x, n - 1) : zero(x, n - 1);
	return n + (int)spin;
}

__attribute__((noipa)) static int zero(uint64_t *x, int n)
{
	volatile uint64_t spin = n ? 0 : 200000;

	while (spin)
		spin--;
	if (n)
		n = next(x) >> 40 & 1 ? zero(x, n - 1) : one(x, n - 1);
	return n + (int)spin;
}

static void *run(void *seed)
{
	uint64_t x = (uintptr_t)seed * 0x9e3779b97f4a7c15u;

	for (;;)
		one(&x, DEPTH);
	return NULL;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	for (int i = 1; i < nr; i++)
		pthread_create(&thread, NULL, run, (void *)(uintptr_t)(i + 1));
	run((void *)1);
}
