// SPDX-License-Identifier: Apache-2.0
/*
 * A load with a stack of known depth: stack FRAMES KIB. Every frame is another function, with a
 * frame of another size, so that each needs a rule of its own. The leaf spins, and touches KIB of
 * memory as it does so (0: none), which decides how cold the profiler finds the caches. Ends at
 * SIGTERM and prints how much it did: leaves, and nanoseconds of CPU.
 */
#include "../workloads/workload.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

enum {
	FUNCTIONS = 200,
	/* _start, two of libc, main */
	FRAMES_OF_MAIN = 4,
	LINE = 64,
};

static volatile sig_atomic_t done;
static uint64_t leaves;
static volatile uint8_t *data;
static size_t data_size, data_at;

static void on_term(int number)
{
	(void)number;
	done = 1;
}

static inline __attribute__((always_inline)) void work(void)
{
	for (int i = 0; i < 1000; i++) {
		SPIN(20);
		if (data_size) {
			data[data_at]++;
			data_at = (data_at + LINE) % data_size;
		}
	}
	leaves++;
}

KNOWN void leaf(void);
KNOWN void leaf(void)
{
	work();
}

static void (*const chain[FUNCTIONS + 1])(void);

#define FUNCTION(h, t, u)                                                                          \
	KNOWN void f##h##t##u(void);                                                               \
	KNOWN void f##h##t##u(void)                                                                \
	{                                                                                          \
		volatile char local[8 + 16 * ((h + t + u) % 7)];                                   \
                                                                                                   \
		local[0] = t;                                                                      \
		chain[100 * h + 10 * t + u + 1]();                                                 \
		sink += (uint64_t)local[0];                                                        \
	}
#define ENTRY(h, t, u) f##h##t##u,
#define TEN(X, h, t)                                                                               \
	X(h, t, 0)                                                                                 \
	X(h, t, 1)                                                                                 \
	X(h, t, 2) X(h, t, 3) X(h, t, 4) X(h, t, 5) X(h, t, 6) X(h, t, 7) X(h, t, 8) X(h, t, 9)
#define HUNDRED(X, h)                                                                              \
	TEN(X, h, 0)                                                                               \
	TEN(X, h, 1)                                                                               \
	TEN(X, h, 2)                                                                               \
	TEN(X, h, 3) TEN(X, h, 4) TEN(X, h, 5) TEN(X, h, 6) TEN(X, h, 7) TEN(X, h, 8) TEN(X, h, 9)

HUNDRED(FUNCTION, 0)
HUNDRED(FUNCTION, 1)

static void (*const chain[FUNCTIONS + 1])(void) = { HUNDRED(ENTRY, 0) HUNDRED(ENTRY, 1) leaf };

int main(int argc, char **argv)
{
	int frames = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
	struct timespec cpu;

	if (argc != 3 || frames < FRAMES_OF_MAIN || frames > FRAMES_OF_MAIN + FUNCTIONS + 1) {
		fprintf(stderr, "usage: stack FRAMES KIB; at least %d frames\n", FRAMES_OF_MAIN);
		return 2;
	}
	data_size = strtoul(argv[2], NULL, 10) * 1024;
	data = calloc(1, data_size + 1);
	if (!data)
		return 1;
	memset((void *)data, 1, data_size);
	signal(SIGTERM, on_term);
	/* Does not outlive a bench that was killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!done) {
		if (frames == FRAMES_OF_MAIN)
			work();
		else
			chain[FUNCTIONS + FRAMES_OF_MAIN + 1 - frames]();
		sink++;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("%llu %llu\n", (unsigned long long)leaves,
	       (unsigned long long)cpu.tv_sec * 1000000000 + (unsigned long long)cpu.tv_nsec);
	return 0;
}
