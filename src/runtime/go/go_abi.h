/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Go's step in the walker and its agent exchange: how a thread gets at its goroutine, where
 * things are in it, and the words that carry a label.
 *
 * Go's frames are native ones. What the step pushes are words that are no frame: a label of the
 * goroutine's is FRAME(RUNTIME_GO, GO_LABEL_WORDS, GO_LABEL(length of the key, of the text)), then
 * the key's first GO_KEY_SIZE bytes and the text's first GO_TEXT_SIZE, zero behind them.
 */
#pragma once

#include <linux/types.h>

enum {
	GO_KEY_SIZE = 40,
	GO_TEXT_SIZE = 80,
	GO_LABEL_WORDS = (GO_KEY_SIZE + GO_TEXT_SIZE) / 8,
	GO_LABELS_MAX = 16,
	/* Lengths beyond these are not told. */
	GO_KEY_LENGTH_MAX = 0xffff,
	GO_TEXT_LENGTH_MAX = 0xfffffff,
};

#define GO_LABEL(key, text) ((__u64)(text) << 16 | (key))
#define GO_LABEL_KEY(data)  ((__u32)(data)&GO_KEY_LENGTH_MAX)
#define GO_LABEL_TEXT(data) ((__u32)((data) >> 16) & GO_TEXT_LENGTH_MAX)

/* How a goroutine has its labels. */
enum go_labels {
	GO_LABELS_NONE,
	GO_LABELS_MAP,	/* g.labels -> a map[string]string, up to Go 1.23 */
	GO_LABELS_LIST, /* g.labels -> a slice of pairs of strings */
};

enum go_flags {
	GO_TLS = 1 << 0,      /* the thread has its g at `tls` from its thread pointer */
	GO_REGISTER = 1 << 1, /* and Go's code in a register (aarch64's x28) */
	GO_ASYNC = 1 << 2,    /* --async */
	GO_PUSHES = 1 << 3,   /* these two keep the caller's frame pointer on the stack */
};

/*
 * A function that goes over from a goroutine's stack to the thread's own; or leaves one there.
 * aarch64: of systemstack and asmcgocall, the part of it that runs on the thread's own.
 */
struct go_switch {
	__u64 start, end;
};

/* A part of this Go's code, counted from its begin. {0, 0}: there is none. */
struct go_part {
	__u32 start, end;
};

/* What a signal's handler makes a function call: runtime.asyncPreempt, runtime.sigpanic. */
enum { GO_INJECTED = 2 };

struct go_record {
	struct go_switch
		code; /* all of this copy's: a process has one for each program and library */
	__s64 tls;
	struct go_switch systemstack, asmcgocall, morestack, schedule, mcall;
	/* aarch64's. `nosave`: the part of asmcgocall that calls C on the stack that it is on. */
	struct go_part injected[GO_INJECTED], nosave, cgocallback;
	__u8 flags;  /* enum go_flags */
	__u8 labels; /* enum go_labels */
	/* Offsets in g and m. */
	__u16 g_m, m_curg;
	__u16 g_labels, g_goid, g_gopc;
	__u16 g_lr; /* g.sched.lr */
	/* aarch64: where asmcgocall calls C on the thread's own stack, from that part's begin; 0:
	 * the code of systemstack, or its own, is unknown. */
	__u16 own_call;
};
_Static_assert(sizeof(struct go_record) == 152, "go_record is read from the arena");
