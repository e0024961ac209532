/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What terms of a selection mean (abi/select.h), for the kernel and for user space: a process is
 * sampled if an including term holds for it, or there is none, and no excluding one does.
 */
#pragma once

#include "abi/select.h"

/* What terms are held against. */
struct select_task {
	__u32 pid, uid;
	__u64 age_ns;			 /* of the process */
	__u64 comm[SAMPLE_COMM_LEN / 8]; /* of its main thread; 0 behind its end, or anything */
	__u64 facts;			 /* anything, if they are not known */
	__u32 known;			 /* 1: `facts` are; else 0 */
	__u32 pad_;
};

static inline __attribute__((always_inline)) __u64 select_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 32;
}

/*
 * Says that `f` is known of this process, and is whole. The kernel gives an entry's memory to
 * another process at once while a program may still read it: what is of two processes, or of a
 * moment before and one behind, has not this seal. Never 0.
 */
static inline __attribute__((always_inline)) __u32 select_seal(__u32 pid,
							       const struct select_facts *f)
{
	__u64 hash = select_mix(pid, f->space);

	hash = select_mix(hash, f->cgroup);
	hash = select_mix(hash, f->comm[0]);
	hash = select_mix(hash, f->comm[1]);
	hash = select_mix(hash, f->facts);
	hash = select_mix(hash, f->epoch);
	return (__u32)hash | 1;
}

/*
 * enum select_verdict. One path through each term, whatever it holds: the verifier would follow
 * each other one into the next term.
 */
static inline __attribute__((always_inline)) int select_judge(const struct select_rules *rules,
							      const struct select_task *task)
{
	/* Bit 0, and others that mean nothing: a term holds; it may. */
	__u64 included = 0, perhaps_included = 0, excluded = 0, perhaps_excluded = 0;
	__u64 known = -(__u64)task->known;
	__u32 i, nr = rules->nr;

	for (i = 0; i < SELECT_TERMS_MAX && i < nr; i++) {
		const struct select_term *t = &rules->terms[i];
		__u64 missing = t->facts & ~(task->facts & known), no, unknown;
		__u64 exclude = t->exclude;

		no = (t->pid ^ task->pid) & t->pid_mask;
		no |= (t->uid ^ task->uid) & t->uid_mask;
		no |= (task->comm[0] ^ t->comm[0]) & t->comm_mask[0];
		no |= (task->comm[1] ^ t->comm[1]) & t->comm_mask[1];
		/* Neither is 2^63 ns. */
		no |= (task->age_ns - t->min_age_ns) >> 63;
		no |= missing & known;
		unknown = missing & ~known;
		/* Now 1 or 0. */
		no = (no | -no) >> 63;
		unknown = (unknown | -unknown) >> 63;
		excluded |= exclude & ~no & ~unknown;
		perhaps_excluded |= exclude & ~no & unknown;
		included |= ~exclude & ~no & ~unknown;
		perhaps_included |= ~exclude & ~no & unknown;
	}
	if (!rules->nr_includes)
		included = 1;
	if (excluded & 1 || !((included | perhaps_included) & 1))
		return SELECT_REJECT;
	return included & ~perhaps_excluded & 1 ? SELECT_TAKE : SELECT_UNDECIDED;
}
