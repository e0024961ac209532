// SPDX-License-Identifier: Apache-2.0
/* What becomes of the words of a walk: notes in place of a runtime's frames. */
#include "agent/resolver.h"

#include "test.h"

enum { PID = 4711, ELSEWHERE = 0x1000 };

static struct {
	struct process_table processes;
	struct unwind_store store;
	struct publisher publisher;
	struct resolver resolver;
	struct profile profile;
} t;

static void set_up(void)
{
	const struct unwind_store_maps none = { -1, -1, -1 };

	memset(&t, 0, sizeof(t));
	ASSERT_OK(process_table_init(&t.processes));
	ASSERT_OK(unwind_store_init(&t.store, &none, 1 << 20));
	publisher_init(&t.publisher, &t.processes, &t.store, NULL);
	ASSERT_OK(profile_init(&t.profile));
	ASSERT_OK(resolver_init(&t.resolver, &t.publisher, &t.profile, NULL));
}

static void tear_down(void)
{
	resolver_fini(&t.resolver);
	process_table_fini(&t.processes);
	publisher_fini(&t.publisher);
	unwind_store_fini(&t.store);
	profile_fini(&t.profile);
}

/* How many frames the profile's stack of these words has. */
static size_t shown(const __u64 *words, size_t nr)
{
	static const struct block block;
	const struct resolver_stack stack = {
		.pid = PID, .block = &block, .words = words, .nr_words = nr, .stop = STOP_COMPLETE
	};
	uint32_t id;

	ASSERT_OK(resolver_add(&t.resolver, &stack, &id));
	return t.resolver.scratch.nr;
}

TEST(loops_of_which_nothing_is_known_are_marked_each)
{
	const __u64 early = FRAME(RUNTIME_PYTHON, 0, FRAME_NOTE_NOT_READY);
	const __u64 nobody = FRAME(RUNTIME_PYTHON, 0, FRAME_NOTE_NO_THREAD_STATE);
	const __u64 java = FRAME(RUNTIME_HOTSPOT, 0, FRAME_NOTE_NOT_READY);
	const __u64 broken = FRAME(RUNTIME_PYTHON, 0, FRAME_NOTE_UNREADABLE);
	const __u64 native = FRAME(RUNTIME_NATIVE, 0, ELSEWHERE);

	set_up();
	ASSERT_EQ(shown((__u64[]){ native, early, native, early, native }, 5), 5);
	/* With nothing shown between them they are one place. */
	ASSERT_EQ(shown((__u64[]){ native, early, early, early, native, early }, 6), 4);
	ASSERT_EQ(shown((__u64[]){ nobody, nobody, native, nobody }, 4), 3);
	ASSERT_EQ(shown((__u64[]){ early, java, early, nobody }, 4), 4);
	ASSERT_EQ(shown((__u64[]){ early }, 1), 1);
	ASSERT_EQ(shown((__u64[]){ early }, 1), 1);
	/* Such a one stands for one frame, or for some. */
	ASSERT_EQ(shown((__u64[]){ broken, broken }, 2), 2);
	tear_down();
}
