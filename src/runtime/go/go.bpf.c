// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of Go. Its code is native and walked as such; at the first frame of a stack (goexit, the
 * scheduler's), and where C calls Go, it says whose stack that is: the goroutine's labels
 * (runtime/pprof), and with --async, which function has started it.
 *
 * A thread runs on the stack of its goroutine (m.curg), or on one of its own (m.g0, m.gsignal),
 * for the same goroutine mostly; `g` is the one whose stack it is. As Go's profiler has it
 * (runtime/proc.go: sigprof), labels are those of m.curg, whichever stack it is. A stack that ends
 * within the stack of m.curg is that goroutine's; one that ends elsewhere, while g is m.curg, is
 * of the few instructions in which one goroutine takes another one's place, and gets none.
 *
 * systemstack() and asmcgocall() (which calls C) go over to the thread's own stack. What they have
 * in the frame pointer, and C keeps, leads back, but not if the goroutine's stack was moved
 * meanwhile, as it is when it grows in what C calls: what was there is anybody's by then.
 * asmcgocall() has g and how far it was from the stack's upper end on the thread's stack;
 * systemstack() has its stack pointer in g.sched, which goes along when the stack is moved.
 *
 * morestack() makes room on its way into a function, and never comes back: newstack(), on the
 * thread's own stack, goes on there by g.sched, which has that function's stack pointer and pc.
 * That is where it came from (traceback.go: resolveInternal), unless the goroutine was taken off
 * meanwhile: then m.curg is none (dropg), and, within schedule(), another one. mcall() takes it off
 * for good, as Go's own profiles have it: others may run it while this thread is still there. Up to
 * 1.24 the frame pointer is left as it was, and leads to that goroutine.
 *
 * aarch64: systemstack() and asmcgocall() have the same, but the tables say nothing of the frame
 * pointer, so that it is always these that lead back. cgocallback() is on the goroutine's stack
 * while it calls Go; its frame on the thread's own, below which is C, is where m.g0.sched.sp says,
 * and there lies where the one before it has its own. What morestack() was called by has its return
 * address in g.sched, too. What a signal has made a function call has that function's link register
 * above its frame.
 *
 * Facts: Go's asm_arm64.s, signal_arm64.go (pushCall, preparePanic), traceback.go (injectedCall),
 * cgocall.go (unwindm); asm_amd64.s (systemstack, asmcgocall, morestack), runtime2.go (g, m,
 * gobuf), stack.go (newstack, copystack), proc.go (newproc1: gopc; goschedImpl, preemptPark,
 * execute), pprof/label.go (labelMap), map.go (hmap, bmap) at go1.16 to go1.26; traceback.go:
 * goroutine 1 has no creator to speak of.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/go/go_abi.h"

/* Of runtime_state(). */
enum {
	S_STAGE,
	S_CURG,
	S_AT,	 /* labels: the list, or the map's buckets */
	S_INDEX, /* the next one */
	S_NR,	 /* how many there may be */
	S_TLS,	 /* by which the goroutine was found */
	/* aarch64: */
	S_OWN,	 /* the frame of the last cgocallback() on the thread's own stack */
	S_FLOOR, /* that of the last asmcgocall(), below which no other one is */
	S_MAX_,
};
_Static_assert((int)S_MAX_ <= (int)RUNTIME_STATE_WORDS, "runtime_state()");
enum {
	STAGE_LOOKED = 1 << 0,
	STAGE_CREATED = 1 << 1, /* created_by was said */
	STAGE_DONE = 1 << 2,
	STAGE_LEFT = 1 << 3,  /* within schedule(): the goroutine was taken off */
	STAGE_AGAIN = 1 << 4, /* another Go's goroutine was there before */
};

enum {
	GO_REG = 28, /* aarch64's */
	/* map.go: hmap.B, hmap.buckets; bmap has 8 pairs: bytes that tell which are used, keys,
	 * values, the next one. */
	HMAP_SIZE = 24,
	HMAP_B_SHIFT = 8, /* in the word at 8 */
	PAIRS = 8,
	STRING = 16,
	BUCKET_SIZE = 8 + 2 * PAIRS * STRING + 8,
	BUCKET_VALUES = 8 + PAIRS * STRING,
	USED_MIN = 5, /* minTopHash */
	MAP_B_MAX = 2,
	PAIR_SIZE = 2 * STRING,
	G_SCHED_SP = 56, /* behind it g.sched.pc */
	/* Where asmcgocall has its two words: up to Go 1.22 or so 40, then 0. */
	DEPTH_OLD = 40,
	/* aarch64: frames of systemstack(), asmcgocall(), and what that makes room for; where
	 * cgocallback() keeps m.g0.sched.sp; what pushCall() has put below a frame. */
	A64_FRAME = 16,
	A64_SAVED_SP = 16,
	A64_PUSHED = 16,
	A64_MORESTACK_LR = 3, /* the register that has it on the way to morestack() */
	/* mcall()'s frame while it is on the goroutine's stack: an address, a frame pointer. */
	MCALL_FRAME_MAX = 64,
	/* Words of walk->scratch; a string's room is a power of two. */
	PAIR_AT = 0,
	KEY_AT = 8,
	KEY_ROOM = 64,
	TEXT_AT = KEY_AT + KEY_ROOM / 8,
	TEXT_ROOM = 128,
	END_AT = TEXT_AT + TEXT_ROOM / 8,
};
_Static_assert(END_AT <= SCRATCH_SIZE / 8 && (int)GO_KEY_SIZE < (int)KEY_ROOM &&
		       (int)GO_TEXT_SIZE < (int)TEXT_ROOM,
	       "scratch");

__noinline int WALK_NAME(go_find)(void);
__noinline int WALK_NAME(go_label)(void);
__noinline int WALK_NAME(go_creator)(void);
__noinline int WALK_NAME(go_cross)(void);
__noinline int WALK_NAME(go_cross_a64)(void);
__noinline int WALK_NAME(go_growth)(void);
__noinline int WALK_NAME(go_leaving_a64)(void);

static __always_inline const struct go_record *go_record_of(const struct walk *w)
{
	return (const struct go_record *)w->record;
}

static __always_inline __u64 *go_state(struct walk *w)
{
	return w->state[RUNTIME_GO];
}

/* Where the labels at `labels` are, and how many there may be. */
static __always_inline void find_labels(struct walk *w, __u64 labels, __u32 kind, __u64 *s)
{
	__u64 words[HMAP_SIZE / 8] = { 0 };
	__u32 b;

	if (kind == GO_LABELS_LIST) {
		if (read_memory(labels, words, 16))
			return;
		s[S_AT] = words[0];
		s[S_NR] = words[1] < GO_LABELS_MAX ? words[1] : GO_LABELS_MAX;
	} else if (kind == GO_LABELS_MAP) {
		if (read_word(labels, &labels) || read_memory(labels, words, HMAP_SIZE))
			return;
		b = words[1] >> HMAP_B_SHIFT & 255;
		s[S_AT] = words[2];
		s[S_NR] = !words[0] || !words[2] ? 0
			  : b > MAP_B_MAX	 ? PAIRS << MAP_B_MAX
						 : PAIRS << b;
	}
}

/* Does the stack end in that goroutine's? */
static __always_inline bool is_stack_of(struct walk *w, __u64 g)
{
	__u64 stack[2];

	return !read_memory(g, stack, sizeof(stack)) && w->loop_sp >= stack[0] &&
	       w->loop_sp <= stack[1];
}

/* The goroutine that the thread runs, if that m and its g say so of each other; 0: none. */
static __always_inline __u64 find_curg(const struct go_record *r, __u64 g, bool *is_own)
{
	__u64 m, curg, back;

	if (!g || g & 7 || read_word(g + r->g_m, &m) || !m || m & 7 ||
	    read_word(m + r->m_curg, &curg) || !curg || curg & 7 ||
	    read_word(curg + r->g_m, &back) || back != m)
		return 0;
	*is_own = g == curg;
	return curg;
}

/* Which goroutine is it? 0, or -1: none that is known. */
__noinline int WALK_NAME(go_find)(void)
{
	struct walk *w = current_walk();
	const struct go_record *r;
	__u64 *s, g = 0, curg = 0, tp, labels;
	bool is_own = false;

	if (!w)
		return -1;
	r = go_record_of(w);
	s = go_state(w);
	tp = r->flags & GO_TLS ? walk_thread_pointer(w) : 0;
	if (tp && !read_word(tp + (__u64)r->tls, &g))
		curg = find_curg(r, g, &is_own);
	if (!curg && r->flags & GO_REGISTER && w->valid & 1u << GO_REG)
		curg = find_curg(r, w->regs[GO_REG], &is_own);
	if (!curg)
		return -1;
	s[S_CURG] = curg;
	if (w->entry == ENTRY_END && is_own && !is_stack_of(w, curg))
		return -1;
	if (r->labels && !(s[S_STAGE] & STAGE_AGAIN) && !read_word(curg + r->g_labels, &labels) &&
	    labels)
		find_labels(w, labels, r->labels, s);
	return 0;
}

/* The pair of strings number `i`, to PAIR_AT; 0, or -1: there is none. */
static __always_inline int read_pair(struct walk *w, const struct go_record *r, const __u64 *s,
				     __u32 i)
{
	__u64 at = s[S_AT], used;

	if (r->labels == GO_LABELS_LIST)
		return read_memory(at + (__u64)i * PAIR_SIZE, &w->scratch[PAIR_AT], PAIR_SIZE);
	at += (__u64)(i / PAIRS) * BUCKET_SIZE;
	i %= PAIRS;
	if (read_word(at, &used) || (used >> 8 * i & 255) < USED_MIN)
		return -1;
	at += 8 + i * STRING;
	if (read_memory(at, &w->scratch[PAIR_AT], STRING))
		return -1;
	return read_memory(at + BUCKET_VALUES - 8, &w->scratch[PAIR_AT + STRING / 8], STRING);
}

/* Pushes the next label. */
__noinline int WALK_NAME(go_label)(void)
{
	struct walk *w = current_walk();
	__u64 *s, *to, word, key, text;
	__u32 i, key_size, text_size;

	if (!w)
		return STOP_INTERNAL;
	s = go_state(w);
	w->work++;
	if (read_pair(w, go_record_of(w), s, (__u32)s[S_INDEX]++ & 31))
		return STOP_NONE;
	UNROLL
	for (i = KEY_AT; i < END_AT; i++)
		w->scratch[i] = 0;
	key = w->scratch[PAIR_AT + 1];
	text = w->scratch[PAIR_AT + 3];
	key_size = key < GO_KEY_SIZE ? (__u32)key : GO_KEY_SIZE;
	text_size = text < GO_TEXT_SIZE ? (__u32)text : GO_TEXT_SIZE;
	barrier_var(key_size);
	barrier_var(text_size);
	if (!key ||
	    read_memory(w->scratch[PAIR_AT], &w->scratch[KEY_AT], key_size & (KEY_ROOM - 1)) ||
	    (text && read_memory(w->scratch[PAIR_AT + 2], &w->scratch[TEXT_AT],
				 text_size & (TEXT_ROOM - 1))))
		return STOP_NONE;
	to = frame_room(w, 1 + GO_LABEL_WORDS);
	if (!to)
		return STOP_MAX_FRAMES;
	key = key < GO_KEY_LENGTH_MAX ? key : GO_KEY_LENGTH_MAX;
	text = text < GO_TEXT_LENGTH_MAX ? text : GO_TEXT_LENGTH_MAX;
	word = FRAME(RUNTIME_GO, GO_LABEL_WORDS, GO_LABEL(key, text));
	*to++ = word;
	hash_word(w, word);
	UNROLL
	for (i = 0; i < GO_LABEL_WORDS; i++) {
		word = w->scratch[i < GO_KEY_SIZE / 8 ? KEY_AT + i : TEXT_AT + i - GO_KEY_SIZE / 8];
		to[i] = word;
		hash_word(w, word);
	}
	return STOP_NONE;
}

/* Where the goroutine's stack pointer was when asmcgocall() left it; 0: not known. */
static __always_inline __u64 depth_to_sp(struct walk *w, __u64 curg, __u64 hi)
{
	__u64 words[2];

	if (!read_memory(w->loop_sp, words, sizeof(words)) && words[1] == curg)
		return hi - words[0];
	if (!read_memory(w->loop_sp + DEPTH_OLD, words, sizeof(words)) && words[1] == curg)
		return hi - words[0];
	return 0;
}

static __always_inline bool is_in(const struct go_switch *s, __u64 pc)
{
	return pc >= s->start && pc < s->end;
}

static __always_inline bool is_in_part(const struct go_record *r, const struct go_part *p, __u64 pc)
{
	__u64 at = pc - r->code.start;

	return at >= p->start && at < p->end;
}

/*
 * Behind a function that went over to the thread's own stack: goes on where it came from. 1: it
 * does; else the walk is where it was.
 */
__noinline int WALK_NAME(go_cross)(void)
{
	struct walk *w = current_walk();
	const struct go_record *r;
	__u64 curg, stack[2], sp = 0, ra, fp = 0;
	__u32 pushed;

	if (!w)
		return 0;
	r = go_record_of(w);
	curg = go_state(w)[S_CURG];
	if (!curg || read_memory(curg, stack, sizeof(stack)))
		return 0;
	if (is_in(&r->asmcgocall, w->loop_pc))
		sp = depth_to_sp(w, curg, stack[1]);
	else if (w->entry == ENTRY_LOOP && w->regs[ARCH_SP] - stack[0] <= stack[1] - stack[0])
		return 0; /* as it should be */
	else if (read_word(curg + G_SCHED_SP, &sp))
		return 0;
	pushed = r->flags & GO_PUSHES ? 8 : 0;
	if (sp < stack[0] || sp >= stack[1] || sp & 7 || read_word(sp + pushed, &ra) || !ra ||
	    (pushed && read_word(sp, &fp)))
		return 0;
	w->entry = ENTRY_LOOP;
	w->by_frame_pointer = 0;
	if (walk_to_caller(w, sp + 8 + pushed, ra))
		return 0;
	w->regs[ARCH_FP] = fp;
	w->valid = 1u << ARCH_SP | (pushed ? 1u << ARCH_FP : 0);
	return 1;
}

/* Goes on on another stack, where nothing else is known: what is in registers is not that
 * function's. As above. */
static __always_inline int go_on_at(struct walk *w, __u64 sp, __u64 ra)
{
	w->entry = ENTRY_LOOP;
	w->by_frame_pointer = 0;
	if (walk_to_caller(w, sp, ra))
		return 0;
	w->valid = 1u << ARCH_SP;
	w->kept = 0;
	return 1;
}

/* aarch64: moves to the caller of the frame of `size` bytes at `sp`, of what has gone over. As
 * above. */
static __always_inline int leave_frame_a64(struct walk *w, __u64 sp, __u64 size)
{
	__u64 ra;

	return sp & 7 || read_word(sp, &ra) || !ra ? 0 : go_on_at(w, sp + size, ra);
}

/* The frame of cgocallback() on the thread's own stack; 0: not known. */
static __always_inline __u64 callback_frame_a64(const struct go_record *r, __u64 *s)
{
	__u64 at = 0, sp = 0;

	if (s[S_OWN]) {
		if (read_word(s[S_OWN] + A64_SAVED_SP, &sp))
			return 0;
	} else if (read_word(s[S_CURG] + r->g_m, &at) || read_word(at, &at) ||
		   read_word(at + G_SCHED_SP, &sp)) {
		return 0;
	}
	/* The innermost one is on the way to the goroutine's stack, or on its way back. */
	if (sp < s[S_FLOOR] && read_word(sp + A64_SAVED_SP, &sp))
		return 0;
	return sp < s[S_FLOOR] ? 0 : sp;
}

/* aarch64: behind what runs on another stack than its caller. 1: the walk goes on, else as above.
 */
__noinline int WALK_NAME(go_cross_a64)(void)
{
	struct walk *w = current_walk();
	const struct go_record *r;
	__u64 *s, stack[2], words[2], sp;

	if (!w)
		return 0;
	r = go_record_of(w);
	s = go_state(w);
	if (!s[S_CURG] || read_memory(s[S_CURG], stack, sizeof(stack)))
		return 0;
	if (is_in_part(r, &r->cgocallback, w->loop_pc)) {
		if (w->entry == ENTRY_LOOP && w->loop_sp - stack[0] > stack[1] - stack[0])
			return 1; /* as it should be */
		sp = callback_frame_a64(r, s);
		s[S_OWN] = sp;
		return sp ? leave_frame_a64(w, sp, w->regs[ARCH_SP] - w->loop_sp) : 0;
	}
	if (!r->own_call)
		return 0;
	if (is_in(&r->asmcgocall, w->loop_pc)) {
		s[S_FLOOR] = w->loop_sp;
		if (w->loop_pc <= r->asmcgocall.start + r->own_call) {
			if (read_word(s[S_CURG] + G_SCHED_SP, &sp))
				return 0;
		} else if (read_memory(w->loop_sp, words, sizeof(words)) || words[0] != s[S_CURG]) {
			return 0;
		} else {
			sp = stack[1] - words[1];
		}
	} else if (read_word(s[S_CURG] + G_SCHED_SP, &sp)) {
		return 0;
	}
	return sp - stack[0] < stack[1] - stack[0] ? leave_frame_a64(w, sp, A64_FRAME) : 0;
}

/*
 * aarch64: the function that needs a larger stack, where it would go on: it has no frame yet, and
 * its return address in a register. As above.
 */
static __always_inline int grow_a64(struct walk *w, __u64 sp, __u64 pc, __u64 lr)
{
	if (!lr)
		return 0;
	w->entry = ENTRY_LOOP;
	w->by_frame_pointer = 0;
	w->pc = pc;
	w->regs[ARCH_SP] = sp;
	w->regs[ARCH_LINK_REGISTER] = lr;
	w->valid = 1u << ARCH_SP | 1u << ARCH_LINK_REGISTER;
	w->kept = 0;
	w->interrupted = 1;
	return 1;
}

/* Behind morestack(): goes on in the function that needs a larger stack. As above. */
__noinline int WALK_NAME(go_growth)(void)
{
	struct walk *w = current_walk();
	__u64 curg, stack[2], sched[2], lr = 0;

	if (!w)
		return 0;
	curg = go_state(w)[S_CURG];
	if (!curg || read_memory(curg, stack, sizeof(stack)) ||
	    read_memory(curg + G_SCHED_SP, sched, sizeof(sched)))
		return 0;
	/* It is not there yet. (aarch64: but g.sched is there, if nobody called it.) */
	if ((ARCH_LINK_REGISTER == 0 || w->entry == ENTRY_LOOP) &&
	    w->loop_sp - stack[0] <= stack[1] - stack[0])
		return ARCH_LINK_REGISTER != 0
			       ? grow_a64(w, w->loop_sp, w->pc + 1, w->regs[A64_MORESTACK_LR])
			       : 0;
	if (sched[0] < stack[0] || sched[0] >= stack[1] || sched[0] & 7 || !sched[1])
		return 0;
	if (ARCH_LINK_REGISTER != 0)
		return go_record_of(w)->g_lr && !read_word(curg + go_record_of(w)->g_lr, &lr)
			       ? grow_a64(w, sched[0], sched[1], lr)
			       : 0;
	return go_on_at(w, sched[0], sched[1]);
}

/*
 * aarch64: mcall() is about to leave the goroutine's stack, but save_g(), which it calls before,
 * has overwritten its return address: it is in g.sched by then. As above; 0: it has left.
 */
__noinline int WALK_NAME(go_leaving_a64)(void)
{
	struct walk *w = current_walk();
	__u64 curg, stack[2], sched[2];

	if (!w)
		return 0;
	curg = go_state(w)[S_CURG];
	if (!curg || read_memory(curg, stack, sizeof(stack)) ||
	    w->loop_sp - stack[0] > stack[1] - stack[0] ||
	    read_memory(curg + G_SCHED_SP, sched, sizeof(sched)) || sched[0] != w->loop_sp ||
	    !sched[1])
		return 0;
	return go_on_at(w, sched[0], sched[1]);
}

/* Says that somebody has started the goroutine, then where: a note, a frame; then nothing. */
__noinline int WALK_NAME(go_creator)(void)
{
	struct walk *w = current_walk();
	const struct go_record *r;
	__u64 *s, pc, id;

	if (!w)
		return STOP_INTERNAL;
	r = go_record_of(w);
	s = go_state(w);
	if ((!(s[S_STAGE] & STAGE_CREATED) && !is_stack_of(w, s[S_CURG])) ||
	    read_word(s[S_CURG] + r->g_gopc, &pc) || pc < 2 ||
	    read_word(s[S_CURG] + r->g_goid, &id) || id == 1)
		goto done;
	w->pc = pc - 1;
	if (WALK_NAME(find_mapping)())
		goto done;
	if (!(s[S_STAGE] & STAGE_CREATED)) {
		s[S_STAGE] |= STAGE_CREATED;
		return push_note(w, RUNTIME_GO, FRAME_NOTE_CREATED_BY);
	}
	s[S_STAGE] |= STAGE_DONE;
	return push_frame(w, RUNTIME_NATIVE, pc - 1);
done:
	s[S_STAGE] |= STAGE_DONE;
	return STOP_NONE;
}

/* mcall() has gone over to the thread's own stack: it is as if nobody had called it. */
static __always_inline bool has_left(const struct walk *w, const struct go_record *r)
{
	return w->entry == ENTRY_LOOP && is_in(&r->mcall, w->loop_pc) &&
	       w->regs[ARCH_SP] - w->loop_sp > MCALL_FRAME_MAX;
}

/* Is it the thread's own stack, where morestack() began it for a goroutine? */
static __always_inline bool is_growth(const struct walk *w, const struct go_record *r,
				      const __u64 *s)
{
	return is_in(&r->morestack, w->loop_pc) && !(s[S_STAGE] & STAGE_LEFT);
}

/* Nothing leads back from the thread's own stack. */
static __always_inline int leave(struct walk *w, bool growth)
{
	int stop = STOP_NONE;

	if (w->entry == ENTRY_SWITCHED || (growth && w->entry == ENTRY_END))
		stop = append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_OTHER_STACK, 1, 0);
	return stop ? stop : walk_native(w);
}

static __always_inline bool is_injected(const struct walk *w, const struct go_record *r)
{
	return is_in_part(r, &r->injected[0], w->loop_pc) ||
	       is_in_part(r, &r->injected[1], w->loop_pc);
}

/* aarch64: whose code it is is not known, nor which stack that has left. */
static __always_inline int leave_unknown(struct walk *w)
{
	int stop = append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_CALLER_UNSURE, 1, 0);

	return stop ? stop : walk_native(w);
}

/*
 * aarch64: between what a signal has made a function call and that function lies its link register.
 * That function was interrupted there.
 */
static __always_inline int leave_injected(struct walk *w)
{
	__u64 lr;

	if (!ARCH_LINK_REGISTER || read_word(w->regs[ARCH_SP], &lr))
		return leave_unknown(w);
	w->pc++;
	w->regs[ARCH_SP] += A64_PUSHED;
	w->regs[ARCH_LINK_REGISTER] = lr;
	w->valid |= 1u << ARCH_LINK_REGISTER;
	w->interrupted = 1;
	return walk_native(w);
}

/* aarch64: does it run on another stack than its caller? */
static __always_inline bool changes_stacks(const struct walk *w, const struct go_record *r)
{
	return ARCH_LINK_REGISTER != 0 &&
	       (is_in(&r->systemstack, w->loop_pc) || is_in(&r->asmcgocall, w->loop_pc) ||
		is_in_part(r, &r->cgocallback, w->loop_pc));
}

/* aarch64: the stack that it came from is not known: that is the end. */
static __always_inline int leave_for_good(struct walk *w)
{
	if (w->late)
		return STOP_STACK_COPY_END;
	w->entry = ENTRY_SWITCHED;
	return leave(w, false);
}

/*
 * The record of the Go whose code has called the step. A program and its plugins, which have all of
 * its runtime once more, and a library have one each; so have two libraries, and a goroutine each.
 */
static __always_inline const struct go_record *find_record(struct walk *w)
{
	const struct go_record *r = runtime_record(w, RUNTIME_GO, struct go_record);
	__u32 i;

	if (!r || is_in(&r->code, w->loop_pc))
		return r;
	for (i = 0; i < RUNTIMES_OF_PROCESS_MAX; i++) {
		if (WALK_NAME(load_record)(RUNTIME_GO, i) || w->record_size != sizeof(*r))
			break;
		if (is_in(&go_record_of(w)->code, w->loop_pc))
			return go_record_of(w);
	}
	w->record_runtime = RUNTIME_NATIVE; /* the next one looks again */
	return NULL;
}

/* What another Go has found is another goroutine; the labels are the inner one's. */
static __always_inline void look_anew(__u64 *s, const struct go_record *r)
{
	if (!(s[S_STAGE] & STAGE_LOOKED) || s[S_TLS] == (__u64)r->tls)
		return;
	s[S_STAGE] = (s[S_STAGE] & STAGE_LEFT) | STAGE_AGAIN;
	s[S_CURG] = 0;
	s[S_NR] = 0;
}

STEP(go)
{
	struct walk *w = current_walk();
	const struct go_record *r;
	__u64 *s;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return STOP_RUNTIME_UNKNOWN;
	r = find_record(w);
	if (!r)
		return ARCH_LINK_REGISTER != 0 && w->entry == ENTRY_LOOP ? leave_unknown(w)
									 : leave(w, false);
	s = runtime_state(w, RUNTIME_GO);
	look_anew(s, r);
	if (has_left(w, r))
		w->entry = ENTRY_END;
	if (is_in(&r->schedule, w->loop_pc)) {
		s[S_STAGE] |= STAGE_LEFT;
		return walk_native(w);
	}
	if (is_injected(w, r) && w->entry == ENTRY_LOOP)
		return leave_injected(w);
	if (ARCH_LINK_REGISTER != 0 && is_in_part(r, &r->nosave, w->loop_pc))
		return leave_frame_a64(w, w->loop_sp + A64_FRAME, A64_FRAME) ? walk_native(w)
									     : leave_for_good(w);
	/* In a copy of the stack's top the goroutine may be another one's by now. */
	if (w->late && changes_stacks(w, r))
		return leave_for_good(w);
	if (w->late)
		return leave(w, is_growth(w, r, s));
	if (!(s[S_STAGE] & STAGE_LOOKED)) {
		s[S_STAGE] |= STAGE_LOOKED;
		s[S_TLS] = (__u64)r->tls;
		if (WALK_NAME(go_find)())
			s[S_STAGE] |= STAGE_DONE;
	}
	if (s[S_INDEX] < s[S_NR])
		return WALK_NAME(go_label)();
	if (changes_stacks(w, r))
		return WALK_NAME(go_cross_a64)() ? walk_native(w) : leave_for_good(w);
	if (!ARCH_LINK_REGISTER &&
	    (is_in(&r->asmcgocall, w->loop_pc) || is_in(&r->systemstack, w->loop_pc)))
		return WALK_NAME(go_cross)() ? walk_native(w) : leave(w, false);
	if (is_growth(w, r, s))
		return WALK_NAME(go_growth)() ? walk_native(w) : leave(w, true);
	if (ARCH_LINK_REGISTER != 0 && is_in(&r->mcall, w->loop_pc) && w->entry == ENTRY_END &&
	    WALK_NAME(go_leaving_a64)())
		return walk_native(w);
	/* The goroutine has left for good: mcall. */
	if (w->entry == ENTRY_SWITCHED)
		return STOP_COMPLETE;
	if (w->entry == ENTRY_END && r->flags & GO_ASYNC && !(s[S_STAGE] & STAGE_DONE))
		return WALK_NAME(go_creator)();
	return walk_native(w);
}
