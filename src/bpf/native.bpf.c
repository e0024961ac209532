// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The native step: one frame of compiled code, by the unwind rule of its address (abi/unwind.h),
 * from .eh_frame or .debug_frame, or by the frame pointer where a file has no such information.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"

#if defined(__TARGET_ARCH_x86)
#include "bpf/arch_x86.bpf.h"
#else
#include "bpf/arch_arm64.bpf.h"
#endif

enum { PAGE = 4096, WINDOW_BELOW = 64 };

__noinline int WALK_NAME(fill_window)(__u64 addr);
__noinline int WALK_NAME(native_signal)(__u64 block);
__noinline int WALK_NAME(native_frame_pointer)(void);
__noinline int WALK_NAME(native_apply)(__u32 rule);

/* Reads the window of the stack around `addr` anew; 0 or a stop reason. */
__noinline int WALK_NAME(fill_window)(__u64 addr)
{
	struct walk *w = current_walk();
	__u64 start = addr & ~7ull, sp;
	__u32 len;

	if (!w)
		return STOP_INTERNAL;
	/* The frame's registers are saved from a little below its stack pointer on: begin there,
	 * but never in another page than the stack's, which may be missing. */
	sp = w->regs[ARCH_SP] & ~7ull;
	if ((sp & (PAGE - 1)) >= WINDOW_BELOW)
		sp -= WINDOW_BELOW;
	if (start - sp < WINDOW_SIZE - WINDOW_BELOW)
		start = sp;
	else if ((start & (PAGE - 1)) >= WINDOW_BELOW)
		start -= WINDOW_BELOW;
	w->window_start = start;
	w->window_len = WINDOW_SIZE;
	if (!bpf_probe_read_user(w->window, WINDOW_SIZE, (void *)start))
		return STOP_NONE;
	w->window_len = 0;
	/* It ran past the stack's end: what is left of the page. */
	len = PAGE - (start & (PAGE - 1));
	if (len >= WINDOW_SIZE)
		return STOP_STACK_UNREADABLE;
	len &= WINDOW_SIZE - 1;
	if (bpf_probe_read_user(w->window, len, (void *)start))
		return STOP_STACK_UNREADABLE;
	w->window_len = len;
	return STOP_NONE;
}

static __always_inline int window_get(const struct walk *w, __u64 addr, __u64 *ret)
{
	__u64 at = addr - w->window_start;

	if (at & 7)
		return -1; /* no stack of either architecture is aligned so */
	barrier_var(at);   /* or clang loads it anew behind the check */
	if (at > WINDOW_SIZE - 8 || at + 8 > w->window_len)
		return -1;
	*ret = *(const __u64 *)(w->window + at);
	return 0;
}

static __always_inline int read_stack(struct walk *w, __u64 addr, __u64 *ret)
{
	int stop;

	if (!window_get(w, addr, ret))
		return STOP_NONE;
	stop = WALK_NAME(fill_window)(addr);
	if (stop)
		return stop;
	return window_get(w, addr, ret) ? STOP_STACK_UNREADABLE : STOP_NONE;
}

/* Moves to the caller: `ra` is where the current frame returns to, `cfa` its stack pointer then. */
static __always_inline int to_caller(struct walk *w, __u64 cfa, __u64 ra)
{
	ra = arch_strip_pac(w, ra);
	w->regs[ARCH_SP] = cfa;
	w->valid &= (__u32)ARCH_CALLEE_SAVED;
	w->interrupted = 0;
	w->pc = ra - 1;
	/* A thread's first frame may also be told by the return address 0. */
	return ra ? STOP_NONE : STOP_COMPLETE;
}

/* A signal trampoline: all registers were saved at `block` by the kernel. */
__noinline int WALK_NAME(native_signal)(__u64 block)
{
	struct walk *w = current_walk();
	__u64 value, pc = 0;
	int stop;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	for (i = 0; i < ARCH_SIGNAL_WORDS; i++) {
		__u32 reg = arch_signal_regs[i];

		stop = read_stack(w, block + 8 * i, &value);
		if (stop)
			return stop;
		if (reg == ARCH_SIGNAL_PC)
			pc = value;
		else
			w->regs[reg & (UNWIND_REGS_MAX - 1)] = value;
	}
	w->valid = ARCH_REGS == 32 ? ~0u : (1u << (ARCH_REGS & 31)) - 1;
	w->pc = pc;
	w->interrupted = 1;
	return STOP_NONE;
}

/* Code without unwind information. */
__noinline int WALK_NAME(native_frame_pointer)(void)
{
	struct walk *w = current_walk();
	enum arch_frame frame = ARCH_FRAME_STANDARD;
	__u64 sp, fp, cfa, ra, code[2];
	int stop;

	if (!w)
		return STOP_INTERNAL;
	sp = w->regs[ARCH_SP];
	fp = w->regs[ARCH_FP];
	if (w->interrupted && !bpf_probe_read_user(code, sizeof(code), (void *)(w->pc - 8)))
		frame = arch_look_at_code(code[0], code[1]);
	w->by_frame_pointer = 1;
	if (frame == ARCH_FRAME_NONE) {
		if (ARCH_LINK_REGISTER)
			return to_caller(w, sp, w->regs[ARCH_LINK_REGISTER]);
		stop = read_stack(w, sp, &ra);
		return stop ? stop : to_caller(w, sp + 8, ra);
	}
	if (!(w->valid & 1u << ARCH_FP))
		return STOP_UNKNOWN_REGISTER;
	if (frame == ARCH_FRAME_PUSHED)
		fp = sp;
	if (!fp)
		return STOP_COMPLETE;
	if (fp < sp || fp & 7)
		return STOP_FRAME_POINTER;
	stop = read_stack(w, fp + 8, &ra);
	if (!stop)
		stop = read_stack(w, fp, &cfa);
	if (stop)
		return stop == STOP_STACK_COPY_END ? stop : STOP_FRAME_POINTER;
	w->regs[ARCH_FP] = cfa;
	return to_caller(w, fp + 16, ra);
}

/* The CFA by rule `r`; 0 or a stop reason. */
static __always_inline int find_cfa(struct walk *w, const struct unwind_rule *r, __u64 *ret)
{
	__u32 reg = r->cfa_reg & (UNWIND_REGS_MAX - 1);
	__u64 base = w->regs[reg];

	if (!(w->valid & 1u << reg))
		return STOP_UNKNOWN_REGISTER;
	*ret = base + (__s64)r->cfa_off;
	if (r->cfa == CFA_PLT) {
		if ((w->pc & 15) >= (__u16)r->slot_off[UNWIND_CFA_OFF2_SLOT])
			*ret += 8;
		return STOP_NONE;
	}
	if (r->cfa == CFA_DEREF) {
		int stop = read_stack(w, *ret, ret);

		if (stop)
			return stop;
		*ret += (__s64)r->slot_off[UNWIND_CFA_OFF2_SLOT];
	}
	return STOP_NONE;
}

/* Takes back what the function saved of register number `slot`. */
static __always_inline int restore_slot(struct walk *w, __u64 base, __u32 slot, __s16 off)
{
	__u32 reg = arch_slot_regs[slot] & (UNWIND_REGS_MAX - 1);
	__u64 value;
	int stop;

	if (off == SLOT_SAME)
		return STOP_NONE;
	if (off == SLOT_LOST) {
		w->valid &= ~(1u << reg);
		return STOP_NONE;
	}
	stop = read_stack(w, base + 8 * (__s64)off, &value);
	if (stop)
		return stop;
	w->regs[reg] = value;
	w->valid |= 1u << reg;
	return STOP_NONE;
}

/* Pushes the current frame, whose rule has this number, and moves to its caller. */
__noinline int WALK_NAME(native_apply)(__u32 rule)
{
	struct walk *w = current_walk();
	const struct unwind_rule *r = rule_at(rule);
	__u64 cfa, ra, base, at;
	__u32 i, slots;
	int stop;

	if (!w || !r)
		return STOP_INTERNAL;
	at = w->pc;
	if (!w->interrupted && (r->cfa == CFA_SIGNAL || r->flags & RULE_NO_CALL))
		at++;
	stop = push_frame(w, RUNTIME_NATIVE, at);
	if (stop)
		return stop;
	switch (r->cfa) {
	case CFA_STOP:
		return r->cfa_off > 0 && r->cfa_off < STOP_MAX_ ? r->cfa_off : STOP_INTERNAL;
	case CFA_END:
		return STOP_COMPLETE;
	case CFA_FRAME_POINTER:
		return WALK_NAME(native_frame_pointer)();
	case CFA_SIGNAL:
		return WALK_NAME(native_signal)(w->regs[r->cfa_reg & (UNWIND_REGS_MAX - 1)] +
						(__s64)r->cfa_off);
	}
	stop = find_cfa(w, r, &cfa);
	if (stop)
		return stop;
	/* Only the interrupted frame can have nothing on the stack (a leaf with its caller in a
	 * register). */
	if (cfa < w->regs[ARCH_SP] || (cfa == w->regs[ARCH_SP] && !w->interrupted))
		return STOP_NO_PROGRESS;
	if (r->ra == RA_IN_REG) {
		__u32 reg = r->ra_off & (UNWIND_REGS_MAX - 1);

		if (!(w->valid & 1u << reg))
			return STOP_UNKNOWN_REGISTER;
		ra = w->regs[reg];
	} else {
		stop = read_stack(w, cfa + 8 * (__s64)r->ra_off, &ra);
		if (stop)
			return stop;
	}
	base = r->flags & RULE_SLOTS_AT_FP ? w->regs[ARCH_FP] + UNWIND_FP_SLOTS_BIAS : cfa;
	slots = r->cfa == CFA_REG ? UNWIND_SLOTS : UNWIND_CFA_OFF2_SLOT;
	for (i = 0; i < UNWIND_SLOTS && i < slots; i++) {
		stop = restore_slot(w, base, i, r->slot_off[i]);
		if (stop)
			return stop;
	}
	w->by_frame_pointer = 0;
	return to_caller(w, cfa, ra);
}

static __always_inline __u32 cache_slot(const struct walk *w)
{
	return (w->pc ^ (w->pc >> 12) ^ w->process.generation * 0x9e3779b1u);
}

STEP(native)
{
	struct walk *w = current_walk();
	struct rule_cache_entry *cached;
	__u32 number;
	int rule;

	if (!w)
		return STOP_INTERNAL;
	cached = rule_cache_at(w, cache_slot(w));
	if (!cached)
		return STOP_INTERNAL;
	if (cached->pc == w->pc && cached->generation == w->process.generation) {
		number = cached->rule;
	} else {
		rule = WALK_NAME(find_rule)();
		if (rule < 0) {
			/* Code that is nowhere is a frame only if it was really running. */
			if (rule == -STOP_NO_MAPPING && !w->interrupted)
				return w->by_frame_pointer ? STOP_FRAME_POINTER : STOP_NO_MAPPING;
			push_frame(w, RUNTIME_NATIVE, w->pc);
			return -rule;
		}
		number = (__u32)rule;
		cached->pc = w->pc;
		cached->generation = w->process.generation;
		cached->rule = number;
	}
	return WALK_NAME(native_apply)(number);
}
