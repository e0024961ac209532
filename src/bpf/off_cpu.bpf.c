// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long threads were on no CPU: on_switch runs at each switch from one thread to another, and
 * says in `woken` if the sleep that has just ended is to be taken. Who takes it is sample_woken
 * (sample.bpf.c), a moment later: when the thread is current again, and the run queue's lock is
 * free. An object of its own, since a sampler that takes no sleeps shall not have these maps; what
 * both have is the sampler's. docs/off-cpu.md says why it is done so.
 *
 * Nothing in here waits, allocates, or takes more than the lock of one bucket: the run queue is
 * locked.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/maps.bpf.h"
#include "bpf/select.bpf.h"
#include "abi/off_cpu.h"

struct targets_map targets SEC(".maps");
struct lost_map lost SEC(".maps");
struct woken_map woken SEC(".maps");
struct sleepers_map sleepers SEC(".maps");
struct selection_map selection SEC(".maps");
struct facts_map facts SEC(".maps");
struct rejected_map rejected SEC(".maps");

/*
 * A ring a CPU. What goes in there is of no interest: that it does interrupts this CPU (irq_work,
 * of which a ring has one: a CPU's own). The agent fills it in, if it is needed.
 */
struct kick_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kick_ring);
} kicks SEC(".maps");

/* Set before loading. */
const volatile bool config_targets_only = false;
const volatile bool config_select = false;
const volatile bool config_nmi = false;
const volatile __u8 config_source = SOURCE_CLOCK + 1;
/* Of 2^32 sleeps, so many are taken; ~0: all. */
const volatile __u32 config_chance = ~0u;
/* Shorter ones are taken with the probability slept / weight, and stand for that; 0: each stands
 * for itself. Below 2^32. */
const volatile __u64 config_weight_ns = 0;
const volatile __u64 config_least_ns = 0;
/* There is no tracepoint where a thread goes on: an interrupt of ours comes there. */
const volatile bool config_kick = false;
/* How many entries `sleepers` has. */
const volatile __s32 config_sleepers = 0;

/* How many of them are taken, in all, and by whom. The agent counts those that it takes out. */
__s32 nr_sleepers = 0;
__s32 nr_sleepers_of[SLEEPER_OWNERS] = { 0 };

/* include/linux/sched.h */
struct task_struct___switch {
	unsigned int __state; /* since 5.14 */
	volatile long state;  /* before */
	unsigned long nvcsw, nivcsw;
} __preserve;

enum {
	SWITCH_UNINTERRUPTIBLE = 0x2,
	SWITCH_STOPPED = 0x4 | 0x8, /* traced, too */
	SWITCH_PF_EXITING = 0x4,
	SWITCH_PF_IO_WORKER =
		0x10, /* since 5.12; before, nothing that threads of user space have */
	/* Since 6.4 (54e6842d0775, "fork/vm: Move common PF_IO_WORKER behavior to new flag"):
	 * vhost's workers, too. Before, whoever loads modules may have it. */
	SWITCH_PF_USER_WORKER = 0x4000,
};

struct kernel_clone_args___worker {
	int user_worker;
} __preserve;

/* Does the kernel's own work in a process of user space? */
static __always_inline bool is_worker(const struct task_struct *task)
{
	__u32 flags = TASK_PF_KTHREAD | SWITCH_PF_IO_WORKER;

	if (bpf_core_field_exists(((struct kernel_clone_args___worker *)0)->user_worker))
		flags |= SWITCH_PF_USER_WORKER;
	return task->flags & flags;
}

static __always_inline void count(__u32 reason)
{
	__u32 key = LOST_KEY(config_source, reason);
	__u64 *n = bpf_map_lookup_elem(&lost, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
}

/*
 * A thread that somebody wakes on another CPU at this very moment is TASK_WAKING already: most
 * sleeps are interruptible.
 */
static __always_inline __u32 state_of(const struct task_struct *task, bool preempted)
{
	const struct task_struct___switch *t = (const void *)task;
	__u32 state;

	if (bpf_core_field_exists(t->__state))
		state = t->__state;
	else
		state = (__u32)t->state;
	if (preempted || !state)
		return OFF_CPU_PREEMPTED;
	if (state & SWITCH_UNINTERRUPTIBLE)
		return OFF_CPU_UNINTERRUPTIBLE;
	return state & SWITCH_STOPPED ? OFF_CPU_STOPPED : OFF_CPU_INTERRUPTIBLE;
}

/* How often it has left a CPU; who leaves is counted already. */
static __always_inline __u32 switches_of(const struct task_struct *task)
{
	const struct task_struct___switch *t = (const void *)task;

	return (__u32)(t->nvcsw + t->nivcsw);
}

/*
 * How long a sleep that begins must be to be taken. By weight, a random number from 1 on: one of t
 * is taken with the probability t / weight. It is drawn now, so that who ends the sleep knows.
 */
static __always_inline __u64 needs(void)
{
	__u64 ns = 0;

	if (config_weight_ns)
		ns = 1 + ((bpf_get_prandom_u32() * config_weight_ns) >> 32);
	return ns < config_least_ns ? config_least_ns : ns;
}

/* Interrupts this CPU as soon as it takes interrupts: behind the switch. */
static __always_inline bool kick(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&kicks, &cpu);
	__u64 nothing = 0;

	return ring && !bpf_ringbuf_output(ring, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/*
 * Not every switch is told: one kernel was seen (6.18, of a virtual machine) that runs no
 * tracepoint in threads of PID 1, so what goes on behind one of those is missed. What began before
 * is no sleep that ends now then: the thread has left a CPU since.
 */
static __always_inline void wakes(const struct task_struct *next, __u64 now)
{
	__u32 tid = next->pid, zero = 0;
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &tid);
	struct woken *w;
	__s64 slept;

	if (!s || !s->since_ns)
		return;
	/* The clock that may be read here may be behind the other CPU's, where the sleep began. */
	slept = (__s64)(now - s->since_ns);
	s->since_ns = 0;
	if (s->switches != switches_of(next)) {
		count(LOST_SLEEP_MISSED);
		return;
	}
	if (slept <= 0 || (__u64)slept < s->needs_ns)
		return;
	w = bpf_map_lookup_elem(&woken, &zero);
	if (!w)
		return;
	w->tid = tid;
	w->state = s->state;
	w->value = (__u64)slept < config_weight_ns ? config_weight_ns : (__u64)slept;
	w->waker = s->waker;
	if (config_kick && !kick()) {
		w->tid = 0;
		count(LOST_SLEEP_MISSED);
	}
}

static __always_inline void count_sleeper(__u32 user, __s32 n)
{
	__sync_fetch_and_add(&nr_sleepers, n);
	__sync_fetch_and_add(&nr_sleepers_of[user & (SLEEPER_OWNERS - 1)], n);
}

/*
 * Another one of that user's threads? Root's have all; others no more than are left for everybody
 * else, and an eighth is root's alone.
 */
static __always_inline bool may_sleep(__u32 user)
{
	__s32 left = config_sleepers - *(volatile __s32 *)&nr_sleepers;

	return !user || *(volatile __s32 *)&nr_sleepers_of[user & (SLEEPER_OWNERS - 1)] <
				left - (config_sleepers >> 3);
}

/* Its thread ends. */
static __always_inline void forget_sleeper(__u32 tid)
{
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &tid);
	__u32 user;

	if (!s)
		return;
	if (s->since_ns)
		count(LOST_SLEEP_MISSED);
	user = s->user;
	if (!bpf_map_delete_elem(&sleepers, &tid))
		count_sleeper(user, -1);
}

static __always_inline void sleeps(const struct task_struct *prev, bool preempted, __u64 now)
{
	__u32 tid = prev->pid, pid = prev->tgid;
	struct sleeper *s, new = { .since_ns = now, .waker = WAKER_UNKNOWN };

	new.switches = switches_of(prev);
	if (prev->flags & SWITCH_PF_EXITING) {
		forget_sleeper(tid);
		return;
	}
	if (config_chance != ~0u && bpf_get_prandom_u32() >= config_chance)
		return;
	if (config_targets_only && !bpf_map_lookup_elem(&targets, &pid))
		return;
	/* The one that leaves is still current. */
	if (config_select && select_now(config_source) == SELECT_REJECT)
		return;
	new.needs_ns = needs();
	new.state = state_of(prev, preempted);
	s = bpf_map_lookup_elem(&sleepers, &tid);
	if (s) {
		/* It went on, and nobody said so. */
		if (s->since_ns)
			count(LOST_SLEEP_MISSED);
		s->state = new.state;
		s->switches = new.switches;
		s->needs_ns = new.needs_ns;
		s->waker = WAKER_UNKNOWN;
		s->since_ns = now;
		return;
	}
	new.user = (__u32)bpf_get_current_uid_gid();
	if (!may_sleep(new.user) || bpf_map_update_elem(&sleepers, &tid, &new, BPF_ANY))
		count(LOST_SLEEPER_TABLE_FULL);
	else
		count_sleeper(new.user, 1);
}

/* The last one did not come to its sample: what is said of it would be another one's. */
static __always_inline void check_last(void)
{
	__u32 zero = 0;
	struct woken *w = bpf_map_lookup_elem(&woken, &zero);

	if (!w || !w->tid)
		return;
	w->tid = 0;
	count(LOST_SLEEP_MISSED);
}

/* Arguments: bool preempt, struct task_struct *prev, *next. */
SEC("tp_btf/sched_switch")
int on_switch(__u64 *ctx)
{
	const struct task_struct *prev = (const void *)ctx[1], *next = (const void *)ctx[2];
	__u64 now = bpf_ktime_get_ns();

	check_last();
	/* The idle task's pid is 0. */
	if (next->pid && !(next->flags & TASK_PF_KTHREAD))
		wakes(next, now);
	if (prev->pid && !is_worker(prev))
		sleeps(prev, ctx[0], now);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
