// SPDX-License-Identifier: Apache-2.0
/*
 * 4 MiB of code that nobody runs, from `filler` on, for call frame information to be about. Runs
 * until it is killed.
 */
asm("	.text\n"
    "	.globl filler\n"
    "filler:\n"
    "	.space 4 << 20\n");

int main(void)
{
	for (volatile unsigned long n = 0;; n++)
		;
}
