/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of off-CPU profiling tell each other (docs/off-cpu.md).
 */
#pragma once

#include <linux/types.h>

/* Why a thread left its CPU; the names are those of off_cpu_state_name(). */
enum off_cpu_state {
	OFF_CPU_NONE, /* it did not: the sample is another source's */
	OFF_CPU_INTERRUPTIBLE,
	OFF_CPU_UNINTERRUPTIBLE,
	OFF_CPU_PREEMPTED, /* it could have gone on */
	OFF_CPU_STOPPED,   /* by a signal, or a debugger */
	OFF_CPU_STATES_,
};

/*
 * Who has woken a thread: so, or the hash of a stack that is known. That has the process in it,
 * whose number has 22 bits (PID_MAX_LIMIT), as who slept does not tell it: another process's stack
 * never has that hash, by chance or on purpose.
 */
#define WAKER_UNKNOWN	      0ull
#define WAKER_INTERRUPT	      1ull
#define WAKER_PID_SHIFT	      42
#define WAKER_HASH(hash, pid) ((hash) >> 22 | (__u64)(pid) << WAKER_PID_SHIFT)
#define WAKER_PID(waker)      ((__u32)((waker) >> WAKER_PID_SHIFT))

/* A thread; map `sleepers`, by tid. */
struct sleeper {
	__u64 since_ns; /* 0: it runs, or its sleep is not to be taken */
	__u64 needs_ns; /* it is taken if it is at least so long */
	__u64 waker;
	__u32 state;
	__u32 switches; /* how often it had left a CPU, with this time */
	__u32 user;	/* whose share of the map it takes */
	__u32 pad_;
};

/* Users whose numbers have the same low bits have one share. */
enum { SLEEPER_OWNERS = 4096 };

/* The thread that this CPU has just gone over to, if its sleep is to be taken: map `woken`. */
struct woken {
	__u32 tid; /* 0: none */
	__u32 state;
	__u64 value; /* nanoseconds that the sample stands for */
	__u64 waker;
};
