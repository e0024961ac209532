/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a sample: see send.bpf.c.
 */
#pragma once

#include "bpf/access.bpf.h"

static __always_inline void count_lost(__u32 reason)
{
	__u32 key = LOST_KEY(config_source, reason);
	__u64 *n = bpf_map_lookup_elem(&lost, &key);

	/* Another source of samples may interrupt here. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* The end of a walk: the CPU's block is free for the next one of this source. */
static __always_inline void free_walk(struct walk *w)
{
	barrier();
	*(volatile __u32 *)&w->in_use = 0;
}

/* The walk met what only the agent can get: mappings, a table or a runtime's walker. */
static __always_inline bool needs_agent(const struct walk *w, __u32 stop)
{
	if (w->raws >= RAWS_NONE)
		return false;
	return stop == STOP_NO_PROCESS || stop == STOP_FILE_PENDING || stop == STOP_CODE_PENDING ||
	       stop == STOP_WALKER_PENDING ||
	       (stop == STOP_NO_MAPPING && !(w->process.flags & PROCESS_MAPPINGS_FINAL));
}

/*
 * Sends the current walk, which ended so. What it needs of the program's context has been kept:
 * keep_regs(). Frees the walk.
 */
__noinline int send_sample(__u32 stop);
