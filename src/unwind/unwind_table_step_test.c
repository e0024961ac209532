// SPDX-License-Identifier: Apache-2.0
/*
 * Tables against a running program: a child is single-stepped, every call and return is noted, and
 * at each instruction the stack is walked by the rules. Every frame must be the one that was
 * called.
 */
#include "unwind/unwind_table.h"

#include <elf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/cleanup.h"

enum { CALLS_MAX = 256, FILES_MAX = 16, STEPS_MAX = 400000, STEPS_WANTED = 5000 };

#if !defined(__x86_64__)
TEST_SKIP_REASON()
{
	return "single-stepping is written for x86-64 only";
}
#else

struct file {
	char path[256];
	uint64_t start, end, bias;
	struct unwind_table *table;
};

struct call {
	uint64_t cfa, ra;
};

static struct file files[FILES_MAX];
static int nr_files;
static struct call calls[CALLS_MAX];
static int nr_calls;
static pid_t child;
enum { CALLER_SAVED = 0x0f37 };
static const uint8_t slot_regs[UNWIND_SLOTS] = X86_SLOT_REGS;

/* --- what the child does --------------------------------------------------------------------- */

/* No CFI and no frame: followed by reading the code. */
int step_test_bare(int (*f)(int), int x);
__asm__(".text\n.globl step_test_bare\n.type step_test_bare,@function\n.balign 16\n"
	"step_test_bare:\n"
	"	push %rbx\n"
	"	sub $0x30,%rsp\n"
	"	mov %rdi,%rax\n"
	"	mov %esi,%edi\n"
	"	test %edi,%edi\n"
	"	je 1f\n"
	"	call *%rax\n"
	"	add $0x30,%rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	"1:	lea 0x30(%rsp),%rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size step_test_bare,.-step_test_bare\n");

/* With its stack realigned: the old one in a register while a helper runs, then saved. */
int step_test_bare_realigned(int (*f)(int), int x);
__asm__(".text\n.globl step_test_bare_realigned\n.type step_test_bare_realigned,@function\n"
	".balign 16\n"
	"step_test_bare_realigned:\n"
	"	push %rbx\n"
	"	mov %rsp,%rcx\n"
	"	and $-64,%rsp\n"
	"	sub $0x80,%rsp\n"
	"	call step_test_helper\n"
	"	mov %rcx,0x78(%rsp)\n"
	"	mov %rdi,%rax\n"
	"	mov %esi,%edi\n"
	"	push %rdi\n"
	"	push %rdi\n"
	"	call *%rax\n"
	"	add $0x10,%rsp\n"
	"	mov 0x78(%rsp),%rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size step_test_bare_realigned,.-step_test_bare_realigned\n"
	".balign 16\n"
	"step_test_helper:\n"
	"	push %rdi\n"
	"	xor %eax,%eax\n"
	"	test %eax,%eax\n"
	"	jne 1f\n"
	"	call 2f\n"
	"1:	pop %rdi\n"
	"2:	ret\n"
	".size step_test_helper,.-step_test_helper\n");

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* A realigned stack of unknown size: its CFA is in memory. */
static __attribute__((noinline)) int realigned(int n)
{
	int buf[32] __attribute__((aligned(64)));
	char *more = __builtin_alloca(n * 16);

	for (int i = 0; i < 32; i++)
		buf[i] = (i * 7919) % 101;
	more[0] = n;
	qsort(buf, 32, sizeof(*buf), compare);
	__asm__ volatile("" : : "r"(buf), "r"(more) : "memory");
	return buf[n & 31];
}

static __attribute__((noinline)) int recurse(int n)
{
	return n ? recurse(n - 1) + step_test_bare(realigned, n & 3) +
			       step_test_bare_realigned(realigned, n & 3)
		 : 0;
}

static void work(void)
{
	char text[128];

	snprintf(text, sizeof(text), "%d %s %.10f", recurse(5), "text", strtod("1.25e-3", NULL));
	__asm__ volatile("" : : "r"(text) : "memory");
}

/* --- the walk -------------------------------------------------------------------------------- */

static bool read_child(uint64_t addr, void *buf, size_t size)
{
	struct iovec local = { buf, size }, remote = { (void *)addr, size };

	return process_vm_readv(child, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static void read_mappings(void)
{
	char path[64], line[512];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	f = fopen(path, "re");
	ASSERT_PTR_NONNULL(f);
	while (fgets(line, sizeof(line), f) && nr_files < FILES_MAX) {
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		struct file *file = &files[nr_files];
		uint64_t offset;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64 " %*s %*s %255[^\n]",
			   &file->start, &file->end, &offset, file->path) != 4 ||
		    file->path[0] != '/')
			continue;
		ASSERT_OK(elf_file_open(file->path, &elf));
		ASSERT_OK(elf_file_bias(elf, file->start, offset, &file->bias));
		ASSERT_OK(unwind_table_build(elf, 0, &file->table));
		nr_files++;
	}
}

static const struct unwind_rule *rule_at(uint64_t pc)
{
	for (int i = 0; i < nr_files; i++)
		if (pc >= files[i].start && pc < files[i].end)
			return unwind_table_find(files[i].table, pc - files[i].bias);
	return NULL;
}

static void apply_slots(const struct unwind_rule *rule, uint64_t cfa, uint64_t regs[16],
			uint32_t *valid)
{
	uint64_t base = cfa;
	int nr = rule->cfa == CFA_REG ? UNWIND_SLOTS : UNWIND_CFA_OFF2_SLOT;

	if (rule->flags & RULE_SLOTS_AT_FP)
		base = regs[X86_RBP] + UNWIND_FP_SLOTS_BIAS;
	for (int i = 0; i < nr; i++) {
		if (rule->slot_off[i] == SLOT_LOST)
			*valid &= ~(1u << slot_regs[i]);
		else if (rule->slot_off[i] != SLOT_SAME)
			ck_assert_msg(read_child(base + 8 * (int64_t)rule->slot_off[i],
						 &regs[slot_regs[i]], 8),
				      "slot %d: nothing is saved at %#lx%+d", i, (long)base,
				      8 * rule->slot_off[i]);
	}
}

static uint64_t find_cfa(const struct unwind_rule *rule, uint64_t pc, const uint64_t regs[16])
{
	uint64_t cfa = regs[rule->cfa_reg] + (int64_t)rule->cfa_off;

	if (rule->cfa == CFA_PLT && (pc & 15) >= (uint16_t)rule->slot_off[UNWIND_CFA_OFF2_SLOT])
		cfa += 8;
	if (rule->cfa == CFA_DEREF) {
		cfa += RULE_INDEX(rule->flags) ? 8 * regs[RULE_INDEX(rule->flags)] : 0;
		ASSERT(read_child(cfa, &cfa, 8));
		cfa += (int64_t)rule->slot_off[UNWIND_CFA_OFF2_SLOT];
	}
	return cfa;
}

/* All frames that were called since stepping began. */
static void check_walk(const struct user_regs_struct *u)
{
	uint64_t regs[16] = { u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp,
			      u->r8,  u->r9,  u->r10, u->r11, u->r12, u->r13, u->r14, u->r15 };
	/* Rules may know that callees keep a caller-saved register. */
	uint32_t valid = 0xffff, kept = CALLER_SAVED;
	uint64_t pc = u->rip;

	for (int n = nr_calls; n > 0; n--) {
		const struct unwind_rule *rule = rule_at(pc);
		uint64_t cfa, ra;

		if (!rule)
			return; /* the vDSO */
		ck_assert_msg(rule->cfa == CFA_REG || rule->cfa == CFA_DEREF ||
				      rule->cfa == CFA_PLT,
			      "%#llx: frame %#lx has no rule but %d", u->rip, (long)pc, rule->cfa);
		if (rule->cfa == CFA_REG)
			valid |= kept & 1u << rule->cfa_reg;
		kept &= ~(1u << rule->cfa_reg);
		ck_assert_msg(valid & 1u << rule->cfa_reg, "%#llx: frame %#lx hangs on register %d",
			      u->rip, (long)pc, rule->cfa_reg);
		cfa = find_cfa(rule, pc, regs);
		if (rule->ra == RA_IN_REG)
			ra = regs[rule->ra_off];
		else
			ASSERT(read_child(cfa + 8 * (int64_t)rule->ra_off, &ra, 8));
		ck_assert_msg(cfa == calls[n - 1].cfa && ra == calls[n - 1].ra,
			      "%#llx: frame %#lx: CFA %#lx, return to %#lx; not %#lx, %#lx", u->rip,
			      (long)pc, (long)cfa, (long)ra, (long)calls[n - 1].cfa,
			      (long)calls[n - 1].ra);
		apply_slots(rule, cfa, regs, &valid);
		regs[X86_RSP] = cfa;
		valid &= 1u << X86_RSP | 1u << X86_RBP | 1u << X86_RBX | 0xf000;
		pc = ra - 1;
	}
}

static bool is_call(const uint8_t code[16])
{
	int i = 0;

	while (i < 12 && (code[i] == 0x66 || code[i] == 0x67 || code[i] == 0xf2 ||
			  code[i] == 0x3e || (code[i] & 0xf0) == 0x40))
		i++;
	return code[i] == 0xe8 || (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2);
}

static void note_calls(const struct user_regs_struct *was, const struct user_regs_struct *is,
		       bool call)
{
	if (call && is->rsp == was->rsp - 8) {
		ASSERT(nr_calls < CALLS_MAX);
		calls[nr_calls].cfa = was->rsp;
		ASSERT(read_child(is->rsp, &calls[nr_calls++].ra, 8));
		return;
	}
	while (nr_calls && is->rsp >= calls[nr_calls - 1].cfa)
		nr_calls--;
}

static void start_child(void)
{
	int status;

	child = fork();
	ASSERT(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		work();
		_exit(0);
	}
	ASSERT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		exit(0); /* ptrace is not allowed here */
	ASSERT(WIFSTOPPED(status));
}

TEST(every_frame_of_every_instruction)
{
	struct user_regs_struct regs, next;
	unsigned int nr_steps = 0;
	uint8_t code[16];
	int status;

	start_child();
	read_mappings();
	ASSERT_EQ(ptrace(PTRACE_GETREGS, child, NULL, &regs), 0);
	while (nr_steps < STEPS_MAX) {
		memset(code, 0, sizeof(code));
		if (!read_child(regs.rip, code, sizeof(code)))
			read_child(regs.rip, code,
				   4096 - (regs.rip & 4095) < 16 ? 4096 - (regs.rip & 4095) : 16);
		check_walk(&regs);
		ASSERT_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		ASSERT_EQ(waitpid(child, &status, 0), child);
		if (!WIFSTOPPED(status))
			break;
		ASSERT_EQ(ptrace(PTRACE_GETREGS, child, NULL, &next), 0);
		note_calls(&regs, &next, is_call(code));
		regs = next;
		nr_steps++;
	}
	ASSERT(WIFEXITED(status));
	ASSERT_EQ(WEXITSTATUS(status), 0);
	ASSERT(nr_steps >= STEPS_WANTED);
	for (int i = 0; i < nr_files; i++)
		unwind_table_free(files[i].table);
}
#endif
