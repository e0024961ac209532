/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes are sampled (--include, --exclude; docs/selection.md): the terms as the kernel
 * reads them, and what user space found out of a process that the kernel does not tell. What they
 * mean is in bpf/judge.bpf.h.
 */
#pragma once

#include "abi/sample.h"

enum {
	SELECT_TERMS_MAX = 32,
	SELECT_FACTS_MAX = 64, /* conditions that user space decides, of all terms */
	/* Of processes that were decided; of others each sample is, by user space. 120 bytes each.
	 */
	SELECT_PROCESSES_MAX = 8192,
};

/* What terms ask for. */
enum {
	SELECT_PID = 1 << 0,
	SELECT_UID = 1 << 1,
	SELECT_AGE = 1 << 2,
	SELECT_COMM = 1 << 3,
	SELECT_FACTS = 1 << 4,
};

/* Holds for a process if all of it does. */
struct select_term {
	__u32 asks;			    /* SELECT_* */
	__u32 exclude;			    /* 1: who it holds for is not sampled; else 0 */
	__u32 pid, pid_mask, uid, uid_mask; /* a mask is 0, if that is not asked for, or ~0 */
	__u64 min_age_ns;
	__u64 comm[SAMPLE_COMM_LEN / 8], comm_mask[SAMPLE_COMM_LEN / 8];
	__u64 facts; /* all of these bits */
};

/*
 * Map `selection` has three entries: the first one's `which` says whether the second or the third
 * counts, so that nobody ever reads half of one and half of another.
 */
struct select_rules {
	__u32 which;
	__u32 epoch; /* grows with each change: facts of before are void */
	__u32 asks;  /* of all terms together */
	__u32 nr;
	__u32 nr_includes;
	__u32 pad_;
	struct select_term terms[SELECT_TERMS_MAX];
};

/*
 * What user space found out of a process: map `facts`, by tgid. The kernel puts it there, not known
 * yet, when it meets a process of which it would have to know; it holds for what the kernel saw
 * then: an address space, a cgroup, a name.
 */
struct select_facts {
	__u64 space;  /* mm_token() */
	__u64 cgroup; /* number of the task's, in the hierarchy of version 2 */
	__u64 comm[SAMPLE_COMM_LEN / 8];
	__u64 facts;  /* bit N: condition N holds */
	__u64 met_ns; /* when it was first seen so: a sample of before is of something else */
	__u32 epoch;
	__u32 known; /* select_seal() of all this and the tgid; else it is not known */
};

enum select_verdict {
	SELECT_TAKE,
	SELECT_REJECT,
	SELECT_UNDECIDED,
	SELECT_MET, /* undecided, and the kernel has just begun to ask; of the kernel alone */
};

_Static_assert(sizeof(struct select_term) == 72, "no hidden padding");
_Static_assert(sizeof(struct select_rules) == 24 + 72 * SELECT_TERMS_MAX, "no hidden padding");
_Static_assert(sizeof(struct select_facts) == 56, "no hidden padding");
