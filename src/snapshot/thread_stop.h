/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catches a thread by stopping it for as long as it takes to copy its registers and its stack: for
 * users without BPF and perf events. Non-logging.
 *
 * ptrace(2), PTRACE_SEIZE: if we die at any point, SIGKILL included, the kernel lets the thread run
 * on. A signal that arrives meanwhile is passed on. Some system calls fail with EINTR after a stop
 * (signal(7): epoll_wait and others); on x86-64 they are made to begin again, with their whole
 * timeout.
 */
#pragma once

#include "snapshot/thread_event.h"

/*
 * Asks the thread to stop: one that works does so at once, or as soon as it has its turn on a CPU.
 * -EPERM: we may not, or another tracer has it. -ESRCH: it ended.
 *
 * Whoever calls this must end soon, the thread at least: what stops only then waits for it. Do not
 * ask for a thread in a "disk sleep".
 */
int thread_stop_begin(int32_t tid);
/*
 * Copies and lets go a thread that has stopped. -EAGAIN: not yet. By the thread that began it.
 * `meanwhile`, if not NULL, is called when the copy is made, before it is let go: be quick.
 */
int thread_stop_finish(int32_t tid, struct caught_thread *ret,
		       void (*meanwhile)(void *ctx, const struct caught_thread *caught), void *ctx);
