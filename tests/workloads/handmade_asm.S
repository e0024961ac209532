/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written functions:
 *  asm_cfi_outer, asm_cfi_inner   with CFI, odd on purpose: the stack moves in mid-function, the
 *                                 frame hangs on rbx for a while, remember and restore
 *  asm_fp_outer, asm_fp_inner     without CFI, with frame pointers
 *  asm_leaf_bare                  without either: a leaf that never touches the stack
 * Each burns a little itself, too.
 */
	.text

	.macro function name
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.endm

	.macro burn n
	mov	$\n, %ecx
9:	dec	%ecx
	jnz	9b
	.endm

	function asm_cfi_outer
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -16
	sub	$0x158, %rsp
	.cfi_adjust_cfa_offset 0x158
	burn	200000
	test	%esi, %esi
	.cfi_remember_state
	jz	1f
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	call	asm_cfi_inner
	burn	200000
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	add	$0x158, %rsp
	.cfi_adjust_cfa_offset -0x158
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
1:	.cfi_restore_state
	add	$0x158, %rsp
	.cfi_adjust_cfa_offset -0x158
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size asm_cfi_outer, . - asm_cfi_outer

/* The CFA is rbx + 24; the stack is aligned to a page and does not know the way back. */
	function asm_cfi_inner
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbp, -16
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset %rbx, -24
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	and	$-4096, %rsp
	mov	%rdi, %rax
	mov	%esi, %edi
	mov	$0x77, %ebp
	burn	200000
	call	*%rax
	burn	200000
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size asm_cfi_inner, . - asm_cfi_inner

	function asm_fp_outer
	push	%rbp
	mov	%rsp, %rbp
	sub	$0x40, %rsp
	burn	200000
	call	asm_fp_inner
	burn	200000
	leave
	ret
	.size asm_fp_outer, . - asm_fp_outer

	function asm_fp_inner
	push	%rbp
	mov	%rsp, %rbp
	push	%rbx
	push	%r12
	mov	%rdi, %rax
	mov	%esi, %edi
	burn	200000
	call	*%rax
	burn	200000
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.size asm_fp_inner, . - asm_fp_inner

	function asm_leaf_bare
1:	dec	%rdi
	jnz	1b
	ret
	.size asm_leaf_bare, . - asm_leaf_bare

	.section .note.GNU-stack, "", @progbits
