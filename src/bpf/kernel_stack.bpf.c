// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The kernel's own stack, by rows that were made of its ORC entries (abi/kernel_rows.h): the frames
 * that bpf_get_stack() would tell, word for word, in a tenth of its time. Where a row is missing or
 * what is on the stack is odd the walk gives up, and the sample takes the helper's frames: never a
 * guess. x86-64 only. docs/kernel-stacks.md has the reasons and the measurements.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/kernel_segments.bpf.h"

enum {
	KERNEL_BATCH = 16, /* frames in one bounded loop, which the verifier follows */
	KERNEL_BATCHES = SAMPLE_MAX_KERNEL_FRAMES / KERNEL_BATCH + 1,
	KERNEL_SEARCH_STEPS = 9,
	/* No stack of the kernel's is larger: THREAD_SIZE with KASAN. */
	KERNEL_STACK_MAX = 64 << 10,
	/* Frames of one stack, if these bits say no more than that: the smallest THREAD_SIZE. */
	KERNEL_STACK_SHIFT = 14,
	/* arch/x86/include/asm/ptrace.h: where pt_regs has what the CPU pushes, and bp before it */
	PT_REGS_IP = 16 * 8,
	PT_REGS_BP_BEFORE_IP = 12 * 8,
};
_Static_assert(1 << KERNEL_SEARCH_STEPS > KERNEL_BUCKET_MORE_MAX, "the search reaches every row");

/* What the CPU pushes: arch/x86/include/asm/ptrace.h, the end of pt_regs. */
enum { PUSHED_IP, PUSHED_CS, PUSHED_FLAGS, PUSHED_SP, PUSHED_NR };

__noinline int WALK_NAME(kernel_row)(__u64 pc);
__noinline int WALK_NAME(kernel_rule_missed)(void);
__noinline int WALK_NAME(kernel_batch)(void);

static __always_inline __u32 kernel_slot(__u64 pc)
{
	return ((__u32)pc ^ (__u32)pc >> 10) & (KERNEL_CACHE_ENTRIES - 1);
}

/* KERNEL_RULE() of an address, by the table. */
__noinline int WALK_NAME(kernel_row)(__u64 pc)
{
	const struct kernel_code *code = kernel_code_of(pc);
	__u32 bucket, first, i, lo, low, n, row;

	if (!code)
		return KERNEL_RULE_NO_CODE;
	low = (pc - code->start) & ((1 << KERNEL_BUCKET_SHIFT) - 1);
	first = code->buckets + (__u32)((pc - code->start) >> KERNEL_BUCKET_SHIFT) *
					(sizeof(struct kernel_bucket) / 4);
	if (kernel_cell(first, &bucket))
		return KERNEL_RULE_NO_CODE;
	n = KERNEL_BUCKET_NR(bucket);
	first = n > KERNEL_BUCKET_ROWS ? code->more + KERNEL_BUCKET_FIRST(bucket) : first + 1;
	/* lo: how many of the bucket's rows begin at or before pc. */
	lo = 0;
	for (i = 0; i < KERNEL_SEARCH_STEPS && n; i++) {
		__u32 half = n / 2;

		if (kernel_cell(first + lo + half, &row))
			return KERNEL_RULE_NO_CODE;
		if (KERNEL_ROW_LOW(row) <= low) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (!lo || kernel_cell(first + lo - 1, &row))
		return KERNEL_RULE_NO_CODE;
	return KERNEL_ROW_RULE(row);
}

/* The rule of walk->kernel.pc, which is not where it was expected; remembers it there. */
__noinline int WALK_NAME(kernel_rule_missed)(void)
{
	struct walk *w = current_walk();
	struct kernel_cache *cache;
	__u32 rule, slot, at;
	__u64 pc;

	if (!w)
		return KERNEL_RULE_NO_CODE;
	cache = kernel_cache_of(w);
	pc = w->kernel.pc;
	/* The kernel's code is in the last 2 GiB. */
	if (!cache || pc >> 32 != 0xffffffff)
		return KERNEL_RULE_NO_CODE;
	slot = kernel_slot(pc);
	barrier_var(slot);
	slot &= KERNEL_CACHE_ENTRIES - 1;
	if (cache->entries[slot] >> 32 == (__u32)pc) {
		rule = (__u32)cache->entries[slot];
	} else {
		rule = WALK_NAME(kernel_row)(pc);
		/* Nothing of what comes and goes is remembered. */
		if (rule == KERNEL_RULE_NO_CODE)
			return WALK_NAME(kernel_made_rule)(pc);
		cache->entries[slot] = pc << 32 | rule;
	}
	at = w->kernel.slot;
	barrier_var(at);
	cache->callers[at & (KERNEL_CACHE_ENTRIES - 1)] = pc << 32 | rule;
	return rule;
}

static __always_inline __u32 kernel_rule(const struct walk *w, const struct kernel_cache *cache)
{
	__u32 at = w->kernel.slot;
	__u64 entry;

	barrier_var(at);
	entry = cache->callers[at & (KERNEL_CACHE_ENTRIES - 1)];
	if (entry && entry >> 32 == (__u32)w->kernel.pc && w->kernel.pc >> 32 == 0xffffffff)
		return (__u32)entry;
	return WALK_NAME(kernel_rule_missed)();
}

static __always_inline int read_kernel(__u64 from, void *to, __u32 size)
{
	return read_kernel_stack(to, size, from) ? KERNEL_WALK_UNREADABLE : KERNEL_WALK_GOES_ON;
}

/* Not above, though on one stack: nobody was called or interrupted from there. */
static __always_inline bool is_below(__u64 next_sp, __u64 sp)
{
	return next_sp <= sp && !((next_sp ^ sp) >> KERNEL_STACK_SHIFT);
}

/* The caller was interrupted, or this is where the kernel was entered. */
static __always_inline int kernel_step_regs(struct kernel_walk *k, __u32 rule, __u64 *ret_pc)
{
	bool all = KERNEL_RULE_KIND(rule) == KERNEL_REGS;
	__u64 at = k->sp + 8 * (__u64)KERNEL_RULE_CFA(rule) + (all ? PT_REGS_IP : 0);
	__u64 pushed[PUSHED_NR];

	if (read_kernel(at, pushed, sizeof(pushed)))
		return KERNEL_WALK_UNREADABLE;
	if ((pushed[PUSHED_CS] & 3) == 3)
		/* A process that jumps to the kernel's code: the helper tells that frame. */
		return pushed[PUSHED_IP] >> 63 ? KERNEL_WALK_OUT_OF_ORDER : KERNEL_WALK_WHOLE;
	if (is_below(pushed[PUSHED_SP], k->sp))
		return KERNEL_WALK_OUT_OF_ORDER;
	if (all && read_kernel(at - PT_REGS_BP_BEFORE_IP, &k->fp, sizeof(k->fp)))
		return KERNEL_WALK_UNREADABLE;
	k->sp = pushed[PUSHED_SP];
	*ret_pc = k->pc = pushed[PUSHED_IP];
	return KERNEL_WALK_GOES_ON;
}

static __always_inline int kernel_cfa(const struct kernel_walk *k, __u32 rule, __u64 *ret)
{
	__u64 distance = 8 * (__u64)KERNEL_RULE_CFA(rule), cfa;

	switch (KERNEL_RULE_KIND(rule)) {
	case KERNEL_CFA_SP:
		cfa = k->sp + distance;
		break;
	case KERNEL_CFA_FP:
		cfa = k->fp + distance;
		break;
	case KERNEL_CFA_AT_FP:
		if (read_kernel(k->fp - distance, &cfa, sizeof(cfa)))
			return KERNEL_WALK_UNREADABLE;
		break;
	default:
		if (read_kernel(k->sp, &cfa, sizeof(cfa)))
			return KERNEL_WALK_UNREADABLE;
		cfa += distance;
		*ret = cfa;
		return is_below(cfa, k->sp) || cfa & 7 ? KERNEL_WALK_OUT_OF_ORDER
						       : KERNEL_WALK_GOES_ON;
	}
	*ret = cfa;
	return cfa - k->sp - 1 >= KERNEL_STACK_MAX || cfa & 7 ? KERNEL_WALK_OUT_OF_ORDER
							      : KERNEL_WALK_GOES_ON;
}

static __always_inline int kernel_step_call(struct kernel_walk *k, __u32 rule, __u64 *ret_pc)
{
	__u32 fp_words = KERNEL_RULE_FP(rule);
	__u64 cfa, saved[2]; /* the frame pointer mostly stands below the return address */
	int end = kernel_cfa(k, rule, &cfa);

	if (end)
		return end;
	if (fp_words == 2) {
		if (read_kernel(cfa - sizeof(saved), saved, sizeof(saved)))
			return KERNEL_WALK_UNREADABLE;
		k->fp = saved[0];
	} else {
		if (read_kernel(cfa - sizeof(saved[1]), &saved[1], sizeof(saved[1])))
			return KERNEL_WALK_UNREADABLE;
		if (fp_words && read_kernel(cfa - 8 * (__u64)fp_words, &k->fp, sizeof(k->fp)))
			return KERNEL_WALK_UNREADABLE;
		if (KERNEL_RULE_KIND(rule) == KERNEL_CFA_AT_FP &&
		    read_kernel(k->fp, &k->fp, sizeof(k->fp)))
			return KERNEL_WALK_UNREADABLE;
	}
	k->sp = cfa;
	*ret_pc = saved[1];
	k->pc = saved[1] - !KERNEL_RULE_EXACT(rule);
	return KERNEL_WALK_GOES_ON;
}

/* From the current frame to its caller, whose pc is put behind those that were found. */
static __always_inline int kernel_step(struct walk *w, const struct kernel_cache *cache,
				       __u64 *words)
{
	struct kernel_walk *k = &w->kernel;
	__u32 rule = kernel_rule(w, cache), nr;
	__u64 pc;
	int end;

	if (KERNEL_RULE_KIND(rule) == KERNEL_HELPER)
		return rule == KERNEL_RULE_NO_CODE ? KERNEL_WALK_NO_CODE : KERNEL_WALK_NO_RULE;
	nr = k->nr;
	barrier_var(nr);
	if (KERNEL_RULE_KIND(rule) == KERNEL_END || nr >= SAMPLE_MAX_KERNEL_FRAMES)
		return KERNEL_WALK_WHOLE;
	if (KERNEL_RULE_KIND(rule) == KERNEL_REGS || KERNEL_RULE_KIND(rule) == KERNEL_REGS_PARTIAL)
		end = kernel_step_regs(k, rule, &pc);
	else
		end = kernel_step_call(k, rule, &pc);
	if (end)
		return end;
	words[nr] = pc;
	k->nr = nr + 1;
	k->slot++;
	return KERNEL_WALK_GOES_ON;
}

__noinline int WALK_NAME(kernel_batch)(void)
{
	struct walk *w = current_walk();
	struct kernel_cache *cache;
	__u64 *words;
	__u32 i;
	int end;

	if (!w)
		return KERNEL_WALK_NO_CODE;
	words = walk_words(w);
	cache = kernel_cache_of(w);
	if (!words || !cache)
		return KERNEL_WALK_NO_CODE;
	for (i = 0; i < KERNEL_BATCH; i++) {
		end = kernel_step(w, cache, words);
		if (end)
			return end;
	}
	return KERNEL_WALK_GOES_ON;
}

__noinline int WALK_NAME(walk_kernel_rows)(void)
{
	struct walk *w = current_walk();
	__u64 *words;
	__u32 i;
	int end;

	if (!w)
		return KERNEL_WALK_NO_CODE;
	words = walk_words(w);
	if (!words)
		return KERNEL_WALK_NO_CODE;
	words[0] = w->kernel.pc;
	w->kernel.nr = 1;
	w->kernel.slot = kernel_slot(w->kernel.pc);
	for (i = 0; i < KERNEL_BATCHES; i++) {
		end = WALK_NAME(kernel_batch)();
		if (end)
			return end;
	}
	return KERNEL_WALK_OUT_OF_ORDER;
}
