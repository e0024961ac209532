// SPDX-License-Identifier: Apache-2.0
/* longjmp out of three frames, and on with the chain. */
#include "workload.h"

#include <setjmp.h>

static jmp_buf back;

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void jumper(int n)
{
	leaf();
	if (n)
		longjmp(back, n);
	sink++;
}

KNOWN void before_jump(int n)
{
	jumper(n);
	sink++;
}

KNOWN void after_jump(int n)
{
	leaf();
	sink += n;
}

KNOWN void jumps(int n)
{
	volatile int r;

	r = setjmp(back);
	if (!r)
		before_jump(n);
	else
		after_jump(r);
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		jumps(argc);
	_exit(0);
}
