// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of variable size (alloca) below functions that use rbp as an ordinary register, and one
 * frame of a megabyte.
 */
#include "workload.h"

KNOWN uint64_t leaf(volatile char *p)
{
	uint64_t a = sink, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;

	*p = 1;
	__asm__ volatile(""
			 : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::"rax", "rcx",
			   "rdx", "rsi", "rdi", "r8", "r9");
	SPIN(MILLISECOND);
	return a + b + c + d + e + f;
}

KNOWN void huge_frame(int n)
{
	volatile char buffer[1 << 20];

	buffer[n] = 1;
	sink += leaf(buffer + n);
	sink += buffer[n + 1];
}

/* rbp is clobbered: it must come back through the CFI. */
KNOWN void scratch_rbp(int n)
{
	uint64_t x = 0x1234;

	__asm__ volatile("mov %0, %%rbp" ::"r"(x) : "rbp", "rbx", "r12");
	huge_frame(n);
	sink += n;
	__asm__ volatile("mov %0, %%rbp" ::"r"(x) : "rbp", "rbx", "r12");
}

KNOWN void with_alloca(int n)
{
	volatile char *p = __builtin_alloca(n * 16);

	p[n] = 1;
	scratch_rbp(n);
	sink += p[n];
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		with_alloca(argc + (int)(sink & 31));
	_exit(0);
}
