// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The step of PHP: the frames that a call of execute_ex() runs, found from
 * EG(current_execute_data) on.
 *
 * A thread has one chain of frames (zend_execute_data), those of functions written in C among them.
 * execute_ex() runs many of them: a call of a PHP function within PHP code stays in the same loop.
 * It begins with a frame that has ZEND_CALL_TOP and belongs to PHP code, and ends with it; so the
 * chain is divided among the loops on the stack. (Frames of C functions may have that flag, too:
 * whoever calls one by zend_call_function().) A frame without a function is a placeholder: it
 * stands before its caller, or for generators that wait for the one that runs (yield from).
 *
 * The chain's begin is not always the innermost loop's own: zend_call_function() and
 * zend_generator_resume() put a frame there before the loop that is to run it has begun, and a loop
 * takes its last frame off before it frees that one's variables, which may run destructors. The
 * loop keeps its frame in a register, for all of its time: what lies before that in the chain is
 * not the loop's.
 *
 * A fiber has a native stack of its own. Its chain ends with a frame of a function without a name,
 * and goes on with who resumed it, whose native frames are on another stack. As long as it has no
 * loop, at its begin and its end, its first function stands for one: zend_fiber_trampoline(). That
 * the chain is another one from now on is written some time after the stack was changed.
 *
 * Facts: PHP's Zend/zend_vm_def.h (zend_leave_helper, ZEND_DO_FCALL), Zend/zend_execute_API.c
 * (zend_call_function), Zend/zend_generators.c (zend_generator_resume,
 * zend_generator_check_placeholder_frame), Zend/zend_fibers.c (zend_fiber_execute),
 * Zend/zend_compile.h.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/php/php_abi.h"

/* Of runtime_state(). */
enum {
	S_FLAGS,
	S_NEXT,	 /* the next loop's first frame; 0: none */
	S_FRAME, /* the next frame of this loop; 0: none */
	S_OP,	 /* where the loop is, if its register tells; for the innermost PHP frame only */
	S_OWN,	 /* the frame in this loop's register */
	S_FILE,	 /* the last file name that was looked at, and its hash: most of a stack have one */
	S_FILE_HASH,
	S_GENERATOR, /* whose delegates are pushed, outermost; 0: none */
	S_DEPTH,     /* how many of them are left */
	S_STALE,     /* a frame that runs code of the JIT's: its own place is an old one */
	S_MEMORY,    /* whose strings are remembered; 0: that was not asked yet */
	S_MAX_,
};
_Static_assert((int)S_MAX_ <= (int)RUNTIME_STATE_WORDS, "runtime_state()");
enum {
	FLAG_BEGUN = 1 << 0,
	FLAG_LOOP = 1 << 1,  /* within a loop */
	FLAG_OTHER = 1 << 2, /* what is left of the chain is on another native stack */
	FLAG_JIT = 1 << 3,   /* the loop runs code of the JIT's */
	FLAG_LOST = 1 << 4,  /* a loop was skipped: which frames of the chain are whose? */
};

/* Words of walk->scratch. */
enum {
	FRAME_AT = 0,
	FUNCTION_AT = 8,
	OP_AT = FUNCTION_AT + PHP_FUNCTION_SIZE / 8,
};
enum {
	/* Of zend_call_function() and its caller, between a loop's stack pointer and what that
	 * caller has on the stack. */
	CALLERS_MAX = 2048, /* bytes */
	BEFORE_OWN_MAX = 8, /* frames that may lie before the loop's own */
	DELEGATES_MAX = 16,
};

__noinline int WALK_NAME(php_find_own)(void);
__noinline int WALK_NAME(php_enter)(void);
__noinline int WALK_NAME(php_enter_fiber)(void);
__noinline int WALK_NAME(php_push)(void);
__noinline int WALK_NAME(php_push_copy)(__u64 name_hash, __u64 file_hash, __u32 number, __u64 code);
__noinline int WALK_NAME(php_leave)(void);
__noinline int WALK_NAME(php_code)(__u64 previous);
__noinline int WALK_NAME(php_delegates)(__u64 frame);
__noinline __u64 WALK_NAME(php_delegate)(void);
__noinline __u64 WALK_NAME(php_jit_loop)(__u64 canary);
__noinline __u64 WALK_NAME(php_jit_called_loop)(void);
__noinline int WALK_NAME(php_is_loop)(__u64 at, __u64 canary, bool by_call);
__noinline int WALK_NAME(php_is_called_loop)(__u64 at);
__noinline int WALK_NAME(php_jit)(void);

/* The step has seen to it that it is there. */
static __always_inline const struct php_record *php_record_of(const struct walk *w)
{
	return (const struct php_record *)w->record;
}

static __always_inline __u64 *php_state(struct walk *w)
{
	return w->state[RUNTIME_PHP];
}

/* Reads a frame. They lie side by side, callers below, but for those of generators. */
static __always_inline int read_frame(struct walk *w, __u64 frame)
{
	int at = frame_words(w, frame, PHP_FRAME_SIZE);
	__u32 i;

	if (at < 0)
		return -1;
	UNROLL
	for (i = 0; i < PHP_FRAME_SIZE / 8; i++)
		w->scratch[FRAME_AT + i] = w->frames[(at + i) & (FRAMES_WINDOW / 8 - 1)];
	return 0;
}

static __always_inline __u64 frame_word(const struct walk *w, __u32 offset)
{
	return w->scratch[FRAME_AT + offset / 8];
}

/* A word of the function, at an offset of struct php_layout; of 32 bits. */
static __always_inline __u64 function_word(const struct walk *w, __u32 offset)
{
	const __u8 *words = (const __u8 *)&w->scratch[FUNCTION_AT];

	return *(const __u64 *)(words + (offset & 248));
}

static __always_inline __u32 function_half(const struct walk *w, __u32 offset)
{
	return (__u32)(function_word(w, offset) >> 8 * (offset & 4));
}

/* A register that was followed up to the loop; 0: it is not known. */
static __always_inline __u64 loop_register(const struct walk *w, __u32 reg)
{
	reg &= UNWIND_REGS_MAX - 1;
	return reg && w->valid & 1u << reg ? w->regs[reg] : 0;
}

/* Does the loop run where its registers are its caller's? */
static __always_inline bool in_gap(const struct walk *w, const struct php_record *r, bool *ret_end)
{
	__u64 at = w->loop_pc - r->loop_start;
	__u32 i;

	for (i = 0; i < PHP_GAPS_MAX; i++) {
		if (i < r->nr_gaps && at >= r->gaps[i].start && at < r->gaps[i].end) {
			*ret_end = i > 0;
			return true;
		}
	}
	return false;
}

/* EG(current_execute_data); 0, or what is to be said. */
static __always_inline int find_current(struct walk *w, const struct php_record *r, __u64 *ret)
{
	__u64 base, tp;

	if (!r->key.near && !r->key.far)
		return read_word(r->current, ret) ? FRAME_NOTE_UNREADABLE : 0;
	tp = walk_thread_pointer(w);
	if (!tp)
		return FRAME_NOTE_NO_THREAD_STATE;
	if (r->key.near && !read_word(tp + r->key.near, &base) && base &&
	    !read_word(base + r->current, ret))
		return 0;
	if (r->key.far && !read_word(tp + r->key.far, &base) && base &&
	    !read_word(base + r->key.far_at, &base) && base && !read_word(base + r->current, ret))
		return 0;
	return FRAME_NOTE_NO_THREAD_STATE;
}

/* Of the function that the frame runs which was read; 0: there is none. */
static __always_inline __u8 function_type(const struct walk *w)
{
	__u64 func = frame_word(w, PHP_FRAME_FUNC), type;

	return func && !read_word(func, &type) ? (__u8)type : 0;
}

/* Is that frame the begin of a fiber? zend_fiber_function has no name. */
static __always_inline bool begins_fiber(struct walk *w, __u64 frame)
{
	__u64 func, words[2]; /* with the type, name */

	return frame && !read_word(frame + PHP_FRAME_FUNC, &func) && func &&
	       !read_memory(func, words, sizeof(words)) &&
	       (__u8)words[0] == PHP_INTERNAL_FUNCTION && !words[1];
}

/* Does that frame run PHP code, and is the loop's instruction (S_OP) one of it? Where that is not
 * known, the first alone. */
static __always_inline bool is_at_work(struct walk *w, __u64 frame, __u64 op)
{
	const struct php_layout *l = &php_record_of(w)->layout;
	__u64 func, opcodes, last;
	__u8 type;

	if (read_frame(w, frame))
		return false;
	func = frame_word(w, PHP_FRAME_FUNC);
	type = function_type(w);
	if (type != PHP_USER_FUNCTION && type != PHP_EVAL_CODE)
		return false;
	return !op || (!read_word(func + l->opcodes, &opcodes) &&
		       !read_word(func + (l->last & ~7u), &last) &&
		       (op - opcodes) / PHP_OP_SIZE < (__u32)(last >> 8 * (l->last & 4)));
}

/*
 * The chain does not begin with the loop's own frame (S_OWN). What of PHP code lies before that is
 * not the loop's: it has yet to begin. A frame that the loop is about to leave is not in the chain
 * any more, but its caller is; there may be destructors before that by now. A generator that
 * is about to go on has no frame of the loop's in its chain either: its caller is not written yet.
 * And where a fiber is left or gone on with, the chain is that of the other stack until
 * zend_fiber_switch_context() has written its own again: the loop's begins with its frame, or
 * behind the begin of a fiber that has ended.
 */
__noinline int WALK_NAME(php_find_own)(void)
{
	struct walk *w = current_walk();
	__u64 *s, own, at, first, previous;
	bool top, fiber;
	__u8 type;
	__u32 i;

	if (!w)
		return FRAME_NOTE_UNREADABLE;
	s = php_state(w);
	own = s[S_OWN];
	at = first = s[S_NEXT];
	s[S_OWN] = 0;
	if (read_frame(w, own))
		return 0;
	previous = frame_word(w, PHP_FRAME_PREVIOUS);
	top = w->scratch[FRAME_AT + PHP_FRAME_CALL_INFO / 8] & PHP_CALL_TOP;
	for (i = 0; i < BEFORE_OWN_MAX && at; i++) {
		if (at == own || at == previous) {
			s[S_OWN] = at == own ? own : 0;
			s[S_NEXT] = first;
			s[S_FRAME] = at == own || !top ? first : 0;
			return 0;
		}
		if (read_frame(w, at))
			return 0;
		fiber = begins_fiber(w, at);
		at = frame_word(w, PHP_FRAME_PREVIOUS);
		type = function_type(w);
		if (fiber || (type && type != PHP_INTERNAL_FUNCTION))
			first = at;
	}
	if (is_at_work(w, own, at ? s[S_OP] : 0))
		s[S_OWN] = s[S_FRAME] = s[S_NEXT] = own;
	return 0;
}

/* What follows of the chain is on another native stack: says so. */
static __always_inline int leave_stack(struct walk *w)
{
	php_state(w)[S_FLAGS] |= FLAG_OTHER;
	return push_note(w, RUNTIME_PHP, FRAME_NOTE_OTHER_STACK);
}

/* What runs frames begins: 0, or what is to be said. */
static __always_inline int enter(struct walk *w, const struct php_record *r, __u64 *s)
{
	int note;

	if (!(s[S_FLAGS] & FLAG_BEGUN)) {
		s[S_FLAGS] |= FLAG_BEGUN;
		note = find_current(w, r, &s[S_NEXT]);
		if (note)
			return note;
		s[S_STALE] = s[S_FLAGS] & FLAG_JIT ? s[S_NEXT] : 0;
	}
	s[S_FLAGS] |= FLAG_LOOP;
	s[S_FRAME] = s[S_NEXT];
	s[S_OP] = s[S_OWN] = 0;
	return 0;
}

/*
 * The first function of a fiber's stack was just left, and none of its loops has come to the end of
 * its frames: the step's answer. Without a loop they are one at most: what is about to run, or a
 * function in C. If it is not there, the chain is still that of who has begun this fiber.
 */
__noinline int WALK_NAME(php_enter_fiber)(void)
{
	struct walk *w = current_walk();
	__u64 *s, previous;
	int note;

	if (!w)
		return STOP_INTERNAL;
	s = php_state(w);
	note = enter(w, php_record_of(w), s);
	if (note) {
		note = push_note(w, RUNTIME_PHP, note);
		return note ? note : walk_native(w);
	}
	if (begins_fiber(w, s[S_FRAME]) ||
	    (s[S_FRAME] && !read_word(s[S_FRAME] + PHP_FRAME_PREVIOUS, &previous) &&
	     begins_fiber(w, previous)))
		return STOP_NONE;
	return leave_stack(w);
}

/* What jumps to that function counts, too: nobody has called that. */
static __always_inline bool in_fiber_start(const struct walk *w, const struct php_record *r)
{
	return w->entry == ENTRY_END || w->loop_pc - r->fiber < r->fiber_size;
}

/* Enters the loop whose native frame was just left: 0, or what is to be said. */
__noinline int WALK_NAME(php_enter)(void)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 *s, own, first;
	bool end = false;
	int note;

	if (!w)
		return FRAME_NOTE_UNREADABLE;
	r = php_record_of(w);
	s = php_state(w);
	note = enter(w, r, s);
	if (note)
		return note;
	first = s[S_NEXT];
	if (in_gap(w, r, &end)) {
		if (end)
			s[S_FRAME] = 0;
		return 0;
	}
	own = r->frame_reg == ARCH_FIRST_SAVED ? w->loop_saved : loop_register(w, r->frame_reg);
	if (!own || !first)
		return 0;
	/* The JIT uses that one for other things, too. */
	s[S_OP] = s[S_FLAGS] & FLAG_JIT ? 0 : loop_register(w, r->op_reg);
	s[S_OWN] = own;
	if (own == first)
		return 0;
	return WALK_NAME(php_find_own)();
}

/* The loop's frames end here: its caller's registers. */
__noinline int WALK_NAME(php_leave)(void)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 *s, value;
	bool end;
	__u32 reg;

	if (!w)
		return STOP_INTERNAL;
	r = php_record_of(w);
	s = php_state(w);
	if (s[S_FLAGS] & FLAG_OTHER)
		return STOP_COMPLETE;
	if (begins_fiber(w, s[S_NEXT])) {
		s[S_FRAME] = s[S_NEXT];
		return STOP_NONE;
	}
	s[S_FLAGS] &= ~(__u64)(FLAG_LOOP | FLAG_JIT);
	s[S_FRAME] = 0;
	/* What is not pushed, its rule does not take back. */
	if (r->frame_reg && r->frame_reg != ARCH_FIRST_SAVED && !in_gap(w, r, &end)) {
		reg = r->frame_reg & (UNWIND_REGS_MAX - 1);
		w->valid &= ~(1u << reg);
		if (!read_stack(w, w->loop_sp + r->frame_saved, &value)) {
			w->regs[reg] = value;
			w->valid |= 1u << reg;
		}
		reg = r->op_reg & (UNWIND_REGS_MAX - 1);
		w->valid &= ~(1u << reg);
		if (!read_stack(w, w->loop_sp + r->op_saved, &value)) {
			w->regs[reg] = value;
			w->valid |= 1u << reg;
		}
	}
	return walk_native(w);
}

/* What runs the code of a frame that is no function's: enum php_code, by what its caller does. */
__noinline int WALK_NAME(php_code)(__u64 previous)
{
	struct walk *w = current_walk();
	__u64 op;

	if (!w || !previous || read_word(previous + PHP_FRAME_OPLINE, &op) ||
	    read_memory(op + PHP_OP_TAIL, &w->scratch[OP_AT], PHP_OP_SIZE - PHP_OP_TAIL))
		return PHP_CODE_MAIN;
	if ((__u8)(w->scratch[OP_AT + 1] >> 32) != PHP_OP_INCLUDE_OR_EVAL)
		return PHP_CODE_MAIN;
	switch (w->scratch[OP_AT] >> 32) {
	case 1:
		return PHP_CODE_EVAL;
	case 2:
		return PHP_CODE_INCLUDE;
	case 4:
		return PHP_CODE_INCLUDE_ONCE;
	case 8:
		return PHP_CODE_REQUIRE;
	case 16:
		return PHP_CODE_REQUIRE_ONCE;
	}
	return PHP_CODE_MAIN;
}

/*
 * A placeholder: is it the one in a generator, the outermost of some of which each waits for the
 * next one, and the innermost runs? They are the next frames then. Their number; 0: it isn't.
 */
__noinline int WALK_NAME(php_delegates)(__u64 frame)
{
	struct walk *w = current_walk();
	__u64 at, parent, parent_at, *s;
	__u32 i;

	if (!w)
		return 0;
	s = php_state(w);
	parent_at = php_record_of(w)->layout.generator_parent;
	s[S_GENERATOR] = s[S_DEPTH] = 0;
	w->work += DELEGATES_MAX;
	at = w->scratch[FRAME_AT + PHP_FRAME_THIS / 8];
	if (frame - at != php_record_of(w)->layout.generator_placeholder)
		return 0;
	s[S_GENERATOR] = at;
	for (i = 0; i < DELEGATES_MAX; i++) {
		if (read_word(at + parent_at, &parent) || !parent)
			break;
		at = parent;
	}
	s[S_DEPTH] = i;
	return (int)i;
}

/* The frame of the next one: those nearer to the one that runs come first. */
__noinline __u64 WALK_NAME(php_delegate)(void)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 at, frame, *s;
	__u32 i;

	if (!w)
		return 0;
	r = php_record_of(w);
	s = php_state(w);
	w->work += (__u32)s[S_DEPTH]--;
	at = s[S_GENERATOR];
	for (i = 0; i < DELEGATES_MAX && i < s[S_DEPTH]; i++)
		if (read_word(at + r->layout.generator_parent, &at))
			return 0;
	return read_word(at + r->layout.generator_frame, &frame) ? 0 : frame;
}

/* The number of the instruction at `op` in the function that was read; PHP_NO_OP: it isn't in it.
 */
static __always_inline __u32 op_number(const struct walk *w, const struct php_record *r, __u64 op)
{
	__u64 number = (op - function_word(w, r->layout.opcodes)) / PHP_OP_SIZE;

	return number < function_half(w, r->layout.last) ? (__u32)number : PHP_NO_OP;
}

enum { MEMORY_SHIFT = 30 /* ns: of a second */ };

/* Whose strings: a thread's, in an address space, within the same second. */
static __always_inline __u64 memory_key(const struct walk *w, __u64 *s)
{
	if (!s[S_MEMORY])
		s[S_MEMORY] =
			php_mix(php_mix(w->mm, (__u64)w->header.tid << 32 | w->process.generation),
				w->header.time_ns >> MEMORY_SHIFT)
				?: 1;
	return s[S_MEMORY];
}

/*
 * Does that string stay what it is? What is interned does, for a request or for longer. Within one
 * request the name of a function does, too, if the function is the same one (`proof`: its address,
 * code, lines, file): those that have names of their own are freed at its end, and closures of one
 * place have one name.
 */
static __always_inline bool stays(const struct php_record *r, __u64 type, __u64 proof)
{
	bool one = r->flags & PHP_ONE_REQUEST;

	return type & PHP_STRING_INTERNED ? type & PHP_STRING_PERMANENT || one : one && proof;
}

/*
 * The hash that a string carries; 0: there is none. Those of strings that stay are remembered,
 * among the rules by address, as nobody's address (as ruby.bpf.c has it): own =
 * memory_key(), the hash.
 */
static __always_inline __u64 string_hash(struct walk *w, const struct php_record *r, __u64 string,
					 __u64 proof)
{
	struct cached_rule *e;
	__u64 head[2], key;

	if (!string)
		return 0;
	e = rule_cache_at(w, (__u32)((string >> 3) * WALK_HASH_MULTIPLIER >> 40));
	key = memory_key(w, php_state(w)) ^ proof;
	if (e && e->pc == ~string && e->own[0] == key && e->runtime == RUNTIME_PHP)
		return e->own[1];
	/* What was saved of a process (replay cases) may have the hash alone. */
	if (read_memory(string, head, sizeof(head))) {
		return read_word(string + PHP_STRING_HASH, &head[1]) ? 0 : head[1];
	}
	if (e && head[1] && stays(r, head[0] >> 32, proof)) {
		e->pc = ~string;
		e->runtime = RUNTIME_PHP;
		e->own[0] = key;
		e->own[1] = head[1];
	}
	return head[1];
}

/* What tells the function that was read from others, but for its name's text. */
static __always_inline __u64 function_proof(const struct walk *w, const struct php_record *r,
					    __u64 func, __u64 file_hash)
{
	__u64 proof = php_mix(php_mix(func, function_word(w, r->layout.opcodes)),
			      function_word(w, r->layout.lines));

	return php_mix(php_mix(proof, function_word(w, PHP_FUNCTION_SCOPE)), file_hash);
}

/*
 * Is the function that was read the copy that a closure has? Closure::call() has one on the stack,
 * without that flag. One that was made of a function with a name of its own counts only if that has
 * a hash: else nothing tells it from another string, and the function is read where it is.
 * (Zend/zend_closures.c: zend_create_closure_ex(), Closure::call().)
 */
static __always_inline bool is_copy(const struct walk *w, const struct php_record *r, __u64 func)
{
	__u32 flags = function_half(w, PHP_FUNCTION_FLAGS);

	return flags >> (r->layout.closure_bit & 31) & 1 || func - w->loop_sp < CALLERS_MAX;
}

static __always_inline bool has_own_name(const struct walk *w, const struct php_record *r)
{
	return function_half(w, PHP_FUNCTION_FLAGS) >> (r->layout.named_bit & 31) & 1;
}

/*
 * Is the code of a file that was read a copy of what opcache keeps? It is freed when the file has
 * run; instructions that nobody counts stay. (ext/opcache/zend_accelerator_util_funcs.c,
 * zend_accel_load_script(); Zend/zend_opcode.c, destroy_op_array().)
 */
static __always_inline bool is_kept(const struct walk *w, const struct php_record *r)
{
	return r->refcount && !function_word(w, r->refcount);
}

/* Pushes the frame of such a copy; `code`: enum php_code of a file's. */
__noinline int WALK_NAME(php_push_copy)(__u64 name_hash, __u64 file_hash, __u32 number, __u64 code)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 words[PHP_COPY_WORDS], name, scope, class_name = 0, class_hash = 0, *to;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	r = php_record_of(w);
	name = function_word(w, PHP_FUNCTION_NAME);
	/* Code of a file has the scope of the method that includes it. */
	scope = name ? function_word(w, PHP_FUNCTION_SCOPE) : 0;
	if (scope && (read_word(scope + PHP_CLASS_NAME, &class_name) || !class_name))
		return push_note(w, RUNTIME_PHP, FRAME_NOTE_UNREADABLE);
	if (class_name)
		class_hash = string_hash(w, r, class_name, 0);
	words[PHP_WORD_HEADER] = FRAME(RUNTIME_PHP, PHP_COPY_WORDS - 1,
				       function_word(w, r->layout.opcodes) |
					       (name ? (__u64)PHP_CODE_COPY : code | PHP_CODE_KEPT)
						       << PHP_CODE_SHIFT);
	words[PHP_WORD_PLACE] = (__u64)php_copy_identity(name_hash, class_hash, file_hash) << 32;
	words[PHP_WORD_NAME] = name;
	words[PHP_WORD_CLASS] = class_name;
	words[PHP_WORD_FILE] = function_word(w, r->layout.filename);
	words[PHP_WORD_LINES] = function_word(w, r->layout.lines);
	to = frame_room(w, PHP_COPY_WORDS);
	if (!to)
		return STOP_MAX_FRAMES;
	UNROLL
	for (i = 0; i < PHP_COPY_WORDS; i++) {
		hash_name(w, words[i]); /* wherever it is in it */
		to[i] = words[i] | (i == PHP_WORD_PLACE ? number : 0);
		hash_word(w, to[i]);
	}
	return STOP_NONE;
}

/* Pushes a frame of PHP code whose function was read, called by the frame `previous`. */
static __always_inline int push_code(struct walk *w, __u64 func, __u64 previous, __u32 number)
{
	const struct php_record *r = php_record_of(w);
	__u64 *s = php_state(w), name, name_hash, file, code = 0;
	__u32 identity;
	bool copy;

	name = function_word(w, PHP_FUNCTION_NAME);
	file = function_word(w, r->layout.filename);
	if (file != s[S_FILE]) {
		s[S_FILE_HASH] = string_hash(w, r, file, 0);
		s[S_FILE] = file;
	}
	if (!name)
		code = (__u64)WALK_NAME(php_code)(previous);
	copy = name ? is_copy(w, r, func) : s[S_FILE_HASH] && is_kept(w, r);
	name_hash = string_hash(w, r, name, function_proof(w, r, copy ? 0 : func, s[S_FILE_HASH]));
	if (copy && (name_hash || !name || !has_own_name(w, r)))
		return WALK_NAME(php_push_copy)(name_hash, s[S_FILE_HASH], number, code);
	identity = php_identity(name, function_word(w, PHP_FUNCTION_SCOPE),
				function_word(w, r->layout.opcodes),
				function_word(w, r->layout.lines), name_hash, s[S_FILE_HASH]);
	return push_place(w, RUNTIME_PHP, func | code << PHP_CODE_SHIFT, identity, number);
}

/* Pushes the frame S_FRAME, and goes on to the one that called it. */
__noinline int WALK_NAME(php_push)(void)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 *s, frame, func, op, previous, name;
	__u32 number = PHP_NO_OP, identity, call_info;
	bool delegate;
	__u8 type;

	if (!w)
		return STOP_INTERNAL;
	r = php_record_of(w);
	s = php_state(w);
	delegate = s[S_DEPTH] != 0;
	frame = delegate ? WALK_NAME(php_delegate)() : s[S_FRAME];
	if (read_frame(w, frame))
		goto unreadable;
	func = frame_word(w, PHP_FRAME_FUNC);
	previous = frame_word(w, PHP_FRAME_PREVIOUS);
	op = frame_word(w, PHP_FRAME_OPLINE);
	call_info = (__u32)frame_word(w, PHP_FRAME_CALL_INFO);
	if (!delegate)
		s[S_FRAME] = s[S_NEXT] = previous;
	if (!func) {
		w->work++;
		if (WALK_NAME(php_delegates)(frame) == DELEGATES_MAX)
			return push_note(w, RUNTIME_PHP, FRAME_NOTE_AWAITER_UNKNOWN);
		return STOP_NONE;
	}
	if (read_to_page_end(func, &w->scratch[FUNCTION_AT], PHP_FUNCTION_SIZE))
		goto unreadable;
	type = (__u8)w->scratch[FUNCTION_AT];
	name = function_word(w, PHP_FUNCTION_NAME);
	if (type == PHP_INTERNAL_FUNCTION && !name)
		return leave_stack(w);
	if (type == PHP_INTERNAL_FUNCTION) {
		identity = php_identity(name, function_word(w, PHP_FUNCTION_SCOPE), 0, 0,
					string_hash(w, r, name, 0), 0);
		return push_place(w, RUNTIME_PHP, func, identity, PHP_NO_OP);
	}
	if (call_info & PHP_CALL_TOP && !delegate && !(s[S_FLAGS] & FLAG_OTHER))
		s[S_FRAME] = 0;
	/* Code of a file or of eval() is freed before its frame is left. */
	if (type != PHP_USER_FUNCTION && type != PHP_EVAL_CODE)
		return push_note(w, RUNTIME_PHP, FRAME_NOTE_MISMATCH);
	if (frame == s[S_OWN])
		number = op_number(w, r, s[S_OP]);
	if (number == PHP_NO_OP && frame != s[S_STALE])
		number = op_number(w, r, op);
	return push_code(w, func, previous, number);
unreadable:
	s[S_FRAME] = s[S_NEXT] = s[S_DEPTH] = 0;
	return push_note(w, RUNTIME_PHP, FRAME_NOTE_UNREADABLE);
}

/* --- code that opcache's JIT has made ----------------------------------------------------------
 */

/*
 * It is entered by a jump from the loop, and leaves by one: its frame is the loop's, and what it
 * takes of the stack is below that. (ext/opcache/jit/zend_jit_x86.dasc, zend_jit_prologue(); so it
 * tells gdb.) A loop that has a frame pointer, as all have from 8.3 on, is found by that, since the
 * JIT never writes to it (zend_jit_ir.c, jit_init(): "prevent %rbp usage"). Else by the stack
 * protector's word in its frame: the first one above the stack pointer behind which lies where a
 * call returns to that may be the loop's. (Words of functions that have returned are there, too,
 * between the registers that are saved.) If it has none, by where it returns to alone, at the
 * distances that the code has: php_jit_called_loop().
 */
enum {
	/* That the stack pointer may be below the loop's: the code that is run when a trace is left
	 * saves 32 registers there (zend_jit_trace_exit_stub(), ir_x86.dasc's IR_EXITCALL). */
	JIT_WORDS = 64,
	JIT_FRAME_MAX = 64 << 10, /* bytes */
	/* zend_jit_prologue()'s 16 bytes, and a return address or the number of a trace's exit. */
	JIT_OWN_WORDS = 4,
	/* What zend_jit_trace_exit_stub() takes: add $248, %rsp behind its call. */
	JIT_EXIT_SAVED = 16 * 8 + 16 * 8 - 8,
	LOOP_UNREADABLE = -1,
};

/*
 * Does the loop's frame begin at `at`? `canary` 0: it is not known. `by_call`: only if the call
 * that it returns behind may be the loop's; what is called by its name is the loop itself.
 * LOOP_UNREADABLE: that call is not in memory just now, so another loop further up must not be
 * taken for it. A function of its own, since the verifier would follow it once for each word of the
 * stack.
 */
__noinline int WALK_NAME(php_is_loop)(__u64 at, __u64 canary, bool by_call)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 value, ra, call, called;

	if (!w)
		return 0;
	r = php_record_of(w);
	if (canary && (read_stack(w, at + r->canary, &value) || value != canary))
		return 0;
	if (read_stack(w, at + r->jit_frame - 8, &ra) || ra - r->text >= r->text_size)
		return 0;
	w->work++; /* a stack can be made of such words */
	if (read_word(ra - sizeof(call), &call))
		return LOOP_UNREADABLE;
	if (!arch_is_call(call))
		return 0;
	called = arch_called(call, ra);
	return !by_call || !called || called == r->loop_start;
}

/* Does the loop's frame begin at `at`, since one of its callers is where it returns to? */
__noinline int WALK_NAME(php_is_called_loop)(__u64 at)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 ra;
	__u32 i;

	if (!w)
		return 0;
	r = php_record_of(w);
	if (read_stack(w, at + r->jit_frame - 8, &ra) || ra - r->text >= r->text_size)
		return 0;
	w->work++;
	for (i = 0; i < PHP_CALLERS_MAX; i++)
		if (i < r->nr_callers && r->callers[i] == ra - r->text)
			return 1;
	return 0;
}

/* The first such place from `at` on; 0: there is none. */
static __always_inline __u64 called_loop_from(__u64 at)
{
	__u32 i;

	for (i = 0; i <= JIT_OWN_WORDS; i++, at += 8)
		if (WALK_NAME(php_is_called_loop)(at))
			return at;
	return 0;
}

/*
 * The stack pointer of a loop without a stack protector's word and a frame pointer that runs the
 * JIT's code; 0: it can't be told. That code moves the stack pointer by few words. Where a trace is
 * left it takes more, and has words there that it did not write, which may be another loop's return
 * address of before: behind its call, the instruction tells; what is interrupted is only known if
 * just one of both distances leads to a loop.
 */
__noinline __u64 WALK_NAME(php_jit_called_loop)(void)
{
	struct walk *w = current_walk();
	__u64 at, exit_at, found, exit_found, code = 0;

	if (!w)
		return 0;
	at = exit_at = w->regs[ARCH_SP];
	if (w->interrupted)
		exit_at += JIT_EXIT_SAVED;
	else if (!read_word(w->pc + 1, &code) && (code & 0xffffff) == 0xc48148 &&
		 (__u32)(code >> 24) == JIT_EXIT_SAVED)
		at = exit_at += JIT_EXIT_SAVED;
	found = called_loop_from(at);
	exit_found = exit_at != at ? called_loop_from(exit_at) : 0;
	return found && exit_found ? 0 : found ?: exit_found;
}

/* The stack pointer of the loop that runs the JIT's code; 0: it can't be told. */
__noinline __u64 WALK_NAME(php_jit_loop)(__u64 canary)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 at, own;
	__u32 i;
	int is;

	if (!w)
		return 0;
	r = php_record_of(w);
	at = w->regs[ARCH_SP];
	own = w->regs[ARCH_FP] - r->frame_pointer;
	if (r->frame_pointer && w->valid & 1u << ARCH_FP && own - at < JIT_FRAME_MAX &&
	    WALK_NAME(php_is_loop)(own, canary, false) == 1)
		return own;
	for (i = 0; canary && i < JIT_WORDS; i++, at += 8) {
		is = WALK_NAME(php_is_loop)(at, canary, true);
		if (is)
			return is == LOOP_UNREADABLE ? 0 : at;
	}
	return 0;
}

/* Moves to the loop's caller, as if the loop itself were left: 0 or a stop reason; -1: it is not
 * so. */
__noinline int WALK_NAME(php_jit)(void)
{
	struct walk *w = current_walk();
	const struct php_record *r;
	__u64 at, canary = 0, value, ra, *s;
	__u32 i, reg;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = php_record_of(w);
	/* x86-64: only there is jit_frame known. Of a copied stack, the thread pointer may not be.
	 */
	at = walk_thread_pointer(w);
	if (r->canary && at && read_word(at + 0x28, &canary))
		canary = 0;
	at = r->nr_callers ? WALK_NAME(php_jit_called_loop)() : WALK_NAME(php_jit_loop)(canary);
	if (!at || read_stack(w, at + r->jit_frame - 8, &ra))
		return -1;
	w->loop_sp = at;
	w->loop_pc = 0;
	at += r->jit_frame - 8;
	for (i = 0; i < PHP_PUSHED_MAX; i++) {
		if (i >= r->nr_pushed)
			break;
		stop = read_stack(w, at - 8 - 8 * (__u64)i, &value);
		if (stop)
			return stop;
		reg = r->pushed[i] & (UNWIND_REGS_MAX - 1);
		w->regs[reg] = value;
		w->valid |= 1u << (reg & 31);
	}
	s = runtime_state(w, RUNTIME_PHP);
	s[S_FLAGS] |= FLAG_JIT;
	w->entry = ENTRY_LOOP;
	w->by_frame_pointer = 0;
	return walk_to_caller(w, at + 8, ra);
}

/*
 * Where the loop is not found, such code is left as the native step does it where nobody claims the
 * code: by what is in the frame pointer's register. That may be the loop's own, which leads past
 * the loop: so it is said that its frames may be missing, and all further ones of the chain are no
 * longer known to belong to who is found next.
 */
static __always_inline int code_step(struct walk *w)
{
	const struct php_record *r = runtime_record(w, RUNTIME_PHP, struct php_record);
	int stop = -1;

	if (r && r->jit_frame)
		stop = WALK_NAME(php_jit)();
	if (stop >= 0)
		return stop;
	w->runtime = RUNTIME_NATIVE;
	stop = push_frame(w, RUNTIME_NATIVE, w->pc);
	if (!stop)
		stop = WALK_NAME(native_frame_pointer)(CODE_ANON);
	if (stop)
		return stop;
	runtime_state(w, RUNTIME_PHP)[S_FLAGS] |= FLAG_LOST;
	return push_note(w, RUNTIME_PHP, FRAME_NOTE_CALLER_UNSURE);
}

/* Is it not known any more which frames of the chain are whose? */
static __always_inline bool is_lost(const struct walk *w, const struct php_record *r, __u64 *s)
{
	if (w->entry == ENTRY_LOOP && w->loop_pc - r->change < r->change_size)
		s[S_FLAGS] |= FLAG_LOST;
	return s[S_FLAGS] & FLAG_LOST || w->skipped;
}

/* One frame a call. */
STEP(php)
{
	const struct php_record *r;
	struct walk *w = current_walk();
	__u64 *s;
	int note = 0, stop;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return code_step(w);
	/* A fiber's first function has said already what there is to say. */
	if (w->entry == ENTRY_END && w->begun & 1u << RUNTIME_PHP &&
	    !(w->state[RUNTIME_PHP][S_FLAGS] & FLAG_LOOP))
		return walk_native(w);
	r = runtime_record(w, RUNTIME_PHP, struct php_record);
	s = runtime_state(w, RUNTIME_PHP);
	if (!r || w->late)
		note = FRAME_NOTE_NOT_READY;
	else if (is_lost(w, r, s))
		note = FRAME_NOTE_MISMATCH;
	else if (!(s[S_FLAGS] & FLAG_LOOP) && in_fiber_start(w, r))
		return WALK_NAME(php_enter_fiber)();
	else if (!(s[S_FLAGS] & FLAG_LOOP))
		note = WALK_NAME(php_enter)();
	if (note) {
		stop = push_note(w, RUNTIME_PHP, note);
		return stop ? stop : walk_native(w);
	}
	if (s[S_FRAME] || s[S_DEPTH])
		return WALK_NAME(php_push)();
	return WALK_NAME(php_leave)();
}
