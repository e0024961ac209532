// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

/* `name` 0: without a name */
static uint32_t add_frame(struct profile *p, uint16_t kind, uint32_t file, uint64_t address,
			  uint32_t scope, uint32_t name)
{
	const struct profile_frame f = {
		.kind = kind, .file = file, .address = address, .scope = scope
	};
	struct profile_function function = { .name = name };
	struct profile_line line = { .line = 7 };
	uint32_t id = UINT32_MAX;

	ASSERT_OK(profile_add_function(p, &function, &line.function));
	ASSERT_OK(profile_add_named_frame(p, &f, &line, name ? 1 : 0, &id));
	return id;
}

TEST(files_are_told_apart_by_path_and_build_id)
{
	static const uint8_t id[20] = { 1 };
	struct profile p;
	uint32_t a, b, c, d;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_file(&p, "/lib/libc.so.6", (const uint8_t *)"\1\2", 2, &a));
	ASSERT_OK(profile_add_file(&p, "/lib/libc.so.6", (const uint8_t *)"\1\2", 2, &b));
	ASSERT_OK(profile_add_file(&p, "/lib/libc.so.6", (const uint8_t *)"\1\2\0", 3, &c));
	ASSERT_OK(profile_add_file(&p, "/opt/libc.so.6", NULL, 0, &d));
	ASSERT_EQ(a, b);
	ASSERT(a != c && c != d && a != d);
	ASSERT_EQ(p.files.nr, 3);
	ASSERT_STR(strtab_get(&p.strings, p.files.items[d].name), "libc.so.6");
	/* Both can be another's, what the kernel says of a file can't. */
	ASSERT_OK(profile_add_met_file(&p, "/lib/libc.so.6", id, 20, 1, &b));
	ASSERT_OK(profile_add_met_file(&p, "/lib/libc.so.6", id, 20, 2, &c));
	ASSERT_OK(profile_add_met_file(&p, "/lib/libc.so.6", id, 20, 1, &d));
	ASSERT(b != c && b == d);
	ASSERT_EQ(p.files.nr, 5);
	d = 77;
	ASSERT_ERR(profile_add_file(&p, "x", (const uint8_t *)"012345678901234567890", 21, &d),
		   EINVAL);
	ASSERT_EQ(d, 77);
	profile_fini(&p);
}

TEST(every_member_of_a_frame_is_its_identity)
{
	struct profile p;
	uint32_t name;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(strtab_intern(&p.strings, "f", 1, &name));
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, 0), 0);
	ASSERT_EQ(add_frame(&p, 0, 0, 0x1000, 0, 0), 1);
	ASSERT_EQ(add_frame(&p, 1, 1, 0x1000, 0, 0), 2);
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1001, 0, 0), 3);
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 1, 0), 4);
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, name), 5);
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, 0), 0);
		ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, name), 5);
	}
	ASSERT_EQ(p.frames.nr, 6);
	profile_fini(&p);
}

TEST(a_late_name_does_not_change_the_identity)
{
	struct profile p;
	uint32_t name, id;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(strtab_intern(&p.strings, "f", 1, &name));
	id = add_frame(&p, 1, 0, 0x1000, 0, 0);
	ASSERT_OK(profile_name_frame(&p, id, "f"));
	ASSERT_EQ(p.functions.items[profile_frame_line(&p, id, 0)->function].name, name);
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, 0), id);
	ASSERT(add_frame(&p, 1, 0, 0x1000, 0, name) != id);
	ASSERT_OK(profile_name_frame(&p, id, "better"));
	ASSERT_ERR(profile_name_frame(&p, id + 1, "g"), EEXIST);
	ASSERT_ERR(profile_name_frame(&p, 99, "g"), EINVAL);
	profile_fini(&p);
}

TEST(stacks_are_told_apart_by_frames_and_stop)
{
	const uint32_t frames[] = { 1, 2, 3, 1, 2, 3 };
	struct profile p;
	uint32_t a, b;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_stack(&p, frames, 3, STOP_COMPLETE, &a));
	ASSERT_OK(profile_add_stack(&p, frames + 3, 3, STOP_COMPLETE, &b));
	ASSERT_EQ(a, b);
	ASSERT_OK(profile_add_stack(&p, frames, 3, STOP_NO_RULE, &b));
	ASSERT(a != b);
	ASSERT_OK(profile_add_stack(&p, frames, 2, STOP_COMPLETE, &b));
	ASSERT(a != b);
	ASSERT_OK(profile_add_stack(&p, NULL, 0, STOP_NO_PROCESS, &b));
	ASSERT_OK(profile_add_stack(&p, NULL, 0, STOP_NO_PROCESS, &a));
	ASSERT_EQ(a, b);
	ASSERT_EQ(p.stacks.nr, 4);
	ASSERT_EQ(p.stack_frames.nr, 8);
	profile_fini(&p);
}

TEST(samples_add_up_per_thread_and_stack)
{
	const uint32_t frames[] = { 1, 2 };
	struct profile p;
	uint32_t a, b;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_stack(&p, frames, 2, STOP_COMPLETE, &a));
	ASSERT_OK(profile_add_stack(&p, frames, 1, STOP_NO_RULE, &b));
	for (int i = 0; i < 1000; i++) {
		ASSERT_OK(profile_add_comm_sample(&p, "x", a, 1));
		ASSERT_OK(profile_add_comm_sample(&p, "y", a, 2));
		ASSERT_OK(profile_add_comm_sample(&p, "x", b, 3));
	}
	ASSERT_EQ(p.cut.samples.nr, 3);
	ASSERT_EQ(p.cut.samples.items[2].count, 3000);
	ASSERT_EQ(profile_total(&p), 6000);
	ASSERT_EQ(profile_complete(&p), 3000);
	ASSERT_ERR(profile_add_comm_sample(&p, "x", 2, 1), EINVAL);
	profile_fini(&p);
}

/* What the recorder does with a profile that has reached its limit. */
TEST(a_full_profile_counts_on_and_takes_in_nothing_new)
{
	const struct profile_frame known = { .kind = FRAME_KIND_NATIVE, .address = 1 };
	const struct profile_frame new = { .kind = FRAME_KIND_NATIVE, .address = 2 };
	uint32_t process, thread, frame, stack, id, more[2] = { 0, 0 };
	struct profile p;
	size_t bytes;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_process(&p, 10, 1, &process));
	ASSERT_OK(profile_add_thread(&p, process, 10, "sh", &thread));
	ASSERT_OK(profile_add_frame(&p, &known, &frame));
	ASSERT_OK(profile_add_stack(&p, &frame, 1, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_add_sample(&p, thread, stack, 1, NULL));
	bytes = profile_bytes(&p);
	p.full = true;
	ASSERT_OK(profile_add_process(&p, 10, 1, &id));
	ASSERT_OK(profile_add_thread(&p, process, 10, "sh", &id));
	ASSERT_EQ(id, thread);
	ASSERT_OK(profile_add_frame(&p, &known, &id));
	ASSERT_EQ(id, frame);
	ASSERT_OK(profile_add_stack(&p, &frame, 1, STOP_COMPLETE, &id));
	ASSERT_EQ(id, stack);
	ASSERT_OK(profile_add_sample(&p, thread, stack, 1, NULL));
	ASSERT_EQ(p.cut.samples.items[0].count, 2);
	ASSERT_ERR(profile_add_process(&p, 11, 1, &id), ENOSPC);
	ASSERT_ERR(profile_add_thread(&p, process, 10, "never heard", &id), ENOSPC);
	ASSERT_ERR(profile_add_thread(&p, process, 11, "sh", &id), ENOSPC);
	ASSERT_ERR(profile_add_file(&p, "/new", NULL, 0, &id), ENOSPC);
	ASSERT_ERR(profile_add_frame(&p, &new, &id), ENOSPC);
	ASSERT_ERR(profile_add_stack(&p, more, 2, STOP_COMPLETE, &id), ENOSPC);
	ASSERT_EQ(profile_bytes(&p), bytes);
	ASSERT_EQ(p.threads.nr + p.frames.nr + p.stacks.nr + p.stack_frames.nr + p.cut.samples.nr,
		  5);
	p.full = false;
	ASSERT_OK(profile_add_frame(&p, &new, &id));
	profile_fini(&p);
}

TEST(threads_are_told_apart_by_process_tid_and_comm)
{
	const uint32_t frames[] = { 1, 2 };
	uint32_t first, second, threads[4], carried, stack, again, sample;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	ASSERT_OK(profile_add_process(&p, 10, 1, &first));
	ASSERT_OK(profile_add_process(&p, 10, 2, &second));
	ASSERT(first != second);
	ASSERT_OK(profile_add_thread(&p, first, 10, "sh", &threads[0]));
	ASSERT_OK(profile_add_thread(&p, first, 11, "sh", &threads[1]));
	ASSERT_OK(profile_add_thread(&p, first, 10, "ls", &threads[2]));
	ASSERT_OK(profile_add_thread(&p, second, 10, "sh", &threads[3]));
	p.threads.items[threads[0]].start_ns = 5;
	p.threads.items[threads[0]].end_ns = 6;
	ASSERT_OK(profile_add_thread(&p, first, 10, "sh", &again));
	ASSERT_EQ(again, threads[0]);
	ASSERT_EQ(p.threads.nr, 4);
	ASSERT_OK(profile_add_carried_thread(&p, first, 10, "ls", "sh", &carried));
	ASSERT_EQ(carried, 4);
	ASSERT_OK(profile_add_carried_thread(&p, first, 10, "ls", "sh", &again));
	ASSERT_EQ(again, carried);
	ASSERT_OK(profile_add_carried_thread(&p, first, 10, "ls", "", &again));
	ASSERT_EQ(again, threads[2]);
	ASSERT_ERR(profile_add_thread(&p, 2, 1, "x", &again), EINVAL);
	ASSERT_OK(profile_add_stack(&p, frames, 2, STOP_COMPLETE, &stack));
	for (int i = 0; i < 4; i++)
		ASSERT_OK(profile_add_sample(&p, threads[i], stack, 1, &sample));
	ASSERT_EQ(sample, 3);
	ASSERT_OK(profile_add_event(&p, sample, 1000, 3));
	ASSERT_ERR(profile_add_event(&p, 4, 1000, 3), EINVAL);
	ASSERT_EQ(p.cut.events.nr, 1);
	profile_drop_events(&p);
	ASSERT(p.cut.events_dropped && !p.cut.events.nr);
	ASSERT_EQ(profile_total(&p), 4);
	profile_clear_samples(&p);
	ASSERT_EQ(profile_total(&p), 0);
	ASSERT_OK(profile_add_process(&p, 10, 2, &second));
	ASSERT_EQ(second, 0);
	profile_fini(&p);
}

/* Puts another key's index where the wanted key hashes to, as a collision of XXH3 would. */
TEST(a_collision_of_hashes_does_not_merge)
{
	struct profile p;
	struct map_slot *slot;
	uint32_t a, b, c;
	uint64_t hash;
	size_t i = 0;

	ASSERT_OK(profile_init(&p));
	a = add_frame(&p, 1, 0, 0x1000, 0, 0);
	slot = map_next(&p.frame_ids, &i);
	hash = slot->key;
	b = add_frame(&p, 1, 0, 0x2000, 0, 0);
	ASSERT_OK(map_put(&p.frame_ids, hash, b));
	c = add_frame(&p, 1, 0, 0x1000, 0, 0);
	ASSERT(c != b && c != a);
	ASSERT_EQ(*map_get(&p.frame_ids, hash + 1), c);
	ASSERT_EQ(add_frame(&p, 1, 0, 0x1000, 0, 0), c);
	profile_fini(&p);
}

TEST(the_bytes_held_grow_with_the_content)
{
	struct profile p;
	size_t before;

	ASSERT_OK(profile_init(&p));
	before = profile_bytes(&p);
	ASSERT(before < 64 * 1024);
	for (uint64_t i = 0; i < 100000; i++)
		ASSERT_EQ(add_frame(&p, 1, 0, i, 0, 0), i);
	ASSERT(profile_bytes(&p) >= before + 100000 * sizeof(struct profile_frame));
	profile_fini(&p);
}

/* Under AddressSanitizer this finds a `frames` that is read after its memory has moved. */
TEST(a_part_of_a_known_stack_can_be_added)
{
	uint32_t frames[64], id, part;
	struct profile p;

	ASSERT_OK(profile_init(&p));
	for (uint32_t i = 0; i < 64; i++)
		frames[i] = i;
	for (uint32_t i = 0; i < 200; i++) {
		frames[63] = 1000 + i;
		ASSERT_OK(profile_add_stack(&p, frames, 64, STOP_COMPLETE, &id));
		ASSERT_OK(profile_add_stack(&p, p.stack_frames.items + p.stacks.items[id].first + 1,
					    63, STOP_STALE_MAPPING, &part));
		ASSERT_EQ(p.stacks.items[part].nr, 63);
		ASSERT(!memcmp(p.stack_frames.items + p.stacks.items[part].first, frames + 1,
			       63 * sizeof(*frames)));
	}
	profile_fini(&p);
}

TEST(clearing_gives_memory_back)
{
	uint32_t frames[8], stack;
	struct profile p;
	size_t before;

	ASSERT_OK(profile_init(&p));
	before = profile_bytes(&p);
	for (uint32_t i = 0; i < 20000; i++) {
		for (uint32_t k = 0; k < 8; k++)
			frames[k] = add_frame(&p, 1, 0, i + k, 0, 0);
		ASSERT_OK(profile_add_stack(&p, frames, 8, STOP_COMPLETE, &stack));
		ASSERT_OK(profile_add_comm_sample(&p, "x", stack, 1));
	}
	ASSERT(profile_bytes(&p) > before + (1 << 20));
	profile_clear_samples(&p);
	ASSERT(profile_bytes(&p) < before + (16 << 10));
	ASSERT_EQ(add_frame(&p, 1, 0, 7, 0, 0), 0);
	ASSERT_OK(profile_add_stack(&p, (uint32_t[]){ 0 }, 1, STOP_COMPLETE, &stack));
	ASSERT_OK(profile_add_comm_sample(&p, "x", stack, 1));
	ASSERT_EQ(profile_total(&p), 1);
	profile_fini(&p);
}

static uint32_t label(struct profile *p, const char *key, const char *text, int64_t number,
		      struct profile_label *ret)
{
	uint32_t unit;

	*ret = (struct profile_label){ .number = number };
	ASSERT_OK(profile_string(p, key, &ret->key));
	ASSERT_OK(profile_string(p, text, &ret->text));
	ASSERT_OK(profile_string(p, "bytes", &unit));
	ret->unit = number ? unit : 0;
	return ret->key;
}

/* A profile with a thread and a stack, which `m` is of. */
static void start_measuring(struct profile *p, struct profile_measured *m)
{
	uint32_t frame, process;

	ASSERT_OK(profile_init(p));
	frame = add_frame(p, FRAME_KIND_NATIVE, PROFILE_NO_FILE, 0x10, 0, 0);
	ASSERT_OK(profile_add_stack(p, &frame, 1, STOP_COMPLETE, &m->stack));
	ASSERT_OK(profile_add_process(p, 1, 0, &process));
	ASSERT_OK(profile_add_thread(p, process, 1, "t", &m->thread));
}

TEST(another_type_can_take_the_first_ones_place)
{
	struct profile_measured m = { .value = 500, .type = 1 };
	uint32_t id, type;
	struct profile p;

	start_measuring(&p, &m);
	p.frequency_hz = 99;
	p.cut.start_ns = 7;
	ASSERT_OK(profile_add_sample(&p, m.thread, m.stack, 3, &id));
	ASSERT_OK(profile_add_event(&p, id, 1, 0));
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &type));
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT_OK(profile_add_measured_event(&p, 1, &(struct profile_event){ 5, id, 0 }, 500));
	ASSERT_ERR(profile_show_type(&p, "sonde"), ENOENT);
	ASSERT_OK(profile_show_type(&p, "samples"));
	ASSERT_EQ(p.frequency_hz, 99);
	ASSERT_EQ(p.cut.events.nr, 1);
	ASSERT_OK(profile_show_type(&p, "off_cpu"));
	ASSERT_EQ(profile_total(&p), 500);
	ASSERT_STR(profile_unit_type(&p), "off_cpu");
	ASSERT_STR(profile_unit_unit(&p), "nanoseconds");
	ASSERT_EQ(p.frequency_hz, 0);
	ASSERT_EQ(p.cut.start_ns, 7);
	/* These do not count one each: no format could tell them. */
	ASSERT_EQ(p.cut.events.nr, 0);
	ASSERT_STR(profile_type_name(&p, 1), "samples");
	ASSERT_STR(profile_type_unit(&p, 1), "count");
	ASSERT_EQ(profile_cut_of(&p, 1)->samples.items[0].count, 3);
	profile_fini(&p);
}

TEST(types_have_samples_of_their_own)
{
	struct profile_measured m = { .value = 500 };
	uint32_t id, type, again;
	struct profile p;

	start_measuring(&p, &m);
	ASSERT_OK(profile_add_sample(&p, m.thread, m.stack, 3, NULL));
	ASSERT_OK(profile_add_type(&p, "samples", "count", &type));
	ASSERT_EQ(type, 0);
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &type));
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &again));
	ASSERT_EQ(type, 1);
	ASSERT_EQ(again, 1);
	m.type = 2;
	ASSERT_ERR(profile_add_measured(&p, &m, &id), EINVAL);
	m.type = 1;
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT_EQ(profile_total(&p), 3);
	ASSERT_EQ(p.cut.samples.nr, 1);
	ASSERT_EQ(profile_cut_of(&p, 1)->samples.nr, 1);
	ASSERT_EQ(profile_cut_of(&p, 1)->samples.items[0].count, 1000);
	ASSERT_OK(profile_add_measured_event(&p, 1, &(struct profile_event){ 5, id, 0 }, 1));
	ASSERT_OK(profile_add_measured_event(&p, 1, &(struct profile_event){ 7, id, 0 }, 999));
	ASSERT_EQ(profile_event_value(profile_cut_of(&p, 1), 0), 1);
	ASSERT_EQ(profile_event_value(profile_cut_of(&p, 1), 1), 999);
	/* Formats of one type take an event for one. */
	ASSERT_ERR(profile_add_measured_event(&p, 0, &(struct profile_event){ 5, 0, 0 }, 2),
		   EINVAL);
	profile_next_cut(&p);
	ASSERT_EQ(profile_nr_types(&p), 2);
	ASSERT_EQ(profile_cut_of(&p, 1)->samples.nr, 0);
	ASSERT_EQ(profile_cut_of(&p, 1)->events.nr, 0);
	ASSERT_STR(profile_type_name(&p, 1), "off_cpu");
	for (int i = 2; i < PROFILE_TYPES_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "type %d", i);
		ASSERT_OK(profile_add_type(&p, name, "count", &type));
	}
	ASSERT_ERR(profile_add_type(&p, "one more", "count", &type), E2BIG);
	profile_fini(&p);
}

TEST(a_cut_may_turn_out_to_begin_earlier)
{
	struct profile_event event = { .time_ns = 30 };
	struct profile_measured m = { .value = 1 };
	uint32_t type;
	struct profile p;

	start_measuring(&p, &m);
	p.cut.start_ns = 1000;
	ASSERT_OK(profile_add_measured(&p, &m, &event.sample));
	ASSERT_OK(profile_add_measured_event(&p, 0, &event, 1));
	ASSERT_OK(profile_add_type(&p, "off_cpu", "nanoseconds", &type));
	m.type = type;
	ASSERT_OK(profile_add_measured(&p, &m, &event.sample));
	ASSERT_OK(profile_add_measured_event(&p, type, &event, 1));
	profile_begin_earlier(&p, 7);
	ASSERT_EQ(p.cut.start_ns, 993);
	ASSERT_EQ(p.cut.events.items[0].time_ns, 37);
	ASSERT_EQ(profile_cut_of(&p, type)->events.items[0].time_ns, 37);
	profile_fini(&p);
}

TEST(contexts_tell_samples_apart)
{
	struct profile_context span = { .span_id = { 1 } }, none = { 0 };
	struct profile_label labels[3];
	struct profile_measured m = { .value = 1 };
	uint32_t id, plain, other;
	struct profile p;

	start_measuring(&p, &m);
	ASSERT_OK(profile_add_context(&p, &none, NULL, 0, &m.context));
	ASSERT_EQ(m.context, 0);
	ASSERT_OK(profile_add_measured(&p, &m, &plain));
	/* Nobody pays for what nobody has. */
	ASSERT_EQ(p.cut.contexts.cap, 0);
	ASSERT_EQ(p.cut.context_sample_ids.cap, 0);
	ASSERT_OK(profile_add_context(&p, &span, NULL, 0, &m.context));
	ASSERT_EQ(m.context, 1);
	ASSERT_OK(profile_add_measured(&p, &m, &id));
	ASSERT(id != plain);
	ASSERT_EQ(profile_context_of(&p.cut, plain), 0);
	ASSERT_EQ(profile_context_of(&p.cut, id), 1);
	ASSERT_OK(profile_add_measured(&p, &m, &other));
	ASSERT_EQ(other, id);
	ASSERT_EQ(p.cut.samples.items[id].count, 2);
	/* Labels are a set. */
	label(&p, "a", "x", 0, &labels[0]);
	label(&p, "b", "", 7, &labels[1]);
	ASSERT_OK(profile_add_context(&p, &span, labels, 2, &other));
	ASSERT_EQ(other, 2);
	labels[2] = labels[0];
	ASSERT_OK(profile_add_context(&p, &span, labels + 1, 2, &other));
	ASSERT_EQ(other, 2);
	ASSERT_OK(profile_add_context(&p, &span, labels, 3, &other));
	ASSERT_EQ(other, 2);
	ASSERT_OK(profile_add_context(&p, &none, labels, 2, &other));
	ASSERT_EQ(other, 3);
	ASSERT_ERR(profile_add_context(&p, &none, labels, PROFILE_LABELS_MAX + 1, &other), EINVAL);
	/* The one without is found as ever. */
	ASSERT_OK(profile_add_sample(&p, m.thread, m.stack, 1, &other));
	ASSERT_EQ(other, plain);
	profile_next_cut(&p);
	ASSERT_EQ(p.contexts.nr, 0);
	ASSERT_OK(profile_add_context(&p, &none, labels, 2, &other));
	ASSERT_EQ(other, 1);
	profile_fini(&p);
}
