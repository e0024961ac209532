/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which virtual thread's frames these are (--threads virtual): its name, as it is now, goes before
 * its first Java frame, if the register of the JavaThread is known there; else before that of
 * enterSpecial. JavaThread::_cont_entry, or that frame, leads to the mounted Continuation, also
 * while the thread says for a moment that it runs as its carrier
 * (VirtualThread.switchToCarrierThread()); that to the VirtualThread, see struct hotspot_record;
 * and that to its String.
 *
 * References may be wrong while a collector moves objects below a thread that runs native code:
 * what the continuation leads to counts only if it leads back to the continuation.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

__noinline int WALK_NAME(hotspot_find_thread)(__u64 entry);
__noinline int WALK_NAME(hotspot_read_thread)(void);
__noinline int WALK_NAME(hotspot_push_thread)(__u64 what);
__noinline int WALK_NAME(hotspot_say_thread)(__u64 entry);

/* The VirtualThread of the ContinuationEntry, into the scratch: 0, or -1. */
__noinline int WALK_NAME(hotspot_find_thread)(__u64 entry)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u64 continuation, target, thread, back;
	__u32 i;

	if (!w)
		return -1;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (r->virtual_threads != HOTSPOT_VIRTUAL_NAMED ||
	    read_word(entry + r->cont_entry_cont, &continuation) || !continuation ||
	    read_oop(r, continuation + r->continuation_target, &target) || !target)
		return -1;
	for (i = 0; i < 2; i++) {
		if (!read_oop(r, target + r->target_fields + i * r->oop_size, &thread) && thread &&
		    !read_oop(r, thread + r->virtual_cont, &back) && back == continuation) {
			s->virtual.thread = thread;
			return 0;
		}
	}
	return -1;
}

/* The name of the scratch's thread, or its number: what HOTSPOT_VIRTUAL says of it; 0: it cannot be
 * read. */
__noinline int WALK_NAME(hotspot_read_thread)(void)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u64 string, bytes;
	__u32 length = 0, size;
	__u8 coder = 0;

	if (!w)
		return 0;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (read_oop(r, s->virtual.thread + r->thread_name, &string) || !string ||
	    read_oop(r, string + r->string_value, &bytes) || !bytes ||
	    read_memory(string + r->string_coder, &coder, 1) || coder > 1 ||
	    read_memory(bytes + r->bytes_length, &length, sizeof(length)))
		return 0;
	if (!length)
		return read_word(s->virtual.thread + r->thread_tid, s->virtual.name)
			       ? 0
			       : HOTSPOT_VIRTUAL_NAME(0, 0, 0);
	size = length > HOTSPOT_VIRTUAL_NAME_MAX ? HOTSPOT_VIRTUAL_NAME_MAX : length;
	barrier_var(size);
	if (read_memory(bytes + r->bytes_data, s->virtual.name, size & 127))
		return 0;
	return HOTSPOT_VIRTUAL_NAME((int)size, coder, size < length);
}

/* Pushes `what` with the scratch's words, which are the name itself: nothing more is read for it.
 * It is no frame: those are counted without it. */
__noinline int WALK_NAME(hotspot_push_thread)(__u64 what)
{
	const __u64 word =
		FRAME(RUNTIME_HOTSPOT, HOTSPOT_VIRTUAL_WORDS, HOTSPOT_FRAME(HOTSPOT_VIRTUAL, what));
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u64 *to;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	s = hotspot_scratch(w);
	hotspot_state(w)->thread = THREAD_SAID;
	to = frame_room(w, 1 + HOTSPOT_VIRTUAL_WORDS);
	if (!to)
		return STOP_MAX_FRAMES;
	w->nr_frames--;
	to[0] = word;
	hash_word(w, word);
	UNROLL
	for (i = 0; i < HOTSPOT_VIRTUAL_WORDS; i++) {
		to[1 + i] = s->virtual.name[i];
		hash_word(w, s->virtual.name[i]);
	}
	return STOP_NONE;
}

/* Says whose frames those of the ContinuationEntry are; 0: that is not known. 0 or a stop reason.
 */
__noinline int WALK_NAME(hotspot_say_thread)(__u64 entry)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	__u64 what = 0;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	s = hotspot_scratch(w);
	UNROLL
	for (i = 0; i < HOTSPOT_VIRTUAL_WORDS; i++)
		s->virtual.name[i] = 0;
	if (entry && !WALK_NAME(hotspot_find_thread)(entry))
		what = (__u32)WALK_NAME(hotspot_read_thread)();
	return WALK_NAME(hotspot_push_thread)(what);
}

/* At the first Java frame: the entry, by the thread's register; 0: it is none, or not known yet. */
static __always_inline __u64 entry_by_register(struct walk *w)
{
	const struct hotspot_record *r = hotspot_record(w);
	__u64 entry = 0;

	hotspot_state(w)->thread = THREAD_NOT_FOUND;
	/* Stubs may use the register for something else: an entry is on this stack. */
	if (w->late || !r->thread_cont_entry || !(w->valid & 1u << HOTSPOT_THREAD) ||
	    read_word(w->regs[HOTSPOT_THREAD] + r->thread_cont_entry, &entry) || entry & 7 ||
	    entry - w->regs[ARCH_SP] > 1u << 30)
		return 0;
	return entry;
}

/* Is this the frame of Continuation.enterSpecial, and nobody has said whose those before it are?
 * Native code has lost the register. */
static __always_inline bool is_end_of_thread(struct walk *w)
{
	const struct hotspot_record *r = hotspot_record(w);
	struct hotspot_state *st = hotspot_state(w);

	return r->virtual_threads && st->thread != THREAD_SAID && st->kind == BLOB_NATIVE &&
	       in_blob(st, r->cont_return);
}

/* Its frame is the entry, once it is built. */
static __always_inline __u64 entry_by_frame(struct walk *w)
{
	return w->late || w->interrupted ? 0 : w->regs[ARCH_SP];
}
