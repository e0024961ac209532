// SPDX-License-Identifier: Apache-2.0
/*
 * As many different rules as a table can have: each a CFA offset of its own. many_rules, built with
 * -DBASE=n: where they begin. Runs until it is killed.
 */
#ifndef BASE
#define BASE 0
#endif
#define TEXT(x)	   #x
#define TEXT_OF(x) TEXT(x)

asm("	.text\n"
    "many_rules:\n"
    "	.cfi_startproc\n"
    "	.set n, 2 + " TEXT_OF(BASE) "\n"
				    "	.rept 32700\n"
				    "	nop\n"
				    "	.cfi_def_cfa_offset 8 * n\n"
				    "	.set n, n + 1\n"
				    "	.endr\n"
				    "	ret\n"
				    "	.cfi_endproc\n");

int main(void)
{
	for (volatile unsigned long n = 0;; n++)
		;
}
