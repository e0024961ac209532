// SPDX-License-Identifier: Apache-2.0
/*
 * Go's step over a made-up process, on both architectures. The native stack, innermost first: leaf,
 * callback (where C calls Go, if `marked` says so), caller, goexit.
 */
#include "bpf/host/walk_host.h"
#include "runtime/go/go_abi.h"
#include "runtime/runtime.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum {
	CODE = 0x400000,
	STACK = 0x700000,
	HEAP = 0x800000,
	SIZE = 0x10000,
	FRAME_SIZE = 0x40,
	LEAF_SP = STACK + 0x1000,
	END_SP = LEAF_SP + 3 * FRAME_SIZE,
	THREAD = HEAP + 0x100, /* the thread pointer */
	M = HEAP + 0x1000,
	G0 = HEAP + 0x2000,
	CURG = HEAP + 0x3000,
	LABELS = HEAP + 0x4000,
	LIST = HEAP + 0x4100,
	TEXTS = HEAP + 0x8000, /* 0x100 each */
	BUCKETS = HEAP + 0x5000,
	RECORD_CELL = 8192,
	OTHER_CELL = RECORD_CELL + (RUNTIME_RECORD_CELLS + 7) / 8 * 8,
	FIRST_RULE = 8,
	RULES = 16,
	GO_REG = 28,
	/* Offsets, of no version. */
	SCHED_SP = 56,
	G_LR = 88,
	G_M = 48,
	G_GOID = 160,
	G_GOPC = 288,
	G_LABELS = 352,
	M_CURG = 192,
	BUCKET_BYTES = 272,
};

static struct {
	uint16_t machine;
	struct unwind_file files[2];
	struct unwind_rule rules[RULES];
	struct arena_segment *segment;
	uint8_t stack[SIZE], heap[SIZE];
	struct go_record record, other; /* other.tls 0: there is no other */
	bool late, no_record, callback_marked, ends_switched, walker_off;
	uint64_t reg, fp;
	uint32_t max_frames;
	struct walk walk;
} t;

static uint8_t *memory_at(uint64_t addr, size_t size)
{
	if (addr >= STACK && addr < STACK + SIZE && size <= STACK + SIZE - addr)
		return t.stack + (addr - STACK);
	if (addr >= HEAP && addr < HEAP + SIZE && size <= HEAP + SIZE - addr)
		return t.heap + (addr - HEAP);
	return NULL;
}

static int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	const uint8_t *from = memory_at(addr, size);

	(void)ctx;
	if (!from)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(memory_at(addr, 8), &value, 8);
}

static void put_string(uint64_t at, unsigned int n, const char *text)
{
	put(at, TEXTS + 0x100ull * n);
	put(at + 8, strlen(text));
	memcpy(memory_at(TEXTS + 0x100ull * n, 0x100), text, strlen(text));
}

static void set_up(uint16_t machine)
{
	struct arena_segment *segment = t.segment ? t.segment : malloc(sizeof(*segment));
	bool arm = machine == EM_AARCH64;
	struct unwind_mapping *m;

	memset(&t, 0, sizeof(t));
	memset(segment, 0, sizeof(*segment));
	t.segment = segment;
	t.machine = machine;
	t.max_frames = 100;
	m = (struct unwind_mapping *)t.segment->cells;
	m[0] = (struct unwind_mapping){ CODE, CODE + 0x400, CODE, 1, 0 };
	t.files[1] = (struct unwind_file){
		.nr_buckets = 4, .buckets = 1024, .rows = 2048, .state = FILE_STATE_LOADED
	};
	t.rules[0] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	for (uint32_t i = 0; i < 4; i++) {
		t.rules[FIRST_RULE + i] = (struct unwind_rule){ .cfa = CFA_REG,
								.cfa_reg = arm ? A64_SP : X86_RSP,
								.cfa_off = FRAME_SIZE,
								.ra_off = -1 };
		t.segment->cells[1024 + i] = BUCKET(i, 1);
		t.segment->cells[2048 + i] = ROW(0, FIRST_RULE + i);
		if (i < 3)
			put(LEAF_SP + FRAME_SIZE * (i + 1) - 8, CODE + 0x100 * (i + 1) + 0x11);
	}
	t.rules[FIRST_RULE + 3] =
		(struct unwind_rule){ .cfa = CFA_END, .ra = RUNTIME_GO << RULE_RUNTIME_SHIFT };
	t.record = (struct go_record){ .code = { CODE, CODE + 0x400 },
				       .tls = -8,
				       .flags = arm ? GO_REGISTER : GO_TLS,
				       .labels = GO_LABELS_LIST,
				       .g_m = G_M,
				       .m_curg = M_CURG,
				       .g_labels = G_LABELS,
				       .g_goid = G_GOID,
				       .g_gopc = G_GOPC,
				       .g_lr = G_LR };
	put(THREAD - 8, CURG);
	t.reg = CURG;
	put(CURG, STACK + 0x100);
	put(CURG + 8, END_SP + 8);
	put(CURG + G_M, M);
	put(G0 + G_M, M);
	put(M + M_CURG, CURG);
	put(CURG + G_GOID, 7);
	put(CURG + G_GOPC, CODE + 0x222);
}

static void put_list(unsigned int nr)
{
	static const char *const texts[] = { "user", "alice", "path", "/x" };

	put(CURG + G_LABELS, LABELS);
	put(LABELS, LIST);
	put(LABELS + 8, nr);
	for (unsigned int i = 0; i < 2 * nr; i++)
		put_string(LIST + 16 * i, i, texts[i % 4]);
}

static int walk(void)
{
	struct runtime_record *header = (struct runtime_record *)&t.segment->cells[RECORD_CELL];
	const struct walk_memory memory = { .read = read_test };
	struct arena_segment *const segments[] = { t.segment };
	const struct walk_tables tables = { t.files, 2, t.rules, RULES, segments, 1 };
	__u64 regs[UNWIND_REGS_MAX] = { 0 };
	const struct walk_input input = {
		.machine = t.machine,
		.pc = CODE + 5,
		.regs = regs,
		.process = { .generation = 7,
			     .nr_mappings = 1,
			     .runtimes = t.no_record ? 0 : RECORD_CELL },
		.max_frames = t.max_frames,
		.thread_pointer = THREAD,
		.late = t.late,
		.walkers_off = t.walker_off ? 1u << RUNTIME_GO : 0,
	};

	*header = (struct runtime_record){ .runtime = RUNTIME_GO,
					   .size = sizeof(t.record),
					   .next = t.other.tls ? OTHER_CELL : 0 };
	memcpy(header + 1, &t.record, sizeof(t.record));
	header = (struct runtime_record *)&t.segment->cells[OTHER_CELL];
	*header = (struct runtime_record){ .runtime = RUNTIME_GO, .size = sizeof(t.other) };
	memcpy(header + 1, &t.other, sizeof(t.other));
	if (t.callback_marked)
		t.rules[FIRST_RULE + 1].ra |= RUNTIME_GO << RULE_RUNTIME_SHIFT;
	if (t.ends_switched) {
		t.rules[FIRST_RULE + 3].cfa = CFA_FRAME_POINTER;
		t.rules[FIRST_RULE + 3].cfa_off = CODE_SWITCHED;
	}
	regs[t.machine == EM_AARCH64 ? A64_SP : X86_RSP] = LEAF_SP;
	regs[t.machine == EM_AARCH64 ? A64_FP : X86_RBP] = t.fp;
	if (t.machine == EM_AARCH64)
		regs[GO_REG] = t.reg;
	return walk_host(&tables, &memory, &input, &t.walk);
}

/* What the walk sent, in words: frames as "c1" (code's number), labels as "key=text", notes as
 * "(number)". */
static const char *shown(void)
{
	static char text[2048];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < t.walk.full.nr_words; i += 1 + FRAME_EXTRA(t.walk.words[i])) {
		const uint64_t *words = (const uint64_t *)&t.walk.words[i];
		uint64_t copy[1 + GO_LABEL_WORDS];
		struct runtime_label label;
		int len;

		if (FRAME_IS_NATIVE(words[0])) {
			len = snprintf(text + n, sizeof(text) - n, " c%llx",
				       (unsigned long long)(FRAME_DATA(words[0]) - CODE) >> 8);
		} else if (FRAME_IS_NOTE(words[0])) {
			len = snprintf(text + n, sizeof(text) - n, " (%llu)",
				       (unsigned long long)FRAME_DATA(words[0]));
		} else {
			memcpy(copy, words, sizeof(copy));
			ASSERT(runtimes[RUNTIME_GO]->sample_label(copy, 1 + FRAME_EXTRA(words[0]),
								  &label));
			len = snprintf(text + n, sizeof(text) - n, " %s=%s", label.key, label.text);
		}
		ASSERT(len > 0 && (size_t)len < sizeof(text) - n);
		n += (size_t)len;
	}
	return text;
}

static void expect(const char *wanted)
{
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_STR(shown(), wanted);
}

static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };

TEST(labels_of_a_list)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		expect(" c0 c1 c2 c3");
		put_list(2);
		expect(" c0 c1 c2 c3 user=alice path=/x");
		/* On the thread's own stack it is the same goroutine. */
		put(CURG, HEAP);
		put(CURG + 8, HEAP + 8);
		put(THREAD - 8, G0);
		t.reg = G0;
		expect(" c0 c1 c2 c3 user=alice path=/x");
		/* But not on another goroutine's. */
		put(THREAD - 8, CURG);
		t.reg = CURG;
		expect(" c0 c1 c2 c3");
	}
}

TEST(labels_of_a_map)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		t.record.labels = GO_LABELS_MAP;
		put(CURG + G_LABELS, LABELS);
		put(LABELS, LIST);
		put(LIST, 3);
		put(LIST + 8, 1 << 8); /* two buckets */
		put(LIST + 16, BUCKETS);
		put(BUCKETS, 0x2000000000000530); /* the first two and the last one, of which one
						     was dropped */
		*memory_at(BUCKETS, 1) = 1;
		put(BUCKETS + BUCKET_BYTES, 5);
		put_string(BUCKETS + 8 + 16, 0, "a");
		put_string(BUCKETS + 8 + 128 + 16, 1, "1");
		put_string(BUCKETS + 8 + 112, 2, "b");
		put_string(BUCKETS + 8 + 128 + 112, 3, "2");
		put_string(BUCKETS + BUCKET_BYTES + 8, 4, "c");
		put_string(BUCKETS + BUCKET_BYTES + 8 + 128, 5, "");
		expect(" c0 c1 c2 c3 a=1 b=2 c=");
	}
}

TEST(long_ones_are_cut)
{
	char text[101];

	memset(text, 'x', 100);
	text[100] = '\0';
	set_up(EM_X86_64);
	put_list(1);
	put_string(LIST, 0, text);
	put_string(LIST + 16, 1, text);
	ASSERT_EQ(walk(), STOP_COMPLETE);
	memcpy(text + GO_KEY_SIZE, "...=", 5);
	ASSERT(!strncmp(shown() + strlen(" c0 c1 c2 c3 "), text, GO_KEY_SIZE + 4));
	ASSERT_EQ(strlen(shown()), strlen(" c0 c1 c2 c3 ...=...") + GO_KEY_SIZE + GO_TEXT_SIZE);
}

TEST(who_has_started_it)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		t.record.flags |= GO_ASYNC;
		put_list(1);
		expect(" c0 c1 c2 c3 user=alice (12) c2");
		/* Where C has called Go, labels are found before. */
		t.callback_marked = true;
		expect(" c0 c1 user=alice c2 c3 (12) c2");
		put(CURG + G_GOID, 1);
		expect(" c0 c1 user=alice c2 c3");
		put(CURG + G_GOID, 2);
		put(CURG + G_GOPC, 0x1234567); /* no code */
		expect(" c0 c1 user=alice c2 c3");
		/* The thread's own stack was made by nobody. */
		set_up(machines[i]);
		t.record.flags |= GO_ASYNC;
		put(CURG + 8, STACK + 0x200);
		put(THREAD - 8, G0);
		t.reg = G0;
		expect(" c0 c1 c2 c3");
	}
}

TEST(what_is_not_known_changes_nothing)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		put_list(1);
		t.late = true;
		expect(" c0 c1 c2 c3");
		t.late = false;
		t.no_record = true;
		expect(" c0 c1 c2 c3");
		t.no_record = false;
		put(M + M_CURG, 0);
		expect(" c0 c1 c2 c3");
		put(M + M_CURG, CURG);
		put(CURG + G_M, M + 8);
		expect(" c0 c1 c2 c3");
		put(CURG + G_M, M);
		put(LABELS, 0x10);
		expect(" c0 c1 c2 c3");
		put(LABELS, LIST);
		put(LIST + 16, 0x10);
		expect(" c0 c1 c2 c3");
	}
}

TEST(there_are_only_so_many)
{
	set_up(EM_X86_64);
	put_list(40);
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.full.nr_words, 4 + GO_LABELS_MAX * (1 + GO_LABEL_WORDS));
	t.max_frames = 6;
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
}

/* c3 is morestack(), on the thread's own stack; the goroutine's has c1 and goexit, c2. */
static void set_up_growth(uint16_t machine)
{
	enum { OWN = STACK + 0x8000 };

	set_up(machine);
	put(THREAD - 8, G0);
	t.reg = G0;
	put(CURG, OWN);
	put(CURG + 8, OWN + 0x1000);
	put(CURG + SCHED_SP, OWN + 0x800);
	put(CURG + SCHED_SP + 8, CODE + 0x122);
	put(OWN + 0x800 + FRAME_SIZE - 8, CODE + 0x222);
	put(OWN + 0x800 + 2 * FRAME_SIZE - 8, 0);
	put(CURG + G_LR, CODE + 0x122);
	t.record.morestack = (struct go_switch){ CODE + 0x300, CODE + 0x400 };
}

TEST(where_a_stack_grows)
{
	for (int i = 0; i < 4; i++) {
		/* Go's own code says that it is the first frame, or nothing (before 1.23). */
		set_up_growth(machines[i & 1]);
		put_list(1);
		t.ends_switched = i >= 2;
		expect(" c0 c1 c2 c3 user=alice c1 c2");
		/* No goroutine, its stack is being changed, or what was there is a copy. */
		put(CURG + SCHED_SP, STACK + 0x100);
		expect(" c0 c1 c2 c3 user=alice (11)");
		put(CURG + SCHED_SP, STACK + 0x8801);
		expect(" c0 c1 c2 c3 user=alice (11)");
		put(CURG + SCHED_SP, STACK + 0x8800);
		put(CURG + SCHED_SP + 8, 0);
		expect(" c0 c1 c2 c3 user=alice (11)");
		put(CURG + SCHED_SP + 8, CODE + 0x122);
		put(M + M_CURG, 0);
		expect(" c0 c1 c2 c3 (11)");
		put(M + M_CURG, CURG);
		t.late = true;
		expect(" c0 c1 c2 c3 (11)");
	}
}

/* c2, which needs a larger one, has where it returns to in a register. */
TEST(where_a_stack_grows_on_aarch64)
{
	set_up_growth(EM_AARCH64);
	put_list(1);
	put(LEAF_SP + 2 * FRAME_SIZE - 8, CODE + 0x311);
	t.rules[FIRST_RULE + 2] = (struct unwind_rule){
		.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR
	};
	put(CURG + SCHED_SP + 8, CODE + 0x222);
	put(STACK + 0x8800 + FRAME_SIZE - 8, 0);
	expect(" c0 c1 c3 user=alice c2 c1");
	put(CURG + G_LR, 0);
	expect(" c0 c1 c3 user=alice (11)");
	t.record.g_lr = 0;
	expect(" c0 c1 c3 user=alice (11)");
}

/* It was taken off from there, and the thread has another one. */
TEST(where_a_stack_was_to_grow_and_is_left)
{
	for (int i = 0; i < 8; i++) {
		set_up_growth(machines[i & 1]);
		t.ends_switched = i & 2;
		t.late = i & 4;
		t.callback_marked = true;
		t.record.schedule = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
		expect(t.late && t.ends_switched ? " c0 c1 c2 c3 (11)" : " c0 c1 c2 c3");
	}
}

/* Not yet on the thread's own stack: it is called as any function is. */
TEST(where_a_stack_is_about_to_grow)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		put(CURG, STACK);
		t.callback_marked = true;
		t.record.morestack = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
		expect(" c0 c1 c2 c3");
	}
}

/* c1 is mcall(), which leaves the frame pointer as the goroutine has it. */
TEST(where_a_goroutine_was_taken_off)
{
	enum { OTHER = STACK + 0x8000 };

	for (int i = 0; i < 2; i++) {
		bool arm = machines[i] == EM_AARCH64;

		set_up(machines[i]);
		put_list(1);
		t.record.mcall = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
		t.callback_marked = true;
		/* It has yet to leave that one's stack. */
		expect(" c0 c1 user=alice c2 c3");
		put(THREAD - 8, G0);
		t.reg = G0;
		t.fp = OTHER;
		t.rules[FIRST_RULE + 1] = (struct unwind_rule){ .cfa = CFA_REG,
								.cfa_reg = arm ? A64_FP : X86_RBP,
								.cfa_off = FRAME_SIZE,
								.ra_off = -1,
								.flags = RULE_OTHER_STACK };
		put(OTHER + FRAME_SIZE - 8, CODE + 0x211);
		put(OTHER + 2 * FRAME_SIZE - 8, CODE + 0x311);
		put(M + M_CURG, 0);
		expect(" c0 c1");
	}
}

/* c0, what runs, has just changed stacks (up to 1.20): it is as if it called something there. */
TEST(what_runs_has_changed_stacks)
{
	enum { OTHER = STACK + 0x8000 };

	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		put_list(1);
		t.rules[FIRST_RULE] =
			(struct unwind_rule){ .cfa = CFA_FRAME_POINTER,
					      .cfa_off = CODE_SWITCHED,
					      .ra = RUNTIME_GO << RULE_RUNTIME_SHIFT };
		put(THREAD - 8, G0);
		t.reg = G0;
		put(CURG, OTHER);
		put(CURG + 8, OTHER + 0x1000);
		put(CURG + SCHED_SP, OTHER + 0x800);
		t.fp = OTHER + 0x900;
		put(t.fp + 8, CODE + 0x311);
		put(OTHER + 0x800, CODE + 0x222);
		put(OTHER + (i ? 0x810 : 0x808) + FRAME_SIZE - 8, CODE + 0x311);
		t.record.own_call = 4;
		/* mcall() has taken the goroutine off, systemstack() will go back to it. */
		t.record.mcall = (struct go_switch){ CODE, CODE + 0x100 };
		expect(" c0 user=alice");
		t.record.mcall = (struct go_switch){ 0 };
		t.record.systemstack = (struct go_switch){ CODE, CODE + 0x100 };
		expect(" c0 user=alice c2 c3");
	}
}

/* What a signal made a function call, on aarch64: c2's link register is between them. */
TEST(behind_what_a_signal_has_put_in)
{
	set_up(EM_AARCH64);
	t.callback_marked = true;
	t.record.injected[1] = (struct go_part){ 0x100, 0x200 };
	put(LEAF_SP + 2 * FRAME_SIZE, CODE + 0x322);
	put(LEAF_SP + 3 * FRAME_SIZE + 8, CODE + 0x311);
	for (int i = 0; i < 4; i++) {
		/* c2 has a frame, or none. */
		t.late = i & 1;
		if (i & 2)
			t.rules[FIRST_RULE + 2] = (struct unwind_rule){
				.cfa = CFA_REG, .cfa_reg = A64_SP, .ra = RA_IN_REG, .ra_off = A64_LR
			};
		expect(" c0 c1 c2 c3");
	}
	/* Its stack is not there. */
	t.rules[FIRST_RULE + 1].cfa_off = SIZE;
	t.rules[FIRST_RULE + 1].ra_off = (FRAME_SIZE - SIZE) / 8 - 1;
	ASSERT(walk());
	ASSERT_STR(shown(), " c0 c1 (9) c2");
}

enum { OTHER = STACK + 0x8000 };

/* aarch64: c1 is on the thread's own stack, the goroutine's is another one. */
static void set_up_own(void)
{
	set_up(EM_AARCH64);
	put_list(1);
	t.callback_marked = true;
	t.reg = G0;
	put(CURG, OTHER);
	put(CURG + 8, OTHER + 0x1000);
	put(CURG + SCHED_SP, OTHER + 0x900);
	/* At 0x800 a function of 16 bytes, called by c2, which is called by c3; at 0x900, too. */
	for (uint64_t at = OTHER + 0x800; at <= OTHER + 0x900; at += 0x100) {
		put(at, CODE + 0x222);
		put(at + 16 + FRAME_SIZE - 8, CODE + 0x311);
	}
}

TEST(where_c_is_called_on_aarch64)
{
	enum { SP = LEAF_SP + FRAME_SIZE };

	set_up_own();
	t.record.asmcgocall = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
	t.record.own_call = 4;
	put(SP, CURG);
	put(SP + 8, 0x800); /* from the upper end */
	expect(" c0 c1 user=alice c2 c3");
	put(OTHER + 0x800, 0);
	expect(" c0 c1 user=alice (11)");
	/* Before that was written down. */
	t.record.own_call = 0x80;
	expect(" c0 c1 user=alice c2 c3");
	put(CURG + SCHED_SP, STACK);
	expect(" c0 c1 user=alice (11)");
	/* Somebody else's, or nothing is known of the code. */
	put(OTHER + 0x800, CODE + 0x222);
	t.record.own_call = 4;
	expect(" c0 c1 user=alice c2 c3");
	put(SP, G0);
	expect(" c0 c1 user=alice (11)");
	put(SP, CURG);
	t.record.own_call = 0;
	expect(" c0 c1 user=alice (11)");
	t.late = true;
	ASSERT_EQ(walk(), STOP_STACK_COPY_END);
	ASSERT_STR(shown(), " c0 c1");
	/* On the thread's own stack already. */
	t.record.nosave = (struct go_part){ 0x100, 0x200 };
	put(SP, 0);
	put(SP + 16, CODE + 0x222);
	put(SP + 32 + FRAME_SIZE - 8, CODE + 0x311);
	expect(" c0 c1 c2 c3");
}

/* c1 is cgocallback() on the goroutine's stack; its frame on the thread's own is at 0x800. */
TEST(where_c_calls_go_on_aarch64)
{
	set_up(EM_AARCH64);
	t.callback_marked = true;
	t.record.cgocallback = (struct go_part){ 0x100, 0x200 };
	put(M, G0);
	put(G0 + SCHED_SP, OTHER + 0x800);
	put(OTHER + 0x800, CODE + 0x222);
	put(OTHER + 0x800 + 2 * FRAME_SIZE - 8, CODE + 0x311);
	expect(" c0 c1 c2 c3");
	put(G0 + SCHED_SP, 0);
	expect(" c0 c1 (11)");
	/* Not on the goroutine's stack yet. */
	put(CURG, OTHER);
	put(CURG + 8, OTHER + 0x100);
	expect(" c0 c1 c2 c3");
}

/* c1 calls C, c2, on the goroutine's stack, is called by C: its frame is above that of c1. */
TEST(where_c_is_called_by_go_that_it_calls_on_aarch64)
{
	enum { SP = LEAF_SP + FRAME_SIZE, INNER = LEAF_SP - 0x100, OUTER = SP + 0x100 };

	set_up_own();
	t.record.asmcgocall = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
	t.record.cgocallback = (struct go_part){ 0x200, 0x300 };
	t.record.own_call = 4;
	t.rules[FIRST_RULE + 2].ra |= RUNTIME_GO << RULE_RUNTIME_SHIFT;
	put(SP, CURG);
	put(SP + 8, 0x800);
	put(M, G0);
	put(OUTER, CODE + 0x322);
	/* The innermost one is that which is left, or one that is about to be there. */
	put(G0 + SCHED_SP, OUTER);
	put(OTHER + 0x810 + FRAME_SIZE - 8, CODE + 0x311);
	expect(" c0 c1 user=alice c2 c3");
	put(G0 + SCHED_SP, INNER);
	put(INNER + 16, OUTER);
	expect(" c0 c1 user=alice c2 c3");
	put(INNER + 16, INNER);
	expect(" c0 c1 user=alice c2 (11)");
}

/* c1 is mcall() behind its call of save_g(), where its row says that nobody has called it. */
TEST(before_a_goroutine_is_taken_off_on_aarch64)
{
	enum { SP = LEAF_SP + FRAME_SIZE };

	set_up(EM_AARCH64);
	put_list(1);
	t.callback_marked = true;
	t.reg = G0;
	t.rules[FIRST_RULE + 1] = (struct unwind_rule){ .cfa = CFA_END };
	t.record.mcall = (struct go_switch){ CODE + 0x100, CODE + 0x200 };
	put(CURG + SCHED_SP, SP);
	put(CURG + SCHED_SP + 8, CODE + 0x222);
	put(SP + FRAME_SIZE - 8, CODE + 0x311);
	expect(" c0 c1 user=alice c2 c3");
	/* It is on the thread's own stack. */
	put(CURG, OTHER);
	put(CURG + 8, OTHER + 0x100);
	expect(" c0 c1 user=alice");
	/* Another mcall() of before. */
	put(CURG, STACK + 0x100);
	put(CURG + 8, END_SP + 8);
	put(CURG + SCHED_SP, SP + 8);
	expect(" c0 c1 user=alice");
}

/* c3, morestack(), is the program's; the first record is that of a plugin. */
TEST(beside_a_plugin)
{
	for (int i = 0; i < 2; i++) {
		set_up_growth(machines[i]);
		put_list(1);
		t.other = t.record;
		t.record.code = (struct go_switch){ CODE + 0x4000, CODE + 0x8000 };
		t.record.morestack = (struct go_switch){ CODE + 0x4000, CODE + 0x4100 };
		expect(" c0 c1 c2 c3 user=alice c1 c2");
		/* There are more than are known. */
		t.other.code = t.record.code;
		t.ends_switched = true;
		expect(" c0 c1 c2 c3 (11)");
	}
}

/* Two libraries, whose goroutines are not the same: c3 is goexit() of that which calls the other.
 */
TEST(beside_another_go)
{
	enum { OTHERS = HEAP + 0x6000, OTHERS_M = HEAP + 0x6800 };

	set_up(EM_X86_64);
	t.record.flags |= GO_ASYNC;
	t.other = t.record;
	t.record.code = (struct go_switch){ CODE, CODE + 0x200 };
	t.other.code = (struct go_switch){ CODE + 0x200, CODE + 0x400 };
	t.other.tls = -16;
	t.callback_marked = true;
	put_list(1);
	put(THREAD - 16, OTHERS);
	put(OTHERS, STACK + 0x100);
	put(OTHERS + 8, END_SP + 8);
	put(OTHERS + G_M, OTHERS_M);
	put(OTHERS_M + M_CURG, OTHERS);
	put(OTHERS + G_GOID, 7);
	put(OTHERS + G_GOPC, CODE + 0x322);
	/* Labels are the inner one's, who has started it that one's who is the first. */
	expect(" c0 c1 user=alice c2 c3 (12) c3");
	put(OTHERS + G_LABELS, LABELS);
	expect(" c0 c1 user=alice c2 c3 (12) c3");
	put(THREAD - 16, 0);
	expect(" c0 c1 user=alice c2 c3");
}

/* Nothing else knows what leads back. */
TEST(without_its_walker)
{
	for (int i = 0; i < 2; i++) {
		set_up(machines[i]);
		t.walker_off = true;
		expect(" c0 c1 c2 c3 (10)");
		t.ends_switched = true;
		expect(" c0 c1 c2 c3 (10) (11)");
	}
}
