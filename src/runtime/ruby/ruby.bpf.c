// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of CRuby: the control frames that a call of rb_vm_exec() runs.
 *
 * A thread's frames lie side by side, the innermost one lowest, from ec->cfp to the end of its VM
 * stack. What a call of rb_vm_exec() runs ends with a frame that has RUBY_FRAME_FINISH. Frames of
 * methods written in C are among them: whoever called such a method pushed its frame, so it stands
 * before the native frames of that function, which it belongs to, and after who called.
 *
 * Facts: CRuby's vm_core.h, vm_insnhelper.c (vm_push_frame(), rb_vm_frame_method_entry()),
 * vm_backtrace.c.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/ruby/ruby_abi.h"

/* Of runtime_state(). */
enum {
	S_STAGE,
	S_CFP,	/* the next frame; 0: the thread's are not known */
	S_END,	/* of the frames */
	S_EC,	/* the execution context */
	S_PATH, /* the last file name that was read, and its text's hash: most of a stack have */
	S_PATH_TEXT, /* one */
	S_JIT_CFP,   /* STAGE_JIT: the frame in that code's register; 0: not known */
	S_OBJECTS, /* whose objects there are since which collection: objects_of(). 0: not known */
	S_MAX_,
};
_Static_assert((int)S_MAX_ <= (int)RUNTIME_STATE_WORDS, "runtime_state()");
enum {
	STAGE_FOUND = 1 << 0, /* the thread's frames were looked for */
	STAGE_FIRST = 1 << 1, /* the innermost loop's first frame comes next */
	STAGE_EARLY = 1 << 2, /* whether the first one is filled was looked at */
	STAGE_JIT = 1 << 3,   /* the innermost loop runs code of YJIT's or RJIT's */
};

enum {
	LOOP_FRAMES = 2,
	CALLS_C_FRAMES = 4,
	FRAMES_AT_ONCE = 7,
	METHOD_STEPS = 12,
	JIT_CALLS_MAX = 256, /* frames of methods in C that call each other */
	VM_STACK_WORDS_MAX = 1 << 27,
	VM_STACK_NEAR = 1 << 20
};

/* Words of walk->scratch. */
enum {
	CFP_AT = 0,
	EP_AT = CFP_AT + FRAMES_AT_ONCE * RUBY_CFP_SIZE_MAX / 8,
	OBJECT_AT = EP_AT + 4,
	BODY_AT = OBJECT_AT + 4,
	METHOD_AT = BODY_AT + RUBY_BODY_WORDS,
	DEFINITION_AT = METHOD_AT + 8,
	STRING_AT = DEFINITION_AT + 8,
	TEXT_AT = STRING_AT + 8,
	IDENTITY_AT = TEXT_AT + RUBY_TEXT_WORDS,
	COOKIE_AT = IDENTITY_AT + sizeof(struct ruby_identity) / 8, /* ruby_identify() */
	CODE_AT,
	ENTRY_AT,
	SCRATCH_END,
};
_Static_assert(SCRATCH_END <= SCRATCH_SIZE / 8, "scratch");

enum {
	GOES_ON = -1,
	LAST = -2,
	NONSENSE = -3,
	NONE_LEFT = -4,
	NOT_ITS_OWN = -5,
	NOT_BEGUN = -6,
	NOT_MARKED = -7
};

__noinline int WALK_NAME(ruby_find)(void);
__noinline __u64 WALK_NAME(ruby_method_at)(__u64 object, __u32 local);
__noinline __u64 WALK_NAME(ruby_method)(void);
__noinline __u64 WALK_NAME(ruby_string)(__u64 addr);
__noinline int WALK_NAME(ruby_identify)(__u64 iseq, __u64 entry);
__noinline int WALK_NAME(ruby_push)(__u32 at);
__noinline int WALK_NAME(ruby_frames)(void);
__noinline int WALK_NAME(ruby_is_filling)(void);
__noinline __u32 WALK_NAME(ruby_jit_call)(void);
__noinline int WALK_NAME(ruby_in_jit)(void);
__noinline int WALK_NAME(ruby_jit)(void);

/* The step has seen to it that both are there. */
static __always_inline const struct ruby_record *ruby_record_of(const struct walk *w)
{
	return (const struct ruby_record *)w->record;
}

static __always_inline __u64 *ruby_state(struct walk *w)
{
	return w->state[RUNTIME_RUBY];
}

/* Of an iseq's body. */
static __always_inline __u64 body_word(const struct walk *w, __u32 off)
{
	return w->scratch[BODY_AT + (off / 8 & (RUBY_BODY_WORDS - 1))];
}

/* --- what was read before --------------------------------------------------------------------- */

/*
 * What is freed or moved is so by a collection, which counts itself first. What was on the
 * stack of a thread while none was at work is therefore unchanged until that number changes: it was
 * alive after the last one had marked what is, so no sweep of that one takes it. Which objects
 * there are: a fork's child has its parent's number at first.
 */
static __always_inline __u64 objects_of(const struct walk *w, const struct ruby_record *r)
{
	__u64 number;

	if (!r->collections || read_word(r->collections, &number))
		return 0;
	number = ruby_mix(ruby_mix(number, w->mm),
			  (__u64)w->header.pid << 32 | w->process.generation);
	return number ?: 1;
}

/* May what was just read be remembered? */
static __always_inline bool objects_stay(const struct ruby_record *r, const __u64 *s)
{
	__u32 flags, mode;

	if (!s[S_OBJECTS] || read_memory(r->collecting, &flags, sizeof(flags)))
		return false;
	mode = flags & RUBY_GC_MODE;
	return !(flags & RUBY_GC_AT_WORK) && (mode == RUBY_GC_NONE || mode == RUBY_GC_SWEEPING);
}

/*
 * A CPU's memory of functions and of what environments have in the place of a method. It lies among
 * the rules by address, as nobody's address (as python.bpf.c has it).
 * A function: own = s[S_OBJECTS], method entry, code; `generation` is its cookie.
 * Such an object: own = s[S_OBJECTS], method entry or 0.
 */
enum { KEY_OBJECT = 1 }; /* objects lie at multiples of 8 */

static __always_inline struct cached_rule *memory_of(const struct walk *w, __u64 key)
{
	return rule_cache_at(w, (__u32)((key >> 3) * WALK_HASH_MULTIPLIER >> 40));
}

static __always_inline bool is_known(const struct cached_rule *e, const __u64 *s, __u64 key)
{
	return s[S_OBJECTS] && e->pc == ~key && e->own[0] == s[S_OBJECTS];
}

static __always_inline void remember(struct cached_rule *e, const __u64 *s, __u64 key, __u64 entry,
				     __u64 code, __u32 cookie)
{
	e->pc = ~key;
	e->runtime = RUNTIME_RUBY;
	e->generation = cookie;
	e->own[0] = s[S_OBJECTS];
	e->own[1] = entry;
	e->own[2] = code;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* What the thread at `thread` runs; false: that is no thread. */
static __always_inline bool take_thread(const struct ruby_record *r, __u64 thread, __u64 *ret)
{
	__u64 back;

	return thread && !read_word(thread + r->ec, ret) && *ret &&
	       !read_word(*ret + r->ec_thread, &back) && back == thread;
}

/* The address of what the thread runs; 0: it never ran Ruby, or that is not known. */
static __always_inline __u64 find_ec(struct walk *w, const struct ruby_record *r)
{
	__u64 tp = walk_thread_pointer(w), at, ec;

	if (!tp)
		return 0;
	if (r->how == RUBY_EC_KEY) {
		if (r->key.near && !read_word(tp + r->key.near, &at) && take_thread(r, at, &ec))
			return ec;
		if (r->key.far && !read_word(tp + r->key.far, &at) && at &&
		    !read_word(at + r->key.far_at, &at) && take_thread(r, at, &ec))
			return ec;
		return 0;
	}
	at = tp;
	if (r->how == RUBY_EC_DTV) {
		/* glibc: pairs, of which the first one has no module. -1: none is there yet. */
		if (read_word(tp + (__s64)r->dtv, &at) || read_word(at + 16 * r->ec_module, &at) ||
		    at == ~0ull)
			return 0;
	}
	return at && !read_word(at + r->ec, &ec) ? ec : 0;
}

/*
 * While a fiber is switched to, the thread has that one's frames for as long as it takes to change
 * the native stack. Ruby itself runs on no other stack:
 * its collections look for objects on that one.
 */
static __always_inline bool is_on_its_stack(struct walk *w, const struct ruby_record *r, __u64 ec)
{
	const __u64 *stack = &w->scratch[OBJECT_AT]; /* its end, and its size; 0: not known */
	__u64 start;

	if (read_memory(ec + r->stack, &w->scratch[OBJECT_AT], 24))
		return false;
	start = stack[0] - stack[2];
	return !stack[2] || w->regs[ARCH_SP] - start <= stack[2];
}

/* Finds the frames of the thread: 1. */
__noinline int WALK_NAME(ruby_find)(void)
{
	struct walk *w = current_walk();
	__u64 *s, ec, end;

	if (!w)
		return 0;
	s = ruby_state(w);
	ec = find_ec(w, ruby_record_of(w));
	/* vm_stack, vm_stack_size, cfp */
	if (!ec || read_memory(ec, &w->scratch[CFP_AT], 24) ||
	    w->scratch[CFP_AT + 1] > VM_STACK_WORDS_MAX)
		return 0;
	end = w->scratch[CFP_AT] + 8 * w->scratch[CFP_AT + 1];
	if (w->scratch[CFP_AT + 2] < w->scratch[CFP_AT] || w->scratch[CFP_AT + 2] >= end)
		return 0;
	if (!is_on_its_stack(w, ruby_record_of(w), ec))
		return 0;
	s[S_CFP] = w->scratch[CFP_AT + 2];
	s[S_END] = end;
	s[S_EC] = ec;
	s[S_OBJECTS] = objects_of(w, ruby_record_of(w));
	return 1;
}

static __always_inline void find_frames(__u64 *s)
{
	if (s[S_STAGE] & STAGE_FOUND)
		return;
	s[S_STAGE] |= STAGE_FOUND | STAGE_FIRST;
	if (!WALK_NAME(ruby_find)())
		s[S_CFP] = 0;
}

/* --- a frame ---------------------------------------------------------------------------------- */

/*
 * Reads a frame's environment to EP_AT; 0, or -1. It is mostly on the thread's VM stack, below the
 * control frames: those of callers at lower addresses, close to each other.
 */
static __always_inline int read_env(struct walk *w, __u64 ep)
{
	int at;

	if (ruby_state(w)[S_CFP] - ep > VM_STACK_NEAR)
		return read_memory(ep - 16, &w->scratch[EP_AT], 24);
	at = frame_words(w, ep - 16, 24);
	if (at < 0)
		return -1;
	w->scratch[EP_AT] = w->frames[at & (FRAMES_WINDOW / 8 - 1)];
	w->scratch[EP_AT + 1] = w->frames[(at + 1) & (FRAMES_WINDOW / 8 - 1)];
	w->scratch[EP_AT + 2] = w->frames[(at + 2) & (FRAMES_WINDOW / 8 - 1)];
	return 0;
}

/* The method entry at `object`, which an environment has in its place; 0: it is another thing.
 * `local`: the environment is a method's. */
__noinline __u64 WALK_NAME(ruby_method_at)(__u64 object, __u32 local)
{
	struct walk *w = current_walk();
	struct cached_rule *e;
	bool variable = false;
	__u64 entry = object;
	const __u64 *s;

	if (!w)
		return 0;
	s = ruby_state(w);
	e = memory_of(w, object | KEY_OBJECT);
	if (!e)
		return 0;
	if (is_known(e, s, object | KEY_OBJECT))
		return e->own[1];
	if (read_memory(object, &w->scratch[OBJECT_AT], 16))
		return 0;
	if (local && ruby_is_imemo(w->scratch[OBJECT_AT], RUBY_IMEMO_SVAR)) {
		variable = true;
		entry = w->scratch[OBJECT_AT + 1];
		if (entry <= 4096 || entry & 7 || read_memory(entry, &w->scratch[OBJECT_AT], 16))
			return 0;
	}
	if (!ruby_is_imemo(w->scratch[OBJECT_AT], RUBY_IMEMO_METHOD))
		return 0;
	/* What stands in a variable may be another one later. */
	if (!variable && objects_stay(ruby_record_of(w), s))
		remember(e, s, object | KEY_OBJECT, entry, 0, 0);
	return entry;
}

/* The method entry of a frame, by the environment that was read to EP_AT; 0: there is none. */
__noinline __u64 WALK_NAME(ruby_method)(void)
{
	struct walk *w = current_walk();
	__u64 object, entry = 0, ep;
	__u32 i, local;

	if (!w)
		return 0;
	for (i = 0; i < METHOD_STEPS;) {
		/* [-2]: method or lexical scope; [-1]: the outer environment; [0]: flags */
		local = w->scratch[EP_AT + 2] & RUBY_ENV_LOCAL;
		object = w->scratch[EP_AT];
		entry = object > 4096 && !(object & 7) ? WALK_NAME(ruby_method_at)(object, local)
						       : 0;
		if (entry || local)
			break;
		ep = w->scratch[EP_AT + 1] & ~3ull;
		w->work++;
		if (!ep || read_env(w, ep))
			break;
		/* Else clang goes on without a jump, and 5.10 and 6.1 know loops by those. */
		i++;
		barrier_var(i);
	}
	return entry;
}

/* Hash of the text of the string at `addr`, or of the first one of the array there; 0: it can't be
 * read. */
__noinline __u64 WALK_NAME(ruby_string)(__u64 addr)
{
	struct walk *w = current_walk();
	const struct ruby_record *r;
	__u64 *s, length, at;

	if (!w)
		return 0;
	r = ruby_record_of(w);
	s = &w->scratch[STRING_AT];
	if (read_memory(addr, s, 8 * RUBY_STRING_WORDS))
		return 0;
	if ((s[0] & RUBY_TYPE) == RUBY_T_ARRAY) {
		addr = s[2];
		if ((!(s[0] & RUBY_ARRAY_WITHIN) && read_word(s[4], &addr)) ||
		    read_memory(addr, s, 8 * RUBY_STRING_WORDS))
			return 0;
	}
	if ((s[0] & RUBY_TYPE) != RUBY_T_STRING)
		return 0;
	at = ruby_text_at(r, s, addr, &length);
	if (length > 8 * RUBY_TEXT_WORDS)
		at += length - 8 * RUBY_TEXT_WORDS;
	if (read_to_page_end(at, &w->scratch[TEXT_AT], 8 * RUBY_TEXT_WORDS))
		return 0;
	return ruby_text(length, &w->scratch[TEXT_AT]);
}

/* A frame of three words. */
static __always_inline int push_ruby(struct walk *w, __u64 data, __u64 word1, __u64 word2)
{
	const __u64 words[3] = { FRAME(RUNTIME_RUBY, 2, data), word1, word2 };
	__u64 *to = frame_room(w, 3);
	__u32 i;

	if (!to)
		return STOP_MAX_FRAMES;
	hash_name(w, words[0] ^ RUBY_COOKIE(word1));
	hash_name(w, word2);
	UNROLL
	for (i = 0; i < 3; i++) {
		to[i] = words[i];
		hash_word(w, words[i]);
	}
	return STOP_NONE;
}

/* What tells the method at `entry` from others; false: it can't be read. */
static __always_inline bool identify_method(struct walk *w, const struct ruby_record *r,
					    struct ruby_identity *id, __u64 entry)
{
	if (read_memory(entry, &w->scratch[METHOD_AT], 8 * RUBY_METHOD_WORDS))
		return false;
	id->definition = w->scratch[METHOD_AT + 2];
	id->owner = w->scratch[METHOD_AT + 4];
	if (read_memory(id->definition, &w->scratch[DEFINITION_AT], 8 * RUBY_DEFINITION_WORDS))
		return false;
	id->name = w->scratch[DEFINITION_AT + 4];
	id->serial = r->serial ? w->scratch[DEFINITION_AT + (r->serial / 8 & 7)] : 0;
	return true;
}

static __always_inline bool identify_iseq(struct walk *w, const struct ruby_record *r,
					  struct ruby_identity *id, __u64 iseq)
{
	__u64 *s = ruby_state(w);

	if (read_memory(iseq, &w->scratch[OBJECT_AT], 24) ||
	    !ruby_is_imemo(w->scratch[OBJECT_AT], RUBY_IMEMO_ISEQ))
		return false;
	id->body = w->scratch[OBJECT_AT + 2];
	if (read_memory(id->body, &w->scratch[BODY_AT], 8 * RUBY_BODY_WORDS))
		return false;
	id->code = body_word(w, 8);
	id->path = body_word(w, r->path);
	id->label = body_word(w, r->label);
	id->line = body_word(w, r->first_line);
	id->node = r->node ? (__u32)body_word(w, r->node) : 0;
	id->lines = body_word(w, r->lines);
	id->label_text = WALK_NAME(ruby_string)(id->label);
	if (s[S_PATH] != id->path) {
		s[S_PATH] = id->path;
		s[S_PATH_TEXT] = WALK_NAME(ruby_string)(id->path);
	}
	id->path_text = s[S_PATH_TEXT];
	return true;
}

/* Was that function read before? Then what is asked for is at COOKIE_AT and CODE_AT. */
static __always_inline bool is_known_function(struct walk *w, const __u64 *s, __u64 key,
					      __u64 entry)
{
	const struct cached_rule *e = memory_of(w, key);

	if (!e || !is_known(e, s, key) || e->own[1] != entry)
		return false;
	w->scratch[COOKIE_AT] = e->generation;
	w->scratch[CODE_AT] = e->own[2];
	return true;
}

/*
 * Of a function its cookie to COOKIE_AT, and where its code is to CODE_AT; 0, or -1. `iseq` 0: of a
 * method in C.
 */
__noinline int WALK_NAME(ruby_identify)(__u64 iseq, __u64 entry)
{
	struct walk *w = current_walk();
	__u64 key = iseq ?: entry | RUBY_CFUNC;
	const struct ruby_record *r;
	struct ruby_identity *id;
	struct cached_rule *e;
	const __u64 *s;

	if (!w)
		return -1;
	s = ruby_state(w);
	if (is_known_function(w, s, key, entry))
		return 0;
	r = ruby_record_of(w);
	id = (struct ruby_identity *)&w->scratch[IDENTITY_AT];
	__builtin_memset(id, 0, sizeof(*id));
	if ((iseq && !identify_iseq(w, r, id, iseq)) ||
	    (entry && !identify_method(w, r, id, entry)))
		return -1;
	w->scratch[COOKIE_AT] = ruby_cookie(id);
	w->scratch[CODE_AT] = id->code;
	e = memory_of(w, key);
	if (e && objects_stay(r, s))
		remember(e, s, key, entry, id->code, (__u32)w->scratch[COOKIE_AT]);
	return 0;
}

/* Of a frame, whose environment was read to EP_AT: what ruby_identify() says, and its method entry
 * to ENTRY_AT. */
static __always_inline int identify_frame(struct walk *w, __u64 iseq)
{
	__u64 entry = w->scratch[EP_AT];

	/* Most environments have the method entry itself in its place. */
	if (!entry || !is_known_function(w, ruby_state(w), iseq ?: entry | RUBY_CFUNC, entry)) {
		entry = WALK_NAME(ruby_method)();
		if ((!iseq && !entry) || WALK_NAME(ruby_identify)(iseq, entry))
			return -1;
	}
	w->scratch[ENTRY_AT] = entry;
	return 0;
}

/* Is something being thrown? */
static __always_inline bool throws(struct walk *w, const struct ruby_record *r)
{
	__u64 error;

	return read_word(ruby_state(w)[S_EC] + r->error, &error) || error != r->nil;
}

/* Is the one around the frame that was read to scratch[at] a method's in C? */
static __always_inline bool is_called_by_c(struct walk *w, const struct ruby_record *r, __u32 at)
{
	const __u64 *s = ruby_state(w);
	__u64 flags;

	return s[S_END] - s[S_CFP] >= 2 * r->cfp_size &&
	       !read_word(w->scratch[CFP_AT + ((at + r->cfp_size / 8 + 4) & 63)], &flags) &&
	       flags & 1 && flags & RUBY_FRAME_NATIVE;
}

/*
 * Up to 2.7, and in what YJIT of 3.1 makes, the innermost frame may be there before it is filled:
 * its environment, which comes last, is an older frame's then. Is it so, as far as can be told?
 */
static __always_inline bool is_half_made(__u64 iseq, __u64 flags)
{
	__u32 magic = flags & RUBY_FRAME_MAGIC, type;
	__u64 body;

	if (flags & RUBY_FRAME_NATIVE)
		return magic == RUBY_FRAME_CFUNC && iseq;
	if (!iseq || read_word(iseq + 16, &body) || read_word(body, &body))
		return true;
	type = (__u32)body;
	return (type == RUBY_ISEQ_METHOD && magic != RUBY_FRAME_METHOD) ||
	       (type == RUBY_ISEQ_BLOCK && magic != RUBY_FRAME_BLOCK);
}

/*
 * The frame is further in than what the innermost loop's JIT code runs, by its register: C code
 * that it has called made it. If it is no frame of a method in C, its loop has yet to be called,
 * whether it is marked as the last one or not.
 */
static __always_inline bool is_below_jit(const __u64 *s, const struct ruby_record *r)
{
	return s[S_JIT_CFP] && s[S_JIT_CFP] - s[S_CFP] - 1 < JIT_CALLS_MAX * r->cfp_size;
}

/* It is what that code runs, or who called that. */
static __always_inline bool is_of_jit(const __u64 *s)
{
	return s[S_JIT_CFP] && s[S_JIT_CFP] <= s[S_CFP] && s[S_CFP] - s[S_JIT_CFP] < VM_STACK_NEAR;
}

/*
 * Is it a function of MJIT's that the innermost loop has called, and that was interrupted itself?
 * Such a one pushes frames of methods in C before it calls these, and takes its own last frame away
 * before it returns to the loop: a method in C may be what it calls, or who called the loop.
 */
static __always_inline bool is_in_mjit(struct walk *w, const struct ruby_record *r)
{
	const __u64 *words = walk_words(w);
	__u64 first;

	if (!r->own_size || w->nr_frames != LOOP_FRAMES || !words)
		return false;
	first = FRAME_DATA(words[w->full.nr_kernel & (SAMPLE_MAX_KERNEL_FRAMES)]);
	return first - r->own >= r->own_size;
}

/*
 * Pushes the frame that was read to scratch[at]: GOES_ON, LAST of the loop's, or a stop reason.
 * NONSENSE: it is no frame. NOT_MARKED: C code has made it for a loop of its own, which it has yet
 * to call, and not said so in the frame either (RUBY_FRAME_FINISH comes last).
 */
__noinline int WALK_NAME(ruby_push)(__u32 at)
{
	struct walk *w = current_walk();
	const struct ruby_record *r;
	__u64 pc, iseq, ep, flags, code;
	bool first, jit, unsure;
	__u32 number;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = ruby_record_of(w);
	first = ruby_state(w)[S_STAGE] & STAGE_FIRST;
	jit = first && ruby_state(w)[S_STAGE] & STAGE_JIT;
	unsure = first && !(jit && is_of_jit(ruby_state(w)));
	at &= 63;
	pc = w->scratch[CFP_AT + at];
	iseq = w->scratch[CFP_AT + ((at + 2) & 63)];
	ep = w->scratch[CFP_AT + ((at + 4) & 63)];
	if (read_env(w, ep))
		return NONSENSE;
	flags = w->scratch[EP_AT + 2];
	if (!(flags & 1) || flags >> 32)
		return NONSENSE;
	if ((flags & RUBY_FRAME_MAGIC) == RUBY_FRAME_DUMMY)
		return NONE_LEFT;
	if (first && r->early && !(ruby_state(w)[S_STAGE] & STAGE_EARLY)) {
		ruby_state(w)[S_STAGE] |= STAGE_EARLY;
		if (is_half_made(iseq, flags))
			return GOES_ON;
	}
	/*
	 * rb_vm_exec(), and vm_exec_core() below it, run no frame of a method in C: who calls such
	 * a one pushes it. If nothing else runs, the loop has taken its last frame away and is
	 * about to return there. Or something was thrown in that method, whose native frames are
	 * gone, and its own is about to go.
	 */
	if (jit && ruby_state(w)[S_JIT_CFP] == ruby_state(w)[S_CFP] && flags & RUBY_FRAME_NATIVE)
		return NOT_ITS_OWN;
	if (first && !jit && w->nr_frames <= LOOP_FRAMES && flags & RUBY_FRAME_NATIVE)
		return throws(w, r) || is_in_mjit(w, r) ? NOT_BEGUN : NOT_ITS_OWN;
	if (is_below_jit(ruby_state(w), r) && !(flags & RUBY_FRAME_NATIVE))
		return NOT_MARKED;
	ruby_state(w)[S_STAGE] &= ~(__u64)STAGE_FIRST;
	if (unsure && w->nr_frames > LOOP_FRAMES && !(flags & RUBY_FRAME_FINISH) &&
	    !(flags & RUBY_FRAME_NATIVE) &&
	    ((flags & RUBY_FRAME_BMETHOD && !r->bmethods) || is_called_by_c(w, r, at)))
		return NOT_MARKED;
	stop = STOP_NONE;
	if ((flags & RUBY_FRAME_MAGIC) == RUBY_FRAME_CFUNC) {
		if (identify_frame(w, 0))
			return NONSENSE;
		stop = push_ruby(w, RUBY_CFUNC | (w->scratch[ENTRY_AT] & RUBY_ADDRESS),
				 RUBY_WORD1(w->scratch[COOKIE_AT], 0), 0);
	} else if (!(flags & RUBY_FRAME_NATIVE) && iseq && (pc || jit)) {
		if (identify_frame(w, iseq))
			return NONSENSE;
		code = w->scratch[CODE_AT];
		/*
		 * It is made before its loop is called, which may have yet to be done: then it is
		 * none of the loop that the walk is at. (Or it began with an instruction that
		 * calls something.) A function that the loop calls does so for a block that became
		 * a method.
		 */
		if (unsure && flags & RUBY_FRAME_FINISH && pc == code &&
		    (jit ||
		     w->nr_frames > (flags & RUBY_FRAME_BMETHOD ? LOOP_FRAMES : CALLS_C_FRAMES)))
			return NOT_BEGUN;
		/* Code of YJIT's has its place in the frame only where others want to know it. */
		number = jit ? RUBY_NO_PC : (__u32)((pc - code) / 8);
		stop = push_ruby(w, iseq & RUBY_ADDRESS, RUBY_WORD1(w->scratch[COOKIE_AT], number),
				 w->scratch[ENTRY_AT]);
	} else {
		w->work++; /* nothing is pushed, so that bounds nothing */
	}
	if (stop)
		return stop;
	/*
	 * Around an extension's Init function rb_vm_call_cfunc() pushes a frame that is marked, but
	 * calls no loop: it has no place in its code.
	 */
	if (!pc && iseq && !(flags & RUBY_FRAME_NATIVE))
		return GOES_ON;
	return flags & RUBY_FRAME_FINISH ? LAST : GOES_ON;
}

/* --- a loop ----------------------------------------------------------------------------------- */

static __always_inline int leave_note(struct walk *w, enum frame_note note)
{
	int stop = push_note(w, RUNTIME_RUBY, note);

	return stop ? stop : walk_native(w);
}

/* The next frames of the loop. */
__noinline int WALK_NAME(ruby_frames)(void)
{
	struct walk *w = current_walk();
	const struct ruby_record *r;
	__u64 *s, left;
	__u32 size, step, i;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = ruby_record_of(w);
	s = ruby_state(w);
	if (!s[S_CFP])
		return leave_note(w, FRAME_NOTE_NO_THREAD_STATE);
	step = r->cfp_size;
	left = s[S_END] - s[S_CFP];
	if (s[S_CFP] >= s[S_END] || left < step)
		return leave_note(w, FRAME_NOTE_MISMATCH);
	size = FRAMES_AT_ONCE * step;
	if (left < size)
		size = (__u32)left;
	size &= 511;
	barrier_var(size);
	if (read_memory(s[S_CFP], &w->scratch[CFP_AT], size & 511))
		return leave_note(w, FRAME_NOTE_UNREADABLE);
	for (i = 0; i < FRAMES_AT_ONCE; i++) {
		if ((i + 1) * step > size)
			break;
		stop = WALK_NAME(ruby_push)(i * step / 8);
		if (stop >= 0 && stop != STOP_NONE)
			return stop;
		if (stop == NONSENSE || stop == NOT_BEGUN) {
			s[S_CFP] = 0;
			return leave_note(w, stop == NONSENSE ? FRAME_NOTE_UNREADABLE
							      : FRAME_NOTE_MISMATCH);
		}
		if (stop == NONE_LEFT)
			return leave_note(w, FRAME_NOTE_MISMATCH);
		if (stop == NOT_ITS_OWN) {
			s[S_STAGE] &= ~(__u64)STAGE_FIRST;
			return walk_native(w);
		}
		s[S_CFP] += step;
		if (stop == LAST)
			return walk_native(w);
	}
	return STOP_NONE; /* the step is called again */
}

/* --- code that YJIT or RJIT has made ---------------------------------------------------------- */

/*
 * It runs frames of the loop that called it, by what a register has. What it saves
 * when it is entered are three registers; more on the stack it has only around some calls. A call
 * of a Ruby method is a jump. With --yjit-perf there is a frame pointer, in two words above the
 * three. (yjit/src/codegen.rs: gen_entry_prologue(), gen_leave_exit(); backend/x86_64/mod.rs:
 * FrameSetup; lib/ruby_vm/rjit/compiler.rb: compile_prologue())
 */
enum { JIT_WORDS = 12, JIT_SAVED = 3, HALF_MADE_BYTES = 48 };

#if defined(__TARGET_ARCH_x86)
/*
 * YJIT of 3.1 says that a frame is there (mov [r12+0x10],r13), and fills it then; its iseq comes
 * next to last (mov [r13+0x10],rax). Of the two, does the latter come first behind the pc?
 * (yjit_codegen.c: gen_send_iseq())
 */
__noinline int WALK_NAME(ruby_is_filling)(void)
{
	struct walk *w = current_walk();
	const __u64 *code;
	__u32 i;

	if (!w || read_memory(w->pc, &w->scratch[CFP_AT], HALF_MADE_BYTES + 8))
		return 0;
	code = &w->scratch[CFP_AT];
	for (i = 0; i < HALF_MADE_BYTES; i++) {
		__u64 at = code[i / 8 & 7] >> 8 * (i & 7);

		if (i & 7)
			at |= code[(i / 8 + 1) & 7] << (64 - 8 * (i & 7));
		if ((at & 0xffffffffffull) == 0x10246c894dull)
			return 0;
		if ((__u32)at == 0x10458949)
			return 1;
	}
	return 0;
}

/* Is `ra` where Ruby's own code goes on behind a call of what is in a register? */
static __always_inline bool jit_called(struct walk *w, const struct ruby_record *r, __u64 ra)
{
	__u64 code;

	if (ra - r->text >= r->text_size)
		return false;
	w->work++; /* no frame is pushed for such code */
	return !read_word(ra - sizeof(code), &code) && (code >> 48 & 0xf8ff) == 0xd0ff;
}

/* The frame that the register `reg` has, which is as far in as ec->cfp, or one further (where that
 * has yet to be told); 0: it has none. */
static __always_inline __u64 frame_in(const struct walk *w, const struct ruby_record *r,
				      const __u64 *s, __u32 reg)
{
	__u64 left = s[S_END] - w->regs[reg];

	if (!(w->valid & 1u << reg) || !s[S_CFP] || !left || !r->cfp_size ||
	    left > s[S_END] - s[S_CFP] + r->cfp_size || left % r->cfp_size)
		return 0;
	return w->regs[reg];
}

/* Has it its frame in r15, as RJIT's has, rather than in r13? The other one may have a frame, too,
 * of the code that called: that was there before, and lies no further in. */
static __always_inline bool is_rjit(const struct walk *w, const struct ruby_record *r,
				    const __u64 *s)
{
	__u64 yjit = frame_in(w, r, s, X86_R13), rjit = frame_in(w, r, s, X86_R15);

	return rjit && (!yjit || rjit < yjit);
}

/*
 * Of the thread's frames, which one does the innermost loop's JIT code run? Where that code itself
 * was interrupted, frames further in are about to be made or left: none of them runs anything.
 */
static __always_inline void find_in_jit(struct walk *w, const struct ruby_record *r, __u64 *s)
{
	__u64 below;

	s[S_STAGE] |= STAGE_JIT;
	s[S_JIT_CFP] = frame_in(w, r, s, is_rjit(w, r, s) ? X86_R15 : X86_R13);
	if (!r->early || !w->interrupted || !s[S_JIT_CFP])
		return;
	below = s[S_JIT_CFP] - s[S_CFP];
	if (!below && WALK_NAME(ruby_is_filling)()) {
		s[S_JIT_CFP] += r->cfp_size;
		s[S_CFP] = s[S_JIT_CFP];
	} else if (below < JIT_CALLS_MAX * r->cfp_size) {
		s[S_CFP] = s[S_JIT_CFP];
	}
}

/* How many words above the stack pointer is the return address to Ruby's own code? JIT_WORDS: it is
 * none of its JITs' code. */
__noinline __u32 WALK_NAME(ruby_jit_call)(void)
{
	struct walk *w = current_walk();
	__u64 at, ra;
	__u32 i;

	if (!w)
		return JIT_WORDS;
	at = w->regs[ARCH_SP];
	for (i = 0; i < JIT_WORDS; i++) {
		if (read_stack(w, at, &ra))
			return JIT_WORDS;
		if (jit_called(w, ruby_record_of(w), ra))
			break;
		at += 8;
	}
	return i;
}

/* The thread's frames are found, if it is the innermost loop. Is it code of RJIT's? */
__noinline int WALK_NAME(ruby_in_jit)(void)
{
	struct walk *w = current_walk();
	const struct ruby_record *r;
	__u64 *s;

	if (!w)
		return 0;
	r = ruby_record_of(w);
	s = ruby_state(w);
	if (!(s[S_STAGE] & STAGE_FOUND) && !w->late) {
		find_frames(s);
		find_in_jit(w, r, s);
	}
	return is_rjit(w, r, s);
}
#endif

/* Moves to who called the code: 0 or a stop reason; LAST: it is none of YJIT's. */
__noinline int WALK_NAME(ruby_jit)(void)
{
#if defined(__TARGET_ARCH_x86)
	__u32 regs[JIT_SAVED] = { X86_R13, X86_R12, X86_RBX };
	struct walk *w = current_walk();
	__u64 at, below, ra, value;
	__u32 i, saved;

	if (!w)
		return STOP_INTERNAL;
	i = WALK_NAME(ruby_jit_call)();
	if (i >= JIT_WORDS)
		return LAST;
	at = w->regs[ARCH_SP] + 8 * i;
	if (read_stack(w, at, &ra))
		return STOP_STACK_UNREADABLE;
	runtime_state(w, RUNTIME_RUBY);
	if (WALK_NAME(ruby_in_jit)()) {
		regs[0] = X86_R15;
		regs[1] = X86_R14;
	}
	saved = i;
	below = at;
	if (i >= 2 && !read_stack(w, at - 16, &value) && value == at - 8) {
		if (read_stack(w, at - 8, &value))
			return STOP_STACK_UNREADABLE;
		w->regs[ARCH_FP] = value;
		w->valid |= 1u << ARCH_FP;
		below -= 16;
		saved -= 2;
	}
	for (i = 0; i < JIT_SAVED && i < saved; i++) {
		below -= 8;
		if (read_stack(w, below, &value))
			return STOP_STACK_UNREADABLE;
		w->regs[regs[i] & (UNWIND_REGS_MAX - 1)] = value;
		w->valid |= 1u << (regs[i] & 31);
	}
	w->by_frame_pointer = 0;
	return walk_to_caller(w, at + 8, ra);
#else
	return LAST;
#endif
}

static __always_inline int code_step(struct walk *w)
{
	const struct ruby_record *r = runtime_record(w, RUNTIME_RUBY, struct ruby_record);
	int stop = LAST;

	w->runtime = RUNTIME_NATIVE;
	if (r && r->text_size)
		stop = WALK_NAME(ruby_jit)();
	if (stop != LAST)
		return stop;
	/* As the native step does it where nobody claims the code. */
	stop = push_frame(w, RUNTIME_NATIVE, w->pc);
	return stop ? stop : WALK_NAME(native_frame_pointer)(CODE_ANON);
}

STEP(ruby)
{
	struct walk *w = current_walk();
	__u64 *s;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return code_step(w);
	s = runtime_state(w, RUNTIME_RUBY);
	/* Of a copied stack, where the thread is by now would be told. */
	if (w->late || !runtime_record(w, RUNTIME_RUBY, struct ruby_record))
		return leave_note(w, FRAME_NOTE_NOT_READY);
	find_frames(s);
	return WALK_NAME(ruby_frames)();
}
