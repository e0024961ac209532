// SPDX-License-Identifier: Apache-2.0
/* Built twice, as libswap_a.so and libswap_b.so: other names, other frame sizes, other offsets. */
#include "workload.h"

#ifdef SWAP_B
#define FN(x) b_##x
enum { FRAME = 3000, PAD = 11 };
#else
#define FN(x) a_##x
enum { FRAME = 200, PAD = 0 };
#endif

void FN(leaf)(void);
void FN(middle)(int n);
void FN(outer)(void);

#ifdef SWAP_B
/* Moves the functions that follow. */
KNOWN void b_padding(volatile char *p);
KNOWN void b_padding(volatile char *p)
{
	for (int i = 0; i < PAD; i++)
		p[i] = p[i + 1] + p[i + 2] * 3;
}
#endif

KNOWN void FN(leaf)(void)
{
	SPIN(MILLISECOND);
}

KNOWN void FN(middle)(int n)
{
	volatile char buffer[FRAME];

	buffer[n] = 1;
	FN(leaf)();
	sink += buffer[n];
}

KNOWN void FN(outer)(void)
{
	FN(middle)(7);
	sink++;
}
