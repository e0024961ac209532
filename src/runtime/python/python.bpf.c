// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of CPython: the frames that an eval loop runs, found from the thread's PyThreadState on.
 *
 * Each loop's own frames are told by where they end: from 3.10 on the loop has a struct on its
 * stack that the thread's state leads to (3.10 to 3.12: CFrame; 3.12 on: the entry frame), so it
 * must lie in the native frame of the loop. Where it doesn't, the loop has not begun yet or has
 * ended already, and it has no frames; or another interpreter's thread state is the one to look at.
 * Frames are pushed before that is known, and taken back if they turn out to be an older loop's.
 *
 * Facts: CPython's Include/internal/pycore_frame.h and Python/ceval.c of each version; the offsets
 * are in the record (python_offsets.c).
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/python/python_abi.h"

/* Of runtime_state(). */
enum {
	S_STAGE,
	S_TSTATE,	    /* whose frames come next; 0: none was found */
	S_NEXT,		    /* the next loop's: its frame, or its CFrame */
	S_FRAME,	    /* the next frame of this loop */
	S_HASH,		    /* before this loop's frames were pushed, */
	S_COUNT,	    /* nr_words and nr_frames << 32 as well */
	S_FIRST,	    /* S_NEXT when this loop was entered */
	S_OBJECT,	    /* 3.10: the next frame object; S_NEXT is the CFrame */
	S_BELOW = S_OBJECT, /* 3.11, 3.12: a loop has its CFrame so far below its frame's end */
	S_TRIES,	    /* so many states of other interpreters were tried for this loop */
	S_ORIGIN,	    /* S_TSTATE before that */
	S_FILE, /* the last file name that was read, and its text: most of a stack have one */
	S_FILE_TEXT,
	S_CODES, /* whose and which generation of code objects: codes_of(). 0: not known */
	S_MAX_,
};
_Static_assert((int)S_MAX_ <= (int)RUNTIME_STATE_WORDS, "runtime_state()");
enum {
	STAGE_FOUND = 1 << 0,	  /* the thread's state was looked for */
	STAGE_LOOP = 1 << 1,	  /* within a loop */
	STAGE_LATER = 1 << 2,	  /* a loop was passed before this one */
	STAGE_UNFILLED = 1 << 3,  /* the CFrame that was followed does not lead to the next one */
	STAGE_MANY = 1 << 5,	  /* there are several interpreters */
	STAGE_CODE = 1 << 6,	  /* the code object at CODE_AT is the one of LAST_AT */
	STAGE_ASYNC = 1 << 7,	  /* --async: the frames of tasks that wait are pushed */
	STAGE_AWAITED = 1 << 8,	  /* that was done: Handle._run() comes next */
	STAGE_COROUTINE = 1 << 9, /* --async: what comes next runs a coroutine; */
	STAGE_BEFORE = 1 << 10,	  /* STAGE_COROUTINE before this loop's frames were pushed */
	STAGE_FLAGS = 0xffff,
	/* Above them: how many frames that are not shown came one behind the other. */
	STAGE_SKIPPED = 1 << 16,
	SKIPPED_MAX = 8,
};

/* Words of walk->scratch. */
enum {
	TSTATE_AT = 0,
	CFRAME_AT = 24,
	CODE_AT = 32,
	STR_AT = 72,
	TEXT_MAX_AT = 15,
	IDENTITY_AT = 65
};
_Static_assert(STR_AT + PYTHON_STR_SIZE / 8 + TEXT_MAX_AT <= SCRATCH_SIZE / 8, "scratch");
_Static_assert(STR_AT + TEXT_MAX_AT + PYTHON_TEXT_WORDS <= SCRATCH_SIZE / 8, "scratch");
/* Of python_knows(). */
enum {
	STACK_AT = STR_AT,
	STACK_WORDS = 48,	   /* of a loop's stack; most have 250 to 300 bytes in all */
	LOOP_SAVED = 7,		   /* words that it has saved of its caller's */
	FRAME_OBJECT_NEAR = 0x400, /* variables and values of most functions */
};
enum { LAST_AT = 120, LAST_COOKIE_AT };
_Static_assert(STACK_AT + STACK_WORDS <= LAST_AT, "scratch");
_Static_assert(LAST_COOKIE_AT < SCRATCH_SIZE / 8, "scratch");
enum {
	READ_MAX = 255,
	FIND_STEPS = 128,
	TRIES_MAX = 8,
	FRAMES_AT_ONCE = 16, /* pushed in one call of the step */
};
_Static_assert(8 * CODE_AT + READ_MAX < 8 * IDENTITY_AT, "scratch");
_Static_assert(8 * IDENTITY_AT + sizeof(struct python_identity) <= 8 * STR_AT, "scratch");

__noinline int WALK_NAME(python_find)(int another);
__noinline int WALK_NAME(python_look_at)(__u64 tstate);
__noinline int WALK_NAME(python_knows)(__u64 frame);
__noinline int WALK_NAME(python_trampoline)(void);
__noinline int WALK_NAME(python_other)(__u32 linked);
__noinline int WALK_NAME(python_push)(__u32 at);
__noinline int WALK_NAME(python_enter)(void);
__noinline int WALK_NAME(python_frames)(void);
__noinline __u64 WALK_NAME(python_str)(__u64 addr);

/* The step has seen to it that it is there. The kernel allows eight functions within each other,
 * of which the walker and the step are five: look-ups that call others are made by the step. */
static __always_inline const struct python_record *python_record_of(const struct walk *w)
{
	return (const struct python_record *)w->record;
}

/* runtime_state(), which the step has seen to as well. */
static __always_inline __u64 *python_state(struct walk *w)
{
	return w->state[RUNTIME_PYTHON];
}

/* Reads `size` bytes (at most READ_MAX) to word `at` of the scratch. */
static __always_inline int read_scratch(struct walk *w, __u32 at, __u64 addr, __u32 size)
{
	size &= READ_MAX;
	barrier_var(size);
	return read_memory(addr, &w->scratch[at], size & READ_MAX);
}

/* The word that has what lies `off` bytes (less than 256) from `words` on. Offsets are variable:
 * what they cost is a good part of a frame. */
static __always_inline __u64 word_at(const __u64 *words, __u32 off)
{
	return *(const __u64 *)((const __u8 *)words + (off & 248));
}

/* A word of what was read to `at`, a constant, `off` bytes from its start; of 32 bits. */
static __always_inline __u64 word_of(const struct walk *w, __u32 at, __u32 off)
{
	return word_at(&w->scratch[at], off);
}

static __always_inline __u32 half_of(const struct walk *w, __u32 at, __u32 off)
{
	return (__u32)(word_of(w, at, off) >> 8 * (off & 4));
}

/* A word of a frame whose first word is walk->frames[at]: see frame_words(). */
static __always_inline __u64 frame_word(const struct walk *w, __u32 at, __u32 off)
{
	return word_at(&w->frames[at & (FRAMES_WINDOW / 8 - 1)], off);
}

static __always_inline __u32 frame_half(const struct walk *w, __u32 at, __u32 off)
{
	return (__u32)(frame_word(w, at, off) >> 8 * (off & 4));
}

static __always_inline __u8 frame_byte(const struct walk *w, __u32 at, __u32 off)
{
	return (__u8)(frame_word(w, at, off) >> 8 * (off & 7));
}

/* Does `addr` lie in the native frame of the loop? */
static __always_inline bool in_loop(const struct walk *w, __u64 addr)
{
	return addr >= w->loop_sp && addr < w->regs[ARCH_SP];
}

/* --- the thread's state ---------------------------------------------------------------------- */

/* PyThreadState.thread_id is pthread_self(): on x86-64 the thread pointer itself, on aarch64 the
 * struct pthread that ends there. */
static __always_inline bool is_thread(const struct python_record *r, __u64 tp, __u64 id)
{
	return tp == id || (r->flags & PYTHON_STACK_BELOW && id && tp - id < 4096);
}

/*
 * Which code objects there are, as far as those that a thread's frames hold are concerned: the
 * process, the interpreter (of the thread state that was read to TSTATE_AT), and the number that
 * changes when one takes another's place. A fork's child has its parent's generation at first.
 *
 * 3.12 has one number for all interpreters, which no lock protects: it is good as long as there was
 * never another one than the first. struct pyinterpreters: head, main, next_id.
 */
static __always_inline __u64 codes_of(struct walk *w, const struct python_record *r)
{
	__u64 interp = word_of(w, TSTATE_AT, r->ts_interp), number = 0, interpreters[3];
	int error;

	if (!r->codes)
		return 0;
	if (r->flags & PYTHON_CODES_OF_ALL) {
		if (read_memory(r->interpreters, interpreters, sizeof(interpreters)) ||
		    interpreters[0] != interpreters[1] || interpreters[2] != 1)
			return 0;
		error = read_memory(r->codes, &number, 4);
	} else if (r->flags & PYTHON_CODES_WIDE) {
		error = read_memory(interp + r->codes, &number, 8);
	} else {
		error = read_memory(interp + r->codes, &number, 4);
	}
	/* 0: 2^32 were made, and are not counted any more. */
	if (error || (!number && !(r->flags & PYTHON_CODES_WIDE)))
		return 0;
	number = python_mix(python_mix(number, interp),
			    (__u64)w->header.pid << 32 | w->process.generation);
	return number ?: 1;
}

/* The thread state that was read to TSTATE_AT is the one. */
static __always_inline void take_tstate(struct walk *w, const struct python_record *r, __u64 *s,
					__u64 tstate)
{
	s[S_TSTATE] = tstate;
	s[S_NEXT] = word_of(w, TSTATE_AT, r->ts_frame);
	if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME)
		s[S_OBJECT] = word_of(w, TSTATE_AT, r->ts_frame_object);
	s[S_CODES] = codes_of(w, r);
}

/*
 * 3.6 to 3.9: does the current loop know of this frame object? It has pointers into it on its
 * stack: to its variables and values at least.
 */
__noinline int WALK_NAME(python_knows)(__u64 frame)
{
	struct walk *w = current_walk();
	__u64 at;
	__u32 i;

	if (!w || !frame)
		return 0;
	at = w->loop_sp;
	if (read_memory(at, &w->scratch[STACK_AT], 8 * STACK_WORDS))
		return 0;
	for (i = 0; i < STACK_WORDS; i++, at += 8)
		if (at + 8 * LOOP_SAVED < w->regs[ARCH_SP] &&
		    w->scratch[STACK_AT + i] - frame < FRAME_OBJECT_NEAR)
			return 1;
	return 0;
}

/* May the frames of the state that was read to TSTATE_AT be those of the current loop? */
static __always_inline bool may_be(struct walk *w, const struct python_record *r)
{
	__u64 first = word_of(w, TSTATE_AT, r->ts_frame);

	if (!first)
		return false;
	if (r->frames == PYTHON_ENTRY)
		return true;
	return r->frames == PYTHON_FRAME_OBJECTS ? WALK_NAME(python_knows)(first)
						 : in_loop(w, first);
}

/*
 * Reads a thread's state to TSTATE_AT: is it this thread's? -1: it cannot be read. A function of
 * its own, since the verifier would follow it once for each thread.
 */
__noinline int WALK_NAME(python_look_at)(__u64 tstate)
{
	struct walk *w = current_walk();
	const struct python_record *r;

	if (!w)
		return -1;
	r = python_record_of(w);
	if (read_scratch(w, TSTATE_AT, tstate, r->ts_size))
		return -1;
	return is_thread(r, walk_thread_pointer(w), word_of(w, TSTATE_AT, r->ts_thread_id));
}

/*
 * Finds the state of the thread; `another`: the first, second ... one of other interpreters than
 * S_ORIGIN's that runs the current loop as far as can be told. 1: found.
 */
__noinline int WALK_NAME(python_find)(int another)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, tp, at, interp = 0, tstate = 0, not_interp = 0;
	__u32 i;
	int is;

	if (!w)
		return 0;
	r = python_record_of(w);
	s = python_state(w);
	tp = walk_thread_pointer(w);
	if (!tp)
		return 0;
	if (!another && r->tls) {
		if (read_word(tp + (__s64)r->tls, &tstate))
			tstate = 0;
		if (r->tls_2 != -1 && tstate && read_word(tstate + (__s64)r->tls_2, &tstate))
			tstate = 0;
		if (tstate && !read_scratch(w, TSTATE_AT, tstate, r->ts_size) &&
		    is_thread(r, tp, word_of(w, TSTATE_AT, r->ts_thread_id))) {
			take_tstate(w, r, s, tstate);
			return 1;
		}
		tstate = 0;
	}
	if (another && s[S_ORIGIN])
		read_word(s[S_ORIGIN] + r->ts_interp, &not_interp);
	at = r->interpreters;
	for (i = 0; i < FIND_STEPS; i++) {
		w->work++;
		if (!tstate) {
			/* The next interpreter, and its first thread. */
			if (read_word(at, &interp) || !interp)
				return 0;
			at = interp + r->interp_next;
			if (interp == not_interp)
				continue;
			if (read_word(interp + r->interp_threads, &tstate))
				return 0;
			continue;
		}
		is = WALK_NAME(python_look_at)(tstate);
		if (is < 0)
			return 0;
		if (is && (!another || (may_be(w, r) && another-- == 1))) {
			take_tstate(w, r, s, tstate);
			return 1;
		}
		tstate = word_of(w, TSTATE_AT, r->ts_next);
	}
	return 0;
}

/* --- one loop -------------------------------------------------------------------------------- */

/* The loop's frames end here; `next` is what the next one begins with. */
static __always_inline int leave(struct walk *w, __u64 *s, __u64 next)
{
	s[S_NEXT] = next;
	s[S_TRIES] = 0;
	s[S_STAGE] = (s[S_STAGE] | STAGE_LATER) & ~(__u64)STAGE_LOOP;
	return walk_native(w);
}

/* Leaves with a note in place of (further) frames. */
static __always_inline int leave_note(struct walk *w, __u64 *s, __u64 next, enum frame_note note)
{
	int stop = push_note(w, RUNTIME_PYTHON, note);

	return stop ? stop : leave(w, s, next);
}

/* Takes back what this loop has pushed. */
static __always_inline void take_back(struct walk *w, __u64 *s)
{
	w->hash = s[S_HASH];
	w->full.nr_words = (__u16)s[S_COUNT];
	w->nr_frames = (__u32)(s[S_COUNT] >> 32);
	s[S_STAGE] &= ~(__u64)STAGE_COROUTINE;
	if (s[S_STAGE] & STAGE_BEFORE)
		s[S_STAGE] |= STAGE_COROUTINE;
}

/* Of 3.10's f_state: CPython's Include/cpython/frameobject.h, enum _framestate. */
enum { FRAME_EXECUTING = 0, FRAME_UNWINDING = 2 };

/*
 * 3.10: a loop that ends takes its CFrame off the thread's state before its frame object. The
 * object is not at work (f_state) then, and it is not its caller's. One that is looking for its
 * exception's handler is at work: what it drops meanwhile may run other loops.
 */
static __always_inline void pass_ended(struct walk *w, const struct python_record *r, __u64 *s)
{
	__u8 state;
	int at;

	if (r->frames != PYTHON_FRAME_OBJECTS_CFRAME || !s[S_OBJECT])
		return;
	at = frame_words(w, s[S_OBJECT], r->f_size);
	if (at < 0)
		return;
	state = frame_byte(w, at, r->f_owner);
	if (state != FRAME_EXECUTING && state != FRAME_UNWINDING)
		s[S_OBJECT] = frame_word(w, at, r->f_previous);
}

/* Is the innermost loop where its frame object is not, or no longer, what the thread's state has?
 * Then it has its caller's. */
static __always_inline bool in_gap(const struct walk *w, const struct python_record *r)
{
	__u64 at = w->loop_pc - r->loop_base;
	__u32 i;

	for (i = 0; i < PYTHON_GAPS_MAX; i++)
		if (i < r->nr_gaps && at >= r->gaps[i].start && at < r->gaps[i].end)
			return true;
	return false;
}

/*
 * A CFrame on a loop's stack (`linked`) is its own, though it leads to frames that are not: then it
 * was linked a moment ago, and has yet to be filled in; that it leads to its caller's may be
 * missing, too. All loops have it in the same place. (3.12 knows where that is. Later on a frame
 * may not be linked to its caller: a generator's that yields, and one that was called and begins.)
 */
static __always_inline int linked_only(struct walk *w, const struct python_record *r, __u64 *s)
{
	if (r->nr_gaps && !in_gap(w, r))
		return leave_note(w, s, s[S_NEXT], FRAME_NOTE_UNREADABLE);
	s[S_STAGE] |= STAGE_UNFILLED;
	return leave(w, s, s[S_NEXT]);
}

/*
 * What comes next belongs to no frame of this loop (or, `linked`, what was followed from its
 * CFrame). A thread that runs several interpreters has a state in each: try the others. If there is
 * none, the innermost loop is about to begin or to end, which is nothing to be said.
 */
__noinline int WALK_NAME(python_other)(__u32 linked)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, tries;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	take_back(w, s);
	if (linked && r->frames == PYTHON_CFRAME)
		return linked_only(w, r, s);
	s[S_STAGE] &= ~(__u64)STAGE_LOOP;
	tries = s[S_TRIES];
	if (!tries)
		s[S_ORIGIN] = s[S_TSTATE];
	/* Where a loop has a CFrame, python_find() saw which one's it is. */
	if (!tries || (tries < TRIES_MAX && r->frames == PYTHON_ENTRY)) {
		s[S_TRIES] = ++tries;
		if (WALK_NAME(python_find)((int)tries))
			return STOP_NONE; /* it is entered again */
	}
	s[S_TSTATE] = s[S_ORIGIN];
	s[S_CODES] = 0; /* another interpreter's */
	if (s[S_STAGE] & STAGE_LATER)
		return leave_note(w, s, s[S_FIRST], FRAME_NOTE_MISMATCH);
	pass_ended(w, r, s);
	return leave(w, s, s[S_FIRST]);
}

/* Enters the loop whose native frame was just left. */
__noinline int WALK_NAME(python_enter)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s, first;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	if (!(s[S_STAGE] & STAGE_FOUND)) {
		s[S_STAGE] |= STAGE_FOUND;
		s[S_TSTATE] = 0;
		WALK_NAME(python_find)(0);
		/* New interpreters are put before the first one, whose threads most are. */
		if (r->frames == PYTHON_FRAME_OBJECTS && s[S_TSTATE] &&
		    !read_word(r->interpreters, &first) &&
		    first != word_of(w, TSTATE_AT, r->ts_interp))
			s[S_STAGE] |= STAGE_MANY;
	}
	if (!s[S_TSTATE])
		return leave_note(w, s, 0, FRAME_NOTE_NO_THREAD_STATE);
	if (!(s[S_STAGE] & STAGE_LATER) && r->nr_gaps && r->frames != PYTHON_CFRAME &&
	    in_gap(w, r)) {
		/* 3.10: its CFrame may be linked, its frame object is not. */
		if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME && in_loop(w, s[S_NEXT]) &&
		    read_word(s[S_NEXT] + r->cframe_previous, &s[S_NEXT]))
			return leave_note(w, s, 0, FRAME_NOTE_UNREADABLE);
		return leave(w, s, s[S_NEXT]);
	}
	if (s[S_STAGE] & STAGE_UNFILLED) {
		s[S_STAGE] &= ~(__u64)STAGE_UNFILLED;
		s[S_NEXT] = w->regs[ARCH_SP] - s[S_BELOW];
	}
	if (!s[S_TRIES])
		s[S_FIRST] = s[S_NEXT];
	s[S_HASH] = w->hash;
	s[S_COUNT] = w->full.nr_words | (__u64)w->nr_frames << 32;
	/* Other steps may have used the scratch. */
	s[S_STAGE] = (s[S_STAGE] & STAGE_FLAGS & ~(__u64)(STAGE_CODE | STAGE_BEFORE)) | STAGE_LOOP;
	if (s[S_STAGE] & STAGE_COROUTINE)
		s[S_STAGE] |= STAGE_BEFORE;
	if (!s[S_NEXT])
		return WALK_NAME(python_other)(0);
	s[S_FRAME] = s[S_NEXT];
	if (s[S_STAGE] & STAGE_MANY && !WALK_NAME(python_knows)(s[S_NEXT]))
		return WALK_NAME(python_other)(0);
	if (r->frames == PYTHON_CFRAME || r->frames == PYTHON_FRAME_OBJECTS_CFRAME) {
		if (!in_loop(w, s[S_NEXT]))
			return WALK_NAME(python_other)(0);
		if (read_scratch(w, CFRAME_AT, s[S_NEXT], 24))
			return leave_note(w, s, 0, FRAME_NOTE_UNREADABLE);
		if (r->frames == PYTHON_CFRAME)
			s[S_BELOW] = w->regs[ARCH_SP] - s[S_NEXT];
		s[S_NEXT] = word_of(w, CFRAME_AT, r->cframe_previous);
		s[S_FRAME] = r->frames == PYTHON_CFRAME ? word_of(w, CFRAME_AT, r->cframe_current)
							: s[S_OBJECT];
	}
	return STOP_NONE; /* the step is called again */
}

/* Hash of the text of the str at `addr`; 0: it can't be read. */
__noinline __u64 WALK_NAME(python_str)(__u64 addr)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u32 flags, at, size;
	__u64 length;

	if (!w)
		return 0;
	r = python_record_of(w);
	/* It may be short. */
	if (read_to_page_end(addr, &w->scratch[STR_AT], PYTHON_STR_SIZE))
		return 0;
	length = word_of(w, STR_AT, r->str_length);
	flags = python_str_flags(half_of(w, STR_AT, r->str_state));
	at = flags & PYTHON_STR_ASCII ? r->str_ascii : r->str_compact;
	size = python_text_size(length, flags, at);
	at = at >> 3 & TEXT_MAX_AT;
	barrier_var(at);
	return python_text(length, &w->scratch[STR_AT + (at & TEXT_MAX_AT)], size);
}

/* Where in its code the frame at walk->frames[at] is, in bytes; ~0: before the first instruction.
 * Of the code object `first` is co_firsttraceable; it was read if the frame has an f_tlbc.
 * Negative: it has not begun what its function's lines say. */
static __always_inline __s64 instruction(struct walk *w, const struct python_record *r, __u64 code,
					 __u32 first, __u32 at)
{
	__u64 start = code + r->co_code, instr = frame_word(w, at, r->f_instr);
	__u32 lasti = frame_half(w, at, r->f_instr), copy;

	if (!(r->flags & PYTHON_INSTR_PTR))
		return r->flags & PYTHON_LASTI_IN_UNITS && lasti != ~0u ? 2 * lasti : lasti;
	copy = r->f_tlbc ? frame_half(w, at, r->f_tlbc) : 0;
	/* A thread's own copy of the instructions: struct _PyCodeArray is its size, then pointers.
	 */
	if (copy && read_word(word_of(w, CODE_AT, r->co_tlbc) + 8 + 8 * (__u64)copy, &start))
		return ~0u;
	instr -= start;
	/* See _PyFrame_IsIncomplete(). */
	if (frame_byte(w, at, r->f_owner) != r->owner_generator && (__s64)instr < 2 * (__s64)first)
		return -1;
	return instr < 1u << 31 ? (__s64)instr : ~0u;
}

/* The cookie of the code object that was read. */
static __always_inline __u32 cookie_of(struct walk *w, const struct python_record *r)
{
	struct python_identity *id = (struct python_identity *)&w->scratch[IDENTITY_AT];
	__u64 *s = python_state(w);

	id->filename = word_of(w, CODE_AT, r->co_filename);
	id->name = word_of(w, CODE_AT, r->co_name);
	id->linetable = word_of(w, CODE_AT, r->co_linetable);
	id->firstlineno = half_of(w, CODE_AT, r->co_firstlineno);
	id->version = r->co_version ? half_of(w, CODE_AT, r->co_version) : 0;
	id->name_text = 0;
	id->filename_text = 0;
	id->words = r->co_words
			    ? python_words(&w->scratch[CODE_AT + PYTHON_WORDS_FROM], r->co_words)
			    : 0;
	if (!id->version) {
		id->name_text = WALK_NAME(python_str)(id->name);
		if (s[S_FILE] != id->filename) {
			s[S_FILE] = id->filename;
			s[S_FILE_TEXT] = WALK_NAME(python_str)(id->filename);
		}
		id->filename_text = s[S_FILE_TEXT];
	}
	return python_cookie(id);
}

/*
 * A CPU's memory of code objects: (address, s[S_CODES]) -> (co_firsttraceable, cookie). It lies
 * among the rules by address, as nobody's address.
 */
static __always_inline struct cached_rule *known_code(const struct walk *w, __u64 code)
{
	return rule_cache_at(w, (__u32)((code >> 4) * WALK_HASH_MULTIPLIER >> 40));
}

static __always_inline bool is_known_code(const struct cached_rule *e, const __u64 *s, __u64 code)
{
	return s[S_CODES] && e->pc == ~code && e->own[0] == s[S_CODES];
}

static __always_inline void remember_code(struct cached_rule *e, const __u64 *s, __u64 code,
					  __u32 first, __u32 cookie)
{
	if (!s[S_CODES])
		return;
	e->pc = ~code;
	e->runtime = RUNTIME_PYTHON;
	e->own[0] = s[S_CODES];
	e->own[1] = (__u64)first << 32 | cookie;
}

enum { SKIPPED = -1, NONSENSE = -2, RUNS_TASK = -3, MORE = -4 };

#include "runtime/python/python_async.bpf.h"
#if defined(__TARGET_ARCH_x86)
#include "runtime/python/python_jit.bpf.h"
#endif

/*
 * Pushes the frame at walk->frames[at]: 0, or a stop reason. SKIPPED: it is no function of
 * Python's, or has not begun. NONSENSE: it is no frame. RUNS_TASK: those that wait for the task
 * that it runs come first.
 */
__noinline int WALK_NAME(python_push)(__u32 at)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	struct cached_rule *e;
	__u64 *s, code;
	__u32 first;
	__s64 lasti;
	bool again;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	code = frame_word(w, at, r->f_code);
	if (r->flags & PYTHON_EXECUTABLE)
		code &= ~7ull;
	e = known_code(w, code);
	if (!e)
		return STOP_INTERNAL;
	if (is_known_code(e, s, code)) {
		lasti = instruction(w, r, code, (__u32)(e->own[1] >> 32), at);
		return lasti < 0 ? SKIPPED
				 : push_place(w, RUNTIME_PYTHON, code, (__u32)e->own[1],
					      (__u32)lasti);
	}
	/* Recursion: nothing of it has to be read again. */
	again = s[S_STAGE] & STAGE_CODE && w->scratch[LAST_AT] == code;
	if (!again) {
		s[S_STAGE] &= ~(__u64)STAGE_CODE;
		if (read_scratch(w, CODE_AT, code, r->co_size))
			return NONSENSE;
		if (word_of(w, CODE_AT, r->co_type) != r->code_type)
			return r->flags & PYTHON_EXECUTABLE ? SKIPPED : NONSENSE;
	}
	first = half_of(w, CODE_AT, r->co_firsttraceable);
	lasti = instruction(w, r, code, first, at);
	if (lasti < 0)
		return SKIPPED;
	if (r->flags & PYTHON_ASYNC && !(s[S_STAGE] & STAGE_ASYNC)) {
		stop = before_push(w, r, s);
		if (stop)
			return stop;
	}
	if (!again) {
		w->scratch[LAST_AT] = code;
		w->scratch[LAST_COOKIE_AT] = cookie_of(w, r);
		s[S_STAGE] |= STAGE_CODE;
		remember_code(e, s, code, first, (__u32)w->scratch[LAST_COOKIE_AT]);
	}
	return push_place(w, RUNTIME_PYTHON, code, (__u32)w->scratch[LAST_COOKIE_AT], (__u32)lasti);
}

/* Counts frames that are not shown: are they more than any program has one behind the other? */
static __always_inline bool too_many(__u64 *s, bool skipped)
{
	if (!skipped) {
		s[S_STAGE] &= STAGE_FLAGS;
		return false;
	}
	s[S_STAGE] += STAGE_SKIPPED;
	return s[S_STAGE] >= (SKIPPED_MAX + 1) * STAGE_SKIPPED;
}

/* 3.11: `previous` called the loop's last frame, if it is what the CFrame before this one runs;
 * else this one had not been filled in yet. */
static __always_inline int leave_cframe(struct walk *w, const struct python_record *r, __u64 *s,
					__u64 previous)
{
	__u64 current;

	if (read_word(s[S_NEXT] + r->cframe_current, &current) || current != previous)
		return WALK_NAME(python_other)(1);
	return leave(w, s, s[S_NEXT]);
}

/*
 * What should be the loop's next frame can't be read, or is none. A loop links its CFrame before it
 * says there what it runs (3.11, 3.12): interrupted in between, it has not begun. Else the frames
 * that are missing are this loop's only: its CFrame leads to its caller's.
 */
static __always_inline int no_frame(struct walk *w, const struct python_record *r, __u64 *s)
{
	if (r->frames != PYTHON_CFRAME)
		return leave_note(w, s, 0, FRAME_NOTE_UNREADABLE);
	if (w->nr_frames == 1) /* the loop's native frame is all that there is */
		return WALK_NAME(python_other)(1);
	return leave_note(w, s, s[S_NEXT], FRAME_NOTE_UNREADABLE);
}

/*
 * The next frame of the loop, s[S_FRAME]: pushes it, and leaves the loop if it was the last. MORE:
 * there are more.
 */
static __always_inline int one_frame(struct walk *w, const struct python_record *r, __u64 *s)
{
	__u64 frame = s[S_FRAME], previous;
	int at, stop;

	if (!frame)
		return WALK_NAME(python_other)(1);
	/* It may be taken back: what bounds the frames that are shown does not bound these. */
	w->work++;
	at = frame_words(w, frame, r->f_size);
	if (at < 0)
		return no_frame(w, r, s);
	previous = frame_word(w, at, r->f_previous);
	if (r->frames >= PYTHON_CFRAME && !r->f_entry &&
	    frame_byte(w, at, r->f_owner) >= r->owner_entry) {
		/* The entry frame. It has a thread's frames behind it, also if it is the first. */
		if (!in_loop(w, frame))
			return WALK_NAME(python_other)(1);
		return leave(w, s, r->frames == PYTHON_ENTRY ? previous : s[S_NEXT]);
	}
	stop = WALK_NAME(python_push)((__u32)at);
	if (stop > 0)
		return stop;
	if (stop == RUNS_TASK)
		return begin_async(w, s);
	if (stop == NONSENSE)
		return no_frame(w, r, s);
	if (r->frames == PYTHON_FRAME_OBJECTS)
		return leave(w, s, previous);
	if (r->frames == PYTHON_FRAME_OBJECTS_CFRAME) {
		s[S_OBJECT] = previous;
		return leave(w, s, s[S_NEXT]);
	}
	if (previous == frame || too_many(s, stop == SKIPPED))
		return no_frame(w, r, s);
	s[S_FRAME] = previous;
	if (r->f_entry && frame_byte(w, at, r->f_entry))
		return leave_cframe(w, r, s, previous);
	return MORE;
}

/* The next frames of the loop. */
__noinline int WALK_NAME(python_frames)(void)
{
	struct walk *w = current_walk();
	const struct python_record *r;
	__u64 *s;
	int stop;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	r = python_record_of(w);
	s = python_state(w);
	for (i = 0; i < FRAMES_AT_ONCE; i++) {
		stop = one_frame(w, r, s);
		if (stop != MORE)
			return stop;
	}
	return STOP_NONE; /* the step is called again */
}

/* --- perf trampolines ------------------------------------------------------------------------ */

/*
 * -X perf: a copy of a few instructions for each function, between its callers and its loop, so
 * that perf sees an address. The loop's frames tell more: go on with the caller. CPython's
 * Python/asm_trampoline.S: sub $8, %rsp or push %rbp; mov %rsp, %rbp, with endbr64 before; call;
 * the reverse. aarch64: stp x29, x30, [sp, #-16]!; mov x29, sp; blr; ldp.
 */
__noinline int WALK_NAME(python_trampoline)(void)
{
	struct walk *w = current_walk();
	__u64 sp, saved, ra, code;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	sp = w->regs[ARCH_SP];
	if (w->interrupted) {
		if (read_word(w->pc, &code))
			return STOP_RUNTIME_UNREADABLE;
#if defined(__TARGET_ARCH_x86)
		if ((__u8)code == 0x55 || (__u8)code == 0xc3 || (__u32)code == 0xfa1e0ff3 ||
		    (code & 0xffffff) == 0xec8348) {
			stop = read_stack(w, sp, &ra);
			return stop ? stop : walk_to_caller(w, sp + 8, ra);
		}
#else
		if ((code & 0xffc07fff) == 0xa9807bfd || (__u32)code == 0xd65f03c0)
			return walk_to_caller(w, sp, w->regs[A64_LR]);
#endif
	}
	stop = read_stack(w, sp, &saved);
	if (!stop)
		stop = read_stack(w, sp + 8, &ra);
	if (stop)
		return stop;
		/* With push %rbp; mov %rsp, %rbp, the frame pointer of what is called is the stack
		 * pointer here, and the caller's was saved there. Else it is the caller's still. */
#if defined(__TARGET_ARCH_x86)
	if (w->regs[ARCH_FP] == sp)
		w->regs[ARCH_FP] = saved;
#else
	w->regs[ARCH_FP] = saved;
#endif
	return walk_to_caller(w, sp + 16, ra);
}

/* Code in anonymous memory. */
static __always_inline int code_step(struct walk *w)
{
	const struct python_record *r = runtime_record(w, RUNTIME_PYTHON, struct python_record);
	int stop = SKIPPED;

	w->runtime = RUNTIME_NATIVE;
	if (!r || !(r->flags & PYTHON_JIT))
		return WALK_NAME(python_trampoline)();
#if defined(__TARGET_ARCH_x86)
	stop = WALK_NAME(python_jit)();
#endif
	if (stop != SKIPPED)
		return stop;
	/* As the native step does it where nobody claims the code. */
	stop = push_frame(w, RUNTIME_NATIVE, w->pc);
	return stop ? stop : WALK_NAME(native_frame_pointer)(CODE_ANON);
}

STEP(python)
{
	struct walk *w = current_walk();
	__u64 *s;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return code_step(w);
	s = runtime_state(w, RUNTIME_PYTHON);
	/* Of a copied stack, where the thread is by now would be told. */
	if (w->late || !runtime_record(w, RUNTIME_PYTHON, struct python_record))
		return leave_note(w, s, 0, FRAME_NOTE_NOT_READY);
	if (s[S_STAGE] & STAGE_ASYNC)
		return async_step(w, s);
	return s[S_STAGE] & STAGE_LOOP ? WALK_NAME(python_frames)() : WALK_NAME(python_enter)();
}
