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

#include "runtime/hotspot/hotspot_references.bpf.h"

__noinline int WALK_NAME(hotspot_push_thread)(__u64 what);
__noinline int WALK_NAME(hotspot_say_thread)(__u64 entry);

/* The VirtualThread that a continuation leads to, and that leads back to it; 0: none. */
static __always_inline __u64 thread_of(struct walk *w, __u64 continuation)
{
	const struct hotspot_record *r = hotspot_record(w);
	__u64 target = 0, thread = 0, back = 0;
	__u32 i;

	if (!continuation || follow(w, continuation + r->continuation_target, &target) || !target)
		return 0;
	for (i = 0; i < 2; i++) {
		if (!follow(w, target + r->target_fields + i * r->oop_size, &thread) && thread &&
		    !follow(w, thread + r->virtual_cont, &back) && back == continuation)
			return thread;
	}
	return 0;
}

/*
 * That of the ContinuationEntry; 0: it is not known. References on a stack have no colour: ZGC
 * corrects those of a thread that runs native code late. If objects were moved away from there, it
 * is the continuation that was there, or the one that is: whichever leads back to itself.
 */
static __always_inline __u64 find_thread(struct walk *w, __u64 entry)
{
	const struct hotspot_record *r = hotspot_record(w);
	struct hotspot_scratch *s = hotspot_scratch(w);
	__u64 continuation, at, thread, found = 0;
	__u32 i;

	if (r->virtual_threads != HOTSPOT_VIRTUAL_NAMED ||
	    read_word(entry + r->cont_entry_cont, &continuation))
		return 0;
	for (i = 0; i < 3; i++) {
		at = continuation;
		if (i) {
			if (!r->zgc.good)
				break;
			if (WALK_NAME(hotspot_moved)(continuation, i - 1) <= 0)
				continue;
			at = s->oop;
		}
		thread = thread_of(w, at);
		if (found && thread && thread != found)
			return 0;
		found = thread ? thread : found;
	}
	return found;
}

/* The name of the thread, or its number: what HOTSPOT_VIRTUAL says of it; 0: it cannot be read. */
static __always_inline __u32 read_thread(struct walk *w, __u64 thread)
{
	const struct hotspot_record *r = hotspot_record(w);
	struct hotspot_scratch *s = hotspot_scratch(w);
	__u64 string = 0, bytes = 0;
	__u32 length = 0, size;
	__u8 coder = 0;

	if (follow(w, thread + r->thread_name, &string) || !string ||
	    follow(w, string + r->string_value, &bytes) || !bytes ||
	    read_memory(string + r->string_coder, &coder, 1) || coder > 1 ||
	    read_memory(bytes + r->bytes_length, &length, sizeof(length)))
		return 0;
	if (!length)
		return read_word(thread + r->thread_tid, s->thread_name)
			       ? 0
			       : HOTSPOT_VIRTUAL_NAME(0, 0, 0);
	size = length > HOTSPOT_VIRTUAL_NAME_MAX ? HOTSPOT_VIRTUAL_NAME_MAX : length;
	barrier_var(size);
	if (read_memory(bytes + r->bytes_data, s->thread_name, size & 127))
		return 0;
	return HOTSPOT_VIRTUAL_NAME(size, coder, size < length);
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
		to[1 + i] = s->thread_name[i];
		hash_word(w, s->thread_name[i]);
	}
	return STOP_NONE;
}

/* Says whose frames those of the ContinuationEntry are; 0: that is not known. 0 or a stop reason.
 */
__noinline int WALK_NAME(hotspot_say_thread)(__u64 entry)
{
	struct walk *w = current_walk();
	__u64 what = 0, thread, good = 0, then = 0;
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u32 i;

	if (!w)
		return STOP_INTERNAL;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	UNROLL
	for (i = 0; i < HOTSPOT_VIRTUAL_WORDS; i++)
		s->thread_name[i] = 0;
	if (r->zgc.good && read_word(r->zgc.good, &good))
		entry = 0;
	thread = entry ? find_thread(w, entry) : 0;
	if (thread)
		what = read_thread(w, thread);
	/* Objects begin to be moved. */
	if (r->zgc.good && (read_word(r->zgc.good, &then) || then != good))
		what = 0;
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
