/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all workloads share. A workload burns CPU in a chain of functions that is known beforehand:
 * every function of a chain is KNOWN (never inlined, cloned or merged) and does something after its
 * call, so that no call becomes a jump. Leaves SPIN for about a millisecond, so that all but a few
 * samples in a thousand are in the chain.
 */
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define KNOWN __attribute__((noinline, visibility("default")))
#else
#define KNOWN __attribute__((noinline, noclone, noipa, visibility("default")))
#endif

static volatile uint64_t sink;

/*
 * About n times 8 cycles on any processor: each step waits for the one before it, in a register
 * (through memory it took 6 cycles on one machine and 1 on the next). Between a half and one and a
 * half of it, as good as by chance, so that a loop over several leaves does not beat with the
 * sampling.
 */
#define SPIN(n)                                                                                    \
	do {                                                                                       \
		uint64_t spin_x = sink;                                                            \
		uint64_t spin_n = (n) / 2 + (spin_x >> 32) % ((n) + 1);                            \
		for (uint64_t spin_i = 0; spin_i < spin_n; spin_i++)                               \
			spin_x = (spin_x ^ spin_x >> 29) * 0xbf58476d1ce4e5b9u + spin_i;           \
		sink = spin_x;                                                                     \
	} while (0)

#define MILLISECOND 400000

/* Registers that are no caller's: a function that may not use these must save others. */
#if defined(__x86_64__)
#define CALL_CLOBBERED "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9"
#elif defined(__aarch64__)
#define CALL_CLOBBERED                                                                             \
	"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",    \
		"x14", "x15", "x16", "x17"
#endif

/* Not in C++'s mangled form: one expected name for every language. */
#ifdef __cplusplus
#define PLAIN extern "C"
#else
#define PLAIN
#endif

/* The first argument: seconds of CPU time of a thread. */
static double work_seconds = 2;

static inline void work_init(int argc, char **argv)
{
	if (argc > 1)
		work_seconds = strtod(argv[1], NULL);
}

/* Whether the calling thread has CPU time left. Asked about once a millisecond. */
PLAIN KNOWN int work_left(void);
PLAIN KNOWN int work_left(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	sink++;
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec < work_seconds;
}
