/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written functions:
 *  asm_cfi_outer, asm_cfi_inner   with CFI, odd on purpose: the stack moves in mid-function, the
 *                                 frame hangs on rbx for a while, remember and restore
 *  asm_kept_outer, asm_kept_inner with CFI that hangs on a caller-saved register across a call to a
 *                                 helper that keeps it, as OpenSSL's AES-GCM does
 *  asm_realigned, asm_helper      without CFI and frame pointer: realigned, the old stack pointer is
 *                                 in a register and then on the stack, as in x264
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

#if defined(__x86_64__)
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

/* The CFA is rax + 8 while the helper runs. */
	function asm_kept_outer
	.cfi_startproc
	mov	%rsp, %rax
	.cfi_def_cfa_register %rax
	push	%rbx
	.cfi_offset %rbx, -16
	sub	$0x100, %rsp
	and	$-128, %rsp
	call	asm_kept_inner
	mov	-8(%rax), %rbx
	.cfi_restore %rbx
	mov	%rax, %rsp
	.cfi_def_cfa_register %rsp
	ret
	.cfi_endproc
	.size asm_kept_outer, . - asm_kept_outer

	function asm_kept_inner
	.cfi_startproc
	mov	$0x77, %ebx
	burn	1000000
	ret
	.cfi_endproc
	.size asm_kept_inner, . - asm_kept_inner

	function asm_realigned
	mov	%rsp, %rdx
	and	$-64, %rsp
	sub	$0x80, %rsp
	call	asm_helper
	mov	%rdx, 0x78(%rsp)
	xor	%edx, %edx
	burn	1000000
	mov	0x78(%rsp), %rsp
	ret
	.size asm_realigned, . - asm_realigned

	function asm_helper
	burn	1000000
	mov	$0x77, %eax
	ret
	.size asm_helper, . - asm_helper

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

#elif defined(__aarch64__)
	.macro burn n
	mov	w9, #\n & 0xffff
	movk	w9, #\n >> 16, lsl #16
9:	subs	w9, w9, #1
	b.ne	9b
	.endm

	.macro save_pair size
	stp	x29, x30, [sp, #-\size]!
	.cfi_adjust_cfa_offset \size
	.cfi_offset x29, -\size
	.cfi_offset x30, -\size + 8
	.endm

	.macro restore_pair size
	ldp	x29, x30, [sp], #\size
	.cfi_adjust_cfa_offset -\size
	.cfi_restore x29
	.cfi_restore x30
	.endm

	function asm_cfi_outer
	.cfi_startproc
	save_pair 32
	str	x19, [sp, #16]
	.cfi_offset x19, -16
	sub	sp, sp, #0x150
	.cfi_adjust_cfa_offset 0x150
	burn	200000
	.cfi_remember_state
	cbz	w1, 1f
	stp	x0, x1, [sp, #-16]!
	.cfi_adjust_cfa_offset 16
	bl	asm_cfi_inner
	burn	200000
	ldp	x0, x1, [sp], #16
	.cfi_adjust_cfa_offset -16
	add	sp, sp, #0x150
	.cfi_adjust_cfa_offset -0x150
	ldr	x19, [sp, #16]
	.cfi_restore x19
	restore_pair 32
	ret
1:	.cfi_restore_state
	add	sp, sp, #0x150
	.cfi_adjust_cfa_offset -0x150
	ldr	x19, [sp, #16]
	.cfi_restore x19
	restore_pair 32
	ret
	.cfi_endproc
	.size asm_cfi_outer, . - asm_cfi_outer

/* The CFA is x19 + 32; the stack is aligned to a page and does not know the way back. */
	function asm_cfi_inner
	.cfi_startproc
	save_pair 32
	str	x19, [sp, #16]
	.cfi_offset x19, -16
	mov	x19, sp
	.cfi_def_cfa_register x19
	and	sp, x19, #-4096
	mov	x8, x0
	mov	w0, w1
	mov	x29, #0x77
	burn	200000
	blr	x8
	burn	200000
	mov	sp, x19
	.cfi_def_cfa_register sp
	ldr	x19, [sp, #16]
	.cfi_restore x19
	restore_pair 32
	ret
	.cfi_endproc
	.size asm_cfi_inner, . - asm_cfi_inner

/* The CFA is x10 while the helper runs. */
	function asm_kept_outer
	.cfi_startproc
	mov	x10, sp
	.cfi_def_cfa_register x10
	stp	x29, x30, [sp, #-32]!
	.cfi_offset x29, -32
	.cfi_offset x30, -24
	sub	x9, sp, #0x100
	and	sp, x9, #-128
	bl	asm_kept_inner
	ldp	x29, x30, [x10, #-32]
	.cfi_restore x29
	.cfi_restore x30
	mov	sp, x10
	.cfi_def_cfa_register sp
	ret
	.cfi_endproc
	.size asm_kept_outer, . - asm_kept_outer

	function asm_kept_inner
	.cfi_startproc
	burn	1000000
	ret
	.cfi_endproc
	.size asm_kept_inner, . - asm_kept_inner

/* aarch64 does not realign in this way. */
	function asm_realigned
	stp	x29, x30, [sp, #-32]!
	bl	asm_helper
	burn	1000000
	ldp	x29, x30, [sp], #32
	ret
	.size asm_realigned, . - asm_realigned

	function asm_helper
	burn	1000000
	ret
	.size asm_helper, . - asm_helper

	function asm_fp_outer
	stp	x29, x30, [sp, #-80]!
	mov	x29, sp
	burn	200000
	bl	asm_fp_inner
	burn	200000
	ldp	x29, x30, [sp], #80
	ret
	.size asm_fp_outer, . - asm_fp_outer

	function asm_fp_inner
	stp	x29, x30, [sp, #-32]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x8, x0
	mov	w0, w1
	burn	200000
	blr	x8
	burn	200000
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #32
	ret
	.size asm_fp_inner, . - asm_fp_inner

	function asm_leaf_bare
1:	subs	x0, x0, #1
	b.ne	1b
	ret
	.size asm_leaf_bare, . - asm_leaf_bare
#endif

	.section .note.GNU-stack, "", %progbits
