// SPDX-License-Identifier: Apache-2.0
#include "profile/collect.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* A stack of a frame of its own below one that all share, seen by a thread of its own. */
struct seen {
	uint32_t file, own, shared, stack, thread;
};

static uint32_t named_frame(struct profile *p, uint32_t file, uint64_t address, const char *name)
{
	const struct profile_frame f = { .kind = FRAME_KIND_NATIVE,
					 .file = file,
					 .address = address };
	uint32_t id;

	ASSERT_OK(profile_add_frame(p, &f, &id));
	if (!p->frames.items[id].nr_lines)
		ASSERT_OK(profile_name_frame(p, id, name));
	return id;
}

static struct seen see(struct profile *p, int i)
{
	uint32_t process;
	char text[64];
	struct seen s;

	snprintf(text, sizeof(text), "/lib/%d.so", i);
	ASSERT_OK(profile_add_met_file(p, text, (const uint8_t *)"\1\2", 2, (uint64_t)i, &s.file));
	p->files.items[s.file].start = (uint64_t)i;
	snprintf(text, sizeof(text), "function %d", i);
	s.own = named_frame(p, s.file, 0x1000, text);
	s.shared = named_frame(p, PROFILE_NO_FILE, 0x2000, "main");
	ASSERT_OK(
		profile_add_stack(p, (uint32_t[]){ s.own, s.shared }, 2, STOP_COMPLETE, &s.stack));
	snprintf(text, sizeof(text), "comm %d", i);
	ASSERT_OK(profile_add_process(p, 100 + i, 1, &process));
	ASSERT_OK(profile_string(p, text, &p->processes.items[process].name));
	ASSERT_OK(profile_add_thread(p, process, 200 + i, text, &s.thread));
	ASSERT_OK(profile_add_sample(p, s.thread, s.stack, 1, NULL));
	return s;
}

static const char *text_of(const struct profile *p, uint32_t string)
{
	return strtab_get(&p->strings, string);
}

static void assert_seen(struct profile *p, uint32_t stack, uint32_t thread, int i)
{
	const struct profile_stack *s = &p->stacks.items[stack];
	const uint32_t *frames = &p->stack_frames.items[s->first];
	const struct profile_file *file = &p->files.items[p->frames.items[frames[0]].file];
	const struct profile_thread *t = &p->threads.items[thread];
	char text[64], name[64];

	ASSERT_EQ(s->nr, 2);
	snprintf(text, sizeof(text), "/lib/%d.so", i);
	ASSERT_STR(text_of(p, file->path), text);
	ASSERT_STR(text_of(p, file->name), text + 5);
	ASSERT_EQ(file->start, i);
	snprintf(text, sizeof(text), "function %d", i);
	ASSERT_STR(profile_frame_name(p, frames[0], 0, name, sizeof(name)), text);
	ASSERT_STR(profile_frame_name(p, frames[1], 0, name, sizeof(name)), "main");
	snprintf(text, sizeof(text), "comm %d", i);
	ASSERT_STR(text_of(p, t->comm), text);
	ASSERT_STR(text_of(p, p->processes.items[t->process].name), text);
	ASSERT_EQ(p->processes.items[t->process].pid, 100 + i);
	ASSERT_EQ(t->tid, 200 + i);
}

TEST(a_cut_forgets_counts_only)
{
	struct profile p;
	struct seen a, again;

	ASSERT_OK(profile_init(&p));
	a = see(&p, 1);
	ASSERT_OK(profile_add_event(&p, 0, 5, 0));
	profile_next_cut(&p);
	ASSERT_EQ(profile_total(&p), 0);
	ASSERT_EQ(p.cut.events.nr, 0);
	ASSERT_EQ(p.cut.number, 1);
	again = see(&p, 1);
	ASSERT(!memcmp(&a, &again, sizeof(a)));
	ASSERT_EQ(profile_total(&p), 1);
	ASSERT_EQ(p.stacks.items[a.stack].used, 1);
	ASSERT_EQ(p.threads.items[a.thread].used, 1);
	profile_fini(&p);
}

TEST(what_was_not_used_is_collected_with_all_that_it_alone_needs)
{
	struct profile_collected moved;
	struct seen old[50], kept[50], again;
	struct profile p;
	uint32_t host;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_string(&p, "a host", &p.host.name));
	for (int i = 0; i < 50; i++)
		old[i] = see(&p, i);
	profile_next_cut(&p);
	for (int i = 0; i < 50; i++)
		kept[i] = see(&p, 50 + i);
	profile_next_cut(&p);
	/* One of the first ones is seen again: it stays, under whatever number. */
	again = see(&p, 7);
	ASSERT_OK(profile_add_event(&p, 0, 77, 3));
	host = p.host.name;
	ASSERT_OK(profile_collect(&p, 1, &moved));
	ASSERT_EQ(p.stacks.nr, 51);
	ASSERT_EQ(p.frames.nr, 52);
	ASSERT_EQ(p.functions.nr, 52);
	ASSERT_EQ(p.files.nr, 51);
	ASSERT_EQ(p.threads.nr, 51);
	ASSERT_EQ(p.processes.nr, 51);
	/* "", the host, main, and a path, its end, a function and a comm each */
	ASSERT_EQ(p.strings.strings.nr, 3 + 4 * 51);
	ASSERT_EQ(p.host.name, profile_moved(&moved.strings, host));
	ASSERT_STR(text_of(&p, p.host.name), "a host");
	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(profile_moved(&moved.stacks, old[i].stack) == PROFILE_GONE, i != 7);
		ASSERT_EQ(profile_moved(&moved.threads, old[i].thread) == PROFILE_GONE, i != 7);
		ASSERT_EQ(profile_moved(&moved.files, old[i].file) == PROFILE_GONE, i != 7);
		ASSERT_EQ(profile_moved(&moved.frames, old[i].own) == PROFILE_GONE, i != 7);
		assert_seen(&p, profile_moved(&moved.stacks, kept[i].stack),
			    profile_moved(&moved.threads, kept[i].thread), 50 + i);
	}
	ASSERT(profile_moved(&moved.frames, old[0].shared) < p.frames.nr);
	ASSERT_EQ(profile_moved(&moved.frames, 1000000), PROFILE_GONE);
	assert_seen(&p, profile_moved(&moved.stacks, again.stack),
		    profile_moved(&moved.threads, again.thread), 7);
	/* The cut goes on where it was. */
	ASSERT_EQ(profile_total(&p), 1);
	ASSERT_EQ(p.cut.samples.items[p.cut.events.items[0].sample].stack,
		  profile_moved(&moved.stacks, again.stack));
	ASSERT_EQ(p.cut.number, 2);
	/* All that is left is found again, and what is gone comes anew. */
	see(&p, 60);
	see(&p, 7);
	ASSERT_EQ(p.stacks.nr, 51);
	ASSERT_EQ(profile_total(&p), 3);
	again = see(&p, 3);
	assert_seen(&p, again.stack, again.thread, 3);
	ASSERT_EQ(p.stacks.nr, 52);
	profile_collected_fini(&moved);
	profile_fini(&p);
}

enum { PROCESS_TEXTS = 10 };

static void texts_of(struct profile_process *p, uint32_t *ret[static PROCESS_TEXTS])
{
	uint32_t *const texts[PROCESS_TEXTS] = { &p->name,     &p->path,      &p->command,
						 &p->owner,    &p->container, &p->pod,
						 &p->cgroup,   &p->service,   &p->attributes,
						 &p->variables };

	memcpy(ret, texts, sizeof(texts));
}

/* Whatever is collected before them, so that all strings have other numbers then. */
TEST(processes_keep_what_is_said_of_them)
{
	struct profile_collected moved;
	uint32_t *texts[PROCESS_TEXTS];
	struct profile p;
	char text[64];
	struct seen s;

	ASSERT_OK(profile_init(&p));
	for (int i = 0; i < 50; i++)
		see(&p, i);
	profile_next_cut(&p);
	s = see(&p, 50);
	texts_of(&p.processes.items[p.threads.items[s.thread].process], texts);
	for (int i = 0; i < PROCESS_TEXTS; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		ASSERT_OK(profile_string(&p, text, texts[i]));
	}
	ASSERT_OK(profile_collect(&p, 1, &moved));
	ASSERT_EQ(p.processes.nr, 1);
	texts_of(&p.processes.items[0], texts);
	for (int i = 0; i < PROCESS_TEXTS; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		ASSERT(*texts[i] < p.strings.strings.nr);
		ASSERT_STR(text_of(&p, *texts[i]), text);
	}
	profile_collected_fini(&moved);
	profile_fini(&p);
}

/* Inline frames that came with a frame are part of what it is; those that came later are not. */
TEST(frames_keep_what_they_are)
{
	const struct profile_frame f = { .kind = FRAME_KIND_OF(RUNTIME_PYTHON),
					 .file = PROFILE_NO_FILE };
	struct profile_function function = { .start_line = 3 };
	struct profile_collected moved;
	struct profile_line lines[2] = { { .line = 4 }, { .line = 5 } };
	uint32_t ids[3], again, stack;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_string(&p, "work", &function.name));
	ASSERT_OK(profile_add_function(&p, &function, &lines[0].function));
	lines[1].function = lines[0].function;
	ASSERT_OK(profile_add_named_frame(&p, &f, lines, 1, &ids[0]));
	ASSERT_OK(profile_add_named_frame(&p, &f, lines, 2, &ids[1]));
	ASSERT_OK(profile_add_frame(&p, &f, &ids[2]));
	ASSERT_OK(profile_set_lines(&p, ids[2], lines + 1, 1));
	ASSERT_OK(profile_add_stack(&p, ids, 3, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_collect(&p, 0, &moved));
	for (uint32_t i = 0; i < 3; i++)
		ids[i] = profile_moved(&moved.frames, ids[i]);
	for (uint32_t i = 0; i < 2; i++)
		lines[i].function = profile_moved(&moved.functions, lines[i].function);
	ASSERT_OK(profile_add_named_frame(&p, &f, lines, 1, &again));
	ASSERT_EQ(again, ids[0]);
	ASSERT_OK(profile_add_named_frame(&p, &f, lines, 2, &again));
	ASSERT_EQ(again, ids[1]);
	ASSERT_OK(profile_add_frame(&p, &f, &again));
	ASSERT_EQ(again, ids[2]);
	ASSERT_EQ(profile_frame_line(&p, ids[2], 0)->line, 5);
	ASSERT_EQ(p.frames.nr, 3);
	profile_collected_fini(&moved);
	profile_fini(&p);
}

enum { BYTES = 100 << 10 };

TEST(memory_stays_flat_while_everything_changes)
{
	struct profile_collected moved;
	uint32_t since, nr_collected = 0;
	struct profile p;
	int next = 0;

	ASSERT_OK(profile_init(&p));
	for (int cut = 0; cut < 300; cut++) {
		for (int i = 0; i < 10; i++)
			see(&p, next++);
		for (int i = 0; i < 10; i++) /* and what is always there */
			see(&p, 1000000 + i);
		ASSERT_EQ(profile_total(&p), 20);
		/* Tables grow by doubling. */
		ASSERT(profile_bytes(&p) < 2 * BYTES);
		if (profile_bytes(&p) > BYTES && profile_choose_since(&p, &since)) {
			ASSERT_OK(profile_collect(&p, since, &moved));
			profile_collected_fini(&moved);
			ASSERT_EQ(profile_total(&p), 20);
			nr_collected++;
		}
		profile_next_cut(&p);
	}
	ASSERT(nr_collected > 10);
	profile_fini(&p);
}

TEST(what_is_used_all_the_time_is_not_worth_collecting)
{
	struct profile p;
	uint32_t since;

	ASSERT_OK(profile_init(&p));
	ASSERT(!profile_choose_since(&p, &since));
	for (int cut = 0; cut < 20; cut++) {
		for (int i = 0; i < 20; i++)
			see(&p, i);
		ASSERT(!profile_choose_since(&p, &since));
		profile_next_cut(&p);
	}
	/* Half of them rest. */
	for (int cut = 0; cut < 20; cut++) {
		for (int i = 0; i < 10; i++)
			see(&p, i);
		profile_next_cut(&p);
	}
	ASSERT(profile_choose_since(&p, &since));
	ASSERT(since > 19 && since <= 39);
	profile_fini(&p);
}

TEST(types_contexts_and_values_are_kept)
{
	struct profile_measured m = { .type = 1, .context = 1, .value = 70 };
	struct profile_context context = { .trace_id = { 9 } };
	struct profile_collected moved;
	struct profile_label l = { 0 };
	uint32_t type, id;
	struct profile p;
	struct seen s;

	ASSERT_OK(profile_init(&p));
	see(&p, 1);
	profile_next_cut(&p);
	profile_next_cut(&p);
	s = see(&p, 2);
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &type));
	ASSERT_OK(profile_string(&p, "key", &l.key));
	ASSERT_OK(profile_string(&p, "value", &l.text));
	ASSERT_OK(profile_add_context(&p, &context, &l, 1, &id));
	m.thread = s.thread;
	m.stack = s.stack;
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT_OK(profile_add_measured_event(&p, 1, &(struct profile_event){ 3, id, 0 }, 70));
	ASSERT_OK(profile_collect(&p, 2, &moved));
	ASSERT_EQ(p.stacks.nr, 1);
	ASSERT_EQ(profile_nr_types(&p), 2);
	ASSERT_STR(profile_type_name(&p, 1), "off_cpu");
	ASSERT_STR(profile_type_unit(&p, 1), "nanoseconds");
	ASSERT_EQ(p.others.items[0].samples.items[id].count, 70);
	ASSERT_EQ(p.others.items[0].samples.items[id].stack, moved.stacks.to[s.stack]);
	ASSERT_EQ(profile_context_of(&p.others.items[0], id), 1);
	ASSERT_EQ(profile_event_value(&p.others.items[0], 0), 70);
	ASSERT_EQ(p.contexts.items[0].trace_id[0], 9);
	ASSERT_STR(text_of(&p, p.labels.items[0].key), "key");
	ASSERT_STR(text_of(&p, p.labels.items[0].text), "value");
	profile_collected_fini(&moved);
	/* And counts on. */
	m.thread = 0;
	m.stack = 0;
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT_EQ(p.others.items[0].samples.items[id].count, 140);
	profile_fini(&p);
}
