// SPDX-License-Identifier: Apache-2.0
/* What becomes of the words of a walk: notes in place of a runtime's frames. */
#include "symbolize/test_decoder.h"

#include "symbol/kallsyms.h"

#include "still_clock.h"

#include <errno.h>

enum { PID = 4711, ELSEWHERE = 0x1000, MS = 1000000 };

static struct test_decoder t;

static void set_up(void)
{
	test_decoder_init(&t);
}

static void tear_down(void)
{
	test_decoder_fini(&t);
}

/* How many frames the profile's stack of these words has. */
static size_t shown(const __u64 *words, size_t nr)
{
	static const struct mapping_snapshot snapshot;
	const struct decoder_stack stack = { .pid = PID,
					     .snapshot = &snapshot,
					     .words = words,
					     .nr_words = nr,
					     .stop = STOP_COMPLETE };
	uint32_t id;

	ASSERT_OK(decoder_add(&t.decoder, &stack, &id));
	return t.decoder.scratch.nr;
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

TEST(a_caller_that_may_be_missing_is_marked)
{
	const __u64 unsure = FRAME(RUNTIME_NATIVE, 1, FRAME_NOTE_CALLER_UNSURE);
	const __u64 native = FRAME(RUNTIME_NATIVE, 0, ELSEWHERE);
	char name[64];

	set_up();
	/* Other than an address of that number, to which programs do jump. */
	ASSERT_EQ(shown((__u64[]){ FRAME(RUNTIME_NATIVE, 0, 9), native, unsure, 0, native }, 5), 4);
	profile_frame_label(&t.profile, t.decoder.scratch.items[2], 0, false, name, sizeof(name));
	ASSERT_STR(name, "[native: caller_unsure]");
	tear_down();
}

static uint32_t add(const __u64 *kernel, size_t nr_kernel, const __u64 *words, size_t nr)
{
	static const struct mapping_snapshot snapshot;
	const struct decoder_stack stack = { .pid = PID,
					     .snapshot = &snapshot,
					     .kernel = kernel,
					     .nr_kernel = nr_kernel,
					     .words = words,
					     .nr_words = nr,
					     .stop = STOP_COMPLETE };
	uint32_t id;

	ASSERT_OK(decoder_add(&t.decoder, &stack, &id));
	return id;
}

/* The tables of all files that a stack is in were needed for it, each once. */
TEST(whose_tables_a_stack_needs_is_known)
{
	enum { AT = 0x10000, SIZE = 0x1000, FILES = DECODER_NEEDED_MAX + 2 };
	struct unwind_mapping m[FILES] = { 0 };
	struct mapping_snapshot snapshot = { .nr = FILES };
	__u64 words[2 * FILES];
	const struct decoder_stack stack = { .pid = PID,
					     .snapshot = &snapshot,
					     .words = words,
					     .nr_words = 4,
					     .stop = STOP_COMPLETE };
	struct decoder_stack deep = stack;
	uint32_t id;

	set_up();
	for (uint32_t i = 0; i < FILES; i++) {
		m[i] = (struct unwind_mapping){ .start = AT + i * SIZE,
						.end = AT + (i + 1) * SIZE,
						.file = 10 + i };
		words[2 * i] = FRAME(RUNTIME_NATIVE, 0, m[i].start + 8);
		words[2 * i + 1] = FRAME(RUNTIME_NATIVE, 0, m[i].start + 16);
	}
	ASSERT_OK(unwind_store_add_mappings(&t.unwinder.store, m, FILES, &snapshot.cell));
	unwind_store_tick(&t.unwinder.store, 5000000000);
	ASSERT_OK(decoder_add(&t.decoder, &stack, &id));
	ASSERT_EQ(t.decoder.nr_needed, 2);
	ASSERT_EQ(t.decoder.needed[0], 10);
	ASSERT_EQ(t.decoder.needed[1], 11);
	ASSERT_EQ(t.unwinder.store.used_ns[11], 5000000000);
	ASSERT_EQ(t.unwinder.store.used_ns[12], 0);
	/* More than are told were needed all the same. */
	deep.nr_words = 2 * FILES;
	ASSERT_OK(decoder_add(&t.decoder, &deep, &id));
	ASSERT_EQ(t.decoder.nr_needed, DECODER_NEEDED_MAX);
	ASSERT_EQ(t.unwinder.store.used_ns[10 + FILES - 1], 5000000000);
	tear_down();
}

/* What waits for a name is asked for once, whatever became of its number meanwhile. */
TEST(frames_wait_for_their_names_over_a_collection)
{
	const __u64 kernel[] = { UINT64_C(0xffffffff81000000), UINT64_C(0xffffffff81000100) };
	const __u64 native = FRAME(RUNTIME_NATIVE, 0, ELSEWHERE);
	struct profile_collected collected;
	uint32_t stack;

	set_up();
	add(kernel, 2, NULL, 0);
	ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 2);
	add(kernel, 2, NULL, 0);
	ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 2);
	profile_next_cut(&t.profile);
	profile_next_cut(&t.profile);
	stack = add(kernel, 1, &native, 1);
	ASSERT_EQ(t.profile.frames.nr, 3);
	t.profile.stacks.items[stack].used = t.profile.cut.number;
	ASSERT_OK(profile_collect(&t.profile, 2, &collected));
	decoder_collected(&t.decoder, &collected);
	ASSERT_EQ(t.profile.frames.nr, 2);
	ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 1);
	/* Everything is found under its new number, or comes anew. */
	ASSERT_EQ(add(kernel, 1, &native, 1), profile_moved(&collected.stacks, stack));
	ASSERT_EQ(t.profile.frames.nr, 2);
	add(kernel, 2, NULL, 0);
	ASSERT_EQ(t.profile.frames.nr, 3);
	ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 2);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 0);
	profile_collected_fini(&collected);
	tear_down();
}

/* An address in memory of its own is other code in every process, also if it has the PID of
 * one that is gone. */
TEST(frames_of_a_pid_that_comes_again_are_others)
{
	struct side_event fork = { .type = SIDE_FORK, .pid = PID, .tid = PID, .parent_pid = 1 };
	struct side_event exec = { .type = SIDE_EXEC, .pid = PID, .tid = PID };
	const __u64 native = FRAME(RUNTIME_NATIVE, 0, ELSEWHERE);
	uint32_t first, second, third;

	set_up();
	fork.time_ns = 1000;
	ASSERT_OK(process_table_apply(&t.unwinder.processes, &fork, ""));
	exec.time_ns = 1001;
	ASSERT_OK(process_table_apply(&t.unwinder.processes, &exec, ""));
	first = add(NULL, 0, &native, 1);
	ASSERT_EQ(add(NULL, 0, &native, 1), first);
	exec.time_ns = 2000;
	ASSERT_OK(process_table_apply(&t.unwinder.processes, &exec, ""));
	second = add(NULL, 0, &native, 1);
	ASSERT(second != first);
	fork.time_ns = 3000;
	ASSERT_OK(process_table_apply(&t.unwinder.processes, &fork, ""));
	exec.time_ns = 3001;
	ASSERT_OK(process_table_apply(&t.unwinder.processes, &exec, ""));
	third = add(NULL, 0, &native, 1);
	ASSERT(third != first && third != second);
	tear_down();
}

/* Outside of the kernel's own code there may be another module by now. */
TEST(kernel_symbols_follow_what_is_loaded)
{
	static const char text[] = "ffffffff81000000 T _stext\nffffffff81000100 T in_kernel\n"
				   "ffffffff82000000 T _etext\nffffffffc0000000 t gone\t[gone]\n";
	const __u64 inside = UINT64_C(0xffffffff81000104), outside = UINT64_C(0xffffffffc0000004);
	struct symbolizer *n = &t.decoder.symbolizer;
	uint64_t long_ago;

	set_up();
	ASSERT_OK(kallsyms_parse(text, sizeof(text) - 1, &n->kernel));
	n->kernel_read_ns = long_ago = 1;
	add(&inside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT_EQ(n->kernel_read_ns, long_ago);
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT(n->kernel_read_ns > long_ago);
	tear_down();
}

/* However long ago they were read: each change would have been told. */
TEST(bpf_programs_that_stay_are_not_read_again)
{
	static const char text[] = "ffffffff81000000 T _stext\nffffffff82000000 T _etext\n"
				   "ffffffffc0000000 t bpf_prog_one\t[bpf]\n";
	const __u64 outside = UINT64_C(0xffffffffc0000004);

	set_up();
	ASSERT_OK(kallsyms_parse(text, sizeof(text) - 1, &t.decoder.symbolizer.kernel));
	t.decoder.symbolizer.kernel_read_ns = 1;
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT_EQ(t.decoder.symbolizer.kernel_read_ns, 1);
	tear_down();
}

/* Of the kernel itself, and of a BPF program; an address in each. */
static const char kernel_text[] = "ffffffff81000000 T _stext\nffffffff81000100 T in_kernel\n"
				  "ffffffff82000000 T _etext\n"
				  "ffffffffc0000000 t bpf_prog_one\t[bpf]\n";
static const __u64 inside = UINT64_C(0xffffffff81000104), outside = UINT64_C(0xffffffffc0000004);

static bool on_code(uint64_t start, enum side_event_type type, const char *name)
{
	static uint64_t time_ns;
	const struct side_event e = {
		.type = type, .time_ns = time_ns += MS, .start = start, .len = 64
	};

	return decoder_on_kernel_code(&t.decoder, &e, name);
}

static void expect_name(uint32_t stack, const char *name)
{
	const struct profile_stack *s = &t.profile.stacks.items[stack];
	char label[128], want[128];

	snprintf(want, sizeof(want), "%s_[k]", name);
	profile_frame_label(&t.profile, t.profile.stack_frames.items[s->first], 0, false, label,
			    sizeof(label));
	ASSERT_STR(label, want);
}

static void begin_kernel(void)
{
	set_up();
	ASSERT_OK(
		kallsyms_parse(kernel_text, sizeof(kernel_text) - 1, &t.decoder.symbolizer.kernel));
	/* It is not read by itself again. */
	t.decoder.symbolizer.kernel_read_ns = UINT64_MAX / 2;
}

static bool was_read_again(void)
{
	return t.decoder.symbolizer.kernel_read_ns != UINT64_MAX / 2;
}

/* Of a BPF program the kernel tells; whoever is at its place then is not called by its name. */
TEST(kernel_code_that_goes_takes_its_frames_with_it)
{
	struct symbolizer *n = &t.decoder.symbolizer;
	uint32_t first, other;

	begin_kernel();
	first = add(&outside, 1, NULL, 0);
	other = add(&inside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	expect_name(first, "bpf_prog_one");
	ASSERT(!on_code(outside - 4, SIDE_CODE, ""));
	ASSERT_EQ(add(&outside, 1, NULL, 0), first);
	ASSERT(on_code(outside - 4, SIDE_CODE_GONE, ""));
	ASSERT(add(&outside, 1, NULL, 0) != first);
	ASSERT_EQ(add(&inside, 1, NULL, 0), other);
	/* That one goes before it has a name, and gets none: nobody asks who is there now. */
	ASSERT_EQ(n->waiting.items.nr, 1);
	ASSERT(on_code(outside - 4, SIDE_CODE_GONE, ""));
	ASSERT_EQ(n->waiting.items.nr, 0);
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT(!was_read_again());
	/* Who is there next is read, since it was not told. */
	ASSERT(!on_code(outside - 4, SIDE_CODE, ""));
	ASSERT(on_code(outside - 4, SIDE_CODE_GONE, "bpf_trampoline_1"));
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT(was_read_again());
	tear_down();
}

/* Nothing is read for that, however often programs come and go at one place. */
TEST(bpf_programs_have_the_names_that_are_told)
{
	uint32_t stack, late;
	char name[64];

	begin_kernel();
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "bpf_prog_0123_%d", i);
		on_code(outside - 4, SIDE_CODE_GONE, i ? "" : "bpf_prog_one");
		ASSERT(!on_code(outside - 4, SIDE_CODE, name));
		stack = add(&outside, 1, NULL, 0);
		/* Every second one is gone before frames are named. */
		if (i % 2)
			ASSERT_OK(decoder_name_ready(&t.decoder));
		ASSERT(on_code(outside - 4, SIDE_CODE_GONE, name));
		expect_name(stack, name);
		/* It may still run to its end elsewhere. */
		late = add(&outside, 1, NULL, 0);
		ASSERT(late != stack);
		ASSERT_OK(decoder_name_ready(&t.decoder));
		ASSERT_EQ(t.decoder.symbolizer.waiting.items.nr, 0);
		ASSERT(!was_read_again());
	}
	tear_down();
}

/* Stacks that are known are made anew of what they have, without a word of the kernel. */
TEST(known_stacks_follow_what_is_in_the_kernel)
{
	const __u64 both[] = { outside, inside };
	uint32_t stack, other, before, now, r;

	begin_kernel();
	on_code(outside - 4, SIDE_CODE, "bpf_prog_0123_one");
	stack = add(both, 2, NULL, 0);
	other = add(&inside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	before = decoder_kernel_version(&t.decoder);
	ASSERT_OK(decoder_look_again(&t.decoder, stack, &now));
	ASSERT_EQ(now, stack);
	ASSERT(on_code(outside - 4, SIDE_CODE_GONE, "bpf_prog_0123_one"));
	ASSERT(decoder_kernel_version(&t.decoder) != before);
	on_code(outside - 4, SIDE_CODE, "bpf_prog_4567_two");
	ASSERT_OK(decoder_look_again(&t.decoder, other, &now));
	ASSERT_EQ(now, other);
	/* Where there is no room for it nobody says what it is. */
	t.profile.full = true;
	ASSERT_ERR(decoder_look_again(&t.decoder, stack, &r), ENOSPC);
	t.profile.full = false;
	ASSERT_OK(decoder_look_again(&t.decoder, stack, &now));
	ASSERT(now != stack);
	ASSERT_EQ(t.profile.stacks.items[now].nr, 2);
	ASSERT_EQ(profile_stack_stop(&t.profile, now), profile_stack_stop(&t.profile, stack));
	ASSERT_EQ(now, add(both, 2, NULL, 0));
	ASSERT_OK(decoder_name_ready(&t.decoder));
	expect_name(stack, "bpf_prog_0123_one");
	expect_name(now, "bpf_prog_4567_two");
	tear_down();
}

TEST(what_may_have_been_lost_is_read)
{
	begin_kernel();
	ASSERT(!on_code(outside - 4, SIDE_CODE, "bpf_prog_0123_two"));
	decoder_on_lost_events(&t.decoder);
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT(was_read_again());
	ASSERT_EQ(t.decoder.symbolizer.code.items.nr, 0);
	tear_down();
}

/* --- names that take long to read --------------------------------------------------------------
 */

enum { USER = 4000000001, OTHER = 4000000002, ROOT_PID = PID + 1, OTHER_PID };

/* A millisecond each. */
static int name_slowly(struct runtime_proc *rp, const uint64_t *words, size_t nr,
		       const struct runtime_sink *sink)
{
	char name[32];

	(void)rp;
	ASSERT_EQ(nr, 2);
	still_clock_ns += MS;
	snprintf(name, sizeof(name), "f%llu", (unsigned long long)words[1]);
	return sink->add(sink->ctx, &(struct runtime_inline_frame){ .name = name });
}

static const struct runtime_ops slow_ops = { .name = "python",
					     .id = RUNTIME_PYTHON,
					     .symbolize = name_slowly };
static const struct runtime_dso slow_dso = { .ops = &slow_ops };

struct slow_process {
	struct runtime_proc proc;
	struct runtime_instance instance;
	struct process_runtimes runtimes;
	struct published_process published;
	struct mapping_snapshot snapshot;
};

static void start_slow(struct slow_process *s, int32_t pid, uint32_t user)
{
	struct process *proc;

	*s = (struct slow_process){ .snapshot.user = user };
	s->instance = (struct runtime_instance){ .proc = &s->proc, .dso = &slow_dso };
	s->runtimes = (struct process_runtimes){ .items = { &s->instance }, .nr = 1 };
	s->published =
		(struct published_process){ .snapshot = &s->snapshot, .runtimes = &s->runtimes };
	ASSERT_OK(process_add(&t.unwinder.processes, pid, &proc));
	proc->user = &s->published;
}

static void end_slow(struct slow_process *s, int32_t pid)
{
	process_find(&t.unwinder.processes, pid)->user = NULL;
	map_fini(&s->instance.frames);
}

/* Was that function of the process named, in a stack of its own? */
static bool is_named(const struct slow_process *s, uint32_t pid, uint64_t function)
{
	const __u64 words[] = { FRAME(RUNTIME_PYTHON, 1, 0), function };
	const struct decoder_stack stack = { .pid = pid,
					     .snapshot = &s->snapshot,
					     .words = words,
					     .nr_words = 2,
					     .stop = STOP_COMPLETE };
	char name[64], wanted[64];
	uint32_t id;

	ASSERT_OK(decoder_add(&t.decoder, &stack, &id));
	ASSERT_EQ(t.decoder.scratch.nr, 1);
	profile_frame_label(&t.profile, t.decoder.scratch.items[0], 0, false, name, sizeof(name));
	snprintf(wanted, sizeof(wanted), "f%llu", (unsigned long long)function);
	if (strcmp(name, wanted))
		ASSERT_STR(name, "[python: unknown]");
	return !strcmp(name, wanted);
}

/* Everybody's samples wait while a user's names are read: he has a share of that time. */
TEST(names_are_read_in_a_users_share_of_the_time)
{
	enum { FUNCTIONS = 5000 };
	struct slow_process his, others, roots;
	uint64_t nr_named = 0, before;

	set_up();
	t.decoder.name_time.part = DECODER_NAME_PART;
	start_slow(&his, PID, USER);
	start_slow(&others, OTHER_PID, OTHER);
	start_slow(&roots, ROOT_PID, 0);
	before = t.decoder.nr_unnamed;
	while (nr_named < FUNCTIONS && is_named(&his, PID, nr_named))
		nr_named++;
	/* What was saved: half of it. No time goes by here but that of reading. */
	ASSERT(nr_named >= 200 && nr_named < 1000);
	ASSERT_EQ(t.decoder.nr_unnamed, before + 1);
	/* What he has had is remembered, nobody else is held up. */
	ASSERT(is_named(&his, PID, 0));
	ASSERT(is_named(&others, OTHER_PID, 1));
	ASSERT(is_named(&roots, ROOT_PID, 1));
	/* It is not unknown for good. */
	ASSERT(!is_named(&his, PID, nr_named));
	still_clock_ns += 2000 * (uint64_t)MS;
	ASSERT(is_named(&his, PID, nr_named));
	end_slow(&his, PID);
	end_slow(&others, OTHER_PID);
	end_slow(&roots, ROOT_PID);
	tear_down();
}

/* A command that was asked for one process's stacks reads all of its names. */
TEST(names_of_one_process_take_as_long_as_they_take)
{
	struct slow_process his;

	set_up();
	start_slow(&his, PID, USER);
	for (uint64_t i = 0; i < 2000; i++)
		ASSERT(is_named(&his, PID, i));
	ASSERT_EQ(t.decoder.nr_unnamed, 0);
	end_slow(&his, PID);
	tear_down();
}

/* Whoever loads programs all the time has us read all of the kernel's symbols now and then only. */
TEST(kernel_symbols_that_changed_are_waited_for)
{
	struct symbolizer *n = &t.decoder.symbolizer;

	set_up();
	ASSERT_OK(kallsyms_parse(kernel_text, sizeof(kernel_text) - 1, &n->kernel));
	n->kernel_read_ns = 1;
	n->kernel_next_ns = UINT64_MAX;
	on_code(UINT64_C(0xffffffffc1000000), SIDE_CODE, "");
	add(&inside, 1, NULL, 0);
	add(&outside, 1, NULL, 0);
	ASSERT_OK(decoder_name_ready(&t.decoder));
	ASSERT_EQ(n->waiting.items.nr, 1);
	ASSERT_EQ(n->kernel_read_ns, 1);
	ASSERT_OK(decoder_name_all(&t.decoder));
	ASSERT_EQ(n->waiting.items.nr, 0);
	ASSERT(n->kernel_read_ns > 1);
	tear_down();
}
