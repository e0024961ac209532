/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly with lines but without functions in its debug information; one has no size. */
	.text
	.globl main
	.type main, @function
main:
	subq $8, %rsp
	leaq name_main(%rip), %rdi
	call mark	/* @main.0 main */
	call local
	call unsized
	xorl %eax, %eax
	addq $8, %rsp
	ret
	.size main, . - main

	.type local, @function
local:
	subq $8, %rsp
	leaq name_local(%rip), %rdi
	call mark	/* @local.0 local */
	addq $8, %rsp
	ret
	.size local, . - local

unsized:
	subq $8, %rsp
	leaq name_unsized(%rip), %rdi
	call mark	/* @unsized.0 unsized */
	addq $8, %rsp
	ret

	.section .rodata
name_main:
	.asciz "main"
name_local:
	.asciz "local"
name_unsized:
	.asciz "unsized"
	.section .note.GNU-stack, "", @progbits
