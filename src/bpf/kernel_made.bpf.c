// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The rule of kernel code that comes and goes (abi/kernel_rows.h): of BPF programs and modules. An
 * item of the list counts only if the kernel has it still, at this very moment: whoever runs, or is
 * called from, code cannot have that freed beneath him, but what we were told may be old. The order
 * of questions is that of the kernel's own walk (arch/x86/kernel/unwind_orc.c, orc_find()): who is
 * in a module goes by that one's entries, and what is no module's goes by the frame pointer.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/orc_entry.h"

enum {
	MADE_SEARCH_STEPS = 11,
	MODULE_SEARCH_STEPS = 20,
};
_Static_assert(1 << MADE_SEARCH_STEPS > KERNEL_MADE_MAX, "the search reaches every item");

__noinline int WALK_NAME(kernel_module_rule)(__u32 at, __u64 pc);

/* By the module's own entries: the last one at or before pc. */
__noinline int WALK_NAME(kernel_module_rule)(__u32 at, __u64 pc)
{
	const struct kernel_mades *mades = kernel_mades();
	__u16 entry[ORC_ENTRY_SIZE / 2];
	const struct kernel_made *m;
	__u32 i, lo = 0, n;
	__s32 distance;
	__u64 where;

	if (!mades)
		return KERNEL_RULE_NO_CODE;
	barrier_var(at);
	m = &mades->items[at & (KERNEL_MADE_MAX - 1)];
	n = (__u32)m->proof[0];
	for (i = 0; i < MODULE_SEARCH_STEPS && n; i++) {
		__u32 half = n / 2;

		where = m->proof[1] + 4 * (__u64)(lo + half);
		if (read_kernel_stack(&distance, sizeof(distance), where))
			return KERNEL_RULE_NO_CODE;
		if (where + (__s64)distance <= pc) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (!lo || n ||
	    read_kernel_stack(entry, sizeof(entry), m->proof[2] + ORC_ENTRY_SIZE * (__u64)(lo - 1)))
		return KERNEL_RULE_NO_CODE;
	return orc_entry_rule(&mades->orc, (__s16)entry[0], (__s16)entry[1], entry[2]);
}

static __always_inline bool is_still_there(const struct kernel_made *m)
{
	__u64 now[KERNEL_PROOF_WORDS], before, behind;

	if (read_kernel_stack(now, sizeof(now), m->proof_at) || now[0] != m->proof[0] ||
	    now[1] != m->proof[1] || now[2] != m->proof[2])
		return false;
	/* struct list_head: next, prev. */
	if (read_kernel_stack(&before, sizeof(before), m->link + sizeof(__u64)) ||
	    read_kernel_stack(&behind, sizeof(behind), before))
		return false;
	return behind == m->link;
}

__noinline int WALK_NAME(kernel_made_rule)(__u64 pc)
{
	const struct kernel_mades *mades = kernel_mades();
	struct walk *w = current_walk();
	const struct kernel_made *m;
	__u32 i, lo = 0, n, at;

	if (!mades || !w)
		return KERNEL_RULE_NO_CODE;
	n = mades->nr;
	/* lo: how many begin at or before pc. */
	for (i = 0; i < MADE_SEARCH_STEPS && n; i++) {
		__u32 half = n / 2;

		at = lo + half;
		barrier_var(at);
		if (mades->items[at & (KERNEL_MADE_MAX - 1)].start <= pc) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	at = lo - 1;
	barrier_var(at);
	m = &mades->items[at & (KERNEL_MADE_MAX - 1)];
	/* A return address behind the end is no code for the kernel's walk. */
	if (!lo || pc < m->start || pc + 1 >= m->end || !is_still_there(m))
		return KERNEL_RULE_NO_CODE;
	if (m->kind == KERNEL_MADE_BPF) {
		w->kernel.counts.made[KERNEL_MADE_BPF]++;
		return KERNEL_RULE(KERNEL_CFA_FP, 2, 2, 0);
	}
	w->kernel.counts.made[KERNEL_MADE_MODULE]++;
	return WALK_NAME(kernel_module_rule)(at, pc);
}
