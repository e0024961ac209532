// SPDX-License-Identifier: Apache-2.0
/* Functions in no file: what their begin tells, and when the walker believes it. */
#include "unwinder/anon_function.h"
#include "bpf/host/walk_host.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* As sljit begins: push %rbx, %r15, %r14, %r13, %rbp; mov %rdi, %rbx; sub $0x80, %rsp */
#define BEGIN "\x53\x41\x57\x41\x56\x41\x55\x55\x48\x89\xfb\x48\x81\xec\x80\x00\x00\x00"
#define NOPS  "\x90\x90\x90\x90\x90\x90\x90\x90"
enum {
	BEGIN_SIZE = sizeof(BEGIN) - 1,
	FRAME = 0x80 + 6 * 8,
	ANON = 0x10000,
	ANON_SIZE = 4096,
	CALLER = 0x400000,
	STACK = 0x7ff00000,
	STACK_WORDS = 512,
};

/* What is found around `at` in `bytes`. */
static bool find(const char *bytes, size_t size, size_t at, int32_t cfa_off,
		 struct anon_function *ret)
{
	const struct code_bytes code = { EM_X86_64, ANON, (const uint8_t *)bytes, size };

	return anon_function_find(&code, ANON + at, cfa_off, ret);
}

TEST(a_begin_tells_of_all_of_the_function)
{
	static const char bytes[] = NOPS BEGIN NOPS NOPS NOPS BEGIN NOPS;
	struct anon_function f;

	ASSERT(find(bytes, sizeof(bytes) - 1, 8 + BEGIN_SIZE + 3, FRAME, &f));
	ASSERT_EQ(f.start, ANON + 8);
	ASSERT_EQ(f.size, BEGIN_SIZE + 24);
	ASSERT_EQ(f.frame, FRAME);
	ASSERT(!memcmp(f.head, BEGIN, sizeof(f.head)));
	ASSERT_EQ(f.slot_off[1], -2); /* rbx */
	ASSERT_EQ(f.slot_off[X86_SLOT_R15], -3);
	ASSERT_EQ(f.slot_off[X86_SLOT_R14], -4);
	ASSERT_EQ(f.slot_off[3], -5); /* r13 */
	ASSERT_EQ(f.slot_off[0], -6); /* rbp */
	ASSERT_EQ(f.slot_off[2], SLOT_SAME);
	/* Called within the function: the return address lies on its frame. */
	ASSERT(find(bytes, sizeof(bytes) - 1, 8 + BEGIN_SIZE + 3, FRAME + 8, &f));
	ASSERT_EQ(f.frame, FRAME);
}

TEST(what_its_begin_does_not_confirm_is_not_believed)
{
	static const char bytes[] = NOPS BEGIN NOPS NOPS NOPS;
	/* Where does this begin, at 41 55 (%r13) or at 55 (%rbp)? */
	static const char which[] = NOPS "\x41\x55\x53\x48\x81\xec\x80\x00\x00\x00" NOPS;
	static const char nothing[] = NOPS NOPS NOPS "\x55\x48\x89\xe5" NOPS;
	struct anon_function f;

	ASSERT(!find(bytes, sizeof(bytes) - 1, 8 + BEGIN_SIZE + 3, FRAME + 16, &f));
	ASSERT(!find(bytes, sizeof(bytes) - 1, 8 + BEGIN_SIZE + 3, -FRAME, &f));
	/* Before its frame is set up, and beyond the bytes. */
	ASSERT(!find(bytes, sizeof(bytes) - 1, 8 + BEGIN_SIZE - 1, FRAME, &f));
	ASSERT(!find(bytes, sizeof(bytes) - 1, sizeof(bytes), FRAME, &f));
	ASSERT(!find(which, sizeof(which) - 1, 8 + 10 + 2, 0x80 + 3 * 8, &f));
	ASSERT(!find(nothing, sizeof(nothing) - 1, 30, 16, &f));
}

/* --- the walk -------------------------------------------------------------------------------- */

static struct {
	struct arena_segment segment;
	struct unwind_rule rules[RULE_RUNTIMES];
	char code[ANON_SIZE];
	__u64 stack[STACK_WORDS];
	__u64 regs[UNWIND_REGS_MAX];
	struct anon_page page;
	struct walk walk;
} t;

static int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	(void)ctx;
	if (addr >= STACK && addr - STACK <= sizeof(t.stack) - size)
		memcpy(to, (char *)t.stack + (addr - STACK), size);
	else if (addr >= ANON && addr - ANON <= sizeof(t.code) - size)
		memcpy(to, t.code + (addr - ANON), size);
	else
		return -EFAULT;
	return 0;
}

static void set_up(void)
{
	struct unwind_mapping *m = (struct unwind_mapping *)t.segment.cells;
	static const char bytes[] = BEGIN NOPS NOPS NOPS;

	memset(&t, 0, sizeof(t));
	m[0] = (struct unwind_mapping){ ANON, ANON + ANON_SIZE, 0, MAPPING_ANON, 0 };
	t.rules[RULE_FRAME_POINTER] =
		(struct unwind_rule){ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_ANON };
	memcpy(t.code, bytes, sizeof(bytes));
	ASSERT(find(t.code, sizeof(t.code), BEGIN_SIZE + 4, FRAME, &t.page.functions[2]));
	t.page.functions[2].size = 100;
	t.page.functions[2].ra = CALLER;
	t.regs[X86_RSP] = STACK + 80;
	t.stack[10 + FRAME / 8 - 1] = CALLER;
	t.stack[10 + FRAME / 8 - 2] = 42;
	t.stack[10 + FRAME / 8 - 4] = 43;
}

/* How the walk from code at `at` ends; its caller is nowhere. */
static int walk_from(size_t at)
{
	struct arena_segment *const segments[] = { &t.segment };
	const struct walk_memory memory = { .read = read_test };
	const struct walk_tables tables = {
		.rules = t.rules, .nr_rules = RULE_RUNTIMES, .segments = segments, .nr_segments = 1
	};
	const struct walk_input input = { .machine = EM_X86_64,
					  .pc = ANON + at,
					  .regs = t.regs,
					  .process = { .generation = 7, .nr_mappings = 1 },
					  .max_frames = 100,
					  .may_ask = true,
					  .anon = &t.page };

	return walk_host(&tables, &memory, &input, &t.walk);
}

TEST(the_walker_leaves_a_function_that_is_known)
{
	set_up();
	ASSERT_EQ(walk_from(BEGIN_SIZE + 4), STOP_NO_MAPPING);
	ASSERT_EQ(t.walk.pc, CALLER - 1);
	ASSERT_EQ(t.walk.regs[X86_RSP], STACK + 80 + FRAME);
	ASSERT_EQ(t.walk.regs[X86_RBX], 42);
	ASSERT_EQ(t.walk.regs[X86_R14], 43);
	/* From what is called within it. */
	t.regs[X86_RSP] -= 8;
	ASSERT_EQ(walk_from(BEGIN_SIZE + 10), STOP_NO_MAPPING);
	ASSERT_EQ(t.walk.regs[X86_RSP], STACK + 80 + FRAME);
}

TEST(the_walker_asks_where_it_is_not_so)
{
	set_up();
	t.stack[10 + FRAME / 8 - 1] = CALLER + 1;
	ASSERT_EQ(walk_from(BEGIN_SIZE + 4), STOP_CODE_PENDING);
	set_up();
	t.code[14]++; /* another frame: other code is there now */
	ASSERT_EQ(walk_from(BEGIN_SIZE + 4), STOP_CODE_PENDING);
	set_up();
	ASSERT_EQ(walk_from(100), STOP_CODE_PENDING);
	t.regs[X86_RSP] += 16;
	ASSERT_EQ(walk_from(BEGIN_SIZE + 4), STOP_CODE_PENDING);
}
