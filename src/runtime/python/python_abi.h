/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What attach() tells the step of a CPython process, what the step's frames are made of, and what
 * tells one code object from another.
 *
 * Words of a frame: data = address of the code object; word 1 = cookie << 32 | offset of the
 * instruction in bytes (~0: before the first one). Read first: python.bpf.c.
 */
#pragma once

#include <linux/types.h>

/* How the frames of a thread hang together. */
enum python_frames {
	/* 3.6 to 3.9: from tstate->frame on, one frame object a loop. */
	PYTHON_FRAME_OBJECTS = 1,
	/* 3.10: so, and each loop has a struct on its stack, which tstate->cframe leads to. */
	PYTHON_FRAME_OBJECTS_CFRAME = 2,
	/* 3.11, 3.12: that struct leads to the frames that the loop runs. */
	PYTHON_CFRAME = 3,
	/* 3.13 on: from tstate->current_frame on; a frame on its stack ends those of a loop. */
	PYTHON_ENTRY = 4,
};

enum {
	PYTHON_TEXT_WORDS = 8, /* of a str that tell it from others */
	PYTHON_STR_SIZE = 112, /* header and those */
	PYTHON_GAPS_MAX = 8,
	PYTHON_WORDS = 16, /* of a code object that tell it from others, */
	PYTHON_WORDS_FROM = 2,
};

enum {
	PYTHON_LASTI_IN_UNITS = 1 << 0, /* lasti counts instructions of 2 bytes */
	PYTHON_INSTR_PTR = 1 << 1,	/* the frame has a pointer into the code, not a number */
	PYTHON_EXECUTABLE = 1 << 2,	/* what runs may be no code object; low bits are tags */
	PYTHON_STACK_BELOW = 1 << 3,  /* struct pthread begins below the thread pointer (aarch64) */
	PYTHON_ASYNC = 1 << 4,	      /* --async, and python_record.async is filled in */
	PYTHON_JIT = 1 << 5,	      /* what lies in anonymous memory may be CPython's own JIT's */
	PYTHON_CODES_OF_ALL = 1 << 6, /* python_record.codes: all interpreters' (3.12) */
	PYTHON_CODES_WIDE = 1 << 7,   /* so: of 64 bits (3.14 on) */
};

/* Code of the loop, relative to loop_base, where its frame is not linked: see python_code.h. */
struct python_gap {
	__u32 start, end;
};

/* --async: names that tell what functions of asyncio's do, and how they are compared. */
enum python_async_name {
	PYTHON_ASYNC_RUN,     /* Handle._run */
	PYTHON_ASYNC_ROOT,    /* run_until_complete()'s callback: nobody else waits */
	PYTHON_ASYNC_GATHER,  /* callbacks of gather(), */
	PYTHON_ASYNC_WAIT,    /* wait() and wait_for(), */
	PYTHON_ASYNC_SHIELD,  /* shield(), */
	PYTHON_ASYNC_RELEASE, /* wait_for() up to 3.11, */
	PYTHON_ASYNC_GROUP,   /* TaskGroup */
	PYTHON_ASYNC_NAMES,
	/* Another name of gather()'s callback, in 3.9, which has no TaskGroup. */
	PYTHON_ASYNC_GATHER_3_9 = PYTHON_ASYNC_GROUP,
};

enum {
	PYTHON_ASYNC_VALUES_INLINE = 1 << 0, /* a frame's values lie in it, at f_values */
	PYTHON_ASYNC_YIELD_FROM = 1 << 1,    /* the state tells await from yield */
	PYTHON_ASYNC_INDEXED = 1 << 2,	     /* on a frame's values lies one of no interest */
};

/* What else the step needs for --async; see python_async.bpf.h. Offsets in bytes. */
struct python_async {
	__u64 names[PYTHON_ASYNC_NAMES]; /* python_text() of each */
	__u16 task_size;		 /* tp_basicsize: Task is what we take it for */
	__u16 task_coro;
	__u16 fut_awaited_by, fut_awaited_by_is_set; /* 3.14 on; else 0 */
	__u16 func_qualname, func_closure;
	__u16 co_argcount, co_flags;
	__u16 f_locals;
	__u16 f_values;	 /* values of a frame, or a pointer to them, or behind the topmost one */
	__u16 f_depth;	 /* how many they are; 0: f_values points behind the topmost one */
	__u16 gen_frame; /* of a coroutine: its frame (from 3.11 on), or a pointer to it */
	__u16 gen_state; /* 0: the state is in the frame, f_owner */
	__s16 values;	 /* a TaskGroup's attributes; negative: a pointer to them; 0: not known */
	__s8 state;	 /* of a coroutine that awaits something; 0: it has none */
	__u8 flags;	 /* PYTHON_ASYNC_* */
	__u16 header;	 /* so much more does an object's header have than 16 bytes */
};
_Static_assert(sizeof(struct python_async) == 8 * PYTHON_ASYNC_NAMES + 32, "no padding");

/* Offsets in bytes. Those of pointers are multiples of 8. */
struct python_record {
	__u64 interpreters; /* where the pointer to the first interpreter lies */
	__u64 code_type;    /* &PyCode_Type */
	__u32 interp_next, interp_threads;
	__u8 frames;	  /* enum python_frames */
	__u8 minor;	  /* of 3.x */
	__u8 owner_entry; /* frame.owner of an entry frame, and above */
	__u8 owner_generator;
	__u32 flags; /* PYTHON_* */
	/* The thread's state: *(thread pointer + tls), or *(*(thread pointer + tls) + tls_2) if
	 * tls_2 is not -1. tls 0: not known, the lists are looked through. */
	__s32 tls, tls_2;
	__u16 ts_next, ts_interp, ts_thread_id;
	__u16 ts_frame;	       /* frame, cframe (from 3.10 to 3.12), current_frame */
	__u16 ts_frame_object; /* 3.10: frame */
	__u16 cframe_current, cframe_previous;
	__u16 f_previous, f_code, f_instr;
	__u16 f_owner;	       /* 3.6 to 3.9: f_executing; 3.10: f_state */
	__u16 f_entry;	       /* 3.11: is_entry; else 0 */
	__u16 f_tlbc;	       /* 0: none */
	__u16 ts_size, f_size; /* to be read */
	/* Code objects: type, identity, instructions. */
	__u16 co_type;
	__u16 co_size; /* to be read */
	__u16 co_filename, co_name /* or co_qualname */, co_linetable;
	__u16 co_firstlineno, co_version /* 0: none */, co_firsttraceable /* 0: none */;
	__u16 co_code; /* the first instruction (3.11+) */
	__u16 co_tlbc; /* 0: none */
	__u16 str_length, str_state, str_ascii, str_compact;
	__u16 co_words; /* bit N: word PYTHON_WORDS_FROM + N counts: see python_words() */
	__u8 pad_;
	__u8 nr_gaps;
	__u64 loop_base;
	struct python_gap gaps[PYTHON_GAPS_MAX];
	struct python_async async;
	/* From the stack pointer of a loop that calls to its frame pointer; 0: it has none. */
	__u64 loop_frame;
	/*
	 * A number that changes whenever a code object is made (up to 3.13), or freed (3.14 on): as
	 * long as it is the same, what a thread's frames lead to by one address is one code object.
	 * From the interpreter's struct on, or an address (PYTHON_CODES_OF_ALL). 0: not known.
	 */
	__u64 codes;
};
_Static_assert(sizeof(struct python_record) == 192 + sizeof(struct python_async),
	       "python_record is read from the arena");

/* --- which code object it is ----------------------------------------------------------------- */

/*
 * Code objects are freed, and others made at their address. From 3.12 on they have a number
 * (co_version; 0 when numbers ran out). Else the texts of their name and file tell them apart, and
 * up to 3.11 whatever in them never changes: much of it are addresses of what they own.
 */
struct python_identity {
	__u64 filename, name, linetable; /* pointers */
	__u32 firstlineno, version;
	/* python_text() of the name and the file name if version is 0, else 0. */
	__u64 name_text, filename_text;
	__u64 words; /* python_words(); 0 from 3.12 on */
};

#define PYTHON_MULTIPLIER 0x9e3779b97f4a7c15ull

static inline __u64 python_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * PYTHON_MULTIPLIER;
	return hash ^ (hash >> 29);
}

/*
 * Of a str object: its length in characters, and its text of which the first `size` bytes count,
 * in words; size is at most 8 * PYTHON_TEXT_WORDS. `text` has PYTHON_TEXT_WORDS words that may
 * be read, whatever is behind the text in them.
 */
static inline __u64 python_text(__u64 length, const __u64 *text, __u32 size)
{
	__u64 hash = python_mix(0, length);
	__u32 i;

	for (i = 0; i < PYTHON_TEXT_WORDS && 8 * i < size; i++) {
		__u64 word = text[i];

		if (size < 8 * i + 8)
			word &= (1ull << 8 * (size - 8 * i)) - 1;
		hash = python_mix(hash, word);
	}
	return hash;
}

/*
 * Of the words of a code object from PYTHON_WORDS_FROM on those of the set `which`. Four sums, none
 * of which waits for another: it is calculated for each frame.
 */
static inline __u64 python_words(const __u64 *words, __u32 which)
{
	__u64 sum[4] = { 0 };
	__u32 i;

#ifdef __bpf__
	_Pragma("unroll")
#endif
		for (i = 0; i < PYTHON_WORDS; i++)
	{
		sum[i & 3] = sum[i & 3] * PYTHON_MULTIPLIER + (words[i] & -(__u64)(which >> i & 1));
	}
	return python_mix(python_mix(python_mix(python_mix(0, sum[0]), sum[1]), sum[2]), sum[3]);
}

/*
 * The flags of a str, out of its state. Bits 0 to 2 are the bytes of a character, then compact (the
 * text follows the header), then ASCII: see CPython's Include/cpython/unicodeobject.h, struct
 * PyASCIIObject. Before them stands `interned`, at most 3: of 2 bits; of 8 in free-threaded builds
 * from 3.13.2 on; of 16 in later 3.14s and from 3.15 on. The bytes of a character are never 0.
 */
enum { PYTHON_STR_KIND = 7, PYTHON_STR_COMPACT = 1 << 3, PYTHON_STR_ASCII = 1 << 4 };

static inline __u32 python_str_flags(__u32 state)
{
	if (state >> 2 & PYTHON_STR_KIND)
		return state >> 2;
	return state >> 8 & PYTHON_STR_KIND ? state >> 8 : state >> 16;
}

/* How many bytes of a str's text count if it lies `at` bytes from its start: what PYTHON_STR_SIZE
 * bytes have of it. */
static inline __u32 python_text_size(__u64 length, __u32 flags, __u32 at)
{
	__u64 size = length * (flags & PYTHON_STR_KIND), max = PYTHON_STR_SIZE - at;

	if (!(flags & PYTHON_STR_COMPACT) || at >= PYTHON_STR_SIZE)
		return 0;
	if (max > 8 * PYTHON_TEXT_WORDS)
		max = 8 * PYTHON_TEXT_WORDS;
	return size > max || length > max ? max : size;
}

/* The cookie; never 0. */
static inline __u32 python_cookie(const struct python_identity *id)
{
	__u64 hash = id->filename * PYTHON_MULTIPLIER + id->name;

	hash = hash * PYTHON_MULTIPLIER + id->linetable;
	hash = hash * PYTHON_MULTIPLIER + ((__u64)id->version << 32 | id->firstlineno);
	if (!id->version) {
		hash = python_mix(hash, id->name_text);
		hash = python_mix(hash, id->filename_text);
	}
	hash = python_mix(hash, id->words);
	return (__u32)(hash >> 32) | 1;
}

#define PYTHON_WORD1(cookie, lasti) ((__u64)(cookie) << 32 | (__u32)(lasti))
#define PYTHON_COOKIE(word1)	    ((__u32)((word1) >> 32))
#define PYTHON_LASTI(word1)	    ((__u32)(word1))
