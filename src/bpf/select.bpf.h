/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is the current task's process selected? Asked before anything else is done for a sample. What the
 * kernel does not tell of a process (its executable's path, its cgroup's, its container), user
 * space finds out once, and says so in `facts`; until then it is undecided.
 */
#pragma once

#include "bpf/judge.bpf.h"
#include "bpf/maps.bpf.h"
#include "bpf/regs.bpf.h"

/* enum select_verdict, of the current task. Counts those that are rejected. */
__noinline int select_current(void);
/* The verdict on who is no sample: nothing is counted. */
__noinline int select_uncounted(void);

/*
 * What is known of the process; if nothing that holds any more, user space is asked. True: that was
 * not so before.
 */
static __always_inline bool find_facts(struct select_task *t, const struct select_facts *now)
{
	__u32 pid = t->pid;
	struct select_facts *f = bpf_map_lookup_elem(&facts, &pid);
	struct select_facts seen;
	bool same;

	if (!f) {
		/* No room: each of its samples is decided by user space. */
		return !config_nmi && !bpf_map_update_elem(&facts, &pid, now, BPF_NOEXIST);
	}
	/* It may change meanwhile, and become another process's. */
	seen = *f;
	barrier();
	same = seen.space == now->space && seen.cgroup == now->cgroup &&
	       seen.comm[0] == now->comm[0] && seen.comm[1] == now->comm[1];
	if (same && seen.epoch == now->epoch) {
		t->facts = seen.facts;
		t->known = seen.known == select_seal(pid, &seen);
		return false;
	}
	*(volatile __u32 *)&f->known = 0;
	barrier();
	f->space = now->space;
	f->cgroup = now->cgroup;
	f->comm[0] = now->comm[0];
	f->comm[1] = now->comm[1];
	f->epoch = now->epoch;
	if (!same)
		f->met_ns = now->met_ns;
	return true;
}

static __always_inline int select_by(const struct select_rules *rules)
{
	const struct task_struct *task = (const void *)bpf_get_current_task(), *leader;
	struct select_task t = { .pid = bpf_get_current_pid_tgid() >> 32 };
	struct select_facts now = { .epoch = rules->epoch };
	__u32 asks = rules->asks;
	bool met = false;
	int verdict;

	if (asks & SELECT_UID)
		t.uid = current_user();
	if (asks & (SELECT_COMM | SELECT_AGE | SELECT_FACTS)) {
		leader = BPF_CORE_READ(task, group_leader);
		bpf_core_read(t.comm, sizeof(t.comm), &leader->comm);
		now.met_ns = bpf_ktime_get_ns();
		t.age_ns = now.met_ns - BPF_CORE_READ(leader, start_time);
	}
	if (asks & SELECT_FACTS) {
		now.space =
			mm_token((__u64)BPF_CORE_READ(task, mm), BPF_CORE_READ(task, self_exec_id));
		now.cgroup = bpf_get_current_cgroup_id();
		now.comm[0] = t.comm[0];
		now.comm[1] = t.comm[1];
		met = find_facts(&t, &now);
	}
	verdict = select_judge(rules, &t);
	return verdict == SELECT_UNDECIDED && met ? SELECT_MET : verdict;
}

static __always_inline void count_rejected(__u32 source)
{
	__u64 *n = bpf_map_lookup_elem(&rejected, &source);

	/* Another source of samples may interrupt here. */
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Idle CPUs have tasks like it, all with the PID 0: they are another matter. */
static __always_inline bool is_kernel_thread(__u32 pid)
{
	const struct task_struct *task;

	if (!pid)
		return false;
	if (bpf_core_enum_value_exists(enum bpf_func_id___probe,
				       BPF_FUNC_get_current_task_btf___probe))
		return bpf_get_current_task_btf()->flags & TASK_PF_KTHREAD;
	task = (const void *)bpf_get_current_task();
	return BPF_CORE_READ(task, flags) & TASK_PF_KTHREAD;
}

static __always_inline int select_now(__u32 source)
{
	const struct select_rules *rules;
	__u32 at = 0;
	int verdict;

	rules = bpf_map_lookup_elem(&selection, &at);
	if (!rules)
		return SELECT_TAKE;
	at = *(const volatile __u32 *)&rules->which;
	rules = bpf_map_lookup_elem(&selection, &at);
	if (!rules || !rules->nr)
		return SELECT_TAKE;
	verdict = select_by(rules);
	if (verdict == SELECT_REJECT)
		count_rejected(source);
	return verdict;
}
