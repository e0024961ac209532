/* SPDX-License-Identifier: Apache-2.0 */
/* A 32-bit program without any library: spins for a while and exits. Its stacks are not walked. */
	.globl _start
	.type _start, @function
_start:
	mov	$0x80000000, %ecx
1:	dec	%ecx
	jnz	1b
	mov	$1, %eax
	xor	%ebx, %ebx
	int	$0x80
	.size _start, . - _start
	.section .note.GNU-stack, "", @progbits
