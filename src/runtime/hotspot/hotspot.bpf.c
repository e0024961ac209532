// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "bpf/prelude.bpf.h"
#include "bpf/frames.bpf.h"

STEP(hotspot)
{
	struct walk *w = current_walk();
	int stop;

	if (!w)
		return STOP_INTERNAL;
	if (w->entry == ENTRY_CODE)
		return STOP_RUNTIME_UNKNOWN;
	stop = push_note(w, RUNTIME_HOTSPOT, FRAME_NOTE_NOT_READY);
	return stop ? stop : walk_native(w);
}
