// SPDX-License-Identifier: Apache-2.0
#include "record/waker.h"
#include "test.h"

static struct profile p;

static void setup(void)
{
	ASSERT_OK(profile_init(&p));
}

static uint32_t add_stack(uint64_t first, size_t nr, enum stop_reason stop)
{
	uint32_t frames[8], ret;

	for (size_t i = 0; i < nr; i++) {
		const struct profile_frame frame = { .kind = FRAME_KIND_KERNEL,
						     .file = PROFILE_NO_FILE,
						     .address = first + i };

		ASSERT_OK(profile_add_frame(&p, &frame, &frames[i]));
	}
	ASSERT_OK(profile_add_stack(&p, frames, nr, stop, &ret));
	return ret;
}

/* Frame `i` of a stack: its address, or if that is 0 its name. */
static void assert_frame(uint32_t stack, size_t i, uint64_t address, const char *name)
{
	const struct profile_stack *s = &p.stacks.items[stack];
	uint32_t frame;
	char buf[128];

	ASSERT(i < s->nr);
	frame = p.stack_frames.items[s->first + i];
	ASSERT_EQ(p.frames.items[frame].address, address);
	if (name)
		ASSERT_STR(profile_frame_name(&p, frame, 0, buf, sizeof(buf)), name);
}

TEST(the_wakers_stack_is_turned_round_on_top_of_the_sleeps)
{
	struct sample_header header = { .pid = 7, .tid = 8, .comm = "fifteen-letters" };
	struct profile_label labels[WAKER_LABELS];
	struct waker_frames scratch = { 0 };
	uint32_t sleep, waker, joined, again;

	setup();
	sleep = add_stack(100, 2, STOP_NO_RULE);
	waker = add_stack(200, 3, STOP_COMPLETE);
	ASSERT_OK(waker_labels(&p, &header, labels));
	ASSERT_EQ(waker_number(&p, labels, WAKER_LABELS, "waker.pid"), 7);
	ASSERT_EQ(waker_number(&p, labels, WAKER_LABELS, "waker.tid"), 8);
	ASSERT_EQ(waker_number(&p, labels, WAKER_LABELS, "waker.other"), 0);
	ASSERT_OK(waker_join(&p, sleep, waker, labels, WAKER_LABELS, &scratch, &joined));
	ASSERT_EQ(p.stacks.items[joined].nr, 6);
	ASSERT_EQ(p.stacks.items[joined].stop, STOP_NO_RULE);
	assert_frame(joined, 0, 202, NULL);
	assert_frame(joined, 2, 200, NULL);
	assert_frame(joined, 3, 0, "[woken by] fifteen-letters");
	assert_frame(joined, 4, 100, NULL);
	assert_frame(joined, 5, 101, NULL);
	ASSERT_OK(waker_join(&p, sleep, waker, labels, WAKER_LABELS, &scratch, &again));
	ASSERT_EQ(again, joined);
	vec_free(&scratch.frames);
	profile_fini(&p);
}

TEST(of_a_waker_whose_stack_is_cut_that_is_said)
{
	struct sample_header header = { .pid = 7, .tid = 8, .comm = "w" };
	struct profile_label labels[WAKER_LABELS];
	struct waker_frames scratch = { 0 };
	uint32_t sleep, waker, joined;

	setup();
	sleep = add_stack(100, 2, STOP_COMPLETE);
	waker = add_stack(200, 1, STOP_NO_PROCESS);
	ASSERT_OK(waker_labels(&p, &header, labels));
	ASSERT_OK(waker_join(&p, sleep, waker, labels, WAKER_LABELS, &scratch, &joined));
	ASSERT_EQ(p.stacks.items[joined].stop, STOP_COMPLETE);
	assert_frame(joined, 0, 0, "[waker truncated: no_process]");
	assert_frame(joined, 1, 200, NULL);
	assert_frame(joined, 2, 0, "[woken by] w");
	vec_free(&scratch.frames);
	profile_fini(&p);
}

TEST(an_interrupt_has_no_stack)
{
	struct waker_frames scratch = { 0 };
	struct profile_label label;
	uint32_t sleep, joined;

	setup();
	sleep = add_stack(100, 2, STOP_COMPLETE);
	ASSERT_OK(waker_interrupt_label(&p, &label));
	ASSERT_STR(strtab_get(&p.strings, label.text), "interrupt");
	ASSERT_OK(waker_join(&p, sleep, 0, &label, 1, &scratch, &joined));
	ASSERT_EQ(p.stacks.items[joined].nr, 3);
	assert_frame(joined, 0, 0, "[woken by an interrupt]");
	vec_free(&scratch.frames);
	profile_fini(&p);
}
