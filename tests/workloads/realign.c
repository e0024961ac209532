// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that realign their stack: a plain one (CFA by rbp) and two whose frame hangs on a saved
 * argument pointer (r10, then a dereferenced frame pointer).
 */
#include "workload.h"

KNOWN void leaf(volatile char *p)
{
	*p = 1;
	SPIN(MILLISECOND);
}

KNOWN void aligned(int n)
{
	_Alignas(64) volatile char buffer[192];

	buffer[n & 63] = 1;
	leaf(buffer);
	sink += n;
}

/* Arguments on the stack and a realigned, variable frame: gcc keeps the argument pointer. */
KNOWN void aligned_variable(int n, int b, int c, int d, int e, int f, int g, int h)
{
	_Alignas(128) volatile char buffer[64];
	volatile char *more = __builtin_alloca(n + g + h);

	buffer[b & 31] = more[0] = (char)(c + d + e + f);
	aligned(n);
	sink += buffer[1] + g + h;
}

KNOWN void aligned_arguments(int n, int b, int c, int d, int e, int f, int g, int h)
{
	_Alignas(256) volatile char buffer[64];

	buffer[b & 31] = (char)(c + d + e + f);
	aligned_variable(n, b, c, d, e, f, g, h);
	sink += buffer[1] + g + h;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		aligned_arguments(argc + 200, 2, 3, 4, 5, 6, 7, 8);
	_exit(0);
}
