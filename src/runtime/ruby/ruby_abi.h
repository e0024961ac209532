/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What attach() tells the step of a CRuby process, what the step's frames are made of, and what
 * tells one function from another.
 *
 * Words of a frame: data = address of the iseq, word 1 = cookie << 32 | how many words of its code
 * lie before the pc, word 2 = address of the method entry, or 0. Of a method written in C: data =
 * RUBY_CFUNC | address of the method entry, word 1 = cookie << 32, word 2 = 0. Read first:
 * ruby.bpf.c.
 *
 * Facts: CRuby's vm_core.h, method.h, internal/imemo.h, include/ruby/internal/core/rstring.h of
 * each version.
 */
#pragma once

#include "runtime/thread_key.h"

#include <linux/types.h>

/* Where the pointer to what the thread runs (its rb_execution_context_t) lies. */
enum ruby_ec {
	RUBY_EC_TLS = 1, /* at the thread pointer + ec */
	RUBY_EC_DTV = 2, /* in the thread-local storage of module ec_module, at ec (glibc) */
	RUBY_EC_KEY = 3, /* before 3.0: the value of `key` is its struct rb_thread_struct, with the
			    pointer at ec; and a pointer back at ec_thread of what that leads to */
};

enum {
	RUBY_TEXT_WORDS = 8,	   /* of a string's end that tell it from others */
	RUBY_STRING_WORDS = 5,	   /* of an RString, or of an RArray */
	RUBY_CFP_SIZE_MAX = 64,	   /* of a control frame */
	RUBY_BODY_WORDS = 16,	   /* of an iseq's body, to be read */
	RUBY_METHOD_WORDS = 5,	   /* of a method entry */
	RUBY_DEFINITION_WORDS = 6, /* of its definition */
};

/* Offsets in bytes, multiples of 8. */
struct ruby_record {
	__u64 ec; /* see enum ruby_ec */
	__u64 ec_module;
	struct thread_key key;
	__u32 how; /* enum ruby_ec */
	__s32 dtv; /* from the thread pointer to the pointer to the dtv */
	__u16 cfp_size;
	__u8 string_text;	      /* of a string within its object */
	__u8 string_length;	      /* of such a one: 0: it is in the flags */
	__u8 path, label, first_line; /* in an iseq's body */
	__u8 node;		      /* likewise: what numbers it; 0: there is none */
	__u8 lines;		      /* likewise: insns_info.body */
	__u8 serial;		      /* in a method's definition; 0: there is none */
	__u8 error;		      /* in an execution context: what is being thrown, or */
	__u8 nil;		      /* this: nothing is */
	__u8 ec_thread;
	__u8 early;    /* a frame is there before it is filled: up to 2.7; YJIT of 3.1 */
	__u8 bmethods; /* blocks that became methods may run in their caller's loop: since 3.3 */
	__u8 stack;    /* in an execution context: where its native stack ends, and its size in
			  the third word; see ruby.bpf.c, is_on_its_stack() */
	/* The code that calls what YJIT makes; size 0: it makes none, or none that can be walked.
	 */
	__u64 text, text_size;
	/* Ruby's own code, of a version whose JIT (MJIT) makes libraries: what these run lies
	 * elsewhere. Size 0: there is no such. */
	__u64 own, own_size;
	/* Where the number of collections that began is; 0: not known. And what is going on. */
	__u64 collections, collecting;
};
_Static_assert(sizeof(struct ruby_record) == 112, "ruby_record is read from the arena");

/* Frames: CRuby's vm_core.h, VM_FRAME_*, VM_ENV_*. */
enum {
	RUBY_FRAME_MAGIC = 0x7fff0001,
	RUBY_FRAME_METHOD = 0x11110001,
	RUBY_FRAME_BLOCK = 0x22220001,
	RUBY_FRAME_CFUNC = 0x55550001,
	RUBY_FRAME_DUMMY = 0x79990001,
	RUBY_FRAME_FINISH = 0x20,  /* the last one of a loop */
	RUBY_FRAME_BMETHOD = 0x40, /* a block that became a method */
	RUBY_FRAME_NATIVE = 0x80,  /* runs no iseq */
	RUBY_ENV_LOCAL = 2,	   /* the environment of a method, not of a block in it */
};

/* Types of iseqs: vm_core.h, iseq_type. */
enum { RUBY_ISEQ_METHOD = 1, RUBY_ISEQ_BLOCK = 2, RUBY_ISEQ_EVAL = 6 };

/* Objects' flags: the type, of an internal one its kind. */
enum {
	RUBY_TYPE = 0x1f,
	RUBY_T_CLASS = 2,
	RUBY_T_MODULE = 3,
	RUBY_T_STRING = 5,
	RUBY_T_ARRAY = 7,
	RUBY_T_IMEMO = 0x1a,
	RUBY_IMEMO_SHIFT = 12,
	RUBY_IMEMO = 15,
	RUBY_IMEMO_SVAR = 2,
	RUBY_IMEMO_METHOD = 6,
	RUBY_IMEMO_ISEQ = 7,
	RUBY_STRING_APART = 1 << 13, /* the text is not in the object */
	RUBY_ARRAY_WITHIN = 1 << 13, /* the elements are in the object, so many: */
	RUBY_ARRAY_LENGTH_SHIFT = 15,
	RUBY_ARRAY_LENGTH = 127, /* up to 3.1 at most 3, and the other bits are 0 */
	RUBY_STRING_LENGTH_SHIFT = 14,
	RUBY_STRING_LENGTH = 31,
};

/* gc.c, gc/default/default.c: objspace->flags, of all versions that have ruby_record.collections.
 */
enum {
	RUBY_GC_MODE = 3, /* of these: */
	RUBY_GC_NONE = 0,
	RUBY_GC_SWEEPING = 2,
	RUBY_GC_AT_WORK = 1 << 5, /* during_gc: a thread is in it */
};

#define RUBY_CFUNC	       (1ull << 51)
#define RUBY_NO_PC	       (~(__u32)0) /* it is not known where the frame is */
#define RUBY_ADDRESS	       ((1ull << 48) - 1)
#define RUBY_WORD1(cookie, pc) ((__u64)(cookie) << 32 | (__u32)(pc))
#define RUBY_COOKIE(word1)     ((__u32)((word1) >> 32))
#define RUBY_PC(word1)	       ((__u32)(word1))

static inline int ruby_is_imemo(__u64 flags, __u32 kind)
{
	return (flags & RUBY_TYPE) == RUBY_T_IMEMO &&
	       (flags >> RUBY_IMEMO_SHIFT & RUBY_IMEMO) == kind;
}

/* What tells a function from others, also from those that lay at its address before: what leads to
 * its parts, where it is in its file, and the texts of its label and of its file's name. */
struct ruby_identity {
	__u64 body, code, path, label, line, node, lines; /* 0 of a C function */
	__u64 path_text, label_text;			  /* so */
	__u64 definition, owner, name, serial;		  /* 0 without a method */
};

#define RUBY_MULTIPLIER 0x9e3779b97f4a7c15ull

static inline __u64 ruby_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * RUBY_MULTIPLIER;
	return hash ^ (hash >> 29);
}

/* The cookie; never 0. */
static inline __u32 ruby_cookie(const struct ruby_identity *id)
{
	__u64 hash = ruby_mix(0, id->body);

	hash = ruby_mix(hash, id->code);
	hash = ruby_mix(hash, id->path);
	hash = ruby_mix(hash, id->label);
	hash = ruby_mix(hash, id->line);
	hash = ruby_mix(hash, id->node);
	hash = ruby_mix(hash, id->lines);
	hash = ruby_mix(hash, id->path_text);
	hash = ruby_mix(hash, id->label_text);
	hash = ruby_mix(hash, id->definition);
	hash = ruby_mix(hash, id->owner);
	hash = ruby_mix(hash, id->name);
	hash = ruby_mix(hash, id->serial);
	return (__u32)(hash >> 32) | 1;
}

/* Where the text of a string lies: `s` is the RString's first RUBY_STRING_WORDS words, at `addr`.
 */
static inline __u64 ruby_text_at(const struct ruby_record *r, const __u64 *s, __u64 addr,
				 __u64 *ret_length)
{
	*ret_length = s[0] & RUBY_STRING_APART || r->string_length
			      ? s[2]
			      : s[0] >> RUBY_STRING_LENGTH_SHIFT & RUBY_STRING_LENGTH;
	return s[0] & RUBY_STRING_APART ? s[3] : addr + r->string_text;
}

/* Of a text of `length` bytes its last ones, in words that have nothing else in them. */
static inline __u64 ruby_text(__u64 length, const __u64 *words)
{
	__u64 hash = ruby_mix(0, length);
	__u32 i;

#ifdef __bpf__
	_Pragma("unroll")
#endif
		for (i = 0; i < RUBY_TEXT_WORDS; i++)
	{
		__u64 word = words[i];

		if (length < 8 * i + 8)
			word = length > 8 * i ? word & ((1ull << 8 * (length - 8 * i)) - 1) : 0;
		hash = ruby_mix(hash, word);
	}
	return hash;
}
