/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records that iterators over tasks print. `show_tasks` (bpf/tasks.bpf.c): one a thread of a
 * process, with the registers that it left user mode with and its stack in the kernel.
 */
#pragma once

#include "abi/sample.h"

enum {
	TASK_ON_CPU = 1 << 0, /* it runs: registers and kernel stack are not its present ones */
	TASK_COMPAT = 1 << 1, /* runs 32-bit code */
	TASK_USER = 1 << 2,   /* regs and pc are there; kernel threads and io_uring's have none */
	TASK_KERNEL_THREAD = 1 << 3,
};

/* Followed by nr_kernel kernel addresses, innermost first. */
struct task_record {
	__u32 tid, tgid; /* in the initial PID namespace */
	__u32 flags;	 /* TASK_* */
	__u32 state;	 /* the letter that /proc/PID/stat has: R S D T t Z X I P */
	/*
	 * How often it was taken off a CPU. If that is the same before and after, and it was on no
	 * CPU both times, then it did not run in between.
	 */
	__u64 nr_switches;
	__u64 pc;
	__u64 regs[UNWIND_REGS_MAX]; /* by DWARF number */
	__u64 thread_pointer;	     /* of its thread-local storage */
	__u32 nr_kernel;
	__u32 pad_;
	char comm[SAMPLE_COMM_LEN];
};

enum {
	SPACE_RUNNABLE = 1 << 0, /* runs, or would if there was a CPU for it */
	SPACE_BLOCKED = 1 << 1,	 /* waits for something that no signal ends: a disk, a server */
};

/* The address space that a thread has (bpf/sample.bpf.c, show_spaces). */
struct task_space {
	__u32 pid;
	__u32 flags;  /* SPACE_* */
	__u64 mm;     /* as unwind_process.mm */
	__u64 ran_ns; /* when it ran last, by the clock of `cpu`'s scheduler, which is no other's */
	__u32 cpu;    /* where that was */
	__u32 pad_;
};

enum {
	/* Addresses that `name_addresses` prints the kernel's names of, a line each, so many for a
	 * task that it visits: what it prints at once must fit into 32 KiB. */
	TASK_NAMES_MAX = 2048,
	TASK_NAMES_AT_ONCE = 64,
};

_Static_assert(sizeof(struct task_record) == 32 + 8 * 32 + 32, "wire size");
_Static_assert(sizeof(struct task_space) == 32, "wire size");
