// SPDX-License-Identifier: Apache-2.0
/* For whom code is followed: this very program's, for users who are made up. */
#include "unwinder/publisher.h"
#include "unwinder/publisher_internal.h"
#include "still_clock.h"
#include "test.h"
#include "unwinder/host_walk.h"
#include "util/clock.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { NO_FILE = 0 };

static struct process_table processes;
static struct unwind_store store;
static struct publisher publisher;
static struct process *proc;
static const struct mapping_snapshot greedy = { .user = 4000000001 },
				     other = { .user = 4000000002 };
static uint32_t file;
static uint64_t addr; /* some code of it, in its own address space */

static void set_up(void)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };
	const struct unwind_mapping *m;
	const struct mapping_snapshot *b;

	ASSERT_OK(process_table_init(&processes));
	ASSERT_OK(unwind_store_init(&store, &no_maps, 16 << 20));
	publisher_init(&publisher, &processes, &store, NULL);
	ASSERT_OK(process_get(&processes, getpid(), &proc));
	ASSERT_OK(publisher_show(&publisher, proc, 1));
	b = ((struct published_process *)proc->user)->snapshot;
	m = publisher_mapping(&publisher, b, (uint64_t)set_up);
	ASSERT_PTR_NONNULL(m);
	file = m->file;
	addr = (uint64_t)set_up - m->bias;
	ASSERT_EQ(publisher_load(&publisher, b, file), FILE_STATE_LOADED);
	publisher_tick(&publisher, now_ns(), 0);
}

static void tear_down(void)
{
	process_table_fini(&processes);
	publisher_fini(&publisher);
	unwind_store_fini(&store);
}

TEST(what_fails_for_one_user_holds_up_no_other)
{
	set_up();
	ASSERT(publisher_follow(&publisher, &greedy, NO_FILE, addr, false));
	ASSERT(!publisher_may_follow(&publisher, &greedy));
	ASSERT_EQ(publisher_follow(&publisher, &greedy, file, addr, false), -ENOENT);
	ASSERT(publisher_may_follow(&publisher, &other));
	ASSERT_OK(publisher_follow(&publisher, &other, file, addr, false));
	tear_down();
}

TEST(what_failed_is_tried_again_later)
{
	set_up();
	ASSERT(publisher_follow(&publisher, &greedy, NO_FILE, addr, false));
	publisher_tick(&publisher, store.now_ns + 201000000, 0);
	ASSERT_OK(publisher_follow(&publisher, &greedy, file, addr, false));
	tear_down();
}

TEST(who_has_used_up_his_time_leaves_others_theirs)
{
	set_up();
	time_shares_take(&publisher.follow_time, greedy.user, now_ns(), 3600000000000);
	publisher.follow_time.used_ns = now_ns() - 400000000;
	ASSERT(publisher_may_follow(&publisher, &other));
	ASSERT_EQ(publisher_follow(&publisher, &greedy, file, addr, false), -EAGAIN);
	ASSERT_OK(publisher_follow(&publisher, &other, file, addr, false));
	tear_down();
}

#if defined(__x86_64__)
/* Two functions without CFI; in the inner one nothing near `place` tells how its frame is. */
__asm__(".balign 16, 0xcc\n"
	".fill 16, 1, 0xcc\n"
	"inner: push %rbx\n"
	"mov %rdi, %rbx\n"
	".fill 8, 1, 0x90\n"
	"place: .fill 8, 1, 0x90\n"
	"pop %rbx\n"
	"ret\n"
	".balign 16, 0xcc\n"
	".fill 16, 1, 0xcc\n"
	"outer: push %rbx\n"
	"call inner\n"
	"behind: pop %rbx\n"
	"ret\n"
	".balign 16, 0xcc\n");
extern const uint8_t place[], behind[];

enum { STACK_WORDS = 512, READ_NS = 1000, STACK_AT = 0x7f0000000000 };

/* The stack as it is at `place`; each read takes its time. */
static int read_slowly(void *ctx, __u64 from, void *to, __u32 size)
{
	uint64_t stack[STACK_WORDS] = { 1, (uint64_t)behind, 2, 0 };

	if (from - (uint64_t)place + 64 < 128) {
		memcpy(to, (const void *)from, size);
		return 0;
	}
	if (from - STACK_AT > sizeof(stack) - size)
		return -EFAULT;
	memcpy(to, (const uint8_t *)stack + (from - STACK_AT), size);
	still_clock_ns += READ_NS;
	++*(uint64_t *)ctx;
	return 0;
}

/* All of this program's code is as if nobody had looked at it. */
static void unfollow(void)
{
	uint32_t nr = store.files[file].nr_buckets, rows[] = { ROW(0, 0), ROW(0, 1) };
	struct unwind_rule rules[] = {
		{ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE },
		{ .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_UNFOLLOWED },
	};
	struct unwind_table table = { .start = store.files[file].start,
				      .nr_buckets = nr,
				      .nr_rows = 2,
				      .nr_rules = 2,
				      .buckets = calloc(nr, sizeof(uint32_t)),
				      .rows = rows,
				      .rules = rules };

	for (uint32_t i = 0; i < nr; i++)
		table.buckets[i] = BUCKET(2, 0);
	ASSERT_OK(unwind_store_load(&store, file, &table));
	free(table.buckets);
}

TEST(a_walk_pays_for_what_its_answers_took)
{
	struct walk *walk = calloc(1, sizeof(*walk));
	const __u64 regs[UNWIND_REGS_MAX] = { [X86_RSP] = STACK_AT };
	uint64_t nr_reads = 0, first_reads;
	const struct walk_memory memory = { .read = read_slowly, .ctx = &nr_reads };
	const struct mapping_snapshot *b;
	uint64_t used;

	set_up();
	unfollow();
	b = ((struct published_process *)proc->user)->snapshot;
	const struct walk_input input = { .machine = EM_X86_64,
					  .pc = (uint64_t)place,
					  .regs = regs,
					  .process = publisher_entry(b, 1),
					  .max_frames = 8 };

	/* Both are followed for the first walk. */
	publisher.follow_time.used_ns = used = now_ns() - 900000000;
	host_walk(&publisher, &memory, &input, walk);
	ASSERT_EQ(publisher.nr_followed, 2);
	ASSERT(walk->full.nr_words >= 2);
	ASSERT_EQ(FRAME_DATA(walk->words[1]), (uint64_t)behind - 1);
	used = publisher.follow_time.used_ns - used;
	first_reads = nr_reads;
	/* The next one asks for nothing, and pays nothing. */
	nr_reads = 0;
	host_walk(&publisher, &memory, &input, walk);
	ASSERT_EQ(publisher.nr_followed, 2);
	ASSERT(nr_reads);
	/* One copy of a stack, and the walks behind the first answer, which was asked for before
	 * anything was read. */
	ASSERT_EQ(used, FOLLOW_PART * (RAW_SAMPLE_NS + READ_NS * first_reads));
	tear_down();
	free(walk);
}
#endif

TEST(the_kernel_asks_no_more_for_a_process_in_vain)
{
	struct published_process *v;

	set_up();
	v = proc->user;
	publisher_hold_asks(&publisher, proc);
	ASSERT_EQ(v->asks_held_until_ns, 0);
	ASSERT(publisher_follow(&publisher, v->snapshot, NO_FILE, addr, false));
	publisher_hold_asks(&publisher, proc);
	ASSERT(v->asks_held_until_ns > store.now_ns);
	ASSERT_EQ(publisher.asks_held_until_ns, v->asks_held_until_ns);
	publisher_tick(&publisher, v->asks_held_until_ns, 0);
	ASSERT_EQ(v->asks_held_until_ns, 0);
	ASSERT_EQ(publisher.asks_held_until_ns, 0);
	tear_down();
}

TEST(code_of_no_file_that_tells_nothing_is_not_asked_for_again)
{
	struct published_process *v;
	int nr;

	set_up();
	v = proc->user;
	for (nr = 0; !publisher_is_anon_silent(v); nr++) {
		ASSERT(nr < 100);
		publisher.nr_anon = publisher.nr_anon_silent = 0;
		publisher_followed_anon(&publisher, -ENOENT);
		publisher_hold_asks(&publisher, proc);
	}
	/* It told more often than not. */
	for (v->nr_anon = v->nr_anon_silent = nr = 0; nr < 100; nr++) {
		publisher.nr_anon = publisher.nr_anon_silent = 0;
		publisher_followed_anon(&publisher, nr % 2 ? -ENOENT : 0);
		publisher_hold_asks(&publisher, proc);
		ASSERT(!publisher_is_anon_silent(v));
	}
	ASSERT_EQ(v->nr_anon, 100);
	ASSERT_EQ(v->nr_anon_silent, 50);
	tear_down();
}
