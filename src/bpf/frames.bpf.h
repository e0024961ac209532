/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What steps are made of: pushing frames, moving to the caller, reading the process's stack and
 * memory, and what the agent wrote down for a runtime.
 */
#pragma once

#include "bpf/access.bpf.h"

#if defined(__TARGET_ARCH_x86)
#include "bpf/arch_x86.bpf.h"
#else
#include "bpf/arch_arm64.bpf.h"
#endif

/* --- frames ---------------------------------------------------------------------------------- */

/* Room for a frame of `n` words, appended to the record's `words`; NULL: there is none left. */
static __always_inline __u64 *frame_room_in(__u64 *words, struct walk *w, __u32 n)
{
	__u32 at;

	if (!words || w->nr_frames >= w->max_frames || w->full.nr_words + n > SAMPLE_WORDS_MAX)
		return NULL;
	/* Old verifiers forget the bounds of what is on the stack: get it, check it, use it. */
	at = w->full.nr_kernel + w->full.nr_words;
	barrier_var(at);
	if (at > SAMPLE_MAX_KERNEL_FRAMES + SAMPLE_WORDS_MAX - n)
		return NULL;
	words += at;
	w->full.nr_words += n;
	w->nr_frames++;
	return words;
}

static __always_inline __u64 *frame_room(struct walk *w, __u32 n)
{
	return frame_room_in(walk_words(w), w, n);
}

/* Appends a frame of a header word, and if `n` is 1, a constant, of word1. */
static __always_inline int append_frame(struct walk *w, __u32 runtime, __u64 data, __u32 n,
					__u64 word1)
{
	const __u64 words[2] = { FRAME(runtime, n, data), word1 };
	__u64 *to = frame_room(w, n + 1);
	__u32 i;

	if (!to)
		return STOP_MAX_FRAMES;
	UNROLL
	for (i = 0; i <= n; i++) {
		to[i] = words[i];
		hash_word(w, words[i]);
	}
	return STOP_NONE;
}

/* Appends a frame of one word. */
static __always_inline int push_frame(struct walk *w, __u32 runtime, __u64 data)
{
	return append_frame(w, runtime, data, 0, 0);
}

/* Appends a frame of a runtime, of two words. */
static __always_inline int push_frame_2(struct walk *w, __u32 runtime, __u64 data, __u64 word1)
{
	hash_name(w, FRAME(runtime, 1, data));
	hash_name(w, word1);
	return append_frame(w, runtime, data, 1, word1);
}

/*
 * A frame of which only `function` tells what is read to name it, and `place` is where it is in
 * that: the agent is not woken at once for another place in a function that it has met. Word 1 is
 * made of both.
 */
static __always_inline int push_place(struct walk *w, __u32 runtime, __u64 data, __u32 function,
				      __u32 place)
{
	hash_name(w, FRAME(runtime, 1, data) ^ function);
	return append_frame(w, runtime, data, 1, (__u64)function << 32 | place);
}

/* Says something in place of a runtime's frames. */
static __always_inline int push_note(struct walk *w, __u32 runtime, enum frame_note note)
{
	hash_name(w, FRAME(runtime, 0, note));
	return push_frame(w, runtime, note);
}

/* --- the walk -------------------------------------------------------------------------------- */

/*
 * Counts `n` reads, or what takes as long, that nothing else bounds: each frame that is pushed
 * takes some, which its words bound. True: that was more than any real stack takes.
 */
static __always_inline bool too_much_work(struct walk *w, __u32 n)
{
	w->work += n;
	return w->work > WALK_WORK_MAX;
}

/* The native step is next, if there is a caller. */
static __always_inline int walk_native(struct walk *w)
{
	if (w->entry >= ENTRY_END)
		return STOP_COMPLETE;
	w->runtime = RUNTIME_NATIVE;
	return STOP_NONE;
}

/* Spreads addresses of one process, and the same of several. */
static __always_inline __u32 address_slot(const struct walk *w)
{
	return (w->pc ^ (w->pc >> 12) ^ w->process.generation * 0x9e3779b1u);
}

static __always_inline __u32 leaf_slot(const struct walk *w)
{
	return (w->pc >> BUCKET_SHIFT) ^ (w->pc >> 18) ^ w->process.generation * 0x9e3779b1u;
}

/* What `leaves` has for `pc`. */
static __always_inline __u64 leaf_key(__u64 pc, __u8 first, __u8 last)
{
	_Static_assert(BUCKET_SHIFT == 8, "an address in a bucket is a byte");
	return pc >> BUCKET_SHIFT << 16 | (__u64)first << 8 | last;
}

/* By it a caller that is not the one of the last time is not looked for where that one is, but once
 * in 256 times: to find out there costs as much as a frame. */
static __always_inline __u8 address_tag(__u64 pc)
{
	return (__u8)(pc ^ pc >> 8);
}

/* Both as one word: struct cached_rule has them side by side. */
#define LINK_OF(e) ((__u32)(e)->link << TAG_BITS | (e)->tag)

/* Where the caller at `pc` is expected, by the link of who was called. */
static __always_inline __u32 linked_slot(__u32 link, __u64 pc)
{
	if (!(link >> TAG_BITS) || (__u8)link != address_tag(pc))
		return CALLER_ELSEWHERE;
	return ((link >> TAG_BITS) - 1) & (CALLER_CACHE_ENTRIES - 1);
}

/* Where the rule of the current frame is, or is expected, in the CPU's cache. */
static __always_inline struct cached_rule *cached_rule_in(struct rule_cache *cache, struct walk *w)
{
	return w->interrupted ? leaf_in(cache, w, leaf_slot(w)) : caller_in(cache, w);
}

/* Is that its rule, of one of the process's generations? */
static __always_inline bool is_cached_rule(const struct walk *w, const struct cached_rule *e)
{
	if (!w->interrupted)
		return e->pc == w->pc;
	return e->pc >> 16 == w->pc >> BUCKET_SHIFT && (__u8)w->pc >= (__u8)(e->pc >> 8) &&
	       (__u8)w->pc <= (__u8)e->pc;
}

static __always_inline struct cached_rule *cached_rule_of(struct walk *w)
{
	struct rule_cache *cache = rule_cache_of(w);

	return cache ? cached_rule_in(cache, w) : NULL;
}

/* Moves to the caller: `ra` is where the current frame returns to, `cfa` its stack pointer then. */
static __always_inline int walk_to_caller(struct walk *w, __u64 cfa, __u64 ra)
{
	ra = arch_strip_pac(w, ra);
	w->regs[ARCH_SP] = cfa;
	w->valid = (w->valid & (__u32)ARCH_CALLEE_SAVED) | 1u << ARCH_SP;
	w->pc = ra - 1;
	/* Callers of a runtime's code lie side by side, of interrupted code from where the first
	 * one's address says on. */
	if (w->callee_slot)
		w->caller_slot = linked_slot(w->caller_link, w->pc);
	else
		w->caller_slot = (w->interrupted ? address_slot(w) : w->caller_slot + 1) &
				 (CALLER_CACHE_ENTRIES - 1);
	w->caller_link = 0;
	w->interrupted = 0;
	/* A thread's first frame may also be told by the return address 0. */
	if (ra)
		return STOP_NONE;
	return w->guessed ? STOP_RUNTIME_UNREADABLE : STOP_COMPLETE;
}

/* What runtime `id` remembers from one call of its step to the next within a walk: zeroes at
 * first. `id` is a constant. */
static __always_inline __u64 *runtime_state(struct walk *w, __u32 id)
{
	__u32 i;

	if (!(w->begun & 1u << id)) {
		w->begun |= 1u << id;
		UNROLL
		for (i = 0; i < RUNTIME_STATE_WORDS; i++)
			w->state[id][i] = 0;
	}
	return w->state[id];
}

/* --- memory ---------------------------------------------------------------------------------- */

enum { PAGE = 4096 }; /* the smallest there is */

/* 0, or -1: it can't be read (and `to` is zeroed). */
static __always_inline int read_memory(__u64 addr, void *to, __u32 size)
{
	return bpf_probe_read_user(to, size, (const void *)addr) ? -1 : 0;
}

/*
 * Reads less than 512 bytes, the last of which may be on a page that is missing (one that nobody
 * has touched yet has no memory): these are zero then.
 */
static __always_inline int read_to_page_end(__u64 addr, void *to, __u32 size)
{
	__u32 first = PAGE - (addr & (PAGE - 1));

	if (!read_memory(addr, to, size))
		return 0;
	if (first >= size)
		return -1;
	first &= 511;
	barrier_var(first);
	return read_memory(addr, to, first & 511);
}

static __always_inline int read_word(__u64 addr, __u64 *ret)
{
	return read_memory(addr, ret, sizeof(*ret));
}

/* Reads the window of the stack around `addr` anew; 0 or a stop reason. */
__noinline int WALK_NAME(fill_window)(__u64 addr);

/* The word at `at` bytes from the window's start. False: it isn't in the window, or not aligned, as
 * words on the stacks of both architectures are. */
static __always_inline bool window_word(const struct walk *w, __u64 at, __u64 *ret)
{
	if (at >= w->window_len || at & 7)
		return false;
	*ret = w->window[at / 8 & (WINDOW_DEEP / 8 - 1)];
	return true;
}

/* A word of the stack, out of the window; 0 or a stop reason. */
static __always_inline int read_stack(struct walk *w, __u64 addr, __u64 *ret)
{
	int stop;

	if (window_word(w, addr - w->window_start, ret))
		return STOP_NONE;
	stop = WALK_NAME(fill_window)(addr);
	if (stop)
		return stop;
	return window_word(w, addr - w->window_start, ret) ? STOP_NONE : STOP_STACK_UNREADABLE;
}

/* Reads `size` bytes at `addr`, or more around them, into walk->frames; 0, or -1. */
__noinline int WALK_NAME(read_frames)(__u64 addr, __u32 size);

/*
 * A frame of `size` bytes (at most 255) that lies somewhere in memory: the index of its first word
 * in walk->frames, or -1: it can't be read. Frames that lie side by side, callers at lower
 * addresses, are read many at a time.
 */
static __always_inline int frame_words(struct walk *w, __u64 addr, __u32 size)
{
	__u64 at = addr - w->frames_start;

	if (at < w->frames_len && at + size <= w->frames_len && !(at & 7))
		return (int)(at / 8 & (FRAMES_WINDOW / 8 - 1));
	if (WALK_NAME(read_frames)(addr, size))
		return -1;
	return (int)((addr - w->frames_start) / 8 & (FRAMES_WINDOW / 8 - 1));
}

/* --- code without unwind information --------------------------------------------------------- */

/* Moves to the caller of code without unwind information, which has been pushed; `known`: enum
 * unwind_code. */
__noinline int WALK_NAME(native_frame_pointer)(__u64 known);
/*
 * Whether a call returns to what lies at the stack pointer: that code may have no frame. What lies
 * there may be the caller's frame, too, in which any bytes may look like a call.
 */
__noinline int WALK_NAME(native_returns_to)(__u64 sp);

/* --- what the agent wrote for a runtime ------------------------------------------------------ */

/* Gets record number `nr` of those of runtime `id` into walk->record; 0 if there is one. */
__noinline int WALK_NAME(load_record)(__u32 id, __u32 nr);

/*
 * What the runtime's attach() wrote for the walked process, a `struct type`; NULL: nothing. It
 * stays there until another runtime's is asked for.
 */
#define runtime_record(w, id, type) ((const type *)runtime_record_of(w, id, sizeof(type)))
static __always_inline const void *runtime_record_of(struct walk *w, __u32 id, __u32 size)
{
	if ((w->record_runtime != id || w->record_cell != w->process.runtimes ||
	     w->record_generation != w->process.generation) &&
	    WALK_NAME(load_record)(id, 0))
		return NULL;
	return size <= RUNTIME_RECORD_MAX && w->record_size == size ? w->record : NULL;
}
