// SPDX-License-Identifier: Apache-2.0
/*
 * Lengths of instructions, as the assembler makes them: one of each kind that has a length of its
 * own, of all maps and encodings.
 */
#include "elf/x86_insn.h"

#include "test.h"

#if !defined(__x86_64__)
TEST_SKIP_REASON()
{
	return "no assembler for x86-64 here";
}
#else

extern const uint8_t insns_begin[], insns_end[], insns_lengths[];

/* An instruction between two labels, and their distance elsewhere. */
#define INSN(text)                                                                                 \
	"1: " text "\n"                                                                            \
	"2: .pushsection .rodata.insns, \"a\", @progbits\n"                                        \
	" .byte 2b - 1b\n"                                                                         \
	" .popsection\n"

__asm__(".pushsection .rodata.insns, \"a\", @progbits\n"
	".globl insns_lengths\n"
	"insns_lengths:\n"
	".popsection\n"
	".pushsection .text.insns, \"ax\", @progbits\n"
	".globl insns_begin\n"
	"insns_begin:\n"
	/* one byte, and what may stand before and behind it */
	INSN("nop") INSN("push %r12") INSN("pushq $0x12345678") INSN("pushw $0x1234") INSN(
		"push $1") INSN("popq 8(%rax)") INSN("popq (%r9,%rcx,4)") INSN("ret $16") INSN("ent"
											       "er "
											       "$0x"
											       "123"
											       "4, "
											       "$3")
		INSN("leave") INSN("movabs $0x123456789abcdef0, %r11") INSN(
			"movabs "
			"0x123456789abcdef0, "
			"%al") INSN("addr32 mov (%eax), %ecx") INSN("mov $0x1234, %ax")
			INSN("movl "
			     "$0x12345678, "
			     "0x100(%rsp,%rbx,"
			     "2)") INSN("movw "
					"$1, "
					"(%"
					"rax)") INSN("mov 0x1234, %eax") INSN("mov %fs:0x28, "
									      "%rax") INSN("lea "
											   "0(,%"
											   "rax,"
											   "8), "
											   "%rc"
											   "x")
				INSN("mov 1b(%rip), %rax") INSN("mov (%rbp), %rax") INSN(
					"mov (%r13), "
					"%rax") INSN("m"
						     "o"
						     "v"
						     " "
						     "("
						     "%"
						     "r"
						     "1"
						     "2"
						     ")"
						     ","
						     " "
						     "%"
						     "r"
						     "a"
						     "x") INSN("mov (%rsp), %rax") INSN("and $-32, "
											"%rsp") INSN("sub $0x1000, "
												     "%rsp")
					INSN("imul $0x1000, %rax, %rbx") INSN(
						"imul $1, %rax, %rbx") INSN("testb $1, (%rax)")
						INSN("testl $1, (%rax)") INSN("testw $1, (%rax)") INSN(
							"notq (%rax)") INSN("negb "
									    "8(%"
									    "rax)") INSN("call 1b")
							INSN("call *0x78(%rip)") INSN(
								"jmp "
								"*(%rdx,%rax,"
								"8)") INSN("{disp32} jmp "
									   "1b") INSN("{dis"
										      "p32}"
										      " jne"
										      " 1b")
								INSN("jrcxz 1b") INSN(
									"loop 1b") INSN("lock "
											"cmpxchg "
											"%rax, "
											"(%rdx)")
									INSN("rep stosq") INSN(
										"fns"
										"tcw"
										" 8("
										"%rs"
										"p)") INSN("fxc"
											   "h")
										INSN("xch"
										     "g "
										     "%ax"
										     ", "
										     "%a"
										     "x") INSN("in "
											       "$1,"
											       " "
											       "%a"
											       "l")
											INSN("in"
											     "t "
											     "$0"
											     "x8"
											     "0")
	/* 0f */
	INSN("syscall") INSN("ud2") INSN("cpuid") INSN("nopw 0x0(%rax,%rax,1)") INSN("endbr64")
		INSN("movups %xmm1, 0x40(%rsp)") INSN("pshufd $1, %xmm1, %xmm2") INSN(
			"psrldq $4, %xmm1") INSN("cmpps $1, %xmm1, %xmm2")
			INSN("shufps $1, %xmm1, %xmm2") INSN("pinsrw $1, %eax, %xmm1") INSN(
				"shld $1, %rax, %rbx") INSN("bt $1, %rax") INSN("bswap %r9")
				INSN("rdfsbase %rax") INSN("xsave (%rax)") INSN("emms")
					INSN("prefetcht0 (%rax)") INSN("cmpxchg16b (%rax)") INSN(
						"movnti %rax, 8(%rdx)") INSN("extrq $1, $2, %xmm3")
						INSN("extrq %xmm1, %xmm2")
							INSN("insertq $1, $2, %xmm3, %xmm4")
								INSN("pfadd %mm1, %mm2")
									INSN("femms")
	/* 0f 38, 0f 3a */
	INSN("pshufb %xmm1, %xmm2") INSN("crc32q %rax, %rbx") INSN("movbe (%rax), %rbx")
		INSN("aesenc %xmm1, %xmm2") INSN("adcx %rax, %rbx") INSN("palignr $1, %xmm1, %xmm2")
			INSN("pclmulqdq $1, (%rax), %xmm2") INSN("pextrq $1, %xmm1, %rax")
				INSN("sha1rnds4 $1, %xmm1, %xmm2")
	/* VEX */
	INSN("vzeroupper") INSN("vzeroall") INSN("vpsubw %ymm0, %ymm1, %ymm1") INSN(
		"vpaddw %ymm9, %ymm10, %ymm11") INSN("vmovdqa 0x5f538(%rip), %ymm7")
		INSN("vpsrld $16, %xmm0, %xmm4") INSN("vpshuflw $0x4e, %xmm0, %xmm4") INSN(
			"vcmpps $1, %ymm1, %ymm2, %ymm3") INSN("vpinsrw $1, %eax, %xmm1, %xmm2")
			INSN("vpextrw $1, %xmm1, %eax") INSN(
				"vshufpd $1, %ymm1, %ymm2, %ymm3") INSN("vpmaddubsw %ymm7, %ymm3, "
									"%ymm3")
				INSN("vpermq $5, %ymm1, %ymm1") INSN(
					"vgatherdps %ymm1, "
					"(%rax,%ymm2,4), %ymm3") INSN("vblendvps %ymm1, %ymm2, "
								      "%ymm3, %ymm4")
					INSN("vpextrb $1, %xmm1, 8(%rax)") INSN(
						"andn %rax, %rbx, %rcx") INSN("blsr %rax, %rbx")
						INSN("rorx $1, %rax, %rbx") INSN(
							"mulx %rax, %rbx, "
							"%rcx") INSN("kmovw %k1, %eax")
							INSN("kortestq %k1, %k2") INSN(
								"kshiftlw $1, %k1, %k2")
								INSN("vpdpbusd %ymm1, %ymm2, %ymm3")
	/* EVEX */
	INSN("vpaddd 0x40(%rax), %zmm1, %zmm2") INSN("vpaddd 0x41(%rax), %zmm1, %zmm2") INSN(
		"vpternlogd $0x96, %zmm17, %zmm18, %zmm19") INSN("vpsrld $16, %zmm0, %zmm4{%k1}{z}")
		INSN("vpcmpud $1, (%rax){1to16}, %zmm2, %k1") INSN("vpermt2d %ymm20, %ymm1, %ymm2")
			INSN("vpscatterdd %zmm1, 4(%rax,%zmm2,4){%k1}") INSN(
				"vcmpps $1, %zmm1, %zmm2, %k3") INSN("vaddph %zmm1, %zmm2, %zmm3")
				INSN("vfmadd213ph 0x40(%rax), %zmm2, %zmm3")
					INSN("vgf2p8affineqb $1, %zmm1, %zmm2, %zmm3")
	/* XOP */
	INSN("vphadduwq %xmm3, %xmm3") INSN("vpperm %xmm1, %xmm2, %xmm3, %xmm4")
		INSN("vprotd $7, %xmm1, %xmm2") INSN("vprotd %xmm1, 8(%rax), %xmm2")
			INSN("vpcomub $1, %xmm1, %xmm2, %xmm3")
				INSN("vpmacsww %xmm1, (%r9), %xmm2, %xmm4")
					INSN("blcfill %rax, %rbx")
						INSN("bextr $0x12345678, %eax, %ecx")
							INSN("llwpcb %rax") "insns_end:\n"
									    ".popsection\n");

TEST(lengths_are_the_assemblers)
{
	const uint8_t *p = insns_begin;

	for (size_t i = 0; p < insns_end; i++) {
		struct x86_insn insn;
		int len = x86_insn_decode(p, (size_t)(insns_end - p), &insn);

		ck_assert_msg(len == insns_lengths[i],
			      "%02x %02x %02x %02x %02x %02x: %d bytes, not %d", p[0], p[1], p[2],
			      p[3], p[4], p[5], len, insns_lengths[i]);
		/* It ends where it ends: with a byte less it is none. */
		ASSERT_EQ(x86_insn_decode(p, (size_t)len - 1, &insn), 0);
		p += insns_lengths[i];
	}
}

TEST(what_is_no_instruction)
{
	static const uint8_t codes[][4] = {
		{ 0x06, 0x90, 0x90, 0x90 }, /* push %es */
		{ 0x48, 0x48, 0x90, 0x90 }, /* REX behind REX */
		{ 0x8f, 0xcf, 0x90, 0x90 }, /* pop has no extension but 0 */
		{ 0x0f, 0x04, 0x90, 0x90 }, { 0xc5, 0x90, 0x90, 0x90 },
	};
	struct x86_insn insn;

	for (size_t i = 0; i < 4; i++)
		ASSERT_EQ(x86_insn_decode(codes[i], 4, &insn), 0);
	ASSERT_EQ(x86_insn_decode(codes[4], 2, &insn), 0);
	ASSERT_EQ(x86_insn_decode(codes[0], 0, &insn), 0);
}

TEST(operands)
{
	struct x86_insn insn;

	/* blsr %rax,%rbx */
	ASSERT_EQ(x86_insn_decode((const uint8_t[]){ 0xc4, 0xe2, 0xe0, 0xf3, 0xc8 }, 5, &insn), 5);
	ASSERT_EQ(insn.vvvv, 3);
	ASSERT_EQ(insn.rm, 0);
	ASSERT_EQ(insn.map, X86_MAP_0F38);
	/* mov %rcx,0x60(%rsp) */
	ASSERT_EQ(x86_insn_decode((const uint8_t[]){ 0x48, 0x89, 0x4c, 0x24, 0x60 }, 5, &insn), 5);
	ASSERT_EQ(insn.reg, 2);
	ASSERT_EQ(insn.rm, 7);
	ASSERT_EQ(insn.disp, 0x60);
}

TEST(where_four_bytes_lead)
{
	/* call, there and back; mov 0x10(%rip),%rax */
	ASSERT_EQ(x86_rel32((const uint8_t[]){ 0, 0, 0, 1 }, 0x401), 0x1000405);
	ASSERT_EQ(x86_rel32((const uint8_t[]){ 0xfb, 0xff, 0xff, 0xff }, 0x401), 0x400);
	ASSERT_EQ(x86_rel32((const uint8_t[]){ 0x10, 0, 0, 0 }, 3), 0x17);
}

#define RAX 1u
#define RDX (1u << 1)
#define RCX (1u << 2)
#define RBX (1u << 3)

TEST(registers_that_are_written)
{
	static const struct {
		uint8_t code[8];
		uint32_t written;
	} codes[] = {
		{ { 0x48, 0x89, 0xd8 }, RAX },			 /* mov %rbx,%rax */
		{ { 0x48, 0x89, 0x18 }, 0 },			 /* mov %rbx,(%rax) */
		{ { 0x48, 0x8b, 0x18 }, RBX },			 /* mov (%rax),%rbx */
		{ { 0x48, 0x39, 0xd8 }, 0 },			 /* cmp %rbx,%rax */
		{ { 0x48, 0x85, 0xc0 }, 0 },			 /* test %rax,%rax */
		{ { 0x88, 0xdc }, RAX },			 /* mov %bl,%ah */
		{ { 0x83, 0xc1, 0x01 }, RCX },			 /* add $1,%ecx */
		{ { 0x83, 0xf9, 0x01 }, 0 },			 /* cmp $1,%ecx */
		{ { 0x05, 1, 0, 0, 0 }, RAX },			 /* add $1,%eax */
		{ { 0x3d, 1, 0, 0, 0 }, 0 },			 /* cmp $1,%eax */
		{ { 0x48, 0x87, 0xd3 }, RDX | RBX },		 /* xchg %rdx,%rbx */
		{ { 0x48, 0x91 }, RAX | RCX },			 /* xchg %rax,%rcx */
		{ { 0x90 }, 0 },				 /* nop */
		{ { 0x48, 0xf7, 0xe1 }, RAX | RDX },		 /* mul %rcx */
		{ { 0x48, 0xf7, 0xd9 }, RCX },			 /* neg %rcx */
		{ { 0x48, 0x99 }, RDX },			 /* cqo */
		{ { 0x0f, 0x05 }, RAX | RCX | 1 << 11 },	 /* syscall */
		{ { 0x0f, 0xa2 }, RAX | RBX | RCX | RDX },	 /* cpuid */
		{ { 0x48, 0x0f, 0x44, 0xd9 }, RBX },		 /* cmove %rcx,%rbx */
		{ { 0x66, 0x48, 0x0f, 0x7e, 0xc3 }, RBX },	 /* movq %xmm0,%rbx */
		{ { 0xf3, 0x0f, 0x7e, 0xdb }, 0 },		 /* movq %xmm3,%xmm3 */
		{ { 0x0f, 0x28, 0xdb }, 0 },			 /* movaps %xmm3,%xmm3 */
		{ { 0x0f, 0xc8 | 3 }, RBX },			 /* bswap %ebx */
		{ { 0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8 }, RBX }, /* crc32 %rax,%rbx */
		{ { 0x66, 0x0f, 0x3a, 0x16, 0xc3, 1 }, RBX },	 /* pextrd $1,%xmm0,%ebx */
		{ { 0xc5, 0xf5, 0xf9, 0xdb }, 0 },		 /* vpsubw %ymm3,%ymm1,%ymm3 */
		{ { 0xc5, 0xfa, 0x7e, 0xdb }, 0 },		 /* vmovq %xmm3,%xmm3 */
		{ { 0xc4, 0xe2, 0xe0, 0xf3, 0xc8 }, RBX },	 /* blsr %rax,%rbx */
		{ { 0xc4, 0xe2, 0xf3, 0xf6, 0xd8 }, RBX | RCX }, /* mulx %rax,%rcx,%rbx */
		{ { 0x8f, 0xe9, 0x60, 0x01, 0xc8 }, RBX },	 /* blcfill %eax,%ebx */
		{ { 0x8f, 0xe9, 0x78, 0xd7, 0xdb }, 0 },	 /* vphadduwq %xmm3,%xmm3 */
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct x86_insn insn;

		ASSERT(x86_insn_decode(codes[i].code, sizeof(codes[i].code), &insn));
		ck_assert_msg(x86_insn_written(&insn) == codes[i].written, "%zu: %#x, not %#x", i,
			      x86_insn_written(&insn), codes[i].written);
	}
}
#endif
