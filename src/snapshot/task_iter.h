/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of one process as a BPF iterator prints them (bpf/tasks.bpf.c): all registers, the
 * stack in the kernel, and no thread notices. Needs BPF and the initial PID namespace. Non-logging.
 */
#pragma once

#include "snapshot/live_threads.h"

struct task_iter;

/* The kernel's numbers are the initial namespace's: whether that is ours. */
bool task_iter_knows_pids(void);
/* -EPERM, -ENOTSUP and others: it can't be had here. */
int task_iter_open(int32_t pid, bool kernel_stacks, struct task_iter **ret);
void task_iter_free(struct task_iter *it);
static inline void task_iter_free_p(struct task_iter **it)
{
	task_iter_free(*it);
}
/* Reads the threads anew. -ESRCH: there are none. */
int task_iter_read(struct task_iter *it, struct live_threads *ret);

/*
 * The kernel's names of `nr` kernel addresses, by its own symbols: `named` is called with each
 * address that has one. 0, -ENOTSUP: too many, or this kernel does not tell.
 */
int task_iter_name(struct task_iter *it, const uint64_t *addresses, size_t nr,
		   int (*named)(void *ctx, size_t index, const char *name), void *ctx);

/* Parses what the iterator printed; a record cut off ends it. 0 or -ENOMEM. */
int task_iter_parse(const void *data, size_t size, struct live_threads *ret);
