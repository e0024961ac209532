/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent (perl.c) tells the step (perl.bpf.c) of a process that runs Perl, and what the
 * step's frames are made of.
 *
 * Words of a frame: data = enum perl_frame << 48 | address of the CV (of a sub, a format); word 1 =
 * address of the COP << 16 | 16 bits of its cookie; word 2 = 40 bits of the function's cookie << 24
 * | the mark of the op that is run in that statement (with PERL_FRAME_COMPILING, the line).
 */
#pragma once

#include "runtime/thread_key.h"

#include <linux/types.h>

enum perl_frame {
	PERL_FRAME_SUB = 1,
	PERL_FRAME_FORMAT,
	PERL_FRAME_EVAL,    /* eval, require, do FILE: as caller() has it, a frame of its own */
	PERL_FRAME_SORT,    /* the block of a sort */
	PERL_FRAME_PATTERN, /* code in a pattern */
	PERL_FRAME_MAIN,    /* the program itself */
	PERL_FRAME_DEFER,   /* defer {}; with 1 in place of the CV, finally {} */
	PERL_FRAME_MAX_,
	/* Beside it: the COP is PL_compiling, one for whatever is being compiled. */
	PERL_FRAME_COMPILING = 8,
};
enum {
	PERL_KIND_SHIFT = 48,
	PERL_COP_SHIFT = 16,
	PERL_COOKIE_SHIFT = 24,
	PERL_LINE_MAX = (1 << 24) - 1, /* a line above it is shown as not known */
	PERL_FRAME_WORDS = 3,
	/* Beside the address, a multiple of 8, where it is no CV's. */
	PERL_PLACE_GLOB = 1,
	PERL_PLACE_TEXT = 2,
	PERL_PLACES = 7,
};

/* flags */
enum { PERL_THREADED = 1 << 0 /* what is PL_x elsewhere lies in a struct interpreter */ };

/*
 * Offsets that no version from 5.28 to 5.42 changes (64 bits): cop.h, op.h, sv.h, cv.h. The rest is
 * in the record.
 */
enum {
	/* struct op, and struct cop, which begins with one */
	PERL_OP_NEXT = 0,
	PERL_OP_SIBLING = 8, /* or its parent: op_sibparent */
	PERL_OP_PPADDR = 16,
	PERL_OP_SIZE = 24,  /* that is read */
	PERL_OP_TARG = 24,  /* of a null op, the type that it had */
	PERL_OP_TYPE = 32,  /* 4 bytes: 9 bits of it; */
	PERL_OP_FIRST = 40, /* if it has kids */
	PERL_COP_LINE = 36, /* 4 bytes */
	PERL_COP_FILE = 48, /* char *; without threads GV * */
	PERL_COP_SEQ = 60,  /* 4 bytes */
	PERL_COP_SIZE = 64, /* that is read */
	/* struct sv */
	PERL_SV_ANY = 0,
	PERL_SV_FLAGS = 12, /* 4 bytes */
	PERL_SV_U = 16,
	PERL_SV_SIZE = 24,
	/* struct xpvcv: what is read begins with its own fields */
	PERL_CV_FIELDS = 32,
	PERL_CV_STASH = 32,
	PERL_CV_START = 40,
	PERL_CV_ROOT = 48,
	PERL_CV_GV = 56, /* or the name, HEK * */
	PERL_CV_FILE = 64,
	PERL_CV_PADLIST = 72,
	PERL_CV_OUTSIDE_SEQ = 88, /* 4 bytes */
	PERL_CV_FLAGS = 92,	  /* 4 bytes */
	PERL_CV_DEPTH = 96,	  /* 4 bytes */
	PERL_CV_SIZE = 104,
	PERL_CV_CLONED = 0x40, /* of the flags */
	PERL_CV_ANON = 0x80,
	PERL_CV_NAMED = 0x8000,
	PERL_CV_LEXICAL = 0x10000,
	/* struct padlist */
	PERL_PADLIST_PADS = 8,
	/* PERL_SI */
	PERL_SI_CXSTACK = 8,
	PERL_SI_PREV = 16,
	PERL_SI_CXIX = 32,    /* 4 bytes */
	PERL_SI_CXSUBIX = 40, /* 4 bytes; since 5.32 */
	PERL_SI_SIZE = 48,
	/* PERL_CONTEXT */
	PERL_CX_OLDCOP = 16,
	PERL_CX_RETOP = 48, /* of subs, formats, evals */
	PERL_CX_CV = 72,    /* of subs and formats; 64 before 5.32 */
};

struct perl_range {
	__u64 start, end;
};
enum {
	PERL_CALLS_MAX = 6, /* ranges of functions that call a loop for a sub */
	PERL_LEAVES = 6,    /* ops that leave a sub or an eval */
	PERL_DEFERS = 4,
	PERL_LOOPS = 2,	    /* Perl_runops_standard(), Perl_runops_debug() */
	PERL_ENTERS = 6,    /* ops that make a context, but for entersub */
	PERL_LOCALS = 1024, /* of a C function that calls a loop: where its locals are, at most */
	PERL_PENDING = 1 << 18,
	PERL_SAVED_MAX = 1 << 28, /* words of PL_savestack */
	PERL_INTERP_SIZE = 512,	  /* of a struct interpreter, what is read */
};

struct perl_record {
	/* With threads, offsets in the interpreter, multiples of 8 below PERL_INTERP_SIZE; else
	 * addresses. */
	__u64 op, curcop, curstackinfo, comppad;
	__u64 savestack; /* 0: not known */
	/* Where a COP is PL_compiling: addresses from here on, with threads in the interpreter. */
	__u64 compiling;
	struct thread_key key;	  /* how a thread gets at its interpreter */
	__u64 nextstate, dbstate; /* addresses of pp_nextstate(), pp_dbstate(), */
	__u64 entersub, goto_;	  /* and so on */
	__u64 leaves[PERL_LEAVES], enters[PERL_ENTERS];
	struct perl_range main;	   /* who calls the program's loop: perl_run(), or a part of it */
	struct perl_range run;	   /* perl_run() */
	struct perl_range catcher; /* docatch() */
	struct perl_range calls[PERL_CALLS_MAX];
	struct perl_range defers[PERL_DEFERS]; /* who calls a loop for defer {}, finally {} */
	/* With threads, loops that keep the interpreter in ARCH_FIRST_SAVED. */
	struct perl_range held[PERL_LOOPS];
	__u32 flags;
	__u16 cx_size, cx_cv;
	__u16 si_type, compiling_size;
	/* Types of contexts. */
	__u8 cx_sub, cx_format, cx_eval;
	__u8 cx_defer; /* of defer {} and finally {}; 0: there is none, before 5.36 */
};
_Static_assert(sizeof(struct perl_record) ==
		       104 + 8 * (PERL_LEAVES + PERL_ENTERS) +
			       16 * (3 + PERL_CALLS_MAX + PERL_LOOPS + PERL_DEFERS) + 16,
	       "perl_record is read from the arena");

static inline __u64 perl_mix(__u64 a, __u64 b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

/* What tells a statement from another one whose memory it got: where it stands in the order of all
 * that was compiled, and its file. */
static inline __u64 perl_cop_cookie(__u64 file, __u32 seq)
{
	return perl_mix(perl_mix(0x70657266, file), seq);
}

/*
 * What tells the op that a frame is in from the others of its statement, PERL_COOKIE_SHIFT bits: by
 * its address, or by that of the op behind it (`next`), where a call returns to. 0: not known.
 */
static inline __u64 perl_op_mark(__u64 op, int next)
{
	return op ? (perl_mix(0x70657268, op) >> (65 - PERL_COOKIE_SHIFT)) << 1 | !!next : 0;
}

/* `statement`: line << 32 | number; 0: not known. */
static inline __u64 perl_statement_cookie(__u64 statement)
{
	return perl_mix(0x70657269, statement);
}

/* What tells a sub from others; `start`: its first op. */
static inline __u64 perl_sub_cookie(__u64 gv, __u64 start, __u64 statement)
{
	return perl_mix(perl_mix(perl_mix(0x70657267, gv), start), statement);
}

/* What tells all closures that are made of one text from others. `proof`: of a glob, the package
 * that it and the text are in; of a name, its first word, hash and length. */
static inline __u64 perl_closure_cookie(__u64 name, __u64 proof, __u64 statement)
{
	return perl_mix(perl_mix(perl_mix(0x7065726b, name), proof), statement);
}
