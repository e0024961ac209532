/* SPDX-License-Identifier: Apache-2.0 */
/* Functions with call frame information, so many that a program's table is built by a child. */
	.text
	.rept 20000
	.cfi_startproc
	nop
	.cfi_endproc
	.endr
	.section .note.GNU-stack, "", %progbits
