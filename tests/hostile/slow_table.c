// SPDX-License-Identifier: Apache-2.0
/*
 * 4 MiB of code that nobody runs, from `filler` on, for call frame information to be about. Runs
 * until it is killed, and writes to -DSTACK=BYTES of its stack meanwhile.
 */
asm("	.text\n"
    "	.globl filler\n"
    "filler:\n"
    "	.space 4 << 20\n");

#ifndef STACK
#define STACK 8
#endif

int main(void)
{
	volatile unsigned long stack[STACK / sizeof(unsigned long)];

	for (unsigned long n = 0;; n++)
		stack[n % (STACK / sizeof(*stack))] = n;
}
