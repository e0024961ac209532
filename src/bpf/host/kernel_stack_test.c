// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk of the kernel's stack over stacks and rows that are made by hand. */
#include "bpf/host/walk_host.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define CODE		    0xffffffff81000000ull
#define STACK		    0xffffc90000010000ull
#define USER_PC		    0x401000ull
#define MODULE		    0xffffffffc0001000ull
#define AT(n)		    (CODE + (n)*256)  /* function n: bucket n */
#define IN(n)		    (AT(n) + 0x20)    /* a pc in it */
#define WORD(n)		    (STACK + 8 * (n)) /* where a word of the stack is */
#define CALL(kind, cfa, fp) KERNEL_RULE(kind, cfa, fp, 0)

enum {
	FUNCTIONS = 16,
	CELLS = FUNCTIONS * 16 + 64,
	STACK_WORDS = 4096,
	CS_KERNEL = 0x10,
	CS_USER = 0x33
};

/* What functions do, by number. */
enum {
	LEAF,	    /* CFA = sp + 8 */
	PUSHES_FP,  /* CFA = fp + 16, fp saved */
	SAVES_FP,   /* CFA = sp + 40, fp saved at CFA - 24 */
	ON_IRQ,	    /* CFA = *sp + 8 */
	REALIGNS,   /* CFA = *(fp - 8) */
	ENTRY,	    /* pt_regs at sp */
	IRET,	    /* what the CPU pushed at sp + 8 */
	FIRST,	    /* the stack's end */
	UNKNOWN,    /* the helper's */
	MANY,	    /* more rows than a bucket has: CFA = sp + 16 from 0x20 to 0x21 only */
	INTERRUPTED /* as LEAF; before its first byte are MANY's rows */
};

/* A program, and a module, as the kernel's memory has what is known of them. */
#define PROGRAM	   0xffffffffc0200000ull
#define KSYM	   (STACK + 8 * 3000)
#define MODULE_AT  (STACK + 8 * 3100)
#define ENTRY_IPS  (MODULE + 0x10000) /* which are told from where they are */
#define ENTRIES_AT (STACK + 8 * 3300)

struct fixture {
	__u32 cells[CELLS];
	__u64 stack[STACK_WORDS];
	__s32 ips[16];
	struct kernel_mades mades;
	struct kernel_cache cache;
	struct walk_kernel kernel;
	struct walk_memory memory;
	struct walk walk;
};

static int read_stack(void *ctx, __u64 addr, void *to, __u32 size)
{
	const struct fixture *f = ctx;

	if (addr - ENTRY_IPS <= sizeof(f->ips) - size) {
		memcpy(to, (const char *)f->ips + (addr - ENTRY_IPS), size);
		return 0;
	}
	if (addr - STACK >= sizeof(f->stack) || addr - STACK + size > sizeof(f->stack))
		return -14;
	memcpy(to, (const char *)f->stack + (addr - STACK), size);
	return 0;
}

static void set_rule(struct fixture *f, int function, __u32 rule)
{
	f->cells[function * 16] = KERNEL_BUCKET(0, 1);
	f->cells[function * 16 + 1] = KERNEL_ROW(0, rule);
}

static struct fixture *fixture_new(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	ASSERT_PTR_NONNULL(f);
	for (int i = 0; i < FUNCTIONS; i++)
		set_rule(f, i, CALL(KERNEL_CFA_SP, 1, 0));
	set_rule(f, PUSHES_FP, CALL(KERNEL_CFA_FP, 2, 2));
	set_rule(f, SAVES_FP, CALL(KERNEL_CFA_SP, 5, 3));
	set_rule(f, ON_IRQ, CALL(KERNEL_CFA_AT_SP, 1, 0));
	set_rule(f, REALIGNS, CALL(KERNEL_CFA_AT_FP, 1, 0));
	set_rule(f, ENTRY, KERNEL_RULE(KERNEL_REGS, 0, 0, 1));
	set_rule(f, IRET, KERNEL_RULE(KERNEL_REGS_PARTIAL, 1, 0, 1));
	set_rule(f, FIRST, CALL(KERNEL_END, 0, 0));
	set_rule(f, UNKNOWN, CALL(KERNEL_HELPER, 0, 0));
	f->cells[MANY * 16] = KERNEL_BUCKET(0, 40);
	for (__u32 i = 0; i < 40; i++)
		f->cells[FUNCTIONS * 16 + i] =
			KERNEL_ROW(i, CALL(KERNEL_CFA_SP, i == 0x20 ? 2 : 100, 0));
	f->kernel = (struct walk_kernel){
		.code = { CODE, FUNCTIONS * 256, 0, FUNCTIONS * 16 },
		.cells = f->cells,
		.nr_cells = CELLS,
		.cache = &f->cache,
		.mades = &f->mades,
	};
	f->memory = (struct walk_memory){ .read = read_stack, .ctx = f };
	return f;
}

/* pt_regs at word `at`. */
static void put_regs(struct fixture *f, int at, __u64 pc, __u64 cs, __u64 sp, __u64 fp)
{
	f->stack[at + 4] = fp;
	f->stack[at + 16] = pc;
	f->stack[at + 17] = cs;
	f->stack[at + 19] = sp;
}

/* Twice: by the rows, then by what is remembered of them. Frees the fixture. */
static void check(struct fixture *f, __u64 pc, int sp, __u64 fp, int expected, const __u64 *words,
		  __u32 nr)
{
	for (int round = 0; round < 2; round++) {
		ASSERT_EQ(walk_host_kernel(&f->kernel, &f->memory, pc, WORD(sp), fp, &f->walk),
			  expected);
		if (expected != KERNEL_WALK_WHOLE)
			continue;
		ASSERT_EQ(f->walk.kernel.nr, nr);
		for (__u32 i = 0; i < nr; i++)
			ASSERT_EQ(f->walk.words[i], words[i]);
	}
	free(f);
}

#define WALKS(f, pc, sp, fp, ...)                                                                  \
	do {                                                                                       \
		const __u64 words_[] = { __VA_ARGS__ };                                            \
		check(f, pc, sp, fp, KERNEL_WALK_WHOLE, words_, sizeof(words_) / sizeof(*words_)); \
	} while (0)

TEST(to_a_system_call)
{
	struct fixture *f = fixture_new();

	f->stack[1] = IN(PUSHES_FP); /* LEAF's return address */
	f->stack[10] = WORD(100);    /* PUSHES_FP's saved fp, and where it returns to */
	f->stack[11] = IN(SAVES_FP);
	f->stack[14] = WORD(200);
	f->stack[16] = IN(ENTRY);
	put_regs(f, 17, USER_PC, CS_USER, 0x7ffc0000, 0);
	WALKS(f, IN(LEAF), 1, WORD(10), IN(LEAF), IN(PUSHES_FP), IN(SAVES_FP), IN(ENTRY));
}

TEST(to_the_end_of_a_kernel_thread)
{
	struct fixture *f = fixture_new();

	f->stack[0] = IN(FIRST);
	WALKS(f, IN(LEAF), 0, 0, IN(LEAF), IN(FIRST));
}

TEST(over_an_interrupt_and_its_stack)
{
	struct fixture *f = fixture_new();

	f->stack[3000] = WORD(20); /* what the other stack's frame leads back to */
	f->stack[20] = IN(ENTRY);
	put_regs(f, 21, AT(INTERRUPTED), CS_KERNEL, WORD(60), WORD(80));
	f->stack[60] = IN(PUSHES_FP);
	f->stack[80] = 0;
	f->stack[81] = IN(FIRST);
	/* From where it is higher, as that stack may be. */
	WALKS(f, IN(ON_IRQ), 3000, 0, IN(ON_IRQ), IN(ENTRY), AT(INTERRUPTED), IN(PUSHES_FP),
	      IN(FIRST));
}

TEST(over_what_the_cpu_pushed)
{
	struct fixture *f = fixture_new();

	f->stack[6] = IN(PUSHES_FP);
	f->stack[7] = CS_KERNEL;
	f->stack[9] = WORD(30);
	f->stack[40] = 0;
	f->stack[41] = IN(FIRST);
	WALKS(f, IN(IRET), 5, WORD(40), IN(IRET), IN(PUSHES_FP), IN(FIRST));
}

TEST(a_realigned_stack)
{
	struct fixture *f = fixture_new();

	f->stack[9] = WORD(20); /* below where fp points to: the CFA */
	f->stack[10] = WORD(30);
	f->stack[19] = IN(PUSHES_FP);
	f->stack[30] = 0;
	f->stack[31] = IN(FIRST);
	WALKS(f, IN(REALIGNS), 2, WORD(10), IN(REALIGNS), IN(PUSHES_FP), IN(FIRST));
}

TEST(rows_that_a_bucket_has_no_room_for)
{
	struct fixture *f = fixture_new();

	f->stack[1] = AT(MANY) + 0x21; /* a return address: the rule is that of the byte before */
	f->stack[3] = IN(FIRST);
	WALKS(f, IN(LEAF), 1, 0, IN(LEAF), AT(MANY) + 0x21, IN(FIRST));
}

TEST(as_many_frames_as_the_helper_tells)
{
	struct fixture *f = fixture_new();
	__u64 words[SAMPLE_MAX_KERNEL_FRAMES];

	for (int i = 0; i < 500; i++)
		f->stack[i] = IN(LEAF);
	for (int i = 0; i < SAMPLE_MAX_KERNEL_FRAMES; i++)
		words[i] = IN(LEAF);
	check(f, IN(LEAF), 0, 0, KERNEL_WALK_WHOLE, words, SAMPLE_MAX_KERNEL_FRAMES);
}

static void gives_up(struct fixture *f, __u64 pc, int sp, __u64 fp, int end)
{
	check(f, pc, sp, fp, end, NULL, 0);
}

TEST(code_without_rows)
{
	struct fixture *f = fixture_new();

	f->stack[0] = MODULE;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_CODE);
	gives_up(fixture_new(), MODULE, 0, 0, KERNEL_WALK_NO_CODE);
	gives_up(fixture_new(), 0, 0, 0, KERNEL_WALK_NO_CODE);
	/* Its low half is a known address's. */
	f = fixture_new();
	f->stack[0] = IN(LEAF) & 0xffffffff;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_CODE);
}

/* What reads as `items` is linked to itself: a list of one. */
static void put_list(struct fixture *f, __u64 link)
{
	f->stack[(link - STACK) / 8] = f->stack[(link - STACK) / 8 + 1] = link;
}

static void put_program(struct fixture *f, __u64 start, __u64 end)
{
	struct kernel_made *m = &f->mades.items[f->mades.nr++];

	*m = (struct kernel_made){ .start = start,
				   .end = end,
				   .link = KSYM + 24,
				   .proof_at = KSYM,
				   .proof = { start, end, 0x1234 },
				   .kind = KERNEL_MADE_BPF };
	memcpy(&f->stack[(KSYM - STACK) / 8], m->proof, sizeof(m->proof));
	put_list(f, m->link);
}

/* By the kernel's BTF since 6.4; entries of 6 bytes, `rows` of them 16 bytes apart. */
static void put_module(struct fixture *f, __u64 start, __u64 end, const __u16 (*rows)[3], __u32 nr)
{
	struct kernel_made *m = &f->mades.items[f->mades.nr++];
	__u8 *entries = (__u8 *)&f->stack[(ENTRIES_AT - STACK) / 8];

	f->mades.orc = (struct orc_layout){ 8, 3, 11, 1, 0, 0 };
	*m = (struct kernel_made){ .start = start,
				   .end = end,
				   .link = MODULE_AT,
				   .proof_at = MODULE_AT + 16,
				   .proof = { nr, ENTRY_IPS, ENTRIES_AT },
				   .kind = KERNEL_MADE_MODULE };
	memcpy(&f->stack[(m->proof_at - STACK) / 8], m->proof, sizeof(m->proof));
	put_list(f, m->link);
	for (__u32 i = 0; i < nr; i++) {
		f->ips[i] = (__s32)(start + 16 * i - (ENTRY_IPS + 4 * i));
		memcpy(entries + 6 * i, rows[i], 6);
	}
}

/* LEAF called by a program, which has a frame pointer, called by FIRST. */
static void call_by_program(struct fixture *f, __u64 ret)
{
	f->stack[0] = ret;
	f->stack[5] = 0; /* the frame pointer before */
	f->stack[6] = IN(FIRST);
}

TEST(bpf_programs_have_frame_pointers)
{
	struct fixture *f = fixture_new();
	const __u64 words[] = { IN(LEAF), PROGRAM + 0x20, IN(FIRST) };

	put_program(f, PROGRAM, PROGRAM + 0x80);
	call_by_program(f, words[1]);
	check(f, IN(LEAF), 0, WORD(5), KERNEL_WALK_WHOLE, words, 3);
}

TEST(a_program_among_many_is_found)
{
	struct fixture *f = fixture_new();
	const __u64 words[] = { IN(LEAF), PROGRAM + 0x20, IN(FIRST) };

	for (int i = 0; i < KERNEL_MADE_MAX / 2; i++)
		put_program(f, PROGRAM - (KERNEL_MADE_MAX - i) * 0x80, 0);
	put_program(f, PROGRAM, PROGRAM + 0x80);
	while (f->mades.nr < KERNEL_MADE_MAX) {
		f->mades.items[f->mades.nr].start = PROGRAM + 0x80 * f->mades.nr;
		f->mades.nr++;
	}
	call_by_program(f, words[1]);
	check(f, IN(LEAF), 0, WORD(5), KERNEL_WALK_WHOLE, words, 3);
}

/* Whoever is where a program was goes by rules of his own. */
TEST(a_program_that_is_gone_is_the_helpers)
{
	struct fixture *f = fixture_new();

	put_program(f, PROGRAM, PROGRAM + 0x80);
	call_by_program(f, PROGRAM + 0x20);
	f->stack[(KSYM - STACK) / 8 + 4] = 0xdead000000000122; /* LIST_POISON2 */
	gives_up(f, IN(LEAF), 0, WORD(5), KERNEL_WALK_NO_CODE);
	f = fixture_new();
	put_program(f, PROGRAM, PROGRAM + 0x80);
	call_by_program(f, PROGRAM + 0x20);
	f->stack[(KSYM - STACK) / 8 + 2]++; /* another one's by now */
	gives_up(f, IN(LEAF), 0, WORD(5), KERNEL_WALK_NO_CODE);
	/* Behind its end, and before its begin. */
	for (int i = 0; i < 2; i++) {
		f = fixture_new();
		put_program(f, PROGRAM, PROGRAM + 0x80);
		call_by_program(f, i ? PROGRAM : PROGRAM + 0x80);
		gives_up(f, IN(LEAF), 0, WORD(5), KERNEL_WALK_NO_CODE);
	}
}

/* Registers by number as arch/x86/include/asm/orc_types.h has them: 5 sp, 1 the caller's sp. */
#define ORC_CALL(sp_reg, bp_reg) ((__u16)((sp_reg) | (bp_reg) << 4 | 2 << 8))

TEST(modules_have_entries_of_their_own)
{
	const __u16 rows[][3] = {
		{ 800, 0, ORC_CALL(5, 0) }, /* where we are not */
		{ 24, (__u16)-24, ORC_CALL(5, 1) },
		{ 800, 0, ORC_CALL(5, 0) },
	};
	const __u64 words[] = { IN(LEAF), MODULE + 0x18, IN(PUSHES_FP), IN(FIRST) };
	struct fixture *f = fixture_new();

	put_module(f, MODULE, MODULE + 0x80, rows, 3);
	f->stack[0] = words[1];
	/* Its frame: the frame pointer at its CFA - 24. */
	f->stack[1] = WORD(20);
	f->stack[3] = words[2];
	f->stack[20] = 0;
	f->stack[21] = words[3];
	check(f, IN(LEAF), 0, 0, KERNEL_WALK_WHOLE, words, 4);
}

TEST(modules_without_an_entry_are_the_helpers)
{
	const __u16 rows[][3] = { { 24, 0, ORC_CALL(10, 0) } };
	struct fixture *f = fixture_new();

	put_module(f, MODULE, MODULE + 0x80, rows, 1);
	f->stack[0] = MODULE + 0x18;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_RULE);
	f = fixture_new();
	put_module(f, MODULE, MODULE + 0x80, rows, 0);
	f->stack[0] = MODULE + 0x18;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_CODE);
	/* It was loaded once more, elsewhere. */
	f = fixture_new();
	put_module(f, MODULE, MODULE + 0x80, rows, 1);
	f->stack[(MODULE_AT - STACK) / 8 + 4]++;
	f->stack[0] = MODULE + 0x18;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_CODE);
}

/* The last of as many frames as there is room for has to be code, too. */
TEST(code_without_rows_at_the_limit)
{
	struct fixture *f = fixture_new();

	for (int i = 0; i < SAMPLE_MAX_KERNEL_FRAMES - 2; i++)
		f->stack[i] = IN(LEAF);
	f->stack[SAMPLE_MAX_KERNEL_FRAMES - 2] = MODULE;
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_CODE);
}

TEST(rows_that_only_the_helper_knows)
{
	struct fixture *f = fixture_new();

	f->stack[0] = IN(UNKNOWN);
	gives_up(f, IN(LEAF), 0, 0, KERNEL_WALK_NO_RULE);
}

TEST(stacks_that_cannot_be_read)
{
	gives_up(fixture_new(), IN(LEAF), STACK_WORDS, 0, KERNEL_WALK_UNREADABLE);
	gives_up(fixture_new(), IN(ENTRY), STACK_WORDS - 10, 0, KERNEL_WALK_UNREADABLE);
	gives_up(fixture_new(), IN(ON_IRQ), STACK_WORDS, 0, KERNEL_WALK_UNREADABLE);
	gives_up(fixture_new(), IN(REALIGNS), 1, WORD(0), KERNEL_WALK_UNREADABLE);
}

TEST(callers_that_are_not_above)
{
	struct fixture *f = fixture_new();

	gives_up(f, IN(PUSHES_FP), 100, WORD(90), KERNEL_WALK_OUT_OF_ORDER);
	gives_up(fixture_new(), IN(PUSHES_FP), 100, WORD(101) + 4, KERNEL_WALK_OUT_OF_ORDER);
	gives_up(fixture_new(), IN(PUSHES_FP), 1, WORD(1) + (64 << 10), KERNEL_WALK_OUT_OF_ORDER);
	/* To itself: an endless stack. */
	f = fixture_new();
	put_regs(f, 100, IN(ENTRY), CS_KERNEL, WORD(100), 0);
	gives_up(f, IN(ENTRY), 100, 0, KERNEL_WALK_OUT_OF_ORDER);
	/* A process that jumps to the kernel's code. */
	f = fixture_new();
	put_regs(f, 100, IN(LEAF), CS_USER, 0x7ffc0000, 0);
	gives_up(f, IN(ENTRY), 100, 0, KERNEL_WALK_OUT_OF_ORDER);
}
