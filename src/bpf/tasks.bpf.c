// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The threads of a process as the kernel sees them, without disturbing any: an iterator over tasks
 * (bpf_iter, 5.8) that prints a struct task_record each. Loaded by snapshot/task_iter.c, on its
 * own: it shares no map with the sampler.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/regs.bpf.h"
#include "abi/task.h"

/* Set before loading. */
const volatile __u32 config_tgid = 0;
const volatile bool config_kernel = true;

/* Each under the name that some kernels have: include/linux/sched.h. */
struct task_struct___tasks {
	unsigned int __state; /* since 5.14 */
	volatile long state;  /* before */
	int exit_state;
	int on_cpu; /* with CONFIG_SMP */
	unsigned long nvcsw, nivcsw;
	char comm[SAMPLE_COMM_LEN];
} __preserve;

/* include/linux/sched.h; the same numbers since 4.14, but for what is left out here. */
enum {
	STATE_INTERRUPTIBLE = 0x1,
	STATE_UNINTERRUPTIBLE = 0x2,
	STATE_STOPPED = 0x4,
	STATE_TRACED = 0x8,
	STATE_EXIT_DEAD = 0x10,
	STATE_EXIT_ZOMBIE = 0x20,
	STATE_PARKED = 0x40,
	STATE_NOLOAD = 0x400,
};

/* Too big for the stack of a BPF program. One iterator runs at a time: its own object, one reader.
 */
struct task_scratch {
	struct task_record record;
	__u64 kernel[SAMPLE_MAX_KERNEL_FRAMES + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct task_scratch);
} scratch SEC(".maps");

static __always_inline __u32 state_letter(const struct task_struct___tasks *t)
{
	__u32 state;

	if (t->exit_state)
		return t->exit_state & STATE_EXIT_DEAD ? 'X' : 'Z';
	if (bpf_core_field_exists(t->__state))
		state = t->__state;
	else
		state = (__u32)t->state;
	if (state & STATE_INTERRUPTIBLE)
		return 'S';
	if (state & STATE_UNINTERRUPTIBLE)
		return state & STATE_NOLOAD ? 'I' : 'D';
	if (state & STATE_STOPPED)
		return 'T';
	if (state & STATE_TRACED)
		return 't';
	return state & STATE_PARKED ? 'P' : 'R';
}

static __always_inline bool is_on_cpu(const struct task_struct___tasks *t)
{
	/* A kernel for one CPU alone has no such field; and it is we who run there. */
	return bpf_core_field_exists(t->on_cpu) ? t->on_cpu : 0;
}

/* As saved_user_regs() of bpf/regs.bpf.h, of any task. */
static __always_inline int task_user_regs(struct task_struct *task, user_regs_t *ret)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id___probe, BPF_FUNC_task_pt_regs___probe))
		return bpf_probe_read_kernel(ret, sizeof(*ret), (void *)bpf_task_pt_regs(task));
	return user_regs_at_top((__u64)BPF_CORE_READ(task, stack), ret);
}

static __always_inline void take_user(struct task_record *r, struct task_struct *task)
{
	user_regs_t regs;

	/* Threads that the kernel runs on a process's behalf (io_uring) have no user registers. */
	if (task_user_regs(task, &regs) || !REGS_PC(&regs))
		return;
	COPY_REGS(r->regs, &regs);
	r->pc = REGS_PC(&regs);
	r->thread_pointer = task_thread_pointer(task);
	r->flags |= TASK_USER | (regs_compat(&regs) ? TASK_COMPAT : 0);
}

SEC("iter/task")
int show_tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct task_struct___tasks *t;
	struct task_scratch *s;
	__u32 zero = 0, size;
	long kernel;

	if (!task || (__u32)task->tgid != config_tgid)
		return 0;
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return 0;
	t = (void *)task;
	s->record.tid = task->pid;
	s->record.tgid = task->tgid;
	s->record.state = state_letter(t);
	s->record.flags = is_on_cpu(t) ? TASK_ON_CPU : 0;
	s->record.nr_switches = t->nvcsw + t->nivcsw;
	s->record.nr_kernel = 0;
	s->record.pc = 0;
	s->record.thread_pointer = 0;
	bpf_probe_read_kernel(s->record.comm, sizeof(s->record.comm), t->comm);
	if (task->flags & TASK_PF_KTHREAD)
		s->record.flags |= TASK_KERNEL_THREAD;
	else if (task->mm)
		take_user(&s->record, task);
	if (config_kernel && !(s->record.flags & TASK_ON_CPU)) {
		kernel = bpf_get_task_stack(task, s->kernel, SAMPLE_MAX_KERNEL_FRAMES * 8, 0);
		if (kernel > 0)
			s->record.nr_kernel = (__u32)kernel / 8;
	}
	size = sizeof(s->record) + (s->record.nr_kernel & SAMPLE_MAX_KERNEL_FRAMES) * 8;
	bpf_seq_write(seq, s, size);
	return 0;
}

/* --- names of kernel addresses --------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TASK_NAMES_MAX);
	__type(key, __u32);
	__type(value, __u64);
} addresses SEC(".maps");

__u32 nr_addresses = 0;

/*
 * "name+0x12/0x34 [module]" a line. Reading all of /proc/kallsyms for a few addresses takes 50 ms;
 * this does not. The tasks do not matter, only that there are some.
 */
SEC("iter/task")
int name_addresses(struct bpf_iter__task *ctx)
{
	static const char format[] = "%pB\n"; /* takes a return address: 5.10 */
	struct seq_file *seq = ctx->meta->seq;
	__u32 first = (__u32)ctx->meta->seq_num * TASK_NAMES_AT_ONCE, i;

	if (!ctx->task)
		return 0;
	for (i = 0; i < TASK_NAMES_AT_ONCE; i++) {
		__u32 at = first + i;
		__u64 *address, argument;

		if (at >= *(volatile __u32 *)&nr_addresses)
			break;
		address = bpf_map_lookup_elem(&addresses, &at);
		if (!address)
			break;
		argument = *address + 1;
		bpf_seq_printf(seq, format, sizeof(format), &argument, sizeof(argument));
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
