// SPDX-License-Identifier: Apache-2.0
/*
 * The step: what is shown, in which order between native frames, and what is said where things
 * don't fit.
 */
#include "runtime/python/test_python_step.h"

TEST_EACH(each_loop_has_its_frames_behind_it, expect_all)

static void use_tls(void)
{
	uint64_t many = HEAP + 0xd000;

	/* The list would lead nowhere. */
	put(INTERP + t.record.interp_threads, 0);
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	expect_all();
	t.record.tls = -0x20;
	put(THREAD - 0x20, TSTATE);
	expect_all();
	t.record.tls_2 = 0x28;
	put(THREAD - 0x20, many);
	put(many + 0x28, TSTATE);
	expect_all();
}

TEST_EACH(the_thread_state_is_where_the_c_library_keeps_it, use_tls)

/*
 * What a frame costs: its reads off the stack, 30 to 40 ns each. One frame more, of another
 * function of the same file: of the frame, of its code object, up to 3.11 of its name.
 */
static void one_frame_more(void)
{
	const struct python_record *r = &t.record;
	unsigned int before, nr_frames;

	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	before = t.nr_reads;
	t.nr_reads = 0;
	if (objects()) {
		/* A frame a loop: without the inner one. */
		t.pc = GLUE + 5;
		t.sp = GLUE_SP;
		put(TSTATE + r->ts_frame,
		    r->frames == PYTHON_FRAME_OBJECTS ? FRAME_OF(2) : OUTER + IN_LOOP);
		put(TSTATE + r->ts_frame_object, FRAME_OF(2));
		ASSERT_EQ(walk(), STOP_COMPLETE);
		ASSERT_EQ(before - t.nr_reads, 3);
		return;
	}
	put_frame(FRAME_OF(5), 3, FRAME_OF(1));
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5));
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.nr_reads - before, r->co_version ? 2 : 3);
	/* Recursion, with callers below: one read of many frames. */
	before = t.nr_reads;
	nr_frames = t.walk.nr_frames;
	for (unsigned int n = 1; n < 8; n++)
		put_frame(FRAME_OF(5) + 0x80 * n, 3, FRAME_OF(5) + 0x80 * (n - 1));
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5) + 0x80 * 7);
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(t.walk.nr_frames, nr_frames + 7);
	ASSERT_EQ(t.nr_reads, before + 1);
}

TEST_EACH(a_frame_takes_two_or_three_reads, one_frame_more)

/* How many reads a walk takes in which functions 0, 1 and 2 are found. */
static unsigned int reads_of_all(void)
{
	t.nr_reads = 0;
	expect_all();
	/* check() reads each code object itself. */
	return t.nr_reads - 3;
}

static void put_number(uint32_t number)
{
	const struct python_record *r = &t.record;

	put_32(r->flags & PYTHON_CODES_OF_ALL ? r->codes : INTERP + r->codes, number);
}

/* Code objects are not read again as long as none was made (3.12, 3.13), or freed. */
static void known_code_objects(void)
{
	static struct cached_rule known[RULE_CACHE_ENTRIES];
	struct python_record *r = &t.record;
	unsigned int all, some;

	if (r->minor < 12 || t.layout.free_threaded) {
		ASSERT_EQ(r->codes, 0);
		return;
	}
	memset(known, 0, sizeof(known));
	t.known = known;
	if (r->minor == 12) {
		r->codes = HEAP + 0xf100;
		r->flags |= PYTHON_CODES_OF_ALL;
		put(HEAD + 8, INTERP);
		put(HEAD + 16, 1);
	} else if (r->minor == 13) {
		r->codes = r->interp_threads + 16;
	}
	ASSERT(r->codes);
	put_number(5);
	all = reads_of_all();
	some = reads_of_all();
	ASSERT_EQ(all - some, 3);
	/* One that has not begun is told by what is remembered, too. */
	put(FRAME_OF(0) + r->f_instr, CODE_OF(0) + r->co_code + 2);
	check("LO1GO2E");
	put(FRAME_OF(0) + r->f_instr, instr_of(0));
	/* Others lie there now: check() would see the old ones. */
	put(CODE_OF(1) + r->co_linetable, TEXTS + 0x1d00);
	put_32(CODE_OF(2) + r->co_version, 1234);
	put_number(6);
	ASSERT_EQ(reads_of_all(), all);
	ASSERT_EQ(reads_of_all(), some);
	/* Another process. */
	put(CODE_OF(1) + r->co_linetable, TEXTS + 0x1c00);
	t.generation++;
	ASSERT_EQ(reads_of_all(), all);
	/* Of another thread's interpreter: the same addresses and number. */
	if (r->minor > 12) {
		put(HEAD, OTHER_INTERP);
		put_thread(TSTATE, OTHER_INTERP, t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD);
		put_32(OTHER_INTERP + r->codes, 6);
		put(CODE_OF(1) + r->co_linetable, TEXTS + 0x1b00);
		ASSERT_EQ(reads_of_all(), all);
		ASSERT_EQ(reads_of_all(), some);
	} else {
		/* There is, or was, one: it may have counted at the same time. */
		put(HEAD + 16, 2);
		put(CODE_OF(1) + r->co_linetable, TEXTS + 0x1b00);
		ASSERT_EQ(reads_of_all(), all - 1);
		ASSERT_EQ(reads_of_all(), all - 1);
	}
}

TEST_EACH(known_code_objects_are_not_read_again, known_code_objects)

/* They are counted up to 2^32, then all have the number 0. */
TEST(code_objects_that_are_not_counted_any_more)
{
	static struct cached_rule known[RULE_CACHE_ENTRIES];

	set_up(13, false, EM_X86_64);
	t.known = known;
	t.record.codes = t.record.interp_threads + 16;
	put_number(0);
	expect_all();
	put(CODE_OF(1) + t.record.co_linetable, TEXTS + 0x1d00);
	expect_all();
}

static void second_in_list(void)
{
	put(OTHER_TSTATE + t.record.ts_next, TSTATE);
	put_thread(OTHER_TSTATE, INTERP, 0x1234);
	expect_all();
	/* What the C library has is not of this thread. */
	t.record.tls = 0x318;
	put(THREAD + 0x318, OTHER_TSTATE);
	expect_all();
}

TEST_EACH(the_thread_state_is_the_one_with_the_threads_id, second_in_list)

static void no_state(void)
{
	put(TSTATE + t.record.ts_thread_id, 0x1234);
	check("LO!3GO!3E");
	put(HEAD, 0x10); /* unreadable */
	check("LO!3GO!3E");
	t.tp = 0;
	check("LO!3GO!3E");
}

TEST_EACH(a_thread_without_a_state_has_a_note, no_state)

static void not_ready(void)
{
	t.late = true;
	check("LO!1GO!1E");
	t.late = false;
	t.no_record = true;
	check("LO!1GO!1E");
}

TEST_EACH(a_process_that_is_not_known_yet_has_a_note, not_ready)

/* The inner loop is about to begin, or ends: what there is belongs to the outer one. */
static void not_linked(void)
{
	const struct python_record *r = &t.record;

	if (r->frames == PYTHON_FRAME_OBJECTS) {
		put(TSTATE + r->ts_frame, FRAME_OF(2));
		t.record.loop_base = LOOP;
		t.record.nr_gaps = 2;
		t.record.gaps[0] = (struct python_gap){ 0, 4 };
		t.record.gaps[1] = (struct python_gap){ 0x10, 0x14 };
	} else if (r->frames == PYTHON_ENTRY) {
		put(TSTATE + r->ts_frame, FRAME_OF(2));
	} else {
		put(TSTATE + r->ts_frame, OUTER + IN_LOOP);
		put(TSTATE + r->ts_frame_object, objects() ? FRAME_OF(2) : 0);
	}
	if (r->frames == PYTHON_CFRAME)
		put(TSTATE + r->ts_thread_id, t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD);
	check("LOGO2E");
}

TEST_EACH(a_loop_that_is_not_linked_has_no_frames, not_linked)

/* 3.10: the inner loop's CFrame is linked, its frame object is not yet. */
TEST(a_loop_that_has_linked_its_cframe_only)
{
	set_up(10, false, EM_X86_64);
	put(TSTATE + t.record.ts_frame_object, FRAME_OF(2));
	t.record.loop_base = LOOP;
	t.record.nr_gaps = 1;
	t.record.gaps[0] = (struct python_gap){ 0x10, 0x14 };
	check("LOGO2E");
}

/*
 * 3.10: the inner loop's CFrame is not there, or no more, but a frame object that may be the inner
 * one's or its caller's: only one that has ended, or waits, is the inner one's.
 */
TEST(the_object_of_a_loop_that_ended_is_passed)
{
	static const struct {
		int8_t state;
		bool ended;
	} states[] = { { -1, true }, { 0, false }, { 1, true }, { 2, false }, { 3, true } };

	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		set_up(10, false, EM_X86_64);
		put(TSTATE + t.record.ts_frame, OUTER + IN_LOOP);
		memcpy(memory_at(FRAME_OF(0) + t.record.f_owner, 1), &states[i].state, 1);
		check(states[i].ended ? "LOGO2E" : "LOGO0E");
	}
}

/* Several frames one behind the other of one code object, and of another again. */
static void recursion(void)
{
	const struct python_record *r = &t.record;

	if (objects())
		return;
	for (unsigned int i = 5; i < 8; i++) {
		put_frame(FRAME_OF(i), i == 6 ? 3 : 0, i == 7 ? FRAME_OF(1) : FRAME_OF(i + 1));
		if (i == 5) /* not begun: left out, but its code is known */
			put(FRAME_OF(i) + r->f_instr, CODE_OF(0) + r->co_code);
	}
	put(FRAME_OF(0) + r->f_previous, FRAME_OF(5));
	check("LO0301GO2E");
	put(FRAME_OF(6) + r->f_code, CODE_OF(0) | (r->minor >= 14 ? 1 : 0));
	put(FRAME_OF(6) + r->f_instr, CODE_OF(0) + r->co_code + 20);
	check("LO0001GO2E");
	/* It's not taken for what can't be read. */
	put(FRAME_OF(6) + r->f_code, 0x10);
	check_broken("LO0!2");
}

TEST_EACH(recursion_is_shown_in_full, recursion)

/* The outer loop's frames are missing. */
static void mismatch(void)
{
	if (t.record.frames == PYTHON_FRAME_OBJECTS)
		put(FRAME_OF(0) + t.record.f_previous, 0);
	else if (t.record.frames == PYTHON_ENTRY)
		put(INNER + IN_LOOP + 0x40 + t.record.f_previous, 0);
	else
		put_cframe(INNER + IN_LOOP, FRAME_OF(0), HEAP + 0xf000);
	if (t.record.f_entry) /* its entry frame would not fit, which is tested below */
		put(HEAP + 0xf000 + t.record.cframe_current, FRAME_OF(2));
	check(objects() ? "LO0GO!4E" : "LO01GO!4E");
}

TEST_EACH(a_loop_without_frames_has_a_note, mismatch)

static void incomplete(void)
{
	if (objects())
		return;
	put(FRAME_OF(0) + t.record.f_instr, CODE_OF(0) + t.record.co_code + 2);
	check("LO1GO2E");
	/* A generator's is complete from the start. */
	*memory_at(FRAME_OF(0) + t.record.f_owner, 1) = t.record.owner_generator;
	ASSERT_EQ(walk(), STOP_COMPLETE);
	ASSERT_EQ(FRAME_DATA(t.walk.words[2]), CODE_OF(0));
	ASSERT_EQ(PYTHON_LASTI(t.walk.words[3]), 2);
	if (t.record.flags & PYTHON_EXECUTABLE) {
		put(FRAME_OF(0) + t.record.f_code, NONE);
		check("LO1GO2E");
	}
}

TEST_EACH(frames_that_have_not_begun_or_are_no_functions_are_left_out, incomplete)

static void unreadable(void)
{
	if (objects()) {
		put(FRAME_OF(0) + t.record.f_code, 0x10);
		check_broken("LO!2");
		return;
	}
	put(FRAME_OF(0) + t.record.f_previous, 0x10);
	ASSERT_EQ(walk(), STOP_COMPLETE);
	check_broken("LO0!2");
}

TEST_EACH(frames_that_can_not_be_read_have_a_note, unreadable)

static void endless(void)
{
	if (objects())
		return;
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(0));
	if (t.record.f_entry)
		*memory_at(FRAME_OF(1) + t.record.f_entry, 1) = 0;
	ASSERT_EQ(walk(), STOP_MAX_FRAMES);
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(1));
	check_broken("LO01!2");
	/* None of them is shown, and most steps would be theirs. */
	put(FRAME_OF(0) + t.record.f_instr, CODE_OF(0) + t.record.co_code);
	put(FRAME_OF(0) + t.record.f_previous, FRAME_OF(0));
	check_broken("LO!2");
	put(FRAME_OF(1) + t.record.f_instr, CODE_OF(1) + t.record.co_code);
	put(FRAME_OF(0) + t.record.f_previous, FRAME_OF(1));
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(0));
	check_broken("LO!2");
}

TEST_EACH(frames_in_a_circle_end, endless)

/* The inner loop is of another interpreter, the outer one of the first. */
static void interpreters(void)
{
	const struct python_record *r = &t.record;
	uint64_t id = t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD;
	uint64_t elsewhere = STACK + 0x8000;

	put(HEAD, OTHER_INTERP);
	put(OTHER_INTERP + r->interp_next, INTERP);
	put_thread(OTHER_TSTATE, OTHER_INTERP, id);
	put(OTHER_TSTATE + r->ts_frame, FRAME_OF(0));
	/* The C library has the first one's. */
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	put(TSTATE + r->ts_frame, FRAME_OF(2));
	switch (r->frames) {
	case PYTHON_FRAME_OBJECTS:
		put(FRAME_OF(0) + r->f_previous, 0);
		put(INNER + 0x20, FRAME_OF(0) + 0x168);
		put(OUTER + 0x28, FRAME_OF(2) + 0x168);
		break;
	case PYTHON_ENTRY:
		put(INNER + IN_LOOP + 0x40 + r->f_previous, 0);
		break;
	default:
		put_cframe(INNER + IN_LOOP, FRAME_OF(0), ROOT_CFRAME);
		put(OTHER_TSTATE + r->ts_frame, INNER + IN_LOOP);
		put(TSTATE + r->ts_frame, OUTER + IN_LOOP);
		if (r->f_entry)
			put(FRAME_OF(1) + r->f_previous, 0);
	}
	if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME) {
		put(OTHER_TSTATE + r->ts_frame_object, FRAME_OF(0));
		put(TSTATE + r->ts_frame_object, FRAME_OF(2));
	}
	expect_all();
	/* Before them in the list is one that this thread is in, but in none of these loops. */
	put(HEAD, THIRD_INTERP);
	put(THIRD_INTERP + r->interp_next, OTHER_INTERP);
	put_thread(THIRD_TSTATE, THIRD_INTERP, id);
	put_frame(FRAME_OF(3), 3, elsewhere + 0x40);
	put(THIRD_TSTATE + r->ts_frame, FRAME_OF(3));
	put_entry(elsewhere + 0x40, 0);
	expect_all();
}

TEST_EACH(each_loop_has_the_frames_of_its_interpreter, interpreters)

/* Loop after loop has no frames, and another interpreter is looked for among endless threads. */
static void endless_search(void)
{
	const struct python_record *r = &t.record;

	put(HEAD, OTHER_INTERP);
	put(OTHER_INTERP + r->interp_next, INTERP);
	put_thread(OTHER_TSTATE, OTHER_INTERP, 0x1234);
	put(OTHER_TSTATE + r->ts_next, OTHER_TSTATE);
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	put(TSTATE + r->ts_frame, 0);
	t.max_frames = 200;
	for (uint64_t sp = INNER; sp + LOOP_SIZE <= STACK + SIZE; sp += LOOP_SIZE)
		put(sp + LOOP_SIZE - 8, LOOP + 0x11);
	ASSERT_EQ(walk(), STOP_TOO_MUCH_WORK);
}

TEST_EACH(a_search_without_end_cuts_the_stack, endless_search)

/*
 * Loop after loop pushes 2,000 frames and takes them back, once for each state that another
 * interpreter has of the thread: they end where no loop's do. They overlap, so that a window has
 * some sixty of them, and each has another code object than the last one, without a version, so
 * that its names are read.
 */
static void frames_taken_back(void)
{
	enum { NR_FRAMES = 2000, CODE_SIZE = 0x200, FRAMES_AT = TRAMPOLINE + 2 * CODE_SIZE };
	const struct python_record *r = &t.record;
	uint64_t id = t.machine == EM_AARCH64 ? THREAD - 0x700 : THREAD, last = HEAP + 0xf000;

	/* Where it overlaps with the low half of an address, the owner is an entry frame's. */
	if (r->frames != PYTHON_ENTRY || !(r->f_owner & 4))
		return;
	put(HEAD, OTHER_INTERP);
	put(OTHER_INTERP + r->interp_next, INTERP);
	put_thread(OTHER_TSTATE, OTHER_INTERP, id);
	put(OTHER_TSTATE + r->ts_next, OTHER_TSTATE);
	put_entry(last, 0);
	for (unsigned int n = 0; n < 2; n++) {
		memcpy(memory_at(TRAMPOLINE + CODE_SIZE * n, CODE_SIZE),
		       memory_at(CODE_OF(n), CODE_SIZE), CODE_SIZE);
		put(TRAMPOLINE + CODE_SIZE * n + r->co_filename, NAME_OF(n));
		put_32(TRAMPOLINE + CODE_SIZE * n + r->co_version, 0);
	}
	for (unsigned int n = 0; n < NR_FRAMES; n++) {
		put(FRAMES_AT + 16 * n + r->f_previous, last);
		put(FRAMES_AT + 16 * n + r->f_code, TRAMPOLINE + CODE_SIZE * (n & 1));
		last = FRAMES_AT + 16 * n;
	}
	t.record.tls = 0x318;
	put(THREAD + 0x318, TSTATE);
	put(TSTATE + r->ts_frame, last);
	put(OTHER_TSTATE + r->ts_frame, last);
	t.max_frames = SAMPLE_FRAMES_MAX;
	for (uint64_t sp = INNER; sp + LOOP_SIZE <= STACK + SIZE; sp += LOOP_SIZE)
		put(sp + LOOP_SIZE - 8, LOOP + 0x11);
	t.nr_reads = 0;
	ASSERT_EQ(walk(), STOP_TOO_MUCH_WORK);
	ASSERT(t.nr_reads < 3 * WALK_WORK_MAX);
}

TEST_EACH(frames_that_are_taken_back_cut_the_stack, frames_taken_back)

/* 3.11: the CFrame is linked, but still has what was on the stack before. */
TEST(a_loop_that_has_not_set_its_frame_yet)
{
	set_up(11, false, EM_X86_64);
	put(FRAME_OF(1) + t.record.f_previous, FRAME_OF(3));
	check("LOGO2E");
	/* What leads to the caller's may be written last, too. */
	put_cframe(INNER + IN_LOOP, FRAME_OF(0), 0x123456);
	check("LOGO2E");
	for (unsigned int minor = 11; minor <= 12; minor++) {
		set_up(minor, false, EM_X86_64);
		t.pc = LOOP + 0x12;
		t.sp = INNER;
		put_cframe(INNER + IN_LOOP, 0x10, 0);
		check("OGO2E");
	}
	put_cframe(INNER + IN_LOOP, 0, OUTER + IN_LOOP);
	t.record.nr_gaps = 1; /* 3.12: elsewhere it is a frame that is not linked to its caller */
	check("O!2GO2E");
	t.record.gaps[0] = (struct python_gap){ LOOP, LOOP + 0x20 };
	check("OGO2E");
}

/* Free-threaded: a thread's own copy of the instructions. */
TEST(instructions_in_a_threads_own_copy)
{
	uint64_t array = HEAP + 0xd000, copy = HEAP + 0xd100;

	set_up(14, true, EM_X86_64);
	put(CODE_OF(0) + t.record.co_tlbc, array);
	put(array + 8 + 8 * 3, copy);
	put_32(FRAME_OF(0) + t.record.f_tlbc, 3);
	put(FRAME_OF(0) + t.record.f_instr, copy + 20);
	expect_all();
}

/* Text at the very end of readable memory. */
TEST(a_name_at_the_end_of_memory)
{
	set_up(11, false, EM_X86_64);
	put(CODE_OF(0) + t.record.co_name, HEAP + SIZE - 0x40);
	put_text(HEAP + SIZE - 0x40, "short");
	expect_all();
}

TEST(trampolines_have_no_frame)
{
	static const uint8_t sub[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3 };
	uint64_t sp = LEAF_SP;

	set_up(12, false, EM_X86_64);
	memcpy(t.code, sub, sizeof(sub));
	/* Interrupted: at its first instruction, in its body, at its return. */
	for (unsigned int i = 0; i < 3; i++) {
		t.pc = TRAMPOLINE + (i == 0 ? 0 : i == 1 ? 6 : 10);
		t.sp = i == 1 ? sp - 16 : sp - 8;
		put(sp - 8, LOOP + 0x11);
		/* It returns into the outer loop's native frame. */
		put(sp + LOOP_SIZE - 8, END + 0x11);
		ASSERT_EQ(walk(), STOP_COMPLETE);
		ASSERT_EQ(FRAME_DATA(t.walk.words[0]), LOOP + 0x10);
	}
}
