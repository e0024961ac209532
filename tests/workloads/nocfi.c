// SPDX-License-Identifier: Apache-2.0
/*
 * Functions with frame pointers and without CFI, in more code than is scanned beforehand: one of
 * whose page is absent whenever it is called, leaves that have no frame of their own, or a late
 * one, and a caller without a frame pointer.
 */
#include "workload.h"

#include <sys/mman.h>
#include <sys/syscall.h>

/* More than SCAN_BYTES_MAX of unwind/code_scan.h. */
__asm__(".text\n.skip 3 << 20, 0x90\n");

enum { APART = 65536 }; /* no fault maps more than that at once */

KNOWN void tiny(void)
{
	sink++;
}

/* Interrupted at its first instruction: by that one's page fault. */
__attribute__((aligned(APART))) KNOWN void absent(int n)
{
	tiny();
	sink += n;
}

__attribute__((aligned(APART), optimize("omit-frame-pointer"))) KNOWN void leaf(int n)
{
	SPIN(MILLISECOND / 4 + n);
}

/* Sets up a frame for the rare case only. */
__attribute__((optimize("omit-frame-pointer"))) KNOWN void late(int n)
{
	SPIN(MILLISECOND / 4);
	if (__builtin_expect(n < 0, 0))
		tiny();
}

KNOWN void spin(int n)
{
	SPIN(MILLISECOND / 4 + n);
	sink++;
}

/* Its caller's frame pointer leads past that caller. */
__attribute__((optimize("omit-frame-pointer"))) KNOWN void frameless(int n)
{
	spin(n);
	sink += n;
}

KNOWN void forget(void)
{
	long r = SYS_madvise;

#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "+a"(r)
			 : "D"(absent), "S"(4096L), "d"((long)MADV_DONTNEED)
			 : "rcx", "r11", "memory");
#else
	register long x0 __asm__("x0") = (long)absent;
	register long x1 __asm__("x1") = 4096, x2 __asm__("x2") = MADV_DONTNEED;
	register long x8 __asm__("x8") = r;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
#endif
	sink++;
}

KNOWN void middle(int n)
{
	for (int i = 0; i < 1000; i++) {
		forget();
		absent(n);
	}
	leaf(n);
	late(n);
	frameless(n);
	sink++;
}

KNOWN void outer(int n)
{
	middle(n);
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		outer(argc);
	_exit(0);
}
