/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks that a deoptimization is changing: what calls native code in the middle of it, and the
 * interpreted frames that it makes.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

/* frame_x86.hpp, frame_aarch64.hpp: interpreter_frame_last_sp_offset, in bytes */
enum { SLOT_LAST_SP = -16 };

__noinline int WALK_NAME(hotspot_look_deoptimization)(void);

/*
 * Is the frame at `fp` one that a deoptimization has made, but not filled in yet
 * (vframeArray::unpack_to_stack())? What lies there is left over; its last_sp is set to 0 first,
 * and to what it is when the method is known (AbstractInterpreter::layout_activation()). 1, 0, or a
 * negative stop reason.
 */
static __always_inline int is_unfilled(struct walk *w, __u64 fp)
{
	__u64 last_sp = 0;
	int stop;

	if (!hotspot_state(w)->unpacking || w->late)
		return 0;
	stop = read_stack(w, fp + SLOT_LAST_SP, &last_sp);
	if (stop)
		return -stop;
	if (last_sp)
		hotspot_state(w)->unpacking = UNPACKING_NOT;
	return !last_sp;
}

/*
 * A blob that takes a compiled frame away and makes interpreted ones of it, and has called native
 * code: to find out what to make of it, and, with the new frames behind its own, to fill them in
 * (generate_deopt_blob(), generate_uncommon_trap_blob()). Its own frame hangs on the frame pointer,
 * but for the uncommon trap's first call; for the second the stack pointer was aligned.
 */
__noinline int WALK_NAME(hotspot_look_deoptimization)(void)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;
	struct hotspot_state *st;
	__u64 fp, size, off, ra = 0, link = 0;
	bool own;

	if (!w)
		return LOOK_FAILED;
	s = hotspot_scratch(w);
	st = hotspot_state(w);
	/* If it has called nothing, it is where an exception goes on, for a frame that it will take
	 * away. */
	if (st->kind == BLOB_DEOPTIMIZATION && !WALK_NAME(hotspot_called)(w->pc + 1))
		return LOOK_FAILED;
	fp = w->regs[ARCH_FP];
	size = 8 * (__u64)(__u32)st->frame_size;
	off = fp - w->regs[ARCH_SP] + 16;
	own = w->valid & 1u << ARCH_FP && (off == size || off == size + 8) &&
	      !read_stack(w, fp, &link) && !read_stack(w, fp + 8, &ra);
	ra = arch_strip_pac(w, ra);
	if (own && in_interpreter(hotspot_record(w), ra))
		st->unpacking = UNPACKING_FILLS;
	else if (st->kind == BLOB_UNCOMMON_TRAP)
		return LOOK_FRAME;
	else if (!own)
		return LOOK_FAILED;
	s->cfa = fp + 16;
	s->ra = ra;
	s->fp = link;
	return LOOK_CALLER;
}
