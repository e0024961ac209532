/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What V8's step in the walker and its agent exchange: where things are in V8's objects and frames,
 * and the words of a frame.
 *
 * A frame of JavaScript is FRAME(RUNTIME_V8, 2, V8_FRAME(kind, SharedFunctionInfo)) and two words:
 * the script's id << 32 | the function's literal id in that script, and
 * V8_PLACE_WORD(where the name begins, place). A script's id is given once in an isolate, so these
 * two tell functions apart; the address only tells where names are read.
 *
 * Place: of V8_INTERPRETED the offset of the bytecode, or V8_NO_PLACE; of V8_CODE the address in
 * the code that V8 made: the pc of an interrupted frame, else the return address - 1.
 *
 * A frame of WebAssembly is FRAME(RUNTIME_V8, 1, V8_FRAME(kind, that address)) and what
 * V8_CODE_MIX() makes of the words of code around it, from the first one on: code may go, and other
 * code take its place.
 */
#pragma once

#include <linux/types.h>

enum v8_kind {
	V8_INTERPRETED = 1,
	V8_CODE = 2,
	V8_WASM = 3,	  /* interrupted itself */
	V8_WASM_CALL = 4, /* where it calls something */
};

#define V8_ADDRESS_MASK		 ((1ull << 48) - 1)
#define V8_FRAME(kind, address)	 (((__u64)(kind) << 48) | ((address)&V8_ADDRESS_MASK))
#define V8_FRAME_KIND(data)	 ((__u32)((data) >> 48) & 15)
#define V8_FRAME_ADDRESS(data)	 ((data)&V8_ADDRESS_MASK)
#define V8_PLACE_WORD(token, at) ((__u64)(__u16)(token) << 48 | ((at)&V8_ADDRESS_MASK))
#define V8_NO_PLACE		 V8_ADDRESS_MASK

enum {
	/* How much of an object is read at once; the offsets below lie in it. */
	V8_OBJECT_SIZE = 128,
	V8_BYTECODES_MAX = 1 << 28,
	V8_RESUMES = 4,
};
/*
 * Code around an address: V8_CODE_LINE bytes that have it, and those before these, if they are of
 * the same page; else 0.
 */
enum { V8_CODE_LINE = 64, V8_CODE_WORDS = 2 * V8_CODE_LINE / 8 };
#define V8_LINE_OF(pc)		((pc) & ~(__u64)(V8_CODE_LINE - 1))
#define V8_LINE_IS_FIRST(line)	(!((line)&4095))
#define V8_CODE_MIX(hash, word) (((hash) ^ (word)) * 0x9e3779b97f4a7c15ull)
/* The address of what lies in the same 4 GB as `near`. */
#define V8_NEAR(near, low) (((near) & ~(__u64)0xffffffffu) | (__u32)(low))
/*
 * What a compressed field stands for, in the form of those that are not compressed: an address, or
 * a small integer in the upper half.
 */
#define V8_DECOMPRESS(near, low)                                                                   \
	((__u32)(low)&1 ? V8_NEAR(near, low) : (__u64)(__u32)((__s32)(low) >> 1) << 32)
/* The word of what was read; the verifier wants to see that it is one. */
#define V8_WORD(offset) ((offset) / 8 & (V8_OBJECT_SIZE / 8 - 1))

/* --async: types, and offsets that versions differ in; all 0: off. */
struct v8_async {
	__u16 promise, reaction, capability, function, generator, request, script; /* types */
	__u16 next, fulfill, chained; /* in a PromiseReaction */
	__u16 function_context;
	__u16 padding;
};

/*
 * Offsets in bytes from an object's first one (pointers to it are 1 more). In frames: from the
 * frame pointer.
 */
struct v8_record {
	/* Builtins_InterpreterEntryTrampoline, and up to where in it the function is in its
	 * register still, and not yet in its frame. */
	__u64 entry_start, entry_pushed;
	__u64 handlers_start, handlers_end;  /* bytecode handlers, which lie side by side */
	__u16 map_type;			     /* Map::instance_type, 2 bytes */
	__u16 function_first, function_last; /* types of JSFunctions */
	__u16 function_shared;
	/* Its Code; or, if dispatch is not 0, 4 bytes: which entry of the table that is, whose
	 * address is so far behind the root register. */
	__u16 function_code;
	__u16 shared_script, shared_token, shared_literal; /* 8, 2, 4 bytes */
	__u16 script_id;
	__u16 code_start, code_size; /* 8 and 4 bytes */
	/* Not 0: a Code holds its instructions itself, so far behind its begin; no code_start. */
	__u16 code_inline;
	__u16 bytecodes;	  /* where they begin in a BytecodeArray */
	__u16 bytecodes_register; /* which one of a handler's has the BytecodeArray */
	__u16 dispatch;
	__s16 fp_context, fp_function, fp_bytecode_array, fp_bytecode_offset;
	/* What frames of WebAssembly's functions, and of those that call these, have in place of
	 * the context; 0: these functions are not named. */
	__u16 wasm_marker, to_wasm_marker;
	__u16 entry_size; /* of InterpreterEntryTrampoline; 0: it is the only one that is marked */
	struct v8_async async;
	/* Where collections of garbage are counted, 4 bytes, behind the root register; 0: that is
	 * not known. */
	__u32 collections;
	/* Where the heap is behind it, and how a page leads to the heap (v8_layout.h). */
	__s32 heap;
	__u16 chunk_heap, chunk_metadata;
	/* Not 0: tagged fields have 4 bytes, for what lies in the same 4 GB as they do, and small
	 * integers 31 bits. */
	__u16 compressed;
	__u16 dispatch_shift; /* of what a function has in place of the entry's number */
	__u16 padding[2];
	/* The builtins that go on with frames of the interpreter that V8 made of optimized ones:
	 * how far behind entry_start each begins, with the byte before it, and its size; 0: none.
	 */
	__s32 resume[V8_RESUMES];
	__u16 resume_size[V8_RESUMES];
};
_Static_assert(sizeof(struct v8_record) == 144, "v8_record is read from the arena");
