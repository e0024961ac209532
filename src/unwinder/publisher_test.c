// SPDX-License-Identifier: Apache-2.0
/* Whose runtimes are looked at: this very process's, every file of which is one, for users who are
 * made up. */
#include "unwinder/publisher.h"
#include "still_clock.h"
#include "test.h"
#include "test_fake_runtime.h"
#include "util/clock.h"

#include <unistd.h>

enum { GREEDY = 4000000001, OTHER = 4000000002 };

static struct process_table processes;
static struct unwind_store store;
static struct publisher publisher;
static struct published_process *published;

static void set_up(void)
{
	static const struct unwind_store_maps no_maps = { -1, -1, -1 };
	struct process *proc;

	ASSERT_OK(process_table_init(&processes));
	ASSERT_OK(unwind_store_init(&store, &no_maps, 16 << 20));
	publisher_init(&publisher, &processes, &store, NULL);
	ASSERT_OK(process_get(&processes, getpid(), &proc));
	ASSERT_OK(publisher_show(&publisher, proc, 1));
	published = proc->user;
	ASSERT_PTR_NONNULL(published->runtimes);
}

static void tear_down(void)
{
	process_table_fini(&processes);
	publisher_fini(&publisher);
	unwind_store_fini(&store);
}

/* How many looks it takes, if the process is that user's, and they are due. */
static int looks_for(uint32_t user)
{
	int before = fake.nr_refreshes;

	published->snapshot->user = user;
	runtimes_want_refresh(published->runtimes);
	publisher.runtimes_due_ns = 0;
	publisher_update_runtimes(&publisher);
	return fake.nr_refreshes - before;
}

TEST(who_has_had_his_share_of_looks_waits_and_others_do_not)
{
	set_up();
	ASSERT(looks_for(GREEDY) > 0);
	time_shares_take(&publisher.look_time, GREEDY, now_ns(), 3600000000000);
	publisher.look_time.used_ns = now_ns() - 400000000;
	ASSERT_EQ(looks_for(GREEDY), 0);
	ASSERT(publisher.runtimes_due_ns > 0 && publisher.runtimes_due_ns < UINT64_MAX);
	ASSERT(looks_for(OTHER) > 0);
	tear_down();
}
