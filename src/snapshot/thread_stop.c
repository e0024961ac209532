// SPDX-License-Identifier: Apache-2.0
#include "snapshot/thread_stop.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

enum {
	STACK_BELOW = RAW_STACK_BELOW,
	STACK_MAX = 1 << 20, /* copied in about 100 us */
	/* include/linux/errno.h: begin the system call again, but if a handler runs, EINTR. */
	ERRNO_RESTART_NO_HANDLER = 514,
};

#if defined(__x86_64__)
enum { COMPAT_REGISTERS_SIZE = 17 * 4 };

static void copy_registers(int32_t tid, const struct user_regs_struct *from,
			   struct caught_thread *to)
{
	const uint64_t regs[] = { from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
				  from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
				  from->r12, from->r13, from->r14, from->r15 };

	(void)tid;
	memcpy(to->regs, regs, sizeof(regs));
	to->pc = from->rip;
	to->thread_pointer = from->fs_base;
}

/* Calls that wait, give up with EINTR when their thread is stopped, and have done nothing then. */
static bool is_interrupted_wait(const struct user_regs_struct *regs)
{
	static const uint16_t waits[] = {
		SYS_epoll_wait,	     SYS_epoll_pwait,  SYS_epoll_pwait2,
		SYS_semop,	     SYS_semtimedop,   SYS_msgrcv,
		SYS_rt_sigtimedwait, SYS_io_getevents, SYS_io_uring_enter,
		SYS_io_pgetevents,   SYS_read,	       SYS_readv,
		SYS_recvfrom,	     SYS_recvmsg,      SYS_recvmmsg,
		SYS_accept,	     SYS_accept4,      SYS_write,
		SYS_sendto,	     SYS_sendmsg,
	};

	if (regs->rax != (uint64_t)-EINTR)
		return false;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (regs->orig_rax == waits[i])
			return true;
	return false;
}

/* A wait that the stop has ended goes on, unless a signal's handler has its turn now. */
static void resume_call(int32_t tid, struct user_regs_struct *regs)
{
	struct iovec io = { regs, sizeof(*regs) };

	if (!is_interrupted_wait(regs))
		return;
	regs->rax = (uint64_t)-ERRNO_RESTART_NO_HANDLER;
	ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io);
}
#elif defined(__aarch64__)
enum { COMPAT_REGISTERS_SIZE = 18 * 4 };

static void copy_registers(int32_t tid, const struct user_regs_struct *from,
			   struct caught_thread *to)
{
	struct iovec io = { &to->thread_pointer, sizeof(to->thread_pointer) };

	memcpy(to->regs, from->regs, 31 * 8);
	to->regs[A64_SP] = from->sp;
	to->pc = from->pc;
	/* tpidr_el0; 0, as it is, if it can't be had. */
	ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &io);
}

/* The first argument is gone here: x0 holds the result. */
static void resume_call(int32_t tid, struct user_regs_struct *regs)
{
	(void)tid;
	(void)regs;
}
#endif

static int copy_stack(int32_t tid, struct caught_thread *caught, uint64_t sp)
{
	struct iovec local, remote;
	ssize_t n;

	caught->stack = malloc(STACK_MAX);
	if (!caught->stack)
		return -ENOMEM;
	local = (struct iovec){ caught->stack, STACK_MAX };
	/* What is below the stack pointer may be in a page that is not there. */
	for (uint32_t below = STACK_BELOW;; below = 0) {
		caught->stack_start = sp - below;
		remote = (struct iovec){ (void *)caught->stack_start, STACK_MAX };
		n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
		if (n > 0 || !below)
			break;
	}
	caught->stack_size = n > 0 ? (uint32_t)n : 0;
	return 0;
}

/* Of the stopped thread. */
static int copy_state(int32_t tid, bool in_call, struct caught_thread *ret)
{
	struct caught_thread caught = { 0 };
	struct user_regs_struct regs;
	struct iovec io = { &regs, sizeof(regs) };
	int r;

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) < 0)
		return -errno;
	if (io.iov_len == COMPAT_REGISTERS_SIZE) {
		caught.is_compat = true;
		*ret = caught;
		return 0;
	}
	copy_registers(tid, &regs, &caught);
	/* First of all: nobody else can, should we be killed. */
	if (in_call)
		resume_call(tid, &regs);
#if defined(__x86_64__)
	r = copy_stack(tid, &caught, caught.regs[X86_RSP]);
#else
	r = copy_stack(tid, &caught, caught.regs[A64_SP]);
#endif
	if (r)
		return r;
	*ret = caught;
	return 0;
}

int thread_stop_begin(int32_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ? -errno : 0;
}

int thread_stop_finish(int32_t tid, struct caught_thread *ret,
		       void (*meanwhile)(void *ctx, const struct caught_thread *caught), void *ctx)
{
	bool is_signal;
	int status, n, r;

	do
		n = waitpid(tid, &status, __WALL | WNOHANG);
	while (n < 0 && errno == EINTR);
	if (!n)
		return -EAGAIN;
	if (n < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	/* Our interrupt, or a job-control stop that is in force; else a signal's delivery. */
	is_signal = status >> 16 != PTRACE_EVENT_STOP;
	r = copy_state(tid, !is_signal, ret);
	if (!r && meanwhile)
		meanwhile(ctx, ret);
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)(is_signal ? WSTOPSIG(status) : 0));
	return r;
}
