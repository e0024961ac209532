/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catches a thread at work, without stopping it: a perf event on it alone, which takes one sample
 * after 100 us of its CPU time: registers, a copy of the stack, the kernel's part. Non-logging.
 */
#pragma once

#include "snapshot/live_threads.h"

/* What was found of a thread at one instant. */
struct caught_thread {
	bool is_compat;
	uint64_t pc;
	uint64_t regs[UNWIND_REGS_MAX];
	uint64_t thread_pointer; /* 0: not known (an event does not tell it) */
	uint64_t stack_start;
	uint32_t stack_size; /* from a little below the stack pointer on */
	uint8_t *stack;	     /* the caller's to free */
	uint32_t nr_kernel;
	uint64_t kernel[SAMPLE_MAX_KERNEL_FRAMES];
};

struct thread_event;

/* Starts to wait for the thread to run. -EACCES, -ESRCH ... */
int thread_event_open(int32_t tid, bool kernel_stack, struct thread_event **ret);
void thread_event_free(struct thread_event *e);
static inline void thread_event_free_p(struct thread_event **e)
{
	thread_event_free(*e);
}
/* Readable when a sample is there, or the thread has ended. */
int thread_event_fd(const struct thread_event *e);
/* Takes the sample; there will be no other one. -EAGAIN: there is none so far. */
int thread_event_read(struct thread_event *e, struct caught_thread *ret);

/* Parses one PERF_RECORD_SAMPLE of such an event, header included. -EBADMSG if it is none. */
int thread_event_parse(const void *data, size_t size, struct caught_thread *ret);
