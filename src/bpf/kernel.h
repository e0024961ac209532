/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types and fields that our programs read. Offsets come from the running kernel's
 * BTF (CO-RE), so only names and types matter here, not the layout.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#define __preserve __attribute__((preserve_access_index))

struct mm_struct;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} __preserve;
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
} __preserve;
#endif

struct mm_struct {
	unsigned long start_stack; /* where the first thread's stack begins */
} __preserve;

typedef struct {
	__u32 val;
} __preserve kuid_t;

struct cred {
	kuid_t uid; /* the real one */
} __preserve;

struct task_struct {
	void *stack;
	struct thread_struct thread;
	unsigned int flags;
	struct mm_struct *mm;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	__u64 start_time;   /* CLOCK_MONOTONIC */
	__u64 self_exec_id; /* grows with each exec; inherited by threads and children */
	unsigned int in_execve : 1;
	const struct cred *real_cred; /* its own, also while it acts for others, as in an overlay */
	char comm[16];
} __preserve;

/* What an iterator over tasks is called with: include/linux/bpf.h, kernel/bpf/task_iter.c. */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 seq_num; /* of the task, from 0 */
} __preserve;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __preserve;

enum { TASK_PF_KTHREAD = 0x00200000 }; /* include/linux/sched.h */

/* The helpers whose presence we ask for, in the kernel's own enum. */
enum bpf_func_id___probe {
	BPF_FUNC_get_current_task_btf___probe = 158, /* 5.11 */
	BPF_FUNC_task_pt_regs___probe = 175,	     /* 5.15 */
};

#if defined(__TARGET_ARCH_x86)
/* arch/x86/include/asm/ptrace.h; user space's view (bpf_user_pt_regs_t) is the same 21 words. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};
typedef struct pt_regs user_regs_t;
#elif defined(__TARGET_ARCH_arm64)
/* include/uapi/asm/ptrace.h: struct user_pt_regs, which pt_regs begins with. */
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
typedef struct user_pt_regs user_regs_t;
struct pt_regs {
	struct user_pt_regs user_regs;
} __preserve;
#else
#error "no such architecture"
#endif

/* include/uapi/linux/bpf_perf_event.h */
struct bpf_perf_event_data {
	user_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

struct bpf_raw_tracepoint_args {
	__u64 args[0];
};

enum bpf_map_type_ours {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0, /* bpf_ringbuf_query(): bytes that nobody has taken yet */
	BPF_RB_RING_SIZE = 1
};
