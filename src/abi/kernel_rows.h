/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How the walker steps over a frame of the kernel (x86-64): what the kernel's ORC entries say, in
 * buckets of 256 bytes of code. A bucket is a line of the cache with all of its rows, and a row has
 * its rule in it: on a miss of the caller cache that is the only line that a walk touches.
 */
#pragma once

#include <linux/types.h>

enum {
	KERNEL_BUCKET_SHIFT = 8,
	KERNEL_BUCKET_ROWS = 15,
	/* Of a bucket that has more, all are in the table's array of further rows. */
	KERNEL_BUCKET_MORE_MAX = 256,
};

struct kernel_bucket {
	__u32 head; /* KERNEL_BUCKET(): how many rows, and where they are if they are more than 15
		     */
	__u32 rows[KERNEL_BUCKET_ROWS]; /* KERNEL_ROW(), sorted */
};
_Static_assert(sizeof(struct kernel_bucket) == 64, "a bucket is a line of the cache");

#define KERNEL_BUCKET(first, nr)  ((__u32)(first) << 9 | (nr))
#define KERNEL_BUCKET_NR(head)	  ((head)&511)
#define KERNEL_BUCKET_FIRST(head) ((head) >> 9)
/* From this address on, until the next row's, that rule is in force. */
#define KERNEL_ROW(low8, rule) (((__u32)(low8) << 24) | (rule))
#define KERNEL_ROW_LOW(row)    ((row) >> 24)
#define KERNEL_ROW_RULE(row)   ((row)&0xffffff)

enum kernel_rule_kind {
	/* The caller's stack pointer is that distance from ... */
	KERNEL_CFA_SP = 0,    /* ... the stack pointer. */
	KERNEL_CFA_FP = 1,    /* ... the frame pointer. */
	KERNEL_CFA_AT_SP = 2, /* ... what the stack pointer points to (another stack). */
	/* All registers of whom an interrupt or a system call came from are there (pt_regs). */
	KERNEL_REGS = 3,
	/* His pc, flags and stack pointer only (what the CPU pushes). */
	KERNEL_REGS_PARTIAL = 4,
	KERNEL_END = 5, /* There is no caller, or none is known: the kernel's own walk ends */
	/* ... what is that far below where the frame pointer points to, where the caller's own is
	 * too (functions that realign their stack). */
	KERNEL_CFA_AT_FP = 6,
	KERNEL_HELPER = 7, /* What does not fit in here: the kernel's own walk knows. */
};

/* The return address is below the CFA. `fp`: how many words below it the frame pointer was saved;
 * 0: it was not. `exact`: the caller was interrupted there, its pc is no return address. */
#define KERNEL_RULE(kind, cfa_words, fp_words, exact)                                              \
	((__u32)(exact) << 22 | (__u32)(kind) << 19 | (__u32)(fp_words) << 10 | (cfa_words))
#define KERNEL_RULE_CFA(rule)	((rule)&0x3ff)
#define KERNEL_RULE_FP(rule)	((rule) >> 10 & 0x1ff)
#define KERNEL_RULE_KIND(rule)	((rule) >> 19 & 7)
#define KERNEL_RULE_EXACT(rule) ((rule) >> 22 & 1)

/* Of a pc that is in none of the codes whose rows are known. */
#define KERNEL_RULE_NO_CODE KERNEL_RULE(KERNEL_HELPER, 1, 0, 0)

/*
 * A part of the kernel's code, and the cell of its first bucket. Buckets and further rows are in
 * segments of cells of 4 bytes, as an arena's (abi/unwind.h). `size` is written last.
 */
enum { KERNEL_CODES_MAX = 2, KERNEL_SEGMENTS_MAX = 320 };
struct kernel_code {
	__u64 start, size;
	__u32 buckets, more;
};

/*
 * Code that comes and goes: of BPF programs and their trampolines, which keep frame pointers, and
 * of modules, whose ORC entries are read where they lie. Who walks proves that an item is still
 * what it was when it was listed: what is in the kernel's lists knows where it is in them, and what
 * was taken out does not (list_del_rcu() poisons that).
 */
enum { KERNEL_MADE_MAX = 1024, KERNEL_PROOF_WORDS = 3 };
enum kernel_made_kind { KERNEL_MADE_BPF = 0, KERNEL_MADE_MODULE = 1, KERNEL_MADE_KINDS_ = 2 };

struct kernel_made {
	__u64 start, end; /* of the code */
	__u64 link;	/* the item's struct list_head, whose neighbour behind it says that again */
	__u64 proof_at; /* so many words are there ... */
	/* ... and say this. Of a BPF program where its code is; of a module how many ORC entries it
	 * has, where their addresses are, where they are (struct mod_arch_specific). */
	__u64 proof[KERNEL_PROOF_WORDS];
	__u64 kind; /* enum kernel_made_kind */
};
_Static_assert(sizeof(struct kernel_made) == 64, "an item is a line of the cache");

/* Where in the last 16 bits of an ORC entry these are; size 0: this kernel has none. */
struct orc_layout {
	__u8 type_shift, type_size;
	__u8 signal_shift, signal_size; /* since 6.3 */
	__u8 end_shift, end_size;	/* before 6.4 */
};

struct kernel_mades {
	__u32 nr, reserved;
	struct orc_layout orc;
	__u8 padding[2];
	struct kernel_made items[KERNEL_MADE_MAX]; /* by address */
};

/* Whose kernel frames a sample gets. */
enum kernel_frames {
	KERNEL_FRAMES_HELPER = 0,  /* bpf_get_stack()'s */
	KERNEL_FRAMES_ROWS = 1,	   /* our own walk's, by rows, where that is exact */
	KERNEL_FRAMES_COMPARE = 2, /* tests: both are taken, and what differs is counted */
};

/* What came of walking by rows: all but the first two, and it is the helper's turn. */
enum kernel_walk_end {
	KERNEL_WALK_GOES_ON = 0,
	KERNEL_WALK_WHOLE = 1,
	KERNEL_WALK_NO_CODE = 2,      /* a pc of which nothing is known, or not yet */
	KERNEL_WALK_NO_RULE = 3,      /* a row that KERNEL_RULE() has no room for */
	KERNEL_WALK_UNREADABLE = 4,   /* a stack that cannot be read */
	KERNEL_WALK_OUT_OF_ORDER = 5, /* a caller's frame that is not above its callee's */
	KERNEL_WALK_ENDS_ = 6,
};

/* Of one CPU. The last three only by KERNEL_FRAMES_COMPARE. */
struct kernel_walk_counts {
	__u64 ends[KERNEL_WALK_ENDS_];
	__u64 made[KERNEL_MADE_KINDS_]; /* frames in such code */
	__u64 equal, equal_frames, differ;
};
