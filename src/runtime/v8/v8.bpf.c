// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * V8's step: names the frames of JavaScript. All code that V8 makes keeps a frame pointer, and so
 * do its builtins, which lie in its file: where their callers are is the native step's to find.
 *
 * Frames of the interpreter are those of one builtin, InterpreterEntryTrampoline, which calls the
 * handlers of bytecodes: ENTRY_LOOP comes behind it. Code of functions (Sparkplug's, Maglev's,
 * TurboFan's) lies in anonymous memory: ENTRY_CODE. Both have the function (JSFunction) below their
 * frame pointer, and above that the context, where frames that are no function's have a small
 * integer, which tells what they are (frame-constants.h: StandardFrameConstants,
 * TypedFrameConstants).
 *
 * Read v8_abi.h first.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/v8/v8_abi.h"

#define v8_record(w) runtime_record(w, RUNTIME_V8, struct v8_record)

enum {
/* On entry: JSFunctionRegister; InterpreterBytecodeOffsetRegister; kRootRegister. */
#if defined(__TARGET_ARCH_x86)
	REG_FUNCTION = X86_RDI,
	REG_ROOT = X86_R13,
	REG_OFFSET = 9,	       /* r9 */
	POPPED_FUNCTION = -24, /* from sp, where a function is about to return */
#else
	REG_FUNCTION = 1,
	REG_ROOT = 26,
	REG_OFFSET = 19,
	POPPED_FUNCTION = -32,
#endif
	TAG_MASK = 3,
	TAG = 1, /* of a pointer to an object */
	/* JSDispatchEntry: where the Code's address is in it, above the number of parameters. */
	ENTRY_SIZE = 16,
	ENTRY_CODE_AT = 8,
	ENTRY_CODE_SHIFT = 16,
	/* What v8_is_function() says, and bytes within which code has set up its frame. */
	IS_FUNCTION = 1,
	IS_INSIDE = 2,
	PROLOGUE_MAX = 128,
	/* aarch64: instructions from pc on that are looked at, for whether a frame comes or has
	   gone. */
	LOOK_AHEAD = 12,
	A64_IP0 = 16,
	CHUNK = 256 << 10, /* pages of a heap begin at multiples of this */
	/* How WebAssembly's code begins. */
	LIFTOFF_ALIGNMENT = 32,
	LIFTOFF_LOAD = 0xbc41, /* mov $N, %r12d */
	LIFTOFF_LOAD_SIZE = 6,
	LIFTOFF_ZERO = 0xe43145, /* xor %r12d, %r12d: a module's first function */
	LIFTOFF_ZERO_SIZE = 3,
	LIFTOFF_CALL = 0xe8,
	LIFTOFF_CALL_SIZE = 5,
	/* What the frames of a stack have in common, and is read once in a walk (runtime_state()):
	 * the map of most functions, a script and its id; objects_of(), its flags. */
	STATE_MAP = 0,
	STATE_SCRIPT = 1,
	STATE_SCRIPT_ID = 2,
	/* How far from where they belong the builtins are that ran, in whole pages. */
	STATE_MOVED = 3,
	/* --async: whose waiters are looked for, a promise or an async function's object; so many
	 * are left to look at; and what was said. */
	STATE_PROMISE = 4,
	STATE_LEFT = 5,
	STATE_SAID = 6,
	STATE_OBJECTS = 7,
	STATE_FLAGS = 8,
	STATE_HEAP = 9,	 /* whose these objects are */
	FLAG_LOOKED = 1, /* for the objects */
	FLAG_STAY = 2,	 /* JavaScript's code itself was interrupted, so no collection was */
};

__noinline int WALK_NAME(v8_push)(__u64 function, __u64 kind, __u64 place, __u64 shared);
__noinline int WALK_NAME(v8_is_function)(__u64 function, __u64 pc);
__noinline int WALK_NAME(v8_object)(__u64 tagged);
__noinline int WALK_NAME(v8_is_script)(__u64 function);
__noinline __u64 WALK_NAME(v8_promise_of)(__u64 generator);
__noinline int WALK_NAME(v8_goes_on)(__u64 handler);
__noinline int WALK_NAME(v8_async_begin)(__u64 context);
__noinline int WALK_NAME(v8_async)(void);
__noinline int WALK_NAME(v8_interpreted)(void);
__noinline int WALK_NAME(v8_wasm)(int unbuilt);
__noinline int WALK_NAME(v8_is_frameless)(void);
__noinline int WALK_NAME(v8_code)(void);

static __always_inline bool is_object(__u64 value)
{
	return (value & TAG_MASK) == TAG;
}

static __always_inline __u16 field_2(const struct walk *w, __u32 offset)
{
	return (__u16)(w->scratch[V8_WORD(offset)] >> 8 * (offset & 7));
}

static __always_inline __u32 field_4(const struct walk *w, __u32 offset)
{
	return (__u32)(w->scratch[V8_WORD(offset)] >> 8 * (offset & 7));
}

static __always_inline __u64 field_8(const struct walk *w, __u32 offset)
{
	return w->scratch[V8_WORD(offset)];
}

/* What a tagged field has, whose bytes are the first ones of that word; `near`: v8_abi.h. */
static __always_inline __u64 tagged_of(const struct v8_record *r, __u64 near, __u64 word)
{
	return r->compressed ? V8_DECOMPRESS(near, word) : word;
}

static __always_inline __u64 field_tagged(const struct walk *w, const struct v8_record *r,
					  __u64 near, __u32 offset)
{
	return tagged_of(r, near, field_8(w, offset) >> 8 * (offset & 7));
}

/* What an object begins with: its map, or while it is being moved where to (MapWord). */
static __always_inline __u64 map_word(const struct v8_record *r, __u64 near, __u64 word)
{
	return r->compressed ? V8_NEAR(near, word) : word;
}

/* --- what was read before ----------------------------------------------------------------------
 */

/*
 * Objects are freed and moved by collections only, each of which counts itself before it does so
 * (heap.cc: GarbageCollectionPrologueInSafepoint(), up to 8.4 GarbageCollectionPrologue(), which
 * increment gc_count_). What is on a stack while none is under way is alive, and so it is the same
 * until that number changes. Which objects these are: those of the heap (its address is in the root
 * register) of a thread of an address space, since one that was taken down and one that was made
 * may have equal numbers. 0: that is not known.
 */
static __always_inline __u64 objects_of(struct walk *w, const struct v8_record *r, __u64 *state)
{
	__u64 root = w->regs[REG_ROOT], hash;
	__u32 number;

	if (state[STATE_FLAGS] & FLAG_LOOKED)
		return state[STATE_OBJECTS];
	state[STATE_FLAGS] |= FLAG_LOOKED;
	if (!r->collections || !(w->valid & 1u << REG_ROOT) ||
	    read_memory(root + r->collections, &number, sizeof(number)))
		return 0;
	hash = (root ^ w->mm) * WALK_HASH_MULTIPLIER;
	hash = (hash ^ hash >> 29 ^ w->header.tid) * WALK_HASH_MULTIPLIER;
	hash ^= hash >> 29 ^ ((__u64)w->process.generation << 32 | number);
	state[STATE_OBJECTS] = finish_hash(hash) ?: 1;
	state[STATE_HEAP] = root + (__s64)r->heap;
	return state[STATE_OBJECTS];
}

/*
 * A CPU's memory of functions, among the rules by address, as no address of code
 * (ruby.bpf.c has it so, too): own = objects_of(), the SharedFunctionInfo with the place of the
 * name, script and literal. `generation` 1: that it is a JSFunction was proved.
 */
static __always_inline struct cached_rule *memory_of(const struct walk *w, __u64 function)
{
	return rule_cache_at(w, (__u32)((function >> 3) * WALK_HASH_MULTIPLIER >> 40));
}

static __always_inline bool is_known(const struct cached_rule *e, __u64 objects, __u64 function)
{
	return objects && e->pc == ~function && e->own[0] == objects && e->runtime == RUNTIME_V8;
}

/*
 * Whether the heap is that of the root register, which is another one's where an isolate's
 * functions call those of another isolate. What is remembered is asked for by the root register.
 */
static __always_inline bool is_of_heap(struct walk *w, const struct v8_record *r, __u64 function)
{
	__u64 at = function & ~(CHUNK - 1ull), heap;

	if (r->chunk_metadata && read_word(at + r->chunk_metadata, &at))
		return false;
	return !read_word(at + r->chunk_heap, &heap) &&
	       heap == runtime_state(w, RUNTIME_V8)[STATE_HEAP];
}

/* `of`: what is remembered of the function. */
static __always_inline int push_function(struct walk *w, const __u64 *of, __u64 kind, __u64 place)
{
	__u64 words[3], *to = frame_room(w, 3);
	__u32 i;

	if (!to)
		return STOP_MAX_FRAMES;
	words[0] = FRAME(RUNTIME_V8, 2, V8_FRAME(kind, of[1]));
	words[1] = of[2];
	words[2] = V8_PLACE_WORD(of[1] >> 48, place);
	UNROLL
	for (i = 0; i < 3; i++) {
		to[i] = words[i];
		hash_word(w, words[i]);
		hash_name(w, words[i]);
	}
	return STOP_NONE;
}

/*
 * Pushes a frame of `function`, a tagged pointer: what tells it apart is read now. `shared`: its
 * SharedFunctionInfo, if that is known already; else 0.
 */
__noinline int WALK_NAME(v8_push)(__u64 function, __u64 kind, __u64 place, __u64 shared)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 script, own[3], *state;
	struct cached_rule *e;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	if (!r || !is_object(function))
		return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
	state = runtime_state(w, RUNTIME_V8);
	own[0] = objects_of(w, r, state);
	e = memory_of(w, function);
	if (e && is_known(e, own[0], function)) {
		e->generation |= kind == V8_CODE;
		return push_function(w, e->own, kind, place);
	}
	if (!shared) {
		if (read_word(function - TAG + r->function_shared, &shared))
			return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
		shared = tagged_of(r, function, shared);
	}
	if (!is_object(shared) || read_to_page_end(shared - TAG, w->scratch, V8_OBJECT_SIZE / 2))
		return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
	script = field_tagged(w, r, shared, r->shared_script);
	own[1] = V8_PLACE_WORD(field_2(w, r->shared_token), shared - TAG);
	own[2] = field_4(w, r->shared_literal);
	if (!is_object(script))
		return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
	if (script != state[STATE_SCRIPT]) {
		__u64 id;

		state[STATE_SCRIPT] = 0;
		if (read_word(script - TAG + r->script_id, &id))
			return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
		state[STATE_SCRIPT_ID] = tagged_of(r, script, id);
		state[STATE_SCRIPT] = script;
	}
	own[2] |= (state[STATE_SCRIPT_ID] >> 32) << 32;
	if (e && own[0] && state[STATE_FLAGS] & FLAG_STAY && is_of_heap(w, r, function)) {
		e->pc = ~function;
		e->generation = kind == V8_CODE;
		e->runtime = RUNTIME_V8;
		e->own[0] = own[0];
		e->own[1] = own[1];
		e->own[2] = own[2];
	}
	return push_function(w, own, kind, place);
}

/* The Code of that entry of the table that functions are called by: the root register leads there,
 * which all code of V8's keeps. */
static __always_inline __u64 dispatched_code(struct walk *w, const struct v8_record *r, __u32 entry)
{
	__u64 table, code;

	if (read_word(w->regs[REG_ROOT] + r->dispatch, &table) ||
	    read_word(table + (__u64)entry * ENTRY_SIZE + ENTRY_CODE_AT, &code))
		return 0;
	return code >> ENTRY_CODE_SHIFT | TAG; /* the tag's place says whether it is in use */
}

/* Whether the objects that have that map are JSFunctions. */
static __always_inline bool is_function_map(struct walk *w, const struct v8_record *r, __u64 map)
{
	__u64 *state = runtime_state(w, RUNTIME_V8);
	__u16 type;

	if (!is_object(map))
		return false;
	if (map == state[STATE_MAP])
		return true;
	if (read_memory(map - TAG + r->map_type, &type, sizeof(type)) || type < r->function_first ||
	    type > r->function_last)
		return false;
	state[STATE_MAP] = map;
	return true;
}

/* Whether that is a JSFunction; and if `pc`, which was interrupted, is not 0, one whose code has
 * it.
 */
__noinline int WALK_NAME(v8_is_function)(__u64 function, __u64 pc)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 map, code = 0, start;

	if (!w)
		return 0;
	r = v8_record(w);
	if (!r || !is_object(function) ||
	    read_to_page_end(function - TAG, w->scratch, V8_OBJECT_SIZE / 2))
		return 0;
	map = map_word(r, function, w->scratch[0]);
	if (!(map & TAG)) {
		if (read_to_page_end(map, w->scratch, V8_OBJECT_SIZE / 2))
			return 0;
		map = map_word(r, function, w->scratch[0]);
	}
	code = r->dispatch ? field_4(w, r->function_code)
			   : field_tagged(w, r, function, r->function_code);
	if (!is_function_map(w, r, map))
		return 0;
	if (!pc)
		return IS_FUNCTION;
	if (r->dispatch)
		code = dispatched_code(w, r, (__u32)code >> (r->dispatch_shift & 31));
	if (!is_object(code) || read_to_page_end(code - TAG, w->scratch, V8_OBJECT_SIZE / 2))
		return 0;
	start = r->code_inline ? code - TAG + r->code_inline : field_8(w, r->code_start);
	if (pc - start >= field_4(w, r->code_size))
		return 0;
	return pc - start < PROLOGUE_MAX ? IS_FUNCTION : IS_INSIDE;
}

#include "runtime/v8/v8_async.bpf.h"

/* --- the interpreter ------------------------------------------------------------------------- */

/*
 * Which bytecode it is: the frame has it, up to date as of the last call of a handler (they save it
 * before). What a handler that was interrupted itself is about is in registers, if they are still
 * what they were when it began.
 */
static __always_inline __u64 bytecode_at(struct walk *w, const struct v8_record *r, __u64 fp)
{
	__u64 array, at, header = r->bytecodes - TAG, first = 0;
	/* V8 may map its builtins a second time, near the code that it makes. */
	__u64 moved = (w->loop_pc - r->entry_start) & ~(PAGE - 1ull);

	if (read_stack(w, fp + (__s64)r->fp_bytecode_array, &array) ||
	    read_stack(w, fp + (__s64)r->fp_bytecode_offset, &at))
		return V8_NO_PLACE;
	at = tagged_of(r, fp, at);
	if ((__u32)at)
		return V8_NO_PLACE;
	at >>= 32;
	if (w->nr_frames == 1) /* on the way in or out */
		return V8_NO_PLACE;
	if (w->nr_frames == 2) {
		const __u64 *words = walk_words(w);

		first = words ? FRAME_DATA(words[w->full.nr_kernel & (SAMPLE_MAX_KERNEL_FRAMES)])
			      : 0;
	}
	if (first - moved - r->handlers_start < r->handlers_end - r->handlers_start) {
		runtime_state(w, RUNTIME_V8)[STATE_FLAGS] |= FLAG_STAY;
		if (w->regs[r->bytecodes_register & (UNWIND_REGS_MAX - 1)] != array)
			return V8_NO_PLACE;
		at = w->regs[REG_OFFSET];
	}
	return at - header < V8_BYTECODES_MAX ? at - header : V8_NO_PLACE;
}

/*
 * Whether the native frame was one of InterpreterEntryTrampoline, or of what goes on with frames
 * that are as its own, not of what goes on with an async function. `function`: what the frame is
 * of.
 */
static __always_inline bool is_entry(struct walk *w, const struct v8_record *r, __u64 function)
{
	__u64 at = w->loop_pc - r->entry_start, moved = at & ~(PAGE - 1ull);
	__u64 *state = runtime_state(w, RUNTIME_V8);
	__u32 i;

	if (!r->entry_size || at < r->entry_size)
		return true;
	/* What goes on with a frame that V8 made of an optimized one. */
	UNROLL
	for (i = 0; i < V8_RESUMES; i++)
		if (((at - (__s64)r->resume[i]) & (PAGE - 1)) < r->resume_size[i] &&
		    WALK_NAME(v8_is_script)(function))
			return true;
	if ((at & (PAGE - 1)) >= r->entry_size)
		return false;
	/* V8 may map its builtins a second time; both may have the same place in a page. */
	if (moved == state[STATE_MOVED])
		return true;
	if (!WALK_NAME(v8_is_script)(function))
		return false;
	state[STATE_MOVED] = moved;
	return true;
}

__noinline int WALK_NAME(v8_interpreted)(void)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 fp, low, marker = 0, function = 0;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	if (!r || w->late)
		return push_note(w, RUNTIME_V8, FRAME_NOTE_NOT_READY);
	/* Behind its frame pointer, whether the caller's stack pointer is right there or above. */
	if (!(w->valid & 1u << ARCH_SP) && !w->by_frame_pointer)
		return push_note(w, RUNTIME_V8, FRAME_NOTE_MISMATCH);
	fp = w->regs[ARCH_SP] - 16;
	low = w->loop_sp;
	if (fp + (__s64)r->fp_function >= low) {
		stop = read_stack(w, fp + (__s64)r->fp_context, &marker);
		if (!stop)
			stop = read_stack(w, fp + (__s64)r->fp_function, &function);
		if (stop)
			return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
		/* Not the function's frame: it is being compiled, say. */
		if (!(marker & 1))
			return STOP_NONE;
		if (!is_entry(w, r, function))
			return WALK_NAME(v8_async_begin)(marker);
		return WALK_NAME(v8_push)(function, V8_INTERPRETED, bytecode_at(w, r, fp), 0);
	}
	/* It was interrupted before it had made its frame, or after. */
	if (((w->loop_pc - r->entry_start) & (PAGE - 1)) < r->entry_pushed - r->entry_start) {
		function = w->regs[REG_FUNCTION];
		if (WALK_NAME(v8_is_function)(function, 0))
			return is_entry(w, r, function)
				       ? WALK_NAME(v8_push)(function, V8_INTERPRETED, V8_NO_PLACE,
							    0)
				       : STOP_NONE;
	}
	if (r->entry_size && ((w->loop_pc - r->entry_start) & (PAGE - 1)) >= r->entry_size)
		return STOP_NONE;
	return push_note(w, RUNTIME_V8, FRAME_NOTE_UNREADABLE);
}

/* --- code --------------------------------------------------------------------------------------
 */

enum frame {
	LIKELY,	 /* the frame pointer is the function's */
	CERTAIN, /* so, whatever lies at the stack pointer */
	UNBUILT, /* it is the caller's: the frame is not there yet, or no more */
	LINKED,	 /* so, and the link register has the return address (aarch64) */
};

/*
 * aarch64: whether the return address is in the link register of the code that was interrupted, and
 * the frame pointer its caller's: a frame record is about to be stored, or nothing but a return
 * comes (MacroAssembler::EnterFrame(); CodeGenerator::AssembleReturn(), which takes arguments off
 * the stack between that of the frame and ret).
 */
__noinline int WALK_NAME(v8_is_frameless)(void)
{
	struct walk *w = current_walk();
	__u32 *code, i, insn;

	if (!w || !ARCH_LINK_REGISTER)
		return 0;
	code = (__u32 *)w->scratch;
	if (read_memory(w->pc, code, LOOK_AHEAD * sizeof(*code)))
		return 0;
	UNROLL
	for (i = 0; i < LOOK_AHEAD; i++) {
		insn = code[i];
		if (insn == 0xd65f03c0 || (insn & 0xffc07fff) == 0xa9807bfd)
			return 1; /* ret; stp x29, x30, [sp, #-N]! */
		if ((insn & 0x7c000000) == 0x14000000 || (insn & 0xfffffc1f) == 0xd63f0000 ||
		    (insn & 31) == ARCH_LINK_REGISTER ||
		    ((insn & 0x3a400000) == 0x28400000 && (insn >> 10 & 31) == ARCH_LINK_REGISTER))
			return 0; /* b, bl, blr; what writes the register; ldp */
		/* br, unless it is that of code that is not to be run any more. */
		if ((insn & 0xfffffc1f) == 0xd61f0000 &&
		    (i + 1 == LOOK_AHEAD || (code[i + 1] & 0xffc07fff) != 0xa9807bfd))
			return 0;
	}
	return 0;
}

/* Where the function lay in the frame that the interrupted code has taken down. */
static __always_inline __u64 popped_function(const struct walk *w)
{
	__u64 sp = w->regs[ARCH_SP], code[2];

	/* add sp, sp, x16, lsl #3 took the arguments off, and ret comes */
	if (ARCH_LINK_REGISTER != 0 && !read_memory(w->pc - 8, code, sizeof(code)) &&
	    code[0] >> 32 == 0x8b306fff && (__u32)code[1] == 0xd65f03c0)
		sp -= 8 * w->regs[A64_IP0];
	return sp + (__s64)POPPED_FUNCTION;
}

/* The function whose code was interrupted; 0: none that is certain. */
static __always_inline __u64 interrupted_function(struct walk *w, const struct v8_record *r,
						  enum frame *ret_frame)
{
	__u64 sp = w->regs[ARCH_SP], fp = w->regs[ARCH_FP], function = 0, marker = 0, popped = 0;
	bool frameless = ARCH_LINK_REGISTER != 0 && WALK_NAME(v8_is_frameless)();
	int is;

	if (!frameless && fp - sp < 1 << 20 && !(fp & 7) &&
	    !read_stack(w, fp + (__s64)r->fp_context, &marker) &&
	    !read_stack(w, fp + (__s64)r->fp_function, &function) && marker & 1 &&
	    fp + (__s64)r->fp_function >= sp) {
		is = WALK_NAME(v8_is_function)(function, w->pc);
		/* A function that calls itself may be at its end, where this is its caller's. */
		if (is == IS_INSIDE && !read_word(sp + (__s64)POPPED_FUNCTION, &popped) &&
		    popped != function)
			*ret_frame = CERTAIN;
		if (is)
			return function;
	}
	*ret_frame = frameless ? LINKED : UNBUILT;
	/* On the way in. */
	function = w->regs[REG_FUNCTION];
	if (WALK_NAME(v8_is_function)(function, w->pc))
		return function;
	/* On the way out. */
	if (!read_word(popped_function(w), &function) && WALK_NAME(v8_is_function)(function, w->pc))
		return function;
	if (!frameless)
		*ret_frame = LIKELY;
	return 0;
}

/*
 * To the caller of code whose frame is not built: what lies at the stack pointer, if a call returns
 * to that. Within a prologue or an epilogue, where it lies elsewhere, the frame pointer leads to
 * the caller's caller, or to the caller; that is said.
 */
static __always_inline int leave_unbuilt(struct walk *w, enum frame frame)
{
	__u64 sp = w->regs[ARCH_SP], ra, code[2] = { 0 };
	int stop;

	/* There the code has told. */
	if (ARCH_LINK_REGISTER) {
		if (frame != LINKED)
			return WALK_NAME(native_frame_pointer)(CODE_BYTES);
		w->by_frame_pointer = 1;
		return walk_to_caller(w, sp, w->regs[ARCH_LINK_REGISTER]);
	}
	/* It has just begun to be: a caller's has the context and the function at least. */
	if (w->regs[ARCH_FP] - sp < 24 ||
	    (!read_memory(w->pc - 8, code, sizeof(code)) &&
	     arch_look_at_code(code[0], code[1]) == ARCH_FRAME_PUSHED))
		return WALK_NAME(native_frame_pointer)(CODE_BYTES);
	if (WALK_NAME(native_returns_to)(sp) && !read_stack(w, sp, &ra)) {
		w->by_frame_pointer = 1;
		return walk_to_caller(w, sp + 8, ra);
	}
	stop = append_frame(w, RUNTIME_NATIVE, FRAME_NOTE_CALLER_UNSURE, 1, 0);
	return stop ? stop : WALK_NAME(native_frame_pointer)(CODE_BYTES);
}

/*
 * To the caller of code that was interrupted behind its prologue, unless it is leaving: what lies
 * at the stack pointer may be a return address of earlier, and means nothing.
 */
static __always_inline int leave_built(struct walk *w)
{
	__u64 fp = w->regs[ARCH_FP], saved, ra, code[2] = { 0 };

	if (read_memory(w->pc - 8, code, sizeof(code)) ||
	    arch_look_at_code(code[0], code[1]) != ARCH_FRAME_UNKNOWN ||
	    read_stack(w, fp + 8, &ra) || read_stack(w, fp, &saved))
		return WALK_NAME(native_frame_pointer)(CODE_BYTES);
	w->by_frame_pointer = 1;
	w->regs[ARCH_FP] = saved;
	/* The record is on top of the frame, on aarch64, too. */
	return walk_to_caller(w, fp + 16, ra);
}

/*
 * The function of a frame whose frame pointer is its own: what was interrupted is code that the
 * function no longer has, or that was made for a loop of it. *ret_shared: its SharedFunctionInfo.
 */
static __always_inline __u64 framed_function(struct walk *w, const struct v8_record *r,
					     __u64 *ret_shared)
{
	__u64 fp = w->regs[ARCH_FP], function, marker, code[2] = { 0 };
	const struct cached_rule *e;

	if (read_stack(w, fp + (__s64)r->fp_context, &marker) || !(marker & 1) ||
	    read_stack(w, fp + (__s64)r->fp_function, &function))
		return 0;
	e = memory_of(w, function);
	if (!e || !is_known(e, objects_of(w, r, runtime_state(w, RUNTIME_V8)), function) ||
	    !e->generation) {
		if (!WALK_NAME(v8_is_function)(function, 0))
			return 0;
		*ret_shared = field_tagged(w, r, function, r->function_shared);
	}
	if (w->interrupted) {
		enum arch_frame frame;

		if (fp + (__s64)r->fp_function < w->regs[ARCH_SP] ||
		    read_memory(w->pc - 8, code, sizeof(code)))
			return 0;
		frame = arch_look_at_code(code[0], code[1]);
		if (frame == ARCH_FRAME_NONE || frame == ARCH_FRAME_PUSHED ||
		    (frame == ARCH_FRAME_UNKNOWN && WALK_NAME(native_returns_to)(w->regs[ARCH_SP])))
			return 0;
	}
	return function;
}

/*
 * Code that is no function's of JavaScript: WebAssembly's, if its frame says so, or if it was
 * interrupted on its way in or out, or if its code says that its frame is not there yet
 * (`unbuilt`); else it has no name.
 */
__noinline int WALK_NAME(v8_wasm)(int unbuilt)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	__u64 marker, line, *words, hash = 0;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	r = v8_record(w);
	if (!r || !r->wasm_marker)
		return push_frame(w, RUNTIME_NATIVE, w->pc);
	if (!unbuilt &&
	    (!(w->valid & 1u << ARCH_FP) ||
	     read_stack(w, w->regs[ARCH_FP] + (__s64)r->fp_context, &marker) ||
	     (marker != r->wasm_marker && !(w->interrupted && marker == r->to_wasm_marker))))
		return push_frame(w, RUNTIME_NATIVE, w->pc);
	words = w->scratch;
	line = V8_LINE_OF(w->pc);
	if (read_memory(line, words + V8_CODE_LINE / 8, V8_CODE_LINE))
		return push_frame(w, RUNTIME_NATIVE, w->pc);
	if (V8_LINE_IS_FIRST(line) || read_memory(line - V8_CODE_LINE, words, V8_CODE_LINE)) {
		UNROLL
		for (i = 0; i < V8_CODE_LINE / 8; i++)
			words[i] = 0;
	}
	UNROLL
	for (i = 0; i < V8_CODE_WORDS; i++)
		hash = V8_CODE_MIX(hash, words[i]);
	return push_frame_2(w, RUNTIME_V8, V8_FRAME(w->interrupted ? V8_WASM : V8_WASM_CALL, w->pc),
			    hash);
}

/*
 * Whether the frame of WebAssembly's code is not there yet: since V8 12.9 code of its first
 * compiler begins with its function's number in %r12d and the call of a builtin, which makes it;
 * that is what was interrupted. The frame pointer is the caller's, perhaps JavaScript's.
 */
static __always_inline bool is_before_frame(struct walk *w)
{
	__u64 code, load = LIFTOFF_LOAD_SIZE, into = w->pc & (LIFTOFF_ALIGNMENT - 1);

	if (!w->interrupted) {
		if (w->nr_frames != 1 || into < LIFTOFF_ZERO_SIZE + LIFTOFF_CALL_SIZE - 1)
			return false;
		into -= LIFTOFF_CALL_SIZE - 1;
	}
	if ((into && into != LIFTOFF_ZERO_SIZE && into != LIFTOFF_LOAD_SIZE) ||
	    read_memory(w->pc & ~(LIFTOFF_ALIGNMENT - 1ull), &code, sizeof(code)))
		return false;
	if ((code & 0xffffff) == LIFTOFF_ZERO)
		load = LIFTOFF_ZERO_SIZE;
	else if ((code & 0xffff) != LIFTOFF_LOAD)
		return false;
	return (!into || into == load) && (code >> 8 * load & 0xff) == LIFTOFF_CALL &&
	       WALK_NAME(native_returns_to)(w->regs[ARCH_SP]);
}

/* Code in anonymous memory; the native step's rules find its caller. */
__noinline int WALK_NAME(v8_code)(void)
{
	struct walk *w = current_walk();
	const struct v8_record *r;
	enum frame frame = LIKELY;
	__u64 function = 0, shared = 0;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	w->runtime = RUNTIME_NATIVE;
	r = v8_record(w);
	if (r && w->late) {
		stop = push_note(w, RUNTIME_V8, FRAME_NOTE_NOT_READY);
	} else if (r && r->wasm_marker && w->valid & 1u << ARCH_SP && is_before_frame(w)) {
		stop = WALK_NAME(v8_wasm)(1);
		frame = UNBUILT;
	} else {
		if (r && w->interrupted)
			function = interrupted_function(w, r, &frame);
		if (r && !function && frame < UNBUILT && w->valid & 1u << ARCH_FP)
			function = framed_function(w, r, &shared);
		/* It is JavaScript's own code that runs, which keeps the root register. */
		if (function && !w->nr_frames)
			runtime_state(w, RUNTIME_V8)[STATE_FLAGS] |= FLAG_STAY;
		stop = function ? WALK_NAME(v8_push)(function, V8_CODE, w->pc, shared)
				: WALK_NAME(v8_wasm)(0);
	}
	if (!stop && frame >= UNBUILT)
		return leave_unbuilt(w, frame);
	if (!stop && frame == CERTAIN)
		return leave_built(w);
	return stop ? stop : WALK_NAME(native_frame_pointer)(CODE_BYTES);
}

STEP(v8)
{
	struct walk *w = current_walk();
	__u64 *state;
	int stop;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return WALK_NAME(v8_code)();
	state = runtime_state(w, RUNTIME_V8);
	stop = state[STATE_PROMISE] ? WALK_NAME(v8_async)() : WALK_NAME(v8_interpreted)();
	/* A promise a call. */
	return stop || state[STATE_PROMISE] ? stop : walk_native(w);
}
