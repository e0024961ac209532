/* SPDX-License-Identifier: Apache-2.0 */
/* Built with -DROWS=n: code that nobody runs, whose unwind table has n rows, and spin(n), which
 * runs 64 Ki instructions n times: hardly any two samples of it are alike. */
	.text
	.cfi_startproc
	.rept ROWS / 2
	.byte 0x66, 0x90
	.cfi_def_cfa_offset 16
	.byte 0x66, 0x90
	.cfi_def_cfa_offset 24
	.endr
	ret
	.cfi_endproc
	.globl spin
	.type spin, @function
spin:
	.cfi_startproc
	.rept 65536
	add %rdi, %rax
	.endr
	dec %rdi
	jnz spin
	ret
	.cfi_endproc
	.section .note.GNU-stack, "", %progbits
