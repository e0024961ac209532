// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of Perl: what the contexts of the thread's interpreter say of the runops loops on its
 * native stack.
 *
 * A loop runs whatever Perl code calls; C code that calls Perl code starts another one. An
 * interpreter's contexts (PERL_CONTEXT) lie in stacks (PERL_SI), a new one for each occasion on
 * which Perl itself calls back (sort, tie, DESTROY, signals ...). Which of them are a loop's:
 *  - Who calls the loop tells what it runs (enum loop_kind).
 *  - A sub that C code called (call_sv()) has no op to return to, blk_sub.retop is 0: it is the
 *    outermost one of its loop. An eval of call_sv()'s around it is its caller's, and shown with
 * it.
 *  - Blocks that C code calls again and again (MULTICALL: sort, List::Util::first, code in
 *    patterns) have a context on a stack of its own, from before the first call until after the
 *    last. It may therefore be there while no loop runs it: other loops pass it over. What is
 * called in the last op of such a block has no op to return to, either.
 *  - An eval in what C code called starts a loop (docatch()), which goes on with the function
 *    around the eval when that has ended: its frames are pushed with those of the loop around.
 *  - perl_run()'s loop has what is left.
 *
 * With threads each loop keeps the interpreter whose ops it runs in a register. Several may have
 * loops on one native stack (perl_clone() makes another one, and has it run CLONE methods): each
 * loop is shown with its own's contexts.
 *
 * Facts: Perl's cop.h, perl.c (call_sv), pp_ctl.c (docatch), pp_sort.c, run.c at v5.28.0 to
 * v5.42.0.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/perl/perl_abi.h"

/* Of runtime_state(). */
enum {
	S_STAGE, /* and above STAGE_BITS the mark of the op that S_COP is for */
	S_LOOP,	 /* stack pointer of the loop that is walked */
	S_SI,	 /* the stack of contexts, its first one, */
	S_CXSTACK,
	S_INDEX,     /* and the next one, as __s64; below 0: none is left */
	S_PREV,	     /* the next stack; 0: this is the last one */
	S_COP,	     /* where the next frame is */
	S_OP,	     /* PL_op */
	S_KIND,	     /* enum loop_kind */
	S_COMPILING, /* what a COP in it is PL_compiling of; with threads, the interpreter */
	S_TYPE,	     /* of the stack */
	S_PAD,	     /* PL_comppad */
	S_NEXT, /* PL_op->op_next; once a sub was pushed, the last one's place in PL_savestack */
	S_SUBS, /* the last one of the stack's contexts of subs, formats, evals, as __s64 */
	/* Of another interpreter with loops on this native stack, how far it was walked; 0: none.
	 */
	S_OTHER,
	S_OTHER_SI,
	S_OTHER_INDEX,
	S_OTHER_COP,
	S_OTHER_STAGE,
	S_MEMORY, /* whose subs are remembered: memory_key(); 0: that was not asked yet */
	S_MAX_,
};
_Static_assert((int)S_MAX_ <= (int)RUNTIME_STATE_WORDS, "runtime_state()");
enum {
	STAGE_LOOKED = 1 << 0,	 /* the interpreter was looked for */
	STAGE_FOUND = 1 << 1,	 /* and found */
	STAGE_LATER = 1 << 2,	 /* a loop was entered before */
	STAGE_PENDING = 1 << 4,	 /* C code is about to call a sub, which no loop runs yet */
	STAGE_BETWEEN = 1 << 5,	 /* a block is between two calls */
	STAGE_END = 1 << 6,	 /* the outermost sub of the loop was pushed */
	STAGE_PUSHED = 1 << 7,	 /* a frame was pushed in this walk */
	STAGE_OVER = 1 << 8,	 /* the program's own frame was */
	STAGE_TOP = 1 << 3,	 /* no context was looked at yet */
	STAGE_ENTERING = 1 << 9, /* PL_op calls a sub, */
	STAGE_LEAVING = 1 << 10, /* or leaves one, or an eval, */
	STAGE_PUSHING = 1 << 11, /* or makes another context, */
	STAGE_GOTO = 1 << 12,	 /* or puts a sub in place of another one */
	STAGE_LOST = 1 << 13,	 /* of a third interpreter nothing is kept */
	STAGE_DEFERS = 1 << 14,	 /* of this stack, the context of a defer {} was met, */
	STAGE_BELOW = 1 << 15,	 /* and is the last one that was */
	STAGE_BITS = 32,
};
enum loop_kind {
	LOOP_MAIN,  /* the program, or what is not known */
	LOOP_CALL,  /* one sub, or a text */
	LOOP_CATCH, /* goes on with what the next loop has begun */
	/* What C code runs that is not a call's: */
	LOOP_BLOCK, /* of a MULTICALL */
	LOOP_DEFER, /* of defer {}, finally {} */
};

/* Words of walk->scratch. */
enum {
	INTERP_AT = 0,
	SI_AT = INTERP_AT + PERL_INTERP_SIZE / 8,
	COP_AT = SI_AT + PERL_SI_SIZE / 8,
	SV_AT = COP_AT + PERL_COP_SIZE / 8,
	CV_AT = SV_AT + PERL_SV_SIZE / 8,
	OP_AT = CV_AT + PERL_CV_SIZE / 8,
	END_AT = OP_AT + PERL_OP_SIZE / 8,
};
_Static_assert(END_AT <= SCRATCH_SIZE / 8, "scratch");

/* cop.h: the low half of a context's type, and flags above it. */
enum {
	CX_TYPE_MASK = 0xf,
	CX_NULL = 0, /* the block of a sort */
	CX_MULTICALL = 0x10,
	CX_FINALLY = 0x20,
	CX_FAKE = 0x90, /* of a sub: code in a pattern, the sub around it once more */
	CX_EVAL_BLOCK = 0x40,
	CX_EVAL_TRY = 0x80, /* try {}, which is no frame */
};
enum {
	STACK_MAX = 1 << 30,
	BLOCKS_MAX = 4,
	CONTEXTS_AT_ONCE = 8,
	CONTEXTS_MANY = 4,
	CXIX_MAX = 1 << 24,
	SI_TYPE_MAX = 63,
	SI_SORT = 3,
	SI_SIGNAL = 4
};

__noinline int WALK_NAME(perl_find)(void);
__noinline int WALK_NAME(perl_change)(void);
__noinline int WALK_NAME(perl_take_si)(__u64 si);
__noinline int WALK_NAME(perl_entered)(__u32 at);
__noinline int WALK_NAME(perl_push)(__u32 kind, __u32 at);
__noinline int WALK_NAME(perl_defer)(__u32 at);
__noinline int WALK_NAME(perl_context)(void);

static __always_inline const struct perl_record *perl_record_of(const struct walk *w)
{
	return (const struct perl_record *)w->record;
}

static __always_inline __u64 *perl_state(struct walk *w)
{
	return w->state[RUNTIME_PERL];
}

/* The next frame is in that statement, in the op of that mark. */
static __always_inline void set_place(__u64 *s, __u64 cop, __u64 mark)
{
	s[S_COP] = cop;
	s[S_STAGE] = (__u32)s[S_STAGE] | mark << STAGE_BITS;
}

/* The word `off` bytes, a constant, from the word `at` of the scratch on. */
static __always_inline __u64 scratch_word(const struct walk *w, __u32 at, __u32 off)
{
	return w->scratch[at + off / 8];
}

static __always_inline __u32 scratch_half(const struct walk *w, __u32 at, __u32 off)
{
	return (__u32)(w->scratch[at + off / 8] >> 8 * (off & 4));
}

/* A word of a context whose first word is walk->frames[at]. */
static __always_inline __u64 cx_word(const struct walk *w, __u32 at, __u32 off)
{
	return w->frames[(at + off / 8) & (FRAMES_WINDOW / 8 - 1)];
}

static __always_inline bool in_range(const struct perl_range *range, __u64 pc)
{
	return pc >= range->start && pc < range->end;
}

/* --- the interpreter ------------------------------------------------------------------------- */

/* Goes on with the contexts of that stack; 0, or -1: it is none. */
__noinline int WALK_NAME(perl_take_si)(__u64 si)
{
	struct walk *w = current_walk();
	const struct perl_record *r;
	__u64 *s;
	__s32 cxix;
	__u32 type;

	if (!w || !si)
		return -1;
	w->work++;
	r = perl_record_of(w);
	s = perl_state(w);
	if (read_memory(si, &w->scratch[SI_AT], PERL_SI_SIZE))
		return -1;
	cxix = (__s32)scratch_half(w, SI_AT, PERL_SI_CXIX);
	type = r->si_type == 40 ? scratch_half(w, SI_AT, 40) : scratch_half(w, SI_AT, 44);
	/* PERLSI_UNKNOWN is -1. */
	if (cxix < -1 || cxix > CXIX_MAX || type + 1 > SI_TYPE_MAX ||
	    !scratch_word(w, SI_AT, PERL_SI_CXSTACK))
		return -1;
	s[S_STAGE] &= ~(__u64)(STAGE_DEFERS | STAGE_BELOW);
	s[S_SI] = si;
	s[S_CXSTACK] = scratch_word(w, SI_AT, PERL_SI_CXSTACK);
	s[S_INDEX] = (__u64)(__s64)cxix;
	s[S_SUBS] = r->si_type == 40 ? CXIX_MAX
				     : (__u64)(__s64)(__s32)scratch_half(w, SI_AT, PERL_SI_CXSUBIX);
	s[S_PREV] = scratch_word(w, SI_AT, PERL_SI_PREV);
	s[S_TYPE] = type;
	/* Of many the first read has several already. */
	if (cxix >= CONTEXTS_MANY) {
		w->frames_start = s[S_CXSTACK] + s[S_INDEX] * r->cx_size + 1;
		w->frames_len = 0;
	}
	return 0;
}

/* Does that interpreter have contexts? */
static __always_inline int take_interpreter(struct walk *w, const struct perl_record *r, __u64 *s,
					    __u64 interp)
{
	__u64 si;

	if (!interp || interp & 7 || read_memory(interp, &w->scratch[INTERP_AT], PERL_INTERP_SIZE))
		return -1;
	s[S_OP] = w->scratch[INTERP_AT + (r->op / 8 & (PERL_INTERP_SIZE / 8 - 1))];
	set_place(s, w->scratch[INTERP_AT + (r->curcop / 8 & (PERL_INTERP_SIZE / 8 - 1))],
		  perl_op_mark(s[S_OP], false));
	si = w->scratch[INTERP_AT + (r->curstackinfo / 8 & (PERL_INTERP_SIZE / 8 - 1))];
	s[S_PAD] = w->scratch[INTERP_AT + (r->comppad / 8 & (PERL_INTERP_SIZE / 8 - 1))];
	s[S_COMPILING] = interp + r->compiling;
	return WALK_NAME(perl_take_si)(si);
}

/* The statement at `cop`, to COP_AT; false: it is none that is known. */
static __always_inline bool read_cop(struct walk *w, __u64 cop)
{
	return cop && !(cop & 7) && !read_memory(cop, &w->scratch[COP_AT], PERL_COP_SIZE);
}

static __always_inline bool is_statement(const struct walk *w, const struct perl_record *r)
{
	__u64 ppaddr = scratch_word(w, COP_AT, PERL_OP_PPADDR);

	return ppaddr && (ppaddr == r->nextstate || ppaddr == r->dbstate);
}

/* The interpreter whose ops the loop runs, by its register; 0: it has no known one. */
static __always_inline __u64 loop_interpreter(const struct walk *w, const struct perl_record *r)
{
	return in_range(&r->held[0], w->loop_pc) || in_range(&r->held[1], w->loop_pc)
		       ? w->loop_saved
		       : 0;
}

/*
 * Goes on with the interpreter that a loop has in its register; -1: that is none. A frame without
 * unwind information may have left something else there: it has to be in some statement.
 */
static __always_inline int take_loops_interpreter(struct walk *w, const struct perl_record *r,
						  __u64 *s, __u64 interp)
{
	if (take_interpreter(w, r, s, interp))
		return -1;
	if (s[S_COP] - interp < r->compiling_size)
		return 0;
	return read_cop(w, s[S_COP]) && is_statement(w, r) ? 0 : -1;
}

/*
 * The loop that was just left may be another interpreter's: goes on with that one, where it was
 * left if it had loops further in. 0; -1: which one's is not known, or how far that was walked.
 */
__noinline int WALK_NAME(perl_change)(void)
{
	struct walk *w = current_walk();
	const struct perl_record *r;
	__u64 *s, interp, at, si, index, cop, stage;

	if (!w)
		return -1;
	r = perl_record_of(w);
	s = perl_state(w);
	interp = loop_interpreter(w, r);
	/* As it begins and ends, the interrupted loop has its caller's value in that register. */
	if (interp == s[S_COMPILING] || w->nr_frames == 1)
		return 0;
	if (!in_range(&r->held[0], w->loop_pc) && !in_range(&r->held[1], w->loop_pc))
		return 0;
	stage = s[S_STAGE];
	if (interp != s[S_OTHER] && stage & STAGE_LOST)
		return -1;
	si = s[S_SI];
	index = s[S_INDEX];
	cop = s[S_COP];
	at = s[S_COMPILING];
	if (interp != s[S_OTHER]) {
		s[S_STAGE] = STAGE_LOOKED | STAGE_FOUND | (s[S_OTHER] ? STAGE_LOST : 0);
		if (take_loops_interpreter(w, r, s, interp))
			return -1;
	} else {
		if (WALK_NAME(perl_take_si)(s[S_OTHER_SI]))
			return -1;
		s[S_COMPILING] = interp;
		s[S_INDEX] = s[S_OTHER_INDEX];
		s[S_COP] = s[S_OTHER_COP];
		s[S_STAGE] = s[S_OTHER_STAGE] | (stage & STAGE_LOST);
	}
	s[S_NEXT] = 0;
	s[S_OTHER] = at;
	s[S_OTHER_SI] = si;
	s[S_OTHER_INDEX] = index;
	s[S_OTHER_COP] = cop;
	s[S_OTHER_STAGE] = stage;
	return 0;
}

/* Finds what the thread's interpreter runs: 0, or -1. */
__noinline int WALK_NAME(perl_find)(void)
{
	struct walk *w = current_walk();
	const struct perl_record *r;
	__u64 *s, tp, at, interp, own;

	if (!w)
		return -1;
	r = perl_record_of(w);
	s = perl_state(w);
	if (!(r->flags & PERL_THREADED)) {
		if (read_word(r->op, &s[S_OP]) || read_word(r->curcop, &s[S_COP]) ||
		    read_word(r->comppad, &s[S_PAD]) || read_word(r->curstackinfo, &at))
			return -1;
		set_place(s, s[S_COP], perl_op_mark(s[S_OP], false));
		s[S_COMPILING] = r->compiling;
		return WALK_NAME(perl_take_si)(at);
	}
	/* While an interpreter is made, or taken down, the thread's pointer leads to that one. */
	own = loop_interpreter(w, r);
	if (own && w->nr_frames > 1 && !take_loops_interpreter(w, r, s, own))
		return 0;
	tp = walk_thread_pointer(w);
	if (tp && r->key.near && !read_word(tp + r->key.near, &interp) &&
	    !take_interpreter(w, r, s, interp))
		return 0;
	if (tp && r->key.far && !read_word(tp + r->key.far, &at) && at &&
	    !read_word(at + r->key.far_at, &interp) && !take_interpreter(w, r, s, interp))
		return 0;
	/* A loop that was interrupted itself, where there is no key. */
	return own && !take_loops_interpreter(w, r, s, own) ? 0 : -1;
}

/* --- one loop -------------------------------------------------------------------------------- */

/* The loop's frames end here. */
static __always_inline int leave(struct walk *w, __u64 *s)
{
	s[S_STAGE] &= ~(__u64)(STAGE_END | STAGE_PENDING | STAGE_BETWEEN);
	return walk_native(w);
}

/* Contexts can't be read: nothing is known of the loops further out, either. */
static __always_inline int give_up(struct walk *w, __u64 *s, enum frame_note note)
{
	int stop = push_note(w, RUNTIME_PERL, note);

	s[S_STAGE] &= ~(__u64)STAGE_FOUND;
	return stop ? stop : walk_native(w);
}

/*
 * Who called the loop, and so, which contexts are its.
 */
static __always_inline enum loop_kind kind_of(const struct perl_record *r, __u64 pc)
{
	__u32 i;

	if (in_range(&r->main, pc))
		return LOOP_MAIN;
	if (in_range(&r->catcher, pc))
		return LOOP_CATCH;
	for (i = 0; i < PERL_CALLS_MAX; i++)
		if (in_range(&r->calls[i], pc))
			return LOOP_CALL;
	for (i = 0; i < PERL_DEFERS; i++)
		if (in_range(&r->defers[i], pc))
			return LOOP_DEFER;
	return LOOP_BLOCK;
}

/* The next context: its first word in walk->frames, or -1. */
static __always_inline int next_context(struct walk *w, const struct perl_record *r, const __u64 *s)
{
	return frame_words(w, s[S_CXSTACK] + s[S_INDEX] * r->cx_size, r->cx_size & 127);
}

static __always_inline __u64 cv_of(const struct walk *w, const struct perl_record *r, __u32 at)
{
	return r->cx_cv == PERL_CX_CV ? cx_word(w, at, PERL_CX_CV) : cx_word(w, at, PERL_CX_CV - 8);
}

/* The body of a CV, to CV_AT: the one at `any`, that of the CV at `cv`. */
static __always_inline int read_cv_fields(struct walk *w, __u64 any)
{
	return read_memory(any + PERL_CV_FIELDS, &w->scratch[CV_AT + PERL_CV_FIELDS / 8],
			   PERL_CV_SIZE - PERL_CV_FIELDS);
}

static __always_inline int read_cv(struct walk *w, __u64 cv)
{
	if (!cv || cv & 7 || read_memory(cv, &w->scratch[SV_AT], PERL_SV_SIZE))
		return -1;
	return read_cv_fields(w, scratch_word(w, SV_AT, PERL_SV_ANY));
}

/*
 * Is the sub of that context, the innermost one, what runs? Its variables are PL_comppad then.
 * While a sub is called its context is there already, but not filled, or its caller's variables are
 * current still; and they are again before the context goes.
 */
__noinline int WALK_NAME(perl_entered)(__u32 at)
{
	struct walk *w = current_walk();
	__u64 pads, pad;
	__u32 depth;

	if (!w || read_cv(w, cv_of(w, perl_record_of(w), at)))
		return 0;
	depth = scratch_half(w, CV_AT, PERL_CV_DEPTH);
	return !read_word(scratch_word(w, CV_AT, PERL_CV_PADLIST) + PERL_PADLIST_PADS, &pads) &&
	       !read_word(pads + (__u64)depth * 8, &pad) && pad == perl_state(w)[S_PAD];
}

/* Is that the context of a sub that C code has called, of which no statement was run yet? */
static __always_inline bool is_new_call(const struct walk *w, const struct perl_record *r,
					const __u64 *s, __u32 at)
{
	__u32 type = (__u8)cx_word(w, at, 0);

	return (type & CX_TYPE_MASK) == r->cx_sub && !(type & CX_MULTICALL) &&
	       !cx_word(w, at, PERL_CX_RETOP) && cx_word(w, at, PERL_CX_OLDCOP) == s[S_COP];
}

/* What an op does with contexts. */
static __always_inline __u64 stage_of(const struct perl_record *r, __u64 ppaddr)
{
	__u32 i;

	if (ppaddr == r->entersub)
		return STAGE_ENTERING;
	if (ppaddr == r->goto_)
		return STAGE_GOTO;
	UNROLL
	for (i = 0; i < PERL_LEAVES; i++)
		if (ppaddr == r->leaves[i])
			return STAGE_LEAVING;
	UNROLL
	for (i = 0; i < PERL_ENTERS; i++)
		if (ppaddr == r->enters[i])
			return STAGE_PUSHING;
	return 0;
}

/*
 * Has the loop called PL_signalhook, which it does when its last op is done? (PERL_ASYNC_CHECK().)
 * That lies far from where a register points to, or has an address of its own: call *disp32(reg).
 * Functions of ops lie near. aarch64's calls don't tell.
 */
static __always_inline bool runs_handlers(const struct walk *w)
{
#if defined(__TARGET_ARCH_x86)
	__u64 code;

	if (read_word(w->loop_pc + 1 - sizeof(code), &code))
		return false;
	code = code >> 16 & 0xffff;
	return (code & 0xf8ff) == 0x90ff || code == 0x15ff;
#else
	return false;
#endif
}

/*
 * call_sv()'s loop may run a function of C, which has no context: of a method, or one whose sub is
 * that. If that calls Perl, the next call_sv() has kept PL_op, which was the outer one's own: an op
 * on the C stack, among its locals. It lies in PL_savestack, below what the sub has there. Or the
 * loop has ended, then it is 0, and looks for signals, whose handlers are what was met.
 */
static __always_inline bool has_no_sub(const struct walk *w, const struct perl_record *r,
				       const __u64 *s)
{
	__u64 at = r->savestack, saved, op;

	if (r->flags & PERL_THREADED)
		at += s[S_COMPILING] - r->compiling;
	return s[S_NEXT] >= 2 && s[S_NEXT] < PERL_SAVED_MAX && !read_word(at, &saved) &&
	       !read_word(saved + (s[S_NEXT] - 2) * 8, &op) &&
	       (op ? op >= w->loop_sp && op - w->regs[ARCH_SP] < PERL_LOCALS
		   : s[S_TYPE] == SI_SIGNAL && runs_handlers(w));
}

/* Begins a loop; 1: it has frames, or may have. */
static __always_inline int enter_loop(struct walk *w, const struct perl_record *r, __u64 *s)
{
	__u64 op = s[S_OP];
	int at;

	s[S_LOOP] = w->loop_sp;
	s[S_KIND] = in_range(&r->run, w->loop_pc) ? LOOP_MAIN : kind_of(r, w->pc);
	/* perl_run() has none but its loop's, or if that is not there. */
	if (s[S_STAGE] & STAGE_LATER && s[S_KIND] == LOOP_CALL && has_no_sub(w, r, s))
		return 0;
	if (s[S_STAGE] & STAGE_LATER)
		return s[S_KIND] != LOOP_CATCH && !in_range(&r->run, w->loop_pc);
	s[S_STAGE] |= STAGE_LATER | STAGE_TOP;
	/* PL_op is 0 when a loop has ended, until whoever called it has put it back. */
	if (!op) {
		s[S_STAGE] |= STAGE_PENDING | STAGE_BETWEEN;
		/* It ends just now, after its sub. */
		if (s[S_KIND] == LOOP_CALL && w->nr_frames == 1)
			return 0;
	} else if (op < w->loop_sp && w->loop_sp - op < PERL_PENDING) {
		/* An op that C code made on its stack, further in than this loop. */
		s[S_STAGE] |= STAGE_PENDING;
	} else if (op >= w->loop_sp && op - w->regs[ARCH_SP] < PERL_LOCALS) {
		/* Its own caller's: the sub is only looked up, or about to be entered. */
		at = (__s64)s[S_INDEX] < 0 ? -1 : next_context(w, r, s);
		if (at < 0 || !is_new_call(w, r, s, (__u32)at) ||
		    !WALK_NAME(perl_entered)((__u32)at)) {
			s[S_STAGE] |= STAGE_PENDING;
			return 0;
		}
		s[S_STAGE] |= STAGE_ENTERING;
	} else if (!read_memory(op, &w->scratch[OP_AT], PERL_OP_SIZE)) {
		s[S_NEXT] = scratch_word(w, OP_AT, PERL_OP_NEXT);
		op = scratch_word(w, OP_AT, PERL_OP_PPADDR);
		s[S_STAGE] |= stage_of(r, op);
		/* The sub has been left. */
		if (s[S_KIND] == LOOP_CALL && s[S_STAGE] & STAGE_LEAVING && (__s64)s[S_INDEX] < 0)
			return 0;
	}
	return s[S_KIND] != LOOP_CATCH;
}

/* A sub's first statement, if its first op is one. */
static __always_inline __u64 first_statement(struct walk *w, const struct perl_record *r,
					     __u64 start)
{
	return read_cop(w, start) && is_statement(w, r) ? start : 0;
}

/* May the sub have been called by itself? Its context was passed already. */
static __always_inline bool is_recursive(struct walk *w, const struct perl_record *r,
					 const __u64 *s, __u64 cv)
{
	__u64 index = s[S_INDEX];
	__u32 i;
	int at;

	for (i = 0; i < BLOCKS_MAX; i++, index--) {
		if ((__s64)index < 0)
			return false;
		at = frame_words(w, s[S_CXSTACK] + index * r->cx_size, r->cx_size & 127);
		if (at < 0)
			return true;
		if ((cx_word(w, (__u32)at, 0) & CX_TYPE_MASK) == r->cx_sub)
			return cv_of(w, r, (__u32)at) == cv;
	}
	return true;
}

/*
 * The walk's first frame, a sub's, whose statement still is its caller's: which one is run? The
 * body of its CV was read to CV_AT; `retop`: where it returns to. It may have begun only, or be
 * about to end. A sub that calls itself may be in that very statement again.
 */
static __always_inline __u64 first_cop(struct walk *w, const struct perl_record *r, const __u64 *s,
				       __u64 cv, __u64 retop)
{
	__u64 start = scratch_word(w, CV_AT, PERL_CV_START);

	if (s[S_OP] == start || s[S_STAGE] & STAGE_GOTO)
		return first_statement(w, r, start);
	/* Its lexical subs are made before its first statement (introcv, clonecv). */
	if (!(s[S_STAGE] & STAGE_ENTERING))
		return first_statement(w, r, start) || is_recursive(w, r, s, cv) ? s[S_COP] : 0;
	if (s[S_NEXT] != retop)
		return s[S_COP];
	return is_recursive(w, r, s, cv) ? 0 : first_statement(w, r, start);
}

#include "runtime/perl/perl_words.bpf.h"

/* --- frames ----------------------------------------------------------------------------------- */

/* Pushes a frame, of the context that is at walk->frames[at] if it has one. */
__noinline int WALK_NAME(perl_push)(__u32 kind, __u32 at)
{
	struct walk *w = current_walk();
	struct cached_rule *e = NULL;
	const struct perl_record *r;
	__u64 *s, cop, mark, statement, place = 0, words[PERL_FRAME_WORDS];
	bool is_sub = kind == PERL_FRAME_SUB || kind == PERL_FRAME_FORMAT, compiling, closure;

	if (!w)
		return STOP_INTERNAL;
	r = perl_record_of(w);
	s = perl_state(w);
	cop = s[S_COP];
	mark = s[S_STAGE] >> STAGE_BITS;
	if (is_sub) {
		place = cv_of(w, r, at);
		/* What the innermost one's statement is, is another question. */
		if (s[S_STAGE] & STAGE_PUSHED && cop && place)
			e = memory_of(w, place, cop);
		if (e && is_known(w, s, e, place, cop))
			return push_words(w, kind, is_closure(w) ? closure_place(w) : place,
					  e->own[1], e->own[2] | mark);
		if (read_cv(w, place))
			return push_note(w, RUNTIME_PERL, FRAME_NOTE_UNREADABLE);
		if (!(s[S_STAGE] & STAGE_PUSHED) && cop == cx_word(w, at, PERL_CX_OLDCOP))
			cop = first_cop(w, r, s, place, cx_word(w, at, PERL_CX_RETOP));
	}
	if (kind == PERL_FRAME_DEFER)
		place = !!(cx_word(w, at, 0) & CX_FINALLY);
	s[S_STAGE] |= STAGE_PUSHED;
	compiling = statement_words(w, r, s, cop, words, &statement);
	/* The statement is what shows that it is still that text's. */
	closure = kind == PERL_FRAME_SUB && words[1] && !compiling && is_closure(w);
	words[2] |= (is_sub ? cookie_of(w, closure, statement) : perl_statement_cookie(statement))
		    << PERL_COOKIE_SHIFT;
	if (e && words[1] && !compiling)
		remember(w, s, e, place, words);
	if (words[1] && !compiling)
		words[2] |= mark;
	return push_words(w, kind | (compiling ? PERL_FRAME_COMPILING : 0),
			  closure ? closure_place(w) : place, words[1], words[2]);
}

/* --- contexts -------------------------------------------------------------------------------- */

/* What follows a context, if the walk does not end. */
enum { GO_ON = STOP_MAX_ + 1, LOOP_ENDS, UNREADABLE, MISMATCH };

/* A block that C code calls again and again: does it not run now, as the loop is a caller's? */
static __always_inline bool is_callers(const __u64 *s)
{
	return s[S_KIND] == LOOP_MAIN || s[S_KIND] == LOOP_CALL || s[S_KIND] == LOOP_DEFER ||
	       s[S_STAGE] & STAGE_BETWEEN;
}

/* A sub or a format, at walk->frames[at]. */
static __always_inline int pass_sub(struct walk *w, const struct perl_record *r, __u64 *s, __u32 at,
				    __u32 type)
{
	__u64 retop = cx_word(w, at, PERL_CX_RETOP), caller = cx_word(w, at, PERL_CX_OLDCOP);
	__u64 saved = cx_word(w, at, 0) >> 32; /* blk_oldsaveix */
	bool is_sub = (type & CX_TYPE_MASK) == r->cx_sub, hidden = false, end = false;
	int stop = STOP_NONE;

	if (!retop && is_sub && type & CX_MULTICALL && (__s64)s[S_INDEX] < 0) {
		hidden = is_callers(s);
		end = true;
		/* It may not be filled yet; the statement is its caller's before it is run. */
		if (hidden && !(s[S_STAGE] & (STAGE_PUSHED | STAGE_BETWEEN)))
			caller = s[S_COP];
		s[S_STAGE] &= ~(__u64)STAGE_BETWEEN;
	} else if (!retop) {
		end = s[S_KIND] == LOOP_CALL;
		hidden = s[S_KIND] == LOOP_MAIN ||
			 ((s[S_STAGE] & STAGE_PENDING || s[S_KIND] >= LOOP_BLOCK) &&
			  is_new_call(w, r, s, at));
	}
	s[S_STAGE] &= ~(__u64)STAGE_PENDING;
	if (!hidden) {
		if (end)
			s[S_STAGE] |= STAGE_END;
		stop = WALK_NAME(perl_push)(!is_sub			  ? PERL_FRAME_FORMAT
					    : (type & CX_FAKE) == CX_FAKE ? PERL_FRAME_PATTERN
									  : PERL_FRAME_SUB,
					    at);
		/* PUSH_MULTICALL() saves PL_op behind its context, call_sv() before its sub's. */
		s[S_NEXT] = !end ? 0 : type & CX_MULTICALL ? saved + 2 : saved;
	}
	if (caller != s[S_COP] || !hidden)
		set_place(s, caller, perl_op_mark(retop, true));
	return stop ? stop : GO_ON;
}

/* call_sv() catches what its sub throws: around that sub. */
static __always_inline bool is_catching(const struct walk *w, __u32 at)
{
	return cx_word(w, at, 0) & CX_EVAL_BLOCK && !cx_word(w, at, PERL_CX_RETOP);
}

/*
 * Was the eval begun outside of this loop? What catches for it (JMPENV) lies on the C stack: in the
 * function that has started the loop, or further in, in a docatch().
 */
static __always_inline bool is_outside(const struct walk *w, const struct perl_record *r,
				       const __u64 *s, __u32 at)
{
	__u64 catcher = r->cx_size == 96 ? cx_word(w, at, 88) : cx_word(w, at, 96);
	__u64 inside = s[S_LOOP] + PERL_LOCALS;

	return (s[S_KIND] == LOOP_CALL || s[S_KIND] == LOOP_BLOCK || s[S_KIND] == LOOP_DEFER) &&
	       !(s[S_STAGE] & (STAGE_END | STAGE_PENDING)) && catcher > inside &&
	       catcher - inside < STACK_MAX;
}

static __always_inline int pass_eval(struct walk *w, const struct perl_record *r, __u64 *s,
				     __u32 at, __u32 type)
{
	__u64 retop = cx_word(w, at, PERL_CX_RETOP), caller = cx_word(w, at, PERL_CX_OLDCOP);
	bool end = s[S_STAGE] & STAGE_END, hidden = type & CX_EVAL_TRY;
	int stop = STOP_NONE;

	/* The sub in it is gone, and the loop about to end; or all that the loop has run is. */
	if ((is_catching(w, at) && s[S_KIND] == LOOP_CALL &&
	     !(s[S_STAGE] & (STAGE_END | STAGE_PENDING | STAGE_PUSHED))) ||
	    is_outside(w, r, s, at)) {
		s[S_INDEX]++;
		return LOOP_ENDS;
	}
	/* Before that sub is there. */
	if (is_catching(w, at) && !end)
		hidden |= s[S_KIND] != LOOP_BLOCK || s[S_STAGE] & STAGE_PENDING;
	/* Of eval_sv(). */
	else if (!retop && s[S_KIND] == LOOP_CALL)
		end = true;
	if (!hidden)
		stop = WALK_NAME(perl_push)(PERL_FRAME_EVAL, at);
	/* It may not be filled yet; and what is no frame is in the statement that is run in it. */
	if (!hidden || !(type & CX_EVAL_TRY || s[S_STAGE] & STAGE_PENDING))
		set_place(s, caller, perl_op_mark(retop, true));
	return stop ? stop : end ? LOOP_ENDS : GO_ON;
}

static __always_inline int pass_sort(struct walk *w, __u64 *s, __u32 at)
{
	__u64 caller = cx_word(w, at, PERL_CX_OLDCOP);
	int stop = STOP_NONE;

	if (is_callers(s)) {
		/* PL_curcop is the caller's, and the context may not be filled yet. */
		s[S_STAGE] &= ~(__u64)STAGE_BETWEEN;
	} else {
		stop = WALK_NAME(perl_push)(PERL_FRAME_SORT, at);
		s[S_STAGE] |= STAGE_END;
		set_place(s, caller, 0);
	}
	return stop ? stop : GO_ON;
}

/*
 * A defer {}'s, or a finally {}'s, at walk->frames[at]. It is there from before its loop until its
 * things were cleaned up after it, which may call subs and further such blocks.
 */
__noinline int WALK_NAME(perl_defer)(__u32 at)
{
	struct walk *w = current_walk();
	const struct perl_record *r;
	__u64 *s, caller, stage;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = perl_record_of(w);
	s = perl_state(w);
	caller = cx_word(w, at, PERL_CX_OLDCOP);
	stage = s[S_STAGE];
	/* Who calls its loop is not known. */
	if (s[S_KIND] == LOOP_BLOCK && !r->defers[0].start)
		return MISMATCH;
	/* The one in it is run as its own loop has ended. */
	if (s[S_KIND] == LOOP_DEFER && !(stage & STAGE_BELOW)) {
		/* No statement was run yet. */
		if (!(stage & STAGE_PUSHED) && s[S_COP] == caller)
			s[S_COP] = 0;
		stop = WALK_NAME(perl_push)(PERL_FRAME_DEFER, at);
		s[S_STAGE] |= STAGE_DEFERS | STAGE_BELOW;
		set_place(s, caller, 0);
		return stop ? stop : LOOP_ENDS;
	}
	/* Which of them a loop met before has run is not told. */
	if (stage & STAGE_DEFERS && !(stage & STAGE_BELOW))
		return MISMATCH;
	/* The innermost one's type may be an older one's still. */
	set_place(s, stage & STAGE_TOP && s[S_COP] != caller ? 0 : caller, 0);
	s[S_STAGE] &= ~(__u64)(STAGE_TOP | STAGE_BETWEEN | STAGE_PENDING);
	return GO_ON;
}

/* Behind the last context of a stack. */
static __always_inline int pass_end(struct walk *w, __u64 *s)
{
	int stop;

	if (s[S_STAGE] & STAGE_END)
		return LOOP_ENDS;
	if (s[S_PREV])
		return WALK_NAME(perl_take_si)(s[S_PREV]) ? UNREADABLE : GO_ON;
	if (s[S_STAGE] & STAGE_OVER)
		return LOOP_ENDS;
	if (s[S_KIND] == LOOP_CALL || s[S_KIND] == LOOP_DEFER)
		return MISMATCH;
	s[S_STAGE] |= STAGE_OVER;
	stop = WALK_NAME(perl_push)(PERL_FRAME_MAIN, 0);
	return stop ? stop : LOOP_ENDS;
}

/*
 * The innermost context, a sub's or an eval's, at walk->frames[at], is not filled yet, or is about
 * to go: where is the one around it?
 */
static __always_inline int pass_unfilled(const struct walk *w, __u64 *s, __u32 at, bool is_sub)
{
	__u64 caller = cx_word(w, at, PERL_CX_OLDCOP);

	if (s[S_STAGE] & STAGE_LEAVING) {
		/* What the op has called may be making one, of a defer {}. */
		set_place(s,
			  perl_record_of(w)->cx_defer && w->nr_frames > 2 && caller != s[S_COP]
				  ? 0
				  : caller,
			  perl_op_mark(cx_word(w, at, PERL_CX_RETOP), true));
		if (is_sub && s[S_KIND] == LOOP_CALL && !cx_word(w, at, PERL_CX_RETOP))
			return LOOP_ENDS;
	} else if (!(s[S_STAGE] & (STAGE_ENTERING | STAGE_PUSHING | STAGE_PENDING)) &&
		   caller != s[S_COP]) {
		/* Some op makes it, or some op has thrown what leaves it. */
		s[S_COP] = 0;
	}
	/* The call is not made yet. */
	s[S_STAGE] &= ~(__u64)STAGE_ENTERING;
	return GO_ON;
}

/*
 * Is it a sub's, a format's or an eval's, by its type, but not among those that Perl has counted?
 * The type is an older one's while a context is made; and what leaves a context has it not counted
 * any more before it takes it away. (try {} is never counted.)
 */
static __always_inline bool is_unfilled(const struct perl_record *r, const __u64 *s, __u32 kind,
					__u32 type)
{
	if (kind == r->cx_eval ? type & CX_EVAL_TRY : kind != r->cx_sub && kind != r->cx_format)
		return false;
	return (__s64)s[S_INDEX] + 1 > (__s64)s[S_SUBS];
}

/*
 * Before 5.32 nothing tells an eval from a context that is being made in the place of an older
 * one's, but that it is the op itself, or the function that makes it, that was interrupted.
 */
static __always_inline bool is_doubtful(const struct walk *w, const struct perl_record *r,
					const __u64 *s)
{
	return r->si_type == 40 && ((s[S_STAGE] & STAGE_ENTERING && w->nr_frames == 2) ||
				    (s[S_STAGE] & STAGE_PUSHING && w->nr_frames <= 3));
}

/* One context further: how the walk ends, or what follows. */
__noinline int WALK_NAME(perl_context)(void)
{
	struct walk *w = current_walk();
	const struct perl_record *r;
	__u32 type, kind;
	__u64 *s;
	int at;

	if (!w)
		return STOP_INTERNAL;
	r = perl_record_of(w);
	s = perl_state(w);
	if ((__s64)s[S_INDEX] < 0)
		return pass_end(w, s);
	at = next_context(w, r, s);
	if (at < 0)
		return UNREADABLE;
	at &= FRAMES_WINDOW / 8 - 1;
	type = (__u8)cx_word(w, (__u32)at, 0);
	kind = type & CX_TYPE_MASK;
	if (s[S_STAGE] & STAGE_END && !(kind == r->cx_eval && is_catching(w, (__u32)at)))
		return LOOP_ENDS;
	s[S_INDEX]--;
	if (r->cx_defer && kind == r->cx_defer)
		return WALK_NAME(perl_defer)((__u32)at);
	s[S_STAGE] &= ~(__u64)STAGE_BELOW;
	if (is_unfilled(r, s, kind, type))
		return pass_unfilled(w, s, (__u32)at, kind == r->cx_sub);
	if (s[S_STAGE] & STAGE_TOP) {
		s[S_STAGE] &= ~(__u64)STAGE_TOP;
		if (kind == r->cx_eval && is_doubtful(w, r, s))
			return MISMATCH;
		if (kind == r->cx_sub &&
		    s[S_STAGE] & (STAGE_PENDING | STAGE_ENTERING | STAGE_LEAVING) &&
		    !WALK_NAME(perl_entered)((__u32)at))
			return pass_unfilled(w, s, (__u32)at, true);
		/* Another sub is there already, or its statement is the former one's. */
		if (kind == r->cx_sub && s[S_STAGE] & STAGE_GOTO &&
		    !WALK_NAME(perl_entered)((__u32)at))
			s[S_COP] = 0;
	}
	if (kind == r->cx_eval)
		return pass_eval(w, r, s, (__u32)at, type);
	if (kind == r->cx_sub || kind == r->cx_format)
		return pass_sub(w, r, s, (__u32)at, type);
	/* That is 0 as well where a context is not filled yet: a sort's is the first one. */
	return kind == CX_NULL && (__s64)s[S_INDEX] < 0 && s[S_TYPE] == SI_SORT
		       ? pass_sort(w, s, (__u32)at)
		       : GO_ON;
}

STEP(perl)
{
	const struct perl_record *r;
	struct walk *w = current_walk();
	__u64 *s;
	__u32 i;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	/* Perl makes no code. */
	if (w->entry == ENTRY_CODE)
		return STOP_RUNTIME_UNKNOWN;
	r = runtime_record(w, RUNTIME_PERL, struct perl_record);
	s = runtime_state(w, RUNTIME_PERL);
	if (!r || w->late) {
		stop = push_note(w, RUNTIME_PERL, FRAME_NOTE_NOT_READY);
		return stop ? stop : walk_native(w);
	}
	if (!(s[S_STAGE] & STAGE_LOOKED)) {
		s[S_STAGE] |= STAGE_LOOKED;
		if (WALK_NAME(perl_find)())
			return give_up(w, s, FRAME_NOTE_NO_THREAD_STATE);
		s[S_STAGE] |= STAGE_FOUND;
	}
	if (!(s[S_STAGE] & STAGE_FOUND))
		return walk_native(w);
	if (s[S_LOOP] != w->loop_sp) {
		if (r->flags & PERL_THREADED && WALK_NAME(perl_change)())
			return give_up(w, s, FRAME_NOTE_MISMATCH);
		if (!enter_loop(w, r, s))
			return walk_native(w);
	}
	for (i = 0; i < CONTEXTS_AT_ONCE; i++) {
		stop = WALK_NAME(perl_context)();
		if (stop == LOOP_ENDS)
			return leave(w, s);
		if (stop == UNREADABLE)
			return give_up(w, s, FRAME_NOTE_UNREADABLE);
		if (stop == MISMATCH)
			return give_up(w, s, FRAME_NOTE_MISMATCH);
		if (stop != GO_ON)
			return stop;
	}
	return STOP_NONE;
}
