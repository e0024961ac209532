// SPDX-License-Identifier: Apache-2.0
/*
 * A process whose stacks tell their own time: first_stack NS spins in the function ms_000 until a
 * millisecond has passed since the monotonic time NS (which the parent took before its fork), then
 * in ms_001 and so on to ms_099: a profile shows when the first complete stack was.
 */
#include "../workloads/workload.h"

static uint64_t begin;

static uint64_t passed_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec - begin;
}

#define FUNCTION(t, u)                                                                             \
	KNOWN void ms_0##t##u(void);                                                               \
	KNOWN void ms_0##t##u(void)                                                                \
	{                                                                                          \
		while (passed_ns() < 1000000ull * (10 * t + u + 1))                                \
			SPIN(1000);                                                                \
		sink++;                                                                            \
	}
#define ENTRY(t, u) ms_0##t##u,
#define TEN(X, t)                                                                                  \
	X(t, 0)                                                                                    \
	X(t, 1) X(t, 2) X(t, 3) X(t, 4) X(t, 5) X(t, 6) X(t, 7) X(t, 8) X(t, 9)
#define HUNDRED(X)                                                                                 \
	TEN(X, 0)                                                                                  \
	TEN(X, 1)                                                                                  \
	TEN(X, 2) TEN(X, 3) TEN(X, 4) TEN(X, 5) TEN(X, 6) TEN(X, 7) TEN(X, 8) TEN(X, 9)

HUNDRED(FUNCTION)

static void (*const functions[])(void) = { HUNDRED(ENTRY) };

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	begin = strtoull(argv[1], NULL, 10);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		functions[i]();
		sink++;
	}
	return 0;
}
