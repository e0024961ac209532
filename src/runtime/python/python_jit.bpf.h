/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code that CPython's own JIT has made (--enable-experimental-jit), 3.14 on x86-64. A part
 * of the step, included by python.bpf.c.
 *
 * It has no unwind information and no frame pointer: the frame pointer is still the one of the loop
 * that entered it, or anything. What is known is how it is entered. Each trace begins at a page,
 * with a shim that saves what C code wants saved and calls the trace behind it; traces jump to each
 * other, and return to the shim that was entered:
 *
 *     push %r15; push %r14; push %r13; push %r12; push %rbx; mov ...; call trace
 *     pop %rbx; pop %r12; pop %r13; pop %r14; pop %r15; ret
 *
 * A little above the stack pointer lies an address behind the call of such a shim; above it what
 * that has saved, and where the loop goes on. The frames that the trace runs are the loop's, and it
 * keeps the thread's state as the loop does.
 *
 * Facts: CPython's Tools/jit/shim.c, Python/jit.c.
 */
#pragma once

enum {
	JIT_WORDS = 48, /* of the stack are looked through; a trace's own frame has 20 at most */
	JIT_SAVED = 5,	/* registers, by the shim */
	JIT_PAGE = 4096,
	/* Of the shim: where it calls the trace, goes on, and ends. */
	JIT_CALL = 0x12,
	JIT_BEHIND = JIT_CALL + 5,
	JIT_END = JIT_BEHIND + 10,
};
__noinline int WALK_NAME(python_jit)(void);
__noinline int WALK_NAME(python_jit_shim)(__u64 page);
__noinline int WALK_NAME(python_jit_search)(__u32 i);

/* Does a shim begin at `page`? */
__noinline int WALK_NAME(python_jit_shim)(__u64 page)
{
	struct walk *w = current_walk();
	const __u64 *words;
	const __u8 *code;

	if (!w)
		return 0;
	w->work++; /* a stack can be made of words that lead to pages */
	words = &w->scratch[STR_AT];
	code = (const __u8 *)words;
	return !read_memory(page, &w->scratch[STR_AT], 40) && words[0] == 0x5441554156415741ull &&
	       code[8] == 0x53 && code[JIT_CALL] == 0xe8 && code[JIT_BEHIND] == 0x5b &&
	       words[3] == 0x5f415e415d415c41ull && code[JIT_END - 1] == 0xc3;
}

/* How many registers the shim has saved, of those that it saves, when it is at `at` of it. */
static __always_inline __u32 jit_saved(__u32 at)
{
	if (at < 9)
		return at / 2;
	if (at <= JIT_BEHIND)
		return JIT_SAVED;
	return (JIT_END - at) / 2;
}

/* Is `ra` behind a call? */
static __always_inline bool jit_called(__u64 ra)
{
	const struct {
		__u32 at;
		__u8 first, second, mask;
	} calls[] = {
		{ 6, 0xff, 0xd0, 0xf8 }, /* call *%reg */
		{ 5, 0xff, 0x50, 0xf8 }, /* call *8(%reg) */
		{ 4, 0xff, 0x54, 0xff }, /* call *8(%r12) */
		{ 2, 0xff, 0x90, 0xf8 }, /* call *32(%reg) */
	};
	__u64 code;
	__u32 i;

	if (read_word(ra - 8, &code))
		return false;
	UNROLL
	for (i = 0; i < 4; i++)
		if ((__u8)(code >> 8 * calls[i].at) == calls[i].first &&
		    ((code >> (8 * calls[i].at + 8)) & calls[i].mask) == calls[i].second)
			return true;
	return (__u8)(code >> 24) == 0xe8; /* call FUNCTION */
}

/*
 * Moves to the loop: `at` is where on the stack it goes on, below that lie `saved` registers.
 * `pushed` is where a trace saves the frame pointer if it needs that register (0: nowhere). Where
 * the loop finds its frame by it, it is as far above the loop's stack pointer as its code says, and
 * one of both must be that.
 */
static __always_inline int jit_leave(struct walk *w, __u64 at, __u32 saved, __u64 pushed)
{
	static const __u8 regs[JIT_SAVED] = { X86_R15, X86_R14, X86_R13, X86_R12, X86_RBX };
	const struct python_record *r = python_record_of(w);
	__u64 ra = 0, value = 0, wanted = at + 8 + r->loop_frame;
	bool known = w->valid & 1u << ARCH_FP && w->regs[ARCH_FP] == wanted;
	int stop = read_stack(w, at, &ra);
	__u32 i;

	if (!stop && !known && pushed) {
		stop = read_stack(w, pushed, &value);
		known = value == wanted;
	}
	for (i = 0; i < JIT_SAVED && i < saved; i++) {
		stop = stop ? stop : read_stack(w, at - 8 - 8 * (__u64)i, &value);
		if (stop)
			return stop;
		w->regs[regs[i] & (UNWIND_REGS_MAX - 1)] = value;
		w->valid |= 1u << (regs[i] & 31);
	}
	if (stop)
		return stop;
	w->regs[ARCH_FP] = wanted;
	w->valid &= ~(1u << ARCH_FP);
	if (known && r->loop_frame)
		w->valid |= 1u << ARCH_FP;
	return jit_called(ra) ? walk_to_caller(w, at + 8, ra) : STOP_FRAME_POINTER;
}

/* Is word `i` of the stack behind the call of a shim? -1: it cannot be read. A function of its own,
 * since the verifier would follow it once for each word. */
__noinline int WALK_NAME(python_jit_search)(__u32 i)
{
	struct walk *w = current_walk();
	__u64 word, page;

	if (!w || read_stack(w, w->regs[ARCH_SP] + 8 * (__u64)i, &word))
		return -1;
	page = word - JIT_BEHIND;
	return !(page & (JIT_PAGE - 1)) && !((word ^ w->pc) >> 40) &&
	       WALK_NAME(python_jit_shim)(page);
}

/* 0 or a stop reason; SKIPPED: it is no code of the JIT's. */
__noinline int WALK_NAME(python_jit)(void)
{
	struct walk *w = current_walk();
	int found = 0;
	__u64 sp;
	__u32 i, at;

	if (!w)
		return STOP_INTERNAL;
	sp = w->regs[ARCH_SP];
	at = w->pc & (JIT_PAGE - 1);
	if (w->interrupted && at < JIT_END && WALK_NAME(python_jit_shim)(w->pc - at))
		return jit_leave(w, sp + 8 * (__u64)jit_saved(at), jit_saved(at), 0);
	for (i = 0; i < JIT_WORDS && !found; i++)
		found = WALK_NAME(python_jit_search)(i);
	if (found <= 0)
		return SKIPPED;
	i--;
	sp += 8 * (__u64)i;
	return jit_leave(w, sp + 8 + 8 * JIT_SAVED, JIT_SAVED, i ? sp - 8 : 0);
}
