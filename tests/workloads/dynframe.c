// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of variable size (alloca) below functions that use the frame pointer as an ordinary
 * register, and one huge frame.
 */
#include "workload.h"

#if defined(__x86_64__)
#define LOSE_FRAME_POINTER(x) __asm__ volatile("mov %0, %%rbp" ::"r"(x) : "rbp", "rbx", "r12")
enum { HUGE = 1 << 20 };
#elif defined(__aarch64__) /* gcc leaves x29 alone, and does not save it if others don't */
#define LOSE_FRAME_POINTER(x) __asm__ volatile("mov x19, %0" ::"r"(x) : "x19", "x20")
/* Registers are saved at the lower end there, and a rule's words reach 256 KiB. */
enum { HUGE = 200 << 10 };
#endif

KNOWN uint64_t leaf(volatile char *p)
{
	uint64_t a = sink, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;

	*p = 1;
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::CALL_CLOBBERED);
	SPIN(MILLISECOND);
	return a + b + c + d + e + f;
}

KNOWN void huge_frame(int n)
{
	volatile char buffer[HUGE];

	buffer[n] = 1;
	sink += leaf(buffer + n);
	sink += buffer[n + 1];
}

/* The frame pointer is clobbered: it must come back through the CFI. */
KNOWN void scratch_fp(int n)
{
	uint64_t x = 0x1234;

	LOSE_FRAME_POINTER(x);
	huge_frame(n);
	sink += n;
	LOSE_FRAME_POINTER(x);
}

KNOWN void with_alloca(int n)
{
	volatile char *p = __builtin_alloca(n * 16);

	p[n] = 1;
	scratch_fp(n);
	sink += p[n];
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		with_alloca(argc + (int)(sink & 31));
	_exit(0);
}
