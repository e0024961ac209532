// SPDX-License-Identifier: Apache-2.0
#include "profile/prune.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static uint32_t frame_of(struct profile *p, uint64_t address)
{
	const struct profile_frame f = { .kind = FRAME_KIND_NATIVE,
					 .file = PROFILE_NO_FILE,
					 .address = address };
	uint32_t id;

	ASSERT_OK(profile_add_frame(p, &f, &id));
	return id;
}

/* A stack of these addresses, innermost first, up to a 0. */
static uint32_t stack_of(struct profile *p, enum stop_reason stop, const uint64_t *addresses)
{
	uint32_t frames[32], id;
	size_t nr = 0;

	for (; addresses[nr]; nr++)
		frames[nr] = frame_of(p, addresses[nr]);
	ASSERT_OK(profile_add_stack(p, frames, nr, stop, &id));
	return id;
}

#define STACK(p, ...) stack_of((p), STOP_COMPLETE, (const uint64_t[]){ __VA_ARGS__, 0 })

static uint32_t thread_of(struct profile *p, int pid, uint32_t uid)
{
	uint32_t process, thread;

	ASSERT_OK(profile_add_process(p, pid, 1, &process));
	p->processes.items[process].uid = uid;
	ASSERT_OK(profile_add_thread(p, process, pid, "comm", &thread));
	return thread;
}

static uint32_t see(struct profile *p, uint32_t thread, uint32_t stack, uint64_t count)
{
	uint32_t sample;

	ASSERT_OK(profile_add_sample(p, thread, stack, count, &sample));
	return sample;
}

/* "3 2 1" of a stack's addresses, innermost first; the note is a "-". */
static const char *text_of(const struct profile *p, uint32_t stack)
{
	const struct profile_stack *s = &p->stacks.items[stack];
	static char text[256];
	char name[64];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t frame = p->stack_frames.items[s->first + i];
		const char *gap = i ? " " : "";

		if (p->frames.items[frame].address)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d", gap,
						(int)p->frames.items[frame].address);
		else if (!strcmp(profile_frame_name(p, frame, 0, name, sizeof(name)),
				 PROFILE_NOT_KEPT))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s-", gap);
	}
	return text;
}

static uint64_t count_of(const struct profile *p, uint32_t thread, uint32_t stack)
{
	for (size_t i = 0; i < p->cut.samples.nr; i++)
		if (p->cut.samples.items[i].thread == thread &&
		    p->cut.samples.items[i].stack == stack)
			return p->cut.samples.items[i].count;
	return 0;
}

enum { MANY = 1000 };

/* Of those that were met as often as others about a quarter of the bytes goes. */
static void assert_some(uint64_t samples)
{
	ASSERT(samples > MANY / 5 && samples < MANY / 2);
}

/* Of these stacks so many are the note and `behind`, and the others whole. */
static void assert_pruned(const struct profile *p, const struct profile_collected *moved,
			  const uint32_t *stacks, const char *behind, uint64_t pruned)
{
	uint64_t nr = 0;
	char want[32];

	for (int i = 0; i < MANY; i++) {
		uint32_t stack = moved->stacks.to[stacks[i]];
		bool kept = profile_stack_stop(p, stack) == STOP_COMPLETE;

		snprintf(want, sizeof(want), "- %s", behind);
		if (kept)
			ASSERT(strlen(text_of(p, stack)) > strlen(want));
		else
			ASSERT_STR(text_of(p, stack), want);
		nr += !kept;
	}
	ASSERT_EQ(nr, pruned);
}

/* As many stacks that are met once each, below 9 8. */
static void see_many(struct profile *p, uint32_t thread, uint64_t first, uint32_t *ret)
{
	for (uint64_t i = 0; i < MANY; i++) {
		uint32_t stack = STACK(p, first + i, 9, 8);

		if (ret)
			ret[i] = stack;
		see(p, thread, stack, 1);
	}
}

TEST(what_is_met_often_stays_whole)
{
	struct profile_collected moved;
	uint32_t thread, often, many[MANY];
	uint64_t samples, pruned;
	struct profile p;
	size_t bytes;

	ASSERT_OK(profile_init(&p));
	thread = thread_of(&p, 1, 0);
	often = STACK(&p, 7, 6, 8);
	see(&p, thread, often, 50);
	see_many(&p, thread, 10000, many);
	bytes = profile_bytes(&p);
	ASSERT_OK(profile_prune(&p, &moved, &pruned));
	assert_some(pruned);
	ASSERT(profile_bytes(&p) < bytes);
	ASSERT_EQ(profile_total(&p), MANY + 50);
	ASSERT_EQ(profile_complete(&p), MANY + 50 - pruned);
	ASSERT_STR(text_of(&p, moved.stacks.to[often]), "7 6 8");
	assert_pruned(&p, &moved, many, "9 8", pruned);
	ASSERT_EQ(p.cut.samples.nr, MANY - pruned + 2);
	profile_collected_fini(&moved);

	/* What is pruned once more is no loss once more. */
	for (int i = 0; i < 4; i++) {
		ASSERT_OK(profile_prune(&p, &moved, &samples));
		pruned += samples;
		profile_collected_fini(&moved);
	}
	ASSERT_EQ(profile_total(&p), MANY + 50);
	ASSERT_EQ(profile_complete(&p), MANY + 50 - pruned);
	profile_fini(&p);
}

TEST(branches_stay_as_far_in_as_enough_share_them)
{
	struct profile_collected moved;
	uint32_t thread, few, seldom;
	uint64_t samples;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	thread = thread_of(&p, 1, 0);
	see_many(&p, thread, 10000, NULL);
	/* A stack that is another one's beginning, and one of another branch. */
	few = STACK(&p, 9, 8);
	seldom = STACK(&p, 5, 4, 3);
	see(&p, thread, few, 40);
	see(&p, thread, seldom, 1);
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	ASSERT_STR(text_of(&p, moved.stacks.to[few]), "9 8");
	/* It shares no frame with others. */
	ASSERT(!strcmp(text_of(&p, moved.stacks.to[seldom]), "-") ||
	       !strcmp(text_of(&p, moved.stacks.to[seldom]), "5 4 3"));
	ASSERT_EQ(profile_total(&p), MANY + 41);
	profile_collected_fini(&moved);
	profile_fini(&p);
}

TEST(who_takes_little_keeps_all)
{
	uint32_t greedy, other, others[100];
	struct profile_collected moved;
	uint64_t samples;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	greedy = thread_of(&p, 1, 1000);
	other = thread_of(&p, 2, 1001);
	see_many(&p, greedy, 10000, NULL);
	for (uint64_t i = 0; i < 100; i++) {
		others[i] = STACK(&p, 30000 + i, 9, 8);
		see(&p, other, others[i], 1);
	}
	/* One that both have, each once, stays for him who keeps his. */
	see(&p, greedy, others[0], 1);
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	assert_some(samples);
	for (int i = 0; i < 100; i++) {
		char text[32];

		snprintf(text, sizeof(text), "%d 9 8", 30000 + i);
		ASSERT_STR(text_of(&p, moved.stacks.to[others[i]]), text);
	}
	ASSERT_EQ(count_of(&p, moved.threads.to[greedy], moved.stacks.to[others[0]]), 1);
	profile_collected_fini(&moved);
	profile_fini(&p);
}

TEST(a_program_that_takes_little_keeps_all)
{
	uint32_t greedy, other, others[100];
	struct profile_collected moved;
	uint64_t samples;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	greedy = thread_of(&p, 1, 0);
	ASSERT_OK(profile_string(&p, "/bin/greedy", &p.processes.items[0].path));
	see_many(&p, greedy, 10000, NULL);
	/* Of many processes. */
	for (uint64_t i = 0; i < 100; i++) {
		other = thread_of(&p, 2 + (int)i, 0);
		ASSERT_OK(profile_string(&p, "/bin/other", &p.processes.items[1 + i].path));
		others[i] = STACK(&p, 30000 + i, 9, 8);
		see(&p, other, others[i], 1);
	}
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	assert_some(samples);
	for (int i = 0; i < 100; i++)
		ASSERT_EQ(profile_stack_stop(&p, moved.stacks.to[others[i]]), STOP_COMPLETE);
	ASSERT_STR(text_of(&p, moved.stacks.to[others[7]]), "30007 9 8");
	profile_collected_fini(&moved);
	profile_fini(&p);
}

TEST(how_a_stack_ended_and_what_was_measured_stay)
{
	struct profile_measured m = { .value = 1000 };
	struct profile_collected moved;
	uint32_t thread, cut, big, sample, waits[MANY];
	uint64_t samples, value = 0;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	thread = thread_of(&p, 1, 0);
	cut = stack_of(&p, STOP_NO_RULE, (const uint64_t[]){ 40, 9, 8, 0 });
	ASSERT_OK(profile_add_event(&p, see(&p, thread, cut, 1), 5, 1));
	for (uint64_t i = 0; i < MANY; i++) {
		sample = see(&p, thread, STACK(&p, 10000 + i, 9, 8), 1);
		ASSERT_OK(profile_add_event(&p, sample, 10 + i, 0));
	}
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &m.type));
	m.thread = thread;
	for (uint64_t i = 0; i < MANY; i++) {
		m.stack = waits[i] = STACK(&p, 20000 + i, 7, 8);
		ASSERT_OK(profile_add_measured(&p, &m, &sample));
	}
	m.stack = big = STACK(&p, 50, 7, 8);
	m.value = 1000 * 1000;
	ASSERT_OK(profile_add_measured(&p, &m, &sample));
	ASSERT_OK(profile_prune(&p, &moved, &samples));

	ASSERT_EQ(profile_total(&p), MANY + 1);
	ASSERT_EQ(profile_complete(&p), MANY - samples); /* not the one that was cut anyway */
	cut = moved.stacks.to[cut];
	ASSERT_EQ(p.stacks.items[cut].stop, STOP_NO_RULE);
	ASSERT_EQ(p.cut.events.nr, MANY + 1);
	for (size_t i = 0; i < p.cut.events.nr; i++) {
		const struct profile_event *e = &p.cut.events.items[i];

		ASSERT(e->sample < p.cut.samples.nr);
		ASSERT_EQ(p.cut.samples.items[e->sample].stack == cut, e->time_ns == 5);
	}
	for (size_t i = 0; i < p.others.items[0].samples.nr; i++)
		value += p.others.items[0].samples.items[i].count;
	ASSERT_EQ(value, 1000 * MANY + 1000 * 1000);
	ASSERT_STR(text_of(&p, moved.stacks.to[big]), "50 7 8");
	/* They weigh less than samples that are as many: some are longer by far. */
	for (size_t i = samples = 0; i < MANY; i++)
		samples += profile_stack_stop(&p, moved.stacks.to[waits[i]]) == STOP_NOT_KEPT;
	assert_pruned(&p, &moved, waits, "7 8", samples);
	ASSERT(samples > MANY / 2);
	profile_collected_fini(&moved);
	profile_fini(&p);
}

/* Stacks that end in the kernel, by different ways. */
TEST(the_kernel_calls_no_code_but_its_own)
{
	struct profile_frame k = { .kind = FRAME_KIND_KERNEL, .file = PROFILE_NO_FILE };
	struct profile_collected moved;
	uint32_t thread, frames[3], id;
	const struct profile_stack *s;
	uint64_t samples;
	struct profile p;
	char name[64];

	ASSERT_OK(profile_init(&p));
	thread = thread_of(&p, 1, 0);
	frames[2] = frame_of(&p, 8);
	k.address = 1;
	ASSERT_OK(profile_add_frame(&p, &k, &frames[1]));
	for (uint64_t i = 0; i < MANY; i++) {
		uint32_t stack;

		k.address = 100 + i;
		ASSERT_OK(profile_add_frame(&p, &k, &frames[0]));
		ASSERT_OK(profile_add_stack(&p, frames, 3, STOP_COMPLETE, &stack));
		see(&p, thread, stack, 1);
	}
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	assert_some(samples);
	ASSERT_EQ(p.stacks.nr, MANY - samples + 1);
	for (id = 0; profile_stack_stop(&p, id) == STOP_COMPLETE; id++)
		ASSERT(id < p.stacks.nr);
	s = &p.stacks.items[id];
	ASSERT_EQ(s->nr, 3);
	profile_frame_label(&p, p.stack_frames.items[s->first], 0, false, name, sizeof(name));
	ASSERT_STR(name, PROFILE_KERNEL_NOT_KEPT "_[k]");
	profile_collected_fini(&moved);
	profile_fini(&p);
}

TEST(what_has_no_samples_is_left_alone)
{
	struct profile_collected moved;
	uint64_t samples = 1;
	struct profile p;
	uint32_t idle;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	ASSERT_EQ(samples, 0);
	profile_collected_fini(&moved);
	idle = STACK(&p, 3, 2, 1);
	ASSERT_OK(profile_prune(&p, &moved, &samples));
	ASSERT_STR(text_of(&p, moved.stacks.to[idle]), "3 2 1");
	profile_collected_fini(&moved);
	profile_fini(&p);
}
