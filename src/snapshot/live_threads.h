/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a live process at a moment, none of them disturbed: what they are called, what
 * they do, and the registers that they left user mode with. Two sources: the BPF iterator
 * (task_iter.h: root) and /proc (below: anybody, own processes, fewer registers).
 *
 * A list says nothing about whether a thread stood still while its stack was read: for that compare
 * it with a list of afterwards, live_thread_stood_still().
 */
#pragma once

#include "abi/task.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Of one process; the kernel's own limit is kernel.threads-max, 4 million at most. */
	LIVE_THREADS_MAX = 1 << 17,
};

struct live_thread {
	int32_t tid;
	char state;	      /* as in /proc/PID/stat */
	char name[32];	      /* a comm, or a kernel thread's longer name */
	uint32_t flags;	      /* TASK_* of abi/task.h */
	uint64_t nr_switches; /* see struct task_record */
	uint64_t pc;
	uint64_t regs[UNWIND_REGS_MAX];
	uint32_t valid;		 /* bit N: regs[N] is known */
	uint64_t thread_pointer; /* 0: not known */
	uint32_t first_kernel, nr_kernel;
};

struct live_threads {
	VEC(struct live_thread) list; /* by tid, ascending */
	VEC(uint64_t) kernel;	      /* kernel addresses of all */
	bool capped;		      /* there are more than LIVE_THREADS_MAX */
};

void live_threads_fini(struct live_threads *t);
/* Forgets all threads, keeps the memory. */
void live_threads_clear(struct live_threads *t);
void live_threads_sort(struct live_threads *t);
/* NULL: there is none. */
const struct live_thread *live_threads_find(const struct live_threads *t, int32_t tid);
/* Between both looks at it the thread did not run. */
bool live_thread_stood_still(const struct live_thread *before, const struct live_thread *after);

/* The bits of `valid` that stand for all registers of this machine, and for the stack pointer. */
extern const uint32_t live_all_registers, live_stack_pointer;

/*
 * Reads them from /proc. Of a blocked thread pc and stack pointer are known (/proc/PID/syscall); a
 * running one has TASK_ON_CPU. `is_compat`: its threads run 32-bit code. -ESRCH: no such process;
 * -EACCES: we may not look into it.
 */
int live_threads_read_proc(int32_t pid, bool is_compat, struct live_threads *ret);
