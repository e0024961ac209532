// SPDX-License-Identifier: Apache-2.0
/* For whom code is followed: this very program's, for users who are made up. */
#include "unwinder/publisher.h"
#include "unwinder/publisher_internal.h"
#include "still_clock.h"
#include "test.h"
#include "util/clock.h"

#include <errno.h>
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
	b = ((struct published_process *)proc->user)->block;
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

TEST(the_kernel_asks_no_more_for_a_process_in_vain)
{
	struct published_process *v;

	set_up();
	v = proc->user;
	publisher_hold_asks(&publisher, proc);
	ASSERT_EQ(v->asks_held_until_ns, 0);
	ASSERT(publisher_follow(&publisher, v->block, NO_FILE, addr, false));
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
		publisher_followed_anon(&publisher, v->block, -ENOENT, 0);
		publisher_hold_asks(&publisher, proc);
	}
	/* It told more often than not. */
	for (v->nr_anon = v->nr_anon_silent = nr = 0; nr < 100; nr++) {
		publisher.nr_anon = publisher.nr_anon_silent = 0;
		publisher_followed_anon(&publisher, v->block, nr % 2 ? -ENOENT : 0, 0);
		publisher_hold_asks(&publisher, proc);
		ASSERT(!publisher_is_anon_silent(v));
	}
	ASSERT_EQ(v->nr_anon, 100);
	ASSERT_EQ(v->nr_anon_silent, 50);
	tear_down();
}
