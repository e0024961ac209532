/* SPDX-License-Identifier: Apache-2.0 */
/* A 32-bit program without any library: spins for a while and exits. Its stacks are not walked. */
#ifndef ROUNDS
#define ROUNDS 1
#endif
	.globl _start
	.type _start, @function
_start:
	mov	$ROUNDS, %edx
1:	mov	$0x80000000, %ecx
2:	dec	%ecx
	jnz	2b
	dec	%edx
	jnz	1b
	mov	$1, %eax
	xor	%ebx, %ebx
	int	$0x80
	.size _start, . - _start
	.section .note.GNU-stack, "", @progbits
