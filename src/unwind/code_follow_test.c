// SPDX-License-Identifier: Apache-2.0
/*
 * Code that is followed from an address, against what the file's CFI says there: it must never say
 * anything else, and it must say something nearly everywhere.
 */
#include "unwind/code_follow.h"
#include "unwind/unwind_table.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/sample.h"
#include "test.h"
#include "util/cleanup.h"

/* After so many instructions a disassembly that began in the middle of one is right. */
enum { PLACES = 600, STEPS = 32, RESYNC = 16 };

/* Sanitizers add ends that never return, after which little can be told. */
#ifdef WITH_SANITIZERS
enum { UNDECIDED_PART = 4 };
#else
enum { UNDECIDED_PART = 8 };
#endif

static const struct unwind_rule *rule_at(const struct code_rows *rows, uint64_t addr)
{
	const struct unwind_rule *rule = NULL;

	for (size_t i = 0; i < rows->rows.nr && rows->rows.items[i].addr <= addr; i++)
		rule = rows->rows.items[i].known ? &rows->rows.items[i].rule : NULL;
	return rule;
}

/* The address of an instruction, some behind `addr`, or the last byte of a call; 0: none. */
static uint64_t place_behind(const struct elf_file *elf, const struct cfi_arch *cfi, uint64_t addr,
			     int steps, bool is_caller)
{
	uint8_t code[STEPS * 16];
	struct scan_arch arch;
	struct code_insn insn;
	size_t at = 0;

	if (elf->machine == EM_X86_64)
		scan_arch_x86(cfi, &arch);
	else
		scan_arch_a64(cfi, &arch);
	if (elf_file_read_vaddr(elf, addr, code, sizeof(code)) < 0)
		return 0;
	for (;; steps--) {
		if (!arch.step(cfi, code + at, sizeof(code) - at, addr + at, &insn, NULL) ||
		    insn.padding)
			return 0;
		if (steps <= 0 && (!is_caller || code_calls(&insn)))
			return addr + at + (is_caller ? insn.len - 1u : 0);
		at += insn.len;
	}
}

struct result {
	unsigned int nr, nr_wrong, nr_undecided;
};

static void check(const struct elf_file *elf, const struct unwind_table *table, uint64_t addr,
		  bool is_caller, struct result *ret)
{
	const struct unwind_rule *want = unwind_table_find(table, addr), *got;
	struct code_rows rows;

	if (want->cfa != CFA_REG)
		return;
	ASSERT_OK(code_follow(elf, addr, is_caller, &rows));
	got = rule_at(&rows, addr);
	ASSERT(got);
	ret->nr++;
	if (got->cfa == CFA_FRAME_POINTER) {
		ASSERT_EQ(got->cfa_off, CODE_UNDECIDED);
		ret->nr_undecided++;
	} else if (got->cfa != CFA_REG || (got->cfa_reg == want->cfa_reg &&
					   (got->cfa_off != want->cfa_off || got->ra != want->ra ||
					    got->ra_off != want->ra_off))) {
		printf("# %#llx: wrong\n", (unsigned long long)addr);
		ret->nr_wrong++;
	}
	code_rows_fini(&rows);
}

/* Places all over the code. */
static struct result check_file(const char *path, bool are_callers)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	const struct elf_section *text;
	struct result result = { 0 };
	struct cfi_arch cfi;
	uint64_t seed = 1;

	ASSERT_OK(elf_file_open(path, &elf));
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	ASSERT_OK(cfi_arch_init(&cfi, elf->machine, 0));
	text = elf_file_section(elf, ".text");
	ASSERT(text);
	for (int i = 0; i < PLACES; i++) {
		uint64_t addr;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		addr = text->addr + ((seed >> 20) % text->size & ~15ull);
		addr = place_behind(elf, &cfi, addr, RESYNC + (int)(seed >> 61), are_callers);
		if (addr && addr < text->addr + text->size)
			check(elf, table, addr, are_callers, &result);
	}
	printf("# %s: %u places, %u wrong, %u undecided\n", path, result.nr, result.nr_wrong,
	       result.nr_undecided);
	return result;
}

TEST(it_says_what_cfi_says)
{
	for (int are_callers = 0; are_callers < 2; are_callers++) {
		struct result r = check_file("/proc/self/exe", are_callers);

		ASSERT(r.nr > PLACES / 8);
		/* A place where the disassembly is of the test's own making. */
		ASSERT(r.nr_wrong <= r.nr / 100);
		ASSERT(r.nr_undecided <= r.nr / UNDECIDED_PART);
	}
}

/* A file with that code, at 0x401000, and an empty kilobyte before and behind it. */
enum { CODE_ADDR = 0x401000, CODE_BEFORE = 1024, CODE_SIZE = 3072 };

static struct {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	uint8_t code[CODE_SIZE];
} image;

/* `known`: it is told where the function begins and ends. */
static struct unwind_rule rule_on(uint16_t machine, const char *code, size_t size, size_t at,
				  bool is_caller, bool known)
{
	const struct code_range function = { CODE_ADDR + CODE_BEFORE,
					     CODE_ADDR + CODE_BEFORE + size };
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct unwind_rule rule = { 0 };
	struct code_rows rows;

	memset(&image, 0, sizeof(image));
	memcpy(image.ehdr.e_ident, ELFMAG, SELFMAG);
	image.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	image.ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	image.ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	image.ehdr.e_type = ET_EXEC;
	image.ehdr.e_machine = machine;
	image.ehdr.e_version = EV_CURRENT;
	image.ehdr.e_ehsize = sizeof(image.ehdr);
	image.ehdr.e_phoff = sizeof(image.ehdr);
	image.ehdr.e_phentsize = sizeof(image.phdr);
	image.ehdr.e_phnum = 1;
	image.phdr.p_type = PT_LOAD;
	image.phdr.p_flags = PF_R | PF_X;
	image.phdr.p_offset = offsetof(typeof(image), code);
	image.phdr.p_vaddr = CODE_ADDR;
	image.phdr.p_filesz = image.phdr.p_memsz = CODE_SIZE;
	memset(image.code, 0xcc, CODE_SIZE);
	memcpy(image.code + CODE_BEFORE, code, size);
	ASSERT_OK(elf_file_open_memory(&image, sizeof(image), &elf));
	if (known)
		ASSERT_OK(code_follow_function(elf, &function, function.start + at, is_caller,
					       &rows));
	else
		ASSERT_OK(code_follow(elf, function.start + at, is_caller, &rows));
	if (rule_at(&rows, CODE_ADDR + CODE_BEFORE + at))
		rule = *rule_at(&rows, CODE_ADDR + CODE_BEFORE + at);
	code_rows_fini(&rows);
	return rule;
}

static struct unwind_rule rule_of(const char *code, size_t size, size_t at, bool is_caller,
				  bool known)
{
	return rule_on(EM_X86_64, code, size, at, is_caller, known);
}

static struct unwind_rule rule_in(const char *code, size_t size, size_t at, bool is_caller)
{
	return rule_of(code, size, at, is_caller, false);
}

TEST(where_the_frame_is_at_each_instruction_of_a_function)
{
	/* 0: push %rbp; 1: mov %rsp,%rbp; 4: push %rbx; 5: call; 10: pop %rbx; 11: pop %rbp; 12:
	 * ret */
	static const char code[] = "\x55\x48\x89\xe5\x53\xe8\x00\x01\x00\x00\x5b\x5d\xc3";
	static const struct {
		size_t at;
		int reg, off, rbp;
	} want[] = {
		{ 0, X86_RSP, 8, 0 },	{ 1, X86_RSP, 16, -2 },	 { 4, X86_RBP, 16, -2 },
		{ 5, X86_RBP, 16, -2 }, { 11, X86_RBP, 16, -2 }, { 12, X86_RSP, 8, 0 },
	};

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct unwind_rule rule = rule_in(code, sizeof(code) - 1, want[i].at, false);

		ASSERT_EQ(rule.cfa, CFA_REG);
		ASSERT_EQ(rule.cfa_reg, want[i].reg);
		ASSERT_EQ(rule.cfa_off, want[i].off);
		ASSERT_EQ(rule.slot_off[0], want[i].rbp);
	}
}

TEST(a_leaf_without_a_frame_and_a_frame_that_comes_late)
{
	/* 0: test %edi,%edi; 2: je 11; 4: push %rbp; 5: mov %rsp,%rbp; 8: nop; 9: pop %rbp; 10:
	 * ret; 11: ret */
	static const char late[] = "\x85\xff\x74\x07\x55\x48\x89\xe5\x90\x5d\xc3\xc3";
	/* mov (%rdi),%rax; jmp back; or: mov %rax,%rdx; ret */
	static const char leaf[] = "\x48\x8b\x07\x48\x89\xc2\xc3";

	ASSERT_EQ(rule_in(leaf, sizeof(leaf) - 1, 3, false).cfa_off, 8);
	ASSERT_EQ(rule_in(late, sizeof(late) - 1, 2, false).cfa_off, 8);
	ASSERT_EQ(rule_in(late, sizeof(late) - 1, 8, false).cfa_reg, X86_RBP);
	ASSERT_EQ(rule_in(late, sizeof(late) - 1, 11, false).cfa_off, 8);
}

TEST(a_callers_frame_is_what_it_is_at_its_call)
{
	/* 0: push %rbx; 1: push %rbx; 2: call; 7: pop %rbx; 8: pop %rbx; 9: ret */
	static const char code[] = "\x53\x53\xe8\x00\x01\x00\x00\x5b\x5b\xc3";
	/* By way of %r9, 41 ff d1, whose last two bytes are one of %rcx. */
	static const char through[] = "\x53\x53\x41\xff\xd1\x5b\x5b\xc3";
	/* 0: push %rbx; 1: call; then traps: what is behind the call is no part of it. */
	static const char last[] = "\x53\xe8\x00\x01\x00\x00";

	ASSERT_EQ(rule_in(code, sizeof(code) - 1, 6, true).cfa_off, 24);
	ASSERT_EQ(rule_in(through, sizeof(through) - 1, 4, true).cfa_off, 24);
	ASSERT_EQ(rule_in(last, sizeof(last) - 1, 5, true).cfa_off, 16);
	/* No call ends there. */
	ASSERT_EQ(rule_in(code, sizeof(code) - 1, 7, true).cfa, CFA_FRAME_POINTER);
}

TEST(how_a_function_with_a_frame_pointer_ends_does_not_count)
{
	/* 0: push %rbp; 1: mov %rsp,%rbp; 4: call; 9: leave; 10: pop %rcx; 11: add $8,%rsp; 15:
	 * push %rcx; 16: ret: it takes an argument off the stack. */
	static const char code[] = "\x55\x48\x89\xe5\xe8\x00\x01\x00\x00\xc9\x59"
				   "\x48\x83\xc4\x08\x51\xc3";
	struct unwind_rule rule = rule_in(code, sizeof(code) - 1, 8, true);

	ASSERT_EQ(rule.cfa, CFA_REG);
	ASSERT_EQ(rule.cfa_reg, X86_RBP);
	ASSERT_EQ(rule.cfa_off, 16);
	ASSERT_EQ(rule_in(code, sizeof(code) - 1, 11, false).cfa, CFA_FRAME_POINTER);
}

/* As V8's builtins are. */
TEST(where_a_function_begins_is_believed)
{
	/* 0: push %rbp; 1: mov %rsp,%rbp; 4: sub $0x58,%rsp; 8: jmp 32; 10: call, which does not
	 * return; 15: int3, twice, which looks like another's end; 17: nop; 32: call; 37: leave;
	 * ret */
	static const char inner[] = "\x55\x48\x89\xe5\x48\x83\xec\x58\xeb\x16"
				    "\xe8\x00\x01\x00\x00\xcc\x90\x90\x90\x90\x90\x90\x90\x90"
				    "\x90\x90\x90\x90\x90\x90\xcc\xcc\xe8\x00\x01\x00\x00\xc9\xc3";
	/* 0: pop %rax; 1: push %r10; 3: push %rax; 4: push %rbp; 5: mov %rsp,%rbp; 8: call;
	 * 13: leave; 14: pop %rcx; 15: add $8,%rsp; 19: push %rcx; 20: ret */
	static const char popped[] = "\x58\x41\x52\x50\x55\x48\x89\xe5\xe8\x00\x01\x00\x00\xc9\x59"
				     "\x48\x83\xc4\x08\x51\xc3";
	/* 0: call, without a frame; 5: lea 8(%rsp),%rsp; who knows what the callee took. */
	static const char frameless[] = "\xe8\x00\x01\x00\x00\x48\x8d\x64\x24\x08\xc3";
	struct unwind_rule rule = rule_of(inner, sizeof(inner) - 1, 36, true, true);

	ASSERT_EQ(rule.cfa, CFA_REG);
	ASSERT_EQ(rule.cfa_reg, X86_RBP);
	ASSERT_EQ(rule.cfa_off, 16);
	rule = rule_of(popped, sizeof(popped) - 1, 12, true, true);
	ASSERT_EQ(rule.cfa, CFA_REG);
	ASSERT_EQ(rule.cfa_reg, X86_RBP);
	ASSERT_EQ(rule.cfa_off, 24);
	ASSERT_EQ(rule.ra_off, -2);
	ASSERT_EQ(rule.slot_off[0], -3);
	/* Interrupted before that, the return address is in a register. */
	rule = rule_of(popped, sizeof(popped) - 1, 1, false, true);
	ASSERT_EQ(RULE_RA(&rule), RA_IN_REG);
	ASSERT_EQ(rule_of(frameless, sizeof(frameless) - 1, 4, true, true).cfa, CFA_FRAME_POINTER);
}

/* V8's Builtins_CallApiCallback, as in Chromium, where nobody tells where it begins. */
TEST(arguments_may_be_put_above_the_return_address)
{
	/* 0: mov %rsi,0xe0(%r13); 7: pop %rax; 8: push %rbx; 9: push %rsi; 10: push %rax; 11: mov
	 * (%rbx),%rax; 14: test %rax,%rax; 17: je 20; 19: int3; 20: push %rbp; 21: mov %rsp,%rbp;
	 * 24: push $0x24; 26: sub $8,%rsp; 30: and $-16,%rsp; 34: call *%rdx; 36: leave;
	 * 37: pop %rcx; 38: lea 0x28(%rsp,%r15,8),%rsp; 43: push %rcx; 44: ret */
	static const char code[] = "\x49\x89\xb5\xe0\x00\x00\x00\x58\x53\x56\x50\x48\x8b\x03"
				   "\x48\x85\xc0\x74\x01\xcc\x55\x48\x89\xe5\x6a\x24"
				   "\x48\x83\xec\x08\x48\x83\xe4\xf0\xff\xd2\xc9\x59"
				   "\x4a\x8d\x64\xfc\x28\x51\xc3";
	/* As above, but the return address is left above what the frame pointer leads to. */
	static const char above[] = "\x49\x89\xb5\xe0\x00\x00\x00\x58\x50\x53\x56\x48\x8b\x03"
				    "\x48\x85\xc0\x74\x01\xcc\x55\x48\x89\xe5\x6a\x24"
				    "\x48\x83\xec\x08\x48\x83\xe4\xf0\xff\xd2\xc9\x59"
				    "\x4a\x8d\x64\xfc\x28\x51\xc3";
	struct unwind_rule rule = rule_in(code, sizeof(code) - 1, 35, true);

	ASSERT_EQ(rule.cfa, CFA_REG);
	ASSERT_EQ(rule.cfa_reg, X86_RBP);
	ASSERT_EQ(rule.cfa_off, 32);
	ASSERT_EQ(RULE_RA(&rule), RA_AT_CFA);
	ASSERT_EQ(rule.ra_off, -3);
	ASSERT_EQ(rule.slot_off[0], -4);
	rule = rule_in(above, sizeof(above) - 1, 35, true);
	ASSERT_EQ(rule.cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(rule.cfa_off, CODE_UNDECIDED);
	/* Behind `leave` nothing tells what lies on the stack. */
	rule = rule_in(code, sizeof(code) - 1, 37, false);
	ASSERT_EQ(rule.cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(rule.cfa_off, CODE_UNDECIDED);
}

/* V8's Builtins_WasmLiftoffFrameSetup: the frame that the frame pointer leads to is its caller's.
 */
TEST(a_function_may_leave_a_frame_to_its_caller)
{
	/* 0: pop %rdi; 1: push %rbp; 2: mov %rsp,%rbp; 5: push $8; 7: test $1,%r15b; 11: je 18;
	 * 13: push %rsi; 14: push %r15; 16: push %rdi; 17: ret; 18: push %rdi; 19: push %rsi;
	 * 20: call; 25: pop %rsi; 26: pop %rdi; 27: jmp 13 */
	static const char code[] = "\x5f\x55\x48\x89\xe5\x6a\x08\x41\xf6\xc7\x01\x74\x05"
				   "\x56\x41\x57\x57\xc3\x57\x56\xe8\x00\x01\x00\x00"
				   "\x5e\x5f\xeb\xf0";
	struct unwind_rule rule = rule_of(code, sizeof(code) - 1, 7, false, true);

	ASSERT_EQ(rule.cfa, CFA_REG);
	ASSERT_EQ(rule.cfa_reg, X86_RSP);
	ASSERT_EQ(rule.cfa_off, 16);
	ASSERT_EQ(RULE_RA(&rule), RA_IN_REG);
	ASSERT_EQ(rule.ra_off, X86_RDI);
	ASSERT_EQ(rule.slot_off[0], -1);
	rule = rule_of(code, sizeof(code) - 1, 17, false, true);
	ASSERT_EQ(rule.cfa_off, 40);
	ASSERT_EQ(RULE_RA(&rule), RA_AT_CFA);
	ASSERT_EQ(rule.ra_off, -5);
	rule = rule_of(code, sizeof(code) - 1, 24, true, true);
	ASSERT_EQ(rule.cfa_off, 32);
	ASSERT_EQ(rule.ra_off, -3);
	/* Were it not known how it ends, the frame pointer would still not tell who calls it. */
	rule = rule_of(code, 16, 7, false, true);
	ASSERT(rule.cfa_reg != X86_RBP);
}

TEST(a_function_may_take_over_the_frame_of_the_one_that_jumped_to_it)
{
	/* BaselineLeaveFrame. 0: mov -16(%rbp),%r8; 4: jge 17; 6: push %rbx; 7: call; 12: pop %rbx;
	 * 13: mov -24(%rbp),%r8; 17: mov %rbp,%rsp; 20: pop %rbp; 21: pop %r8;
	 * 23: lea (%rsp,%rbx,8),%rsp; 27: push %r8; 29: ret */
	static const char code[] = "\x4c\x8b\x45\xf0\x7d\x0b\x53\xe8\x00\x01\x00\x00\x5b"
				   "\x4c\x8b\x45\xe8\x48\x8b\xe5\x5d\x41\x58\x48\x8d\x24\xdc"
				   "\x41\x50\xc3";
	static const struct {
		uint8_t at;
		bool is_caller;
	} places[] = { { 0, false }, { 4, false }, { 11, true }, { 13, false }, { 17, false } };
	struct unwind_rule rule;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		rule = rule_of(code, sizeof(code) - 1, places[i].at, places[i].is_caller, true);
		ASSERT_EQ(rule.cfa, CFA_REG);
		ASSERT_EQ(rule.cfa_reg, X86_RBP);
		ASSERT_EQ(rule.cfa_off, 16);
		ASSERT_EQ(rule.slot_off[0], -2);
	}
	/* The frame is gone, and how much lies on the stack is in a register. */
	rule = rule_of(code, sizeof(code) - 1, 27, false, true);
	ASSERT_EQ(rule.cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(rule.cfa_off, CODE_UNDECIDED);
}

/* As V8's CallFunction begins, gives room to arguments, calls and returns. */
TEST(a_frame_record_of_aarch64_tells_where_the_stack_pointer_does_not)
{
	static const uint32_t code[] = {
		0xd2800590, /* 0: mov x16, #44 */
		0xa9be43ff, /* 4: stp xzr, x16, [sp, #-32]! */
		0xa9017bfd, /* 8: stp x29, x30, [sp, #16] */
		0x910043fd, /* 12: add x29, sp, #16 */
		0xcb256fff, /* 16: sub sp, sp, x5, lsl #3 */
		0x94000040, /* 20: bl */
		0x910003bf, /* 24: mov sp, x29 */
		0xa8c17bfd, /* 28: ldp x29, x30, [sp], #16 */
		0xd65f03c0, /* 32: ret */
	};
	static const struct {
		uint8_t at;
		bool is_caller;
	} places[] = { { 16, false }, { 20, false }, { 23, true }, { 24, false } };
	struct unwind_rule rule;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		rule = rule_on(EM_AARCH64, (const char *)code, sizeof(code), places[i].at,
			       places[i].is_caller, true);
		ASSERT_EQ(rule.cfa, CFA_REG);
		ASSERT_EQ(rule.cfa_reg, A64_FP);
		ASSERT_EQ(rule.cfa_off, 16);
		ASSERT_EQ(rule.slot_off[0], -2);
		ASSERT_EQ(rule.ra_off, -1);
	}
	/* The return address is in its register still, or again. */
	for (size_t at = 0; at <= 32; at += 32) {
		rule = rule_on(EM_AARCH64, (const char *)code, sizeof(code), at, false, true);
		ASSERT_EQ(RULE_RA(&rule), RA_IN_REG);
		ASSERT_EQ(rule.cfa_reg, A64_SP);
		ASSERT_EQ(rule.cfa_off, 0);
	}
}

TEST(what_does_not_tell_is_undecided)
{
	/* A jump to itself, to which nothing leads. */
	static const char loop[] = "\xeb\x02\xeb\xfe\xeb\xfe";
	struct unwind_rule rule = rule_in(loop, sizeof(loop) - 1, 2, false);

	ASSERT_EQ(rule.cfa, CFA_FRAME_POINTER);
	ASSERT_EQ(rule.cfa_off, CODE_UNDECIDED);
}

/* Code of no file, in the middle of a page; -ENOENT: CFA_STOP. */
static struct unwind_rule rule_in_bytes(const char *code, size_t size, uint64_t at, bool is_caller)
{
	const struct code_bytes bytes = { EM_X86_64, 0x7f0000000123, (const uint8_t *)code, size };
	struct unwind_rule rule = { .cfa = CFA_STOP };
	int r = code_follow_bytes(&bytes, bytes.addr + at, is_caller, &rule);

	ASSERT(r == 0 || r == -ENOENT);
	ASSERT_EQ(code_follow_bytes(&bytes, bytes.addr + size, is_caller, &rule), -EFAULT);
	return rule;
}

TEST(a_return_proves_a_frame_in_code_of_no_file)
{
	/* 0: push %rbx; 1: push %rbp; 2: mov %rdi,%rbp; 5: sub $16,%rsp; 9: cmp $1,%rdi; 13: je 20;
	 * 15: call; 20: add $16,%rsp; 24: pop %rbp; 25: pop %rbx; 26: ret. */
	static const char code[] = "\x53\x55\x48\x89\xfd\x48\x83\xec\x10\x48\x83\xff\x01\x74\x05"
				   "\xe8\x00\x01\x00\x00\x48\x83\xc4\x10\x5d\x5b\xc3";
	static const struct {
		uint8_t at;
		bool is_caller;
		int16_t fp;
		int32_t cfa_off;
	} cases[] = {
		{ 0, false, SLOT_SAME, 8 }, { 2, false, -3, 24 },  { 9, false, -3, 40 },
		{ 19, true, -3, 40 },	    { 24, false, -3, 24 }, { 26, false, SLOT_SAME, 8 }
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct unwind_rule rule =
			rule_in_bytes(code, sizeof(code) - 1, cases[i].at, cases[i].is_caller);

		ASSERT_EQ(rule.cfa, CFA_REG);
		ASSERT_EQ(rule.cfa_reg, X86_RSP);
		ASSERT_EQ(rule.cfa_off, cases[i].cfa_off);
		ASSERT_EQ(rule.ra_off, -1);
		ASSERT_EQ(rule.slot_off[0], cases[i].fp);
		ASSERT_EQ(rule.slot_off[1], SLOT_LOST);
	}
}

TEST(code_of_no_file_without_a_return_tells_nothing)
{
	/* 0: push %rbp; 1: mov %rsp,%rbp; 4: nop; 5: pop %rbp; 6: jmp *%rax */
	static const char tail[] = "\x55\x48\x89\xe5\x90\x5d\xff\xe0";
	/* What was called pops where it returns to, and goes back over it: 0: pop (%rsp); 3: nop;
	 * 4: mov (%rsp),%rax; 8: push %rax; 9: ret. */
	static const char fast[] = "\x8f\x04\x24\x90\x48\x8b\x04\x24\x50\xc3";
	/* 0: push %rax; 1: nop; 2: ret: a jump. */
	static const char jump[] = "\x50\x90\xc3";

	ASSERT_EQ(rule_in_bytes(tail, sizeof(tail) - 1, 4, false).cfa, CFA_STOP);
	ASSERT_EQ(rule_in_bytes(fast, sizeof(fast) - 1, 3, false).cfa, CFA_STOP);
	ASSERT_EQ(rule_in_bytes(jump, sizeof(jump) - 1, 0, false).cfa, CFA_STOP);
	ASSERT_EQ(rule_in_bytes(jump, sizeof(jump) - 1, 1, true).cfa, CFA_STOP);
}

TEST(an_address_outside_of_the_code_is_refused)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct code_rows rows;

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	ASSERT_EQ(code_follow(elf, 1ull << 60, false, &rows), -EFAULT);
	ASSERT_OK(code_give_up(0x1234, &rows));
	ASSERT_EQ(rule_at(&rows, 0x1fff)->cfa_off, CODE_UNDECIDED);
	ASSERT(!rule_at(&rows, 0x2000));
	code_rows_fini(&rows);
}
