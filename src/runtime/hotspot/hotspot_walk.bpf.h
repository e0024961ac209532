/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of HotSpot's step share: hotspot.bpf.c (which frame this is, and how a frame that
 * called has its caller) and one file an architecture that reads the code around an interrupted pc.
 */
#pragma once

#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"
#include "runtime/hotspot/hotspot_abi.h"

/* What a CodeBlob is. */
enum blob_kind {
	BLOB_OTHER, /* a RuntimeStub, a DeoptimizationBlob, ... */
	BLOB_COMPILED,
	BLOB_NATIVE,
	BLOB_ADAPTER,	    /* between interpreted and compiled code: arguments are moved */
	BLOB_VTABLE,	    /* finds the method and jumps there */
	BLOB_METHOD_HANDLE, /* so, for the interpreter's calls of method handles */
	BLOB_SIGNATURE,	    /* moves the arguments of an interpreted native method */
	BLOB_CONTINUATION,  /* frames of virtual threads are brought back by these stubs */
	BLOB_DEOPTIMIZATION,
	BLOB_SAFEPOINT,
	BLOB_UNCOMMON_TRAP,
	BLOB_UPCALL, /* native code calls Java here (22 and later) */
};

/* Kept from frame to frame in runtime_state(): the last CodeBlob, and what its header says. */
struct hotspot_state {
	__u64 blob;
	__u32 size;
	__u32 code;	     /* where its code begins, from blob on */
	__u64 name_compiled; /* the address of "nmethod", as it was met */
	__u64 chunk;	     /* the StackChunk whose frames are walked; 0: those on the stack are */
	__u64 entry;	     /* and the ContinuationEntry on the stack, behind them */
	__s32 frame_complete;
	__s32 frame_size; /* words, with the return address; 0 or less: it has none of its own */
	__u32 check;	  /* compile_id, or hotspot_stub_check() */
	__u32 orig_pc;	  /* bytes from sp: the pc of a frame that will be deoptimized */
	__u32 deopt, deopt_mh; /* its deoptimization handlers, from blob on; 0: none */
	__u32 chunk_end;       /* of that chunk's frames, from chunk on */
	__u8 kind;	       /* enum blob_kind */
	__u8 in_native;	       /* the topmost Java frame is of a native method */
	__u8 heap;	       /* enum heap_state */
	__u8 thread;	       /* enum thread_state */
	/* The last interpreted method, as it was read: a recursive one is read once. */
	__u64 method, codes;
	__u32 cookie, code_size;
	__u64 constants;  /* of its class, which scratch.id has; 0: it was not read */
	__u32 noted;	  /* how many frames there were behind a note; 0: there was none */
	__u32 unpacking;  /* enum unpacking_state */
	__u32 operations; /* operations_now(), before any nmethod was proved; 0: not known */
	__u32 pad_;
};
_Static_assert(sizeof(struct hotspot_state) <= RUNTIME_STATE_WORDS * 8, "it is a runtime's state");

/*
 * Frames of virtual threads move between the stack and the heap while the JVM's native code runs
 * that does it (continuationFreezeThaw.cpp): for a while they are in both, or half in one. Java
 * code, and what it calls without the JVM's leave, sees them at rest.
 */
enum heap_state { HEAP_NOT_KNOWN = 0, HEAP_AT_REST, HEAP_MOVES };

/* A deoptimization changes the next frames. */
enum unpacking_state {
	UNPACKING_NOT = 0,
	UNPACKING_FILLS, /* it fills them in, from the outermost one on */
	UNPACKING_MAKES, /* it makes them: where the compiled frame was, some are missing */
};

/* Which thread's frames these are (--threads virtual). */
enum thread_state { THREAD_NOT_TRIED = 0, THREAD_NOT_FOUND, THREAD_SAID };

/* What the caller cache has of a caller that is compiled code: the nmethod, as it was at that
 * address. */
struct hotspot_known {
	__u64 blob;
	__u32 code;
	__s32 frame_size : 24; /* of what calls: less than 1 << 20 */
	__u32 kind : 8;	       /* enum blob_kind */
	__u32 compile_id;      /* or hotspot_stub_check() */
	__u32 operations;      /* state.operations, when it was proved; 0: not known */
};
_Static_assert(sizeof(struct hotspot_known) <= 24, "it is cached_rule.own");

enum {
	CODE_BEFORE = 64, /* bytes of code before the pc */
	CODE_SIZE = 128,
	HOTSPOT_ENTRIES = 32, /* of a constant pool, read at once */
};

/* Of this frame alone. */
struct hotspot_scratch {
	union {
		__u64 header[64];
		__u64 method[HOTSPOT_CONST_METHOD / 8];
		__u64 thread_name[2 * HOTSPOT_VIRTUAL_WORDS]; /* so that a size can be masked */
	};
	__u8 code[CODE_SIZE + 16];
	struct hotspot_identity id;
	__u64 class_hash; /* hotspot_class_hash() of it */
	/* Entries of its class's constants, in which names of its methods are: those at this
	 * address, if it is not 0. */
	__u64 entries_at, entries[HOTSPOT_ENTRIES];
	/* Where the look at the code says that the caller is. */
	__u64 cfa, ra, fp;
	__u64 begin; /* of a stub's code, 8 bytes */
	/* A run through code: where it is, what of it is in `code` from where on, the registers. */
	__u64 run_pc, run_window, run_sp, run_r13;
	__u64 oop;	     /* what a reference that was followed refers to */
	__u64 forwarding[8]; /* hotspot_references.bpf.h */
	__u32 run_r13_known, run_moved;
	__u32 look; /* enum look */
	__u32 tail_end;
};
_Static_assert(sizeof(struct hotspot_scratch) <= SCRATCH_SIZE, "it lies in the scratch");

static __always_inline struct hotspot_scratch *hotspot_scratch(struct walk *w)
{
	return (struct hotspot_scratch *)w->scratch;
}

static __always_inline struct hotspot_state *hotspot_state(struct walk *w)
{
	return (struct hotspot_state *)runtime_state(w, RUNTIME_HOTSPOT);
}

static __always_inline __u64 code_of(const struct hotspot_state *st)
{
	return st->blob + st->code;
}

/* Is `address` in the blob's code, or data behind it? */
static __always_inline bool in_blob(const struct hotspot_state *st, __u64 address)
{
	return address - code_of(st) < st->size - st->code;
}

/*
 * The record, which the step has got already. The verifier allows eight calls within each other,
 * five of which are made when a step begins: the step itself calls what looks at code, and what it
 * calls calls one more level at most.
 */
static __always_inline const struct hotspot_record *hotspot_record(const struct walk *w)
{
	return (const struct hotspot_record *)w->record;
}

/* May the current frame hang on its frame pointer? 0, or a stop reason. */
static __always_inline int check_frame_pointer(const struct walk *w)
{
	__u64 fp = w->regs[ARCH_FP];

	if (!(w->valid & 1u << ARCH_FP))
		return STOP_UNKNOWN_REGISTER;
	return fp < w->regs[ARCH_SP] || fp & 7 ? STOP_RUNTIME_UNREADABLE : STOP_NONE;
}

/* 0: scratch.code has the code around the pc; zeroes for what is behind it and not there yet. */
__noinline int WALK_NAME(hotspot_read_code)(void)
{
	struct walk *w = current_walk();

	if (!w)
		return STOP_INTERNAL;
	return read_to_page_end(w->pc - CODE_BEFORE, hotspot_scratch(w)->code, CODE_SIZE);
}

/* Looks at interrupted code tell how to go on. */
enum look {
	LOOK_FRAME = 0, /* the frame is as it is when it calls */
	LOOK_CALLER,	/* scratch has cfa, ra and fp of the caller */
	LOOK_JUMP,	/* so, and this code is nobody's frame: a jump on the way to the callee */
	LOOK_FAILED,	/* it can't be told */
	LOOK_OTHER,	/* it is not the kind of code that was looked for */
};
__noinline int WALK_NAME(hotspot_look_compiled)(void);
__noinline int WALK_NAME(hotspot_look_interpreter)(void);
__noinline int WALK_NAME(hotspot_look_stub)(void);
/* A stub whose frame hangs on its frame pointer from its first instructions on; LOOK_OTHER: it is
 * none, or its size tells as much. */
__noinline int WALK_NAME(hotspot_look_entered)(void);
/* The stubs that exceptions jump to; LOOK_FAILED: it is none of them. scratch.begin is read. */
__noinline int WALK_NAME(hotspot_look_thrown)(void);

/* Does a call stand before `ra`: of this blob, of native code, of something? */
enum { CALLED_NOT = 0, CALLED_SOMETHING, CALLED_NATIVE, CALLED_THIS };
__noinline int WALK_NAME(hotspot_called)(__u64 ra);

static __always_inline int look_caller(struct hotspot_scratch *s, __u64 cfa, __u64 ra, __u64 fp)
{
	s->cfa = cfa;
	s->ra = ra;
	s->fp = fp;
	return LOOK_CALLER;
}

static __always_inline bool in_code(const struct hotspot_record *r, __u64 address)
{
	return address - r->code_start < r->code_end - r->code_start;
}

static __always_inline bool in_interpreter(const struct hotspot_record *r, __u64 addr)
{
	return addr - r->interpreter_start < r->interpreter_end - r->interpreter_start;
}

#if defined(__TARGET_ARCH_x86)
enum {
	HOTSPOT_BCP = X86_R13,
	HOTSPOT_THREAD = X86_R15,
	/* Where the call stub keeps the caller's registers, in words from its frame pointer, and
	 * downwards: generate_call_stub() of stubGenerator_x86_64.cpp, not on Windows. */
	CALL_STUB_FIRST = -7,
	NATIVE_SAVED = 5,
};
static const __u8 native_saved[NATIVE_SAVED] = { X86_RBX, X86_R12, X86_R13, X86_R14, X86_R15 };
#else
enum {
	HOTSPOT_BCP = 22,
	HOTSPOT_THREAD = 28,
	CALL_STUB_FIRST = -9,
	NATIVE_SAVED = 10,
};
static const __u8 native_saved[NATIVE_SAVED] = { 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
#endif

/*
 * The stub of an upcall has saved native_saved[], upwards, from so many bytes below its frame
 * pointer; 0: it is not known where. scratch.cfa: the size of its frame below the frame pointer,
 * scratch.ra: where in its code they all are saved.
 */
__noinline int WALK_NAME(hotspot_look_upcall)(void);
