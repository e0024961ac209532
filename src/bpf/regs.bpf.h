/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the user registers of the current task are: in the program's context, if that tells them,
 * else where the kernel saved them on its entry. What a source of samples has of its own is one
 * function that hands these registers out: perf_event_regs() of what a CPU's clock interrupts,
 * task_regs() of a task that is in the kernel, probe_regs() of what came to a probe.
 */
#pragma once

#include "bpf/walk.bpf.h"

/*
 * A field of registers. Of two branches that read the same of the event's and of saved ones, clang
 * makes one read from either of two pointers, which the verifier refuses; not around a barrier.
 */
#define REGS_FIELD(from, field)                                                                    \
	({                                                                                         \
		__u64 field_ = (from)->field;                                                      \
		barrier_var(field_);                                                               \
		field_;                                                                            \
	})

enum user_part {
	USER_NONE, /* a kernel thread, the idle task, or a task that has left its memory */
	USER_COMPAT,
	USER_WALK,
};

/* Whose the task is, whoever it acts for (as in an overlay). */
static __always_inline __u32 current_user(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, real_cred, uid.val);
}

#if defined(__TARGET_ARCH_x86)
enum { REGS_SP = X86_RSP, REGS_ALL = 0xffff };
/* arch/x86/include/asm/segment.h: __USER32_CS, __USER_CS, __USER_DS */
enum { CS_RPL_MASK = 3, CS_USER32 = 0x23, CS_USER = 0x33, SS_USER = 0x2b };

static __always_inline bool regs_of_user(const user_regs_t *r)
{
	/* Read as 8 bytes at its offset: newer kernels declare 16 bits, which a CO-RE access would
	 * follow. */
	return (r->cs & CS_RPL_MASK) == 3;
}

static __always_inline bool regs_compat(const user_regs_t *r)
{
	return (REGS_FIELD(r, cs) & 0xffff) == CS_USER32;
}

static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.fsbase);
}

/* Does this look like registers of user mode? */
static __always_inline bool regs_plausible(const user_regs_t *r)
{
	return ((r->cs & 0xffff) == CS_USER || (r->cs & 0xffff) == CS_USER32) &&
	       (r->ss & 0xffff) == SS_USER;
}

#define COPY_REGS(to, from)                                                                        \
	do {                                                                                       \
		(to)[X86_RAX] = (from)->ax;                                                        \
		(to)[X86_RDX] = (from)->dx;                                                        \
		(to)[X86_RCX] = (from)->cx;                                                        \
		(to)[X86_RBX] = (from)->bx;                                                        \
		(to)[X86_RSI] = (from)->si;                                                        \
		(to)[X86_RDI] = (from)->di;                                                        \
		(to)[X86_RBP] = (from)->bp;                                                        \
		(to)[X86_RSP] = (from)->sp;                                                        \
		(to)[8] = (from)->r8;                                                              \
		(to)[9] = (from)->r9;                                                              \
		(to)[10] = (from)->r10;                                                            \
		(to)[11] = (from)->r11;                                                            \
		(to)[12] = (from)->r12;                                                            \
		(to)[13] = (from)->r13;                                                            \
		(to)[14] = (from)->r14;                                                            \
		(to)[15] = (from)->r15;                                                            \
	} while (0)
#define REGS_PC(from)	    REGS_FIELD(from, ip)
#define REGS_ARGUMENT(from) REGS_FIELD(from, di) /* the first one, at a function's begin */
#define REGS_RETURNED(from) REGS_FIELD(from, ax) /* behind its end */

/* Return addresses are on the stack, where the kernel's own walk finds them. */
static __always_inline __u64 kernel_link(const user_regs_t *regs)
{
	return 0;
}

static __always_inline bool skips_caller(const user_regs_t *regs, __u64 caller, __u64 shown)
{
	return false;
}

/* Where the kernel was interrupted, for walk_kernel_rows(). */
static __always_inline bool start_kernel_walk(struct walk *w, const user_regs_t *regs)
{
	w->kernel.pc = regs->ip;
	w->kernel.sp = regs->sp;
	w->kernel.fp = regs->bp;
	w->kernel.nr = 0;
	return true;
}

#elif defined(__TARGET_ARCH_arm64)
enum { REGS_SP = A64_SP, REGS_ALL = ~0 };
enum { PSTATE_MODE_MASK = 0xf, PSTATE_32BIT = 0x10 }; /* arch/arm64/include/uapi/asm/ptrace.h */

static __always_inline bool regs_of_user(const user_regs_t *r)
{
	return (r->pstate & PSTATE_MODE_MASK) == 0;
}

static __always_inline bool regs_compat(const user_regs_t *r)
{
	return REGS_FIELD(r, pstate) & PSTATE_32BIT;
}

static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
	return BPF_CORE_READ(task, thread.uw.tp_value);
}

/* Does this look like registers of user mode? */
static __always_inline bool regs_plausible(const user_regs_t *r)
{
	return r->pc && !(r->pc >> 52) && !(r->pstate & PSTATE_MODE_MASK) && !(r->pstate >> 32);
}

#define COPY_REGS(to, from)                                                                        \
	do {                                                                                       \
		UNROLL for (int i_ = 0; i_ < 31; i_++)(to)[i_] = (from)->regs[i_];                 \
		(to)[A64_SP] = (from)->sp;                                                         \
	} while (0)
#define REGS_PC(from)	    REGS_FIELD(from, pc)
#define REGS_ARGUMENT(from) REGS_FIELD(from, regs[0])
#define REGS_RETURNED(from) REGS_FIELD(from, regs[0])

/* An address of the kernel's code, which is in the uppermost 2^48, without a PAC. */
static __always_inline __u64 kernel_address(__u64 signed_address)
{
	return signed_address | ~0ull << 48;
}

/*
 * What the link register has in the kernel, 0 if that is none of its addresses. At a function's
 * first instruction it is the return address, which is nowhere else: the kernel's own walk goes on
 * with the frame pointer, which is the caller's still. Behind a return it is where that led.
 */
static __always_inline __u64 kernel_link(const user_regs_t *regs)
{
	__u64 link = REGS_FIELD(regs, regs[A64_LR]);

	return link >> 55 & 1 ? kernel_address(link) : 0;
}

/*
 * Does a walk go past `caller`, behind whose innermost frame is `shown`? A function that calls
 * itself has one return address in both places: what the frame pointer leads to tells.
 */
static __always_inline bool skips_caller(const user_regs_t *regs, __u64 caller, __u64 shown)
{
	__u64 record[2]; /* frame pointer and return address, of the caller's caller */

	return shown != caller || (!bpf_probe_read_kernel(record, sizeof(record),
							  (void *)REGS_FIELD(regs, regs[A64_FP])) &&
				   kernel_address(record[1]) == caller);
}

/* There are no rows of this kernel. */
static __always_inline bool start_kernel_walk(struct walk *w, const user_regs_t *regs)
{
	return false;
}
#endif

/* The source that interrupts a CPU: the user registers of what it interrupted; NULL: that was the
 * kernel. */
static __always_inline const user_regs_t *perf_event_regs(struct bpf_perf_event_data *ctx)
{
	return regs_of_user(&ctx->regs) ? &ctx->regs : NULL;
}

/* The source that meets a task in the kernel: what it was called with says nothing of user mode. */
static __always_inline const user_regs_t *task_regs(struct bpf_raw_tracepoint_args *ctx)
{
	return NULL;
}

/* The source that comes to an instruction with a probe: a program's; NULL: the kernel's. */
static __always_inline const user_regs_t *probe_regs(const user_regs_t *ctx)
{
	return regs_of_user(ctx) ? ctx : NULL;
}

/*
 * For kernels without the helper: they are at the top of the task's kernel stack, task_pt_regs() of
 * both architectures (before CONFIG_X86_FRED, which is younger than the helper). How big that is
 * (THREAD_SIZE) no kernel's BTF says: 16 KiB; with KASAN, or big pages on aarch64, more.
 */
static __always_inline int user_regs_at_top(__u64 stack, user_regs_t *ret)
{
	__u64 top = stack - bpf_core_type_size(struct pt_regs);

	if (!bpf_probe_read_kernel(ret, sizeof(*ret), (void *)(top + (16 << 10))) &&
	    regs_plausible(ret))
		return 0;
	if (!bpf_probe_read_kernel(ret, sizeof(*ret), (void *)(top + (32 << 10))) &&
	    regs_plausible(ret))
		return 0;
	if (!bpf_probe_read_kernel(ret, sizeof(*ret), (void *)(top + (64 << 10))) &&
	    regs_plausible(ret))
		return 0;
	return -1;
}

/* The registers that the current task entered the kernel with. */
static __always_inline int saved_user_regs(user_regs_t *ret)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (bpf_core_enum_value_exists(enum bpf_func_id___probe, BPF_FUNC_task_pt_regs___probe))
		return bpf_probe_read_kernel(ret, sizeof(*ret),
					     (void *)bpf_task_pt_regs(bpf_get_current_task_btf()));
	return user_regs_at_top((__u64)BPF_CORE_READ(task, stack), ret);
}

/* Where saved registers are read to: aarch64's are 272 bytes, more than the BPF stack has room for.
 */
static __always_inline user_regs_t *saved_regs_of(struct walk *w)
{
	_Static_assert(sizeof(user_regs_t) <= SCRATCH_SIZE, "registers do not fit");
	return (user_regs_t *)w->scratch;
}

/*
 * Before another program goes on with the walk, or a raw record is sent: what only this program's
 * context has. Registers that the task entered the kernel with can be read later, too.
 */
static __always_inline void keep_regs(const user_regs_t *regs, struct walk *w)
{
	w->first_kept = regs != NULL;
	if (!regs)
		return;
	COPY_REGS(w->first_regs, regs);
	w->first_pc = REGS_PC(regs);
}

/* The registers that the walk began with; false if they can't be read. */
static __always_inline bool first_regs(struct walk *w, __u64 *regs, __u64 *ret_pc)
{
	user_regs_t *saved = saved_regs_of(w);

	if (w->first_kept) {
		__builtin_memcpy(regs, w->first_regs, sizeof(w->first_regs));
		*ret_pc = w->first_pc;
		return true;
	}
	if (saved_user_regs(saved))
		return false;
	COPY_REGS(regs, saved);
	*ret_pc = REGS_PC(saved);
	return true;
}

/*
 * Names an address space: exec after exec may get the same mm_struct again, so the number of execs
 * goes with it.
 */
static __always_inline __u64 mm_token(__u64 mm, __u64 exec_id)
{
	return (mm & ((1ull << 48) - 1)) | exec_id << 48;
}

/*
 * Has the current task a user part, and in which address space? Its registers, pc and address space
 * go into `w`. `regs`: of user mode, if that is what the program's context tells; else NULL.
 */
static __always_inline enum user_part user_part_of_current(const user_regs_t *regs, struct walk *w)
{
	user_regs_t *saved = saved_regs_of(w);
	struct task_struct *task;
	__u64 exec_id, mm;
	__u32 flags;

	if (bpf_core_enum_value_exists(enum bpf_func_id___probe,
				       BPF_FUNC_get_current_task_btf___probe)) {
		task = bpf_get_current_task_btf();
		/* By way of memory: the verifier forbids to calculate with a pointer of the
		 * kernel's. */
		*(volatile __u64 *)&w->mm = (__u64)task->mm;
		mm = *(volatile __u64 *)&w->mm;
		exec_id = task->self_exec_id;
		flags = task->flags;
	} else {
		task = (void *)bpf_get_current_task();
		mm = (__u64)BPF_CORE_READ(task, mm);
		exec_id = BPF_CORE_READ(task, self_exec_id);
		flags = BPF_CORE_READ(task, flags);
	}
	w->mm = 0;
	if (!mm || flags & TASK_PF_KTHREAD)
		return USER_NONE;
	if (regs) {
		COPY_REGS(w->regs, regs);
		w->pc = REGS_PC(regs);
		if (regs_compat(regs))
			return USER_COMPAT;
		w->mm = mm_token(mm, exec_id);
		return USER_WALK;
	}
	/* Threads that the kernel runs on a process's behalf (io_uring) have no user registers. */
	if (saved_user_regs(saved) || !REGS_PC(saved))
		return USER_NONE;
	COPY_REGS(w->regs, saved);
	w->pc = REGS_PC(saved);
	if (regs_compat(saved))
		return USER_COMPAT;
	w->mm = mm_token(mm, exec_id);
	return USER_WALK;
}

/*
 * Is the current task so far in execve() that its old image is gone? Its registers are that image's
 * still; the code that they point to is nowhere any more.
 */
static __always_inline bool image_is_gone(const user_regs_t *regs, __u64 pc)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u8 code;

	if (regs)
		return false;
	if (bpf_core_field_exists(task->in_execve) &&
	    !BPF_CORE_READ_BITFIELD_PROBED(task, in_execve))
		return false;
	return bpf_probe_read_user(&code, sizeof(code), (void *)pc) != 0;
}
