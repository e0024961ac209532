/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has woken a thread, in the profile: as labels of the sleep's sample, and its stack on top of
 * the sleep's (docs/off-cpu.md).
 */
#pragma once

#include "profile/profile.h"

enum { WAKER_LABELS = 4 };

/* "waker" is "interrupt". */
int waker_interrupt_label(struct profile *p, struct profile_label *ret);
/* "waker" is "thread", and which: waker.pid, waker.tid, waker.comm. `header`: of the waker's stack.
 */
int waker_labels(struct profile *p, const struct sample_header *header,
		 struct profile_label ret[WAKER_LABELS]);
/*
 * The stack of a sleep, on its innermost frame "[woken by] comm", and on that the waker's stack
 * turned round: its innermost frame, which wakes, first. `labels` are the waker's (NULL: it was an
 * interrupt, and `waker` does not count). `scratch` is used again.
 */
struct waker_frames {
	VEC(uint32_t) frames;
};
int waker_join(struct profile *p, uint32_t sleep, uint32_t waker,
	       const struct profile_label *labels, size_t nr_labels, struct waker_frames *scratch,
	       uint32_t *ret);
/* A number of these labels: "waker.pid"; 0: there is none. */
int64_t waker_number(const struct profile *p, const struct profile_label *labels, size_t nr,
		     const char *key);
