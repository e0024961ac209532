// SPDX-License-Identifier: Apache-2.0
/* Calls functions of handmade_asm.S, which call back; see there. */
#include "workload.h"

void asm_cfi_outer(void (*f)(int), int n);
void asm_kept_outer(void);
void asm_realigned(void);
void asm_fp_outer(void (*f)(int), int n);

KNOWN void leaf(int n)
{
	uint64_t a = n, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f)::CALL_CLOBBERED);
	SPIN(MILLISECOND);
	sink += a + b + c + d + e + f;
}

KNOWN void with_cfi(int n)
{
	asm_cfi_outer(leaf, n);
	sink++;
}

KNOWN void with_kept_register(void)
{
	asm_kept_outer();
	sink++;
}

KNOWN void with_realigned(void)
{
	asm_realigned();
	sink++;
}

KNOWN void with_frame_pointer(int n)
{
	asm_fp_outer(leaf, n);
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left()) {
		with_cfi(argc);
		with_kept_register();
		with_realigned();
		with_frame_pointer(argc);
	}
	_exit(0);
}
