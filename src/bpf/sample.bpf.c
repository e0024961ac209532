// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that the kernel runs: sample_cpu at each tick of a CPU's clock, sample_task where a
 * task is in the kernel, sample_woken where one goes on that had left its CPU, sample_waker where
 * one wakes such a one, sample_probe where one comes to a probe, on_fork at each fork, and
 * show_spaces when the agent asks which address spaces there are.
 *
 * A source of samples is a program of a line: it says where the user registers are (regs.bpf.h),
 * all else is sample(). That walks native code. At the first frame of a runtime it changes to that
 * one's program (walkers.bpf.c). Whoever comes to the end sends the sample (send.bpf.c).
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/regs.bpf.h"
#include "bpf/select.bpf.h"
#include "bpf/send.bpf.h"
#include "abi/task.h"

enum { SCHEDULE_DEPTH_MAX = 24 }; /* __schedule(), try_to_wake_up() are no further out */

/*
 * The thread's name, as two words: the helper takes ten times as long. Behind its end may be what
 * is left of another one.
 */
static __always_inline void read_comm(struct walk *w)
{
	__u64 *to = (__u64 *)w->header.comm;
	const struct task_struct *task;

	if (!bpf_core_enum_value_exists(enum bpf_func_id___probe,
					BPF_FUNC_get_current_task_btf___probe)) {
		bpf_get_current_comm(w->header.comm, sizeof(w->header.comm));
		return;
	}
	task = bpf_get_current_task_btf();
	to[0] = *(const __u64 *)&task->comm[0];
	to[1] = *(const __u64 *)&task->comm[8];
}

/*
 * What the hash of a process's stacks begins with. The words of a stack are joined by xor, and who
 * has a stack made chooses them: how two processes' hashes differ must be as secret as the epoch.
 */
static __always_inline __u64 start_hash(__u32 pid)
{
	return finish_hash(finish_hash(known_epoch + pid));
}

static __always_inline void start_walk(struct walk *w, __u64 pid_tgid, __u64 value, __u8 flags)
{
	w->header.flags = flags;
	w->header.source = config_source;
	w->header.value = value;
	w->header.waker = WAKER_UNKNOWN;
	w->header.cpu = w->cpu = bpf_get_smp_processor_id();
	w->header.pid = pid_tgid >> 32;
	w->header.tid = (__u32)pid_tgid;
	w->header.time_ns = bpf_ktime_get_ns();
	read_comm(w);
	w->full.generation = 0;
	w->full.nr_kernel = 0;
	w->full.nr_words = 0;
	w->nr_frames = 0;
	w->window_start = 0;
	w->window_len = 0;
	w->deep = w->regs[REGS_SP] - w->stack_begin >= WINDOW_SIZE - WINDOW_BELOW;
	w->frames_len = 0;
	w->begun = 0;
	w->work = 0;
	w->caller_first = w->caller_next;
	w->thread_pointer = 0;
	w->by_frame_pointer = 0;
	w->guessed = 0;
	w->skipped = 0;
	w->raws = *(volatile __u32 *)&raws_sent;
	w->may_ask = w->raws == RAWS_WHOLE;
	w->max_frames = config_max_frames;
	w->address_mask = config_address_mask;
	w->hash = start_hash(w->header.pid);
	w->names = 0;
}

/*
 * Marks the source's block of this CPU as in use, until free_walk(). NULL, and counted: there is
 * none, or it is in use. Each source has blocks of its own (kernel/source.h), since one may
 * interrupt another. The mark is for a source that interrupts itself: perf events do not,
 * tracepoints may. Who interrupts ends before the interrupted one goes on: nothing is atomic.
 */
static __always_inline struct walk *take_walk(struct walk *w)
{
	if (!w || *(volatile __u32 *)&w->in_use) {
		count_lost(LOST_NO_SCRATCH);
		return NULL;
	}
	*(volatile __u32 *)&w->in_use = 1;
	barrier();
	return w;
}

/* Both are there, but one may end where the other goes on. */
static __always_inline void compare_kernel_frames(struct walk *w, const __u64 *own, __u32 n)
{
	const __u64 *helpers = w->scratch;
	struct kernel_walk *k = &w->kernel;
	__u32 i;

	_Static_assert(SAMPLE_MAX_KERNEL_FRAMES * 8 <= SCRATCH_SIZE, "frames do not fit");
	if (k->nr != n) {
		k->counts.differ++;
		return;
	}
	for (i = 0; i < SAMPLE_MAX_KERNEL_FRAMES && i < n; i++)
		if (own[i] != helpers[i]) {
			k->counts.differ++;
			return;
		}
	k->counts.equal++;
	k->counts.equal_frames += n;
}

/* How many frames the kernel's own walk puts to `to`, without the first `skip`. */
static __always_inline __u32 take_helpers_stack(void *ctx, __u64 *to, __u32 skip)
{
	long size = bpf_get_stack(ctx, to, SAMPLE_MAX_KERNEL_FRAMES * 8, skip & 0xff);

	if (size <= 0)
		return 0;
	return size / 8 > SAMPLE_MAX_KERNEL_FRAMES ? SAMPLE_MAX_KERNEL_FRAMES : size / 8;
}

/*
 * As take_helpers_stack(), of a kprobe or kretprobe, with what that does not see: who called a
 * function at whose first instruction `probe` is, and the kretprobe's trampoline, for which
 * aarch64's kernels have 0 before Linux 5.16.
 */
static __always_inline __u32 take_probes_stack(void *ctx, const user_regs_t *probe, __u64 *to)
{
	__u64 link = kernel_link(probe);
	__u32 n;

	if (!link || !config_at_entry) {
		n = take_helpers_stack(ctx, to, 0);
		if (n && link && !to[0])
			to[0] = link;
		return n;
	}
	n = take_helpers_stack(ctx, to + 1, 0);
	if (!n)
		return 0;
	if (n > 1 && !skips_caller(probe, link, to[2]))
		return take_helpers_stack(ctx, to, 0);
	to[0] = to[1];
	to[1] = link;
	return n < SAMPLE_MAX_KERNEL_FRAMES ? n + 1 : n;
}

/*
 * By rows, if that leads to the stack's end, else by the kernel's own walk. `regs`: of the kernel
 * where it was interrupted; NULL: the source has none. `probe`: where a probe stands in the kernel;
 * NULL: it is none.
 */
static __always_inline void walk_kernel(void *ctx, const user_regs_t *regs,
					const user_regs_t *probe, struct walk *w)
{
	__u64 *words = walk_words(w);
	int end = KERNEL_WALK_GOES_ON;
	__u32 i, n;

	if (!words)
		return;
	if (regs && config_kernel_frames != KERNEL_FRAMES_HELPER && start_kernel_walk(w, regs)) {
		end = walk_kernel_rows();
		w->kernel.counts.ends[end & 7]++;
	}
	n = w->kernel.nr;
	if (probe) {
		n = take_probes_stack(ctx, probe, words);
	} else if (end != KERNEL_WALK_WHOLE) {
		n = take_helpers_stack(ctx, words, 0);
	} else if (config_kernel_frames == KERNEL_FRAMES_COMPARE) {
		n = take_helpers_stack(ctx, w->scratch, 0);
		compare_kernel_frames(w, words, n);
		n = w->kernel.nr;
	}
	for (i = 0; i < SAMPLE_MAX_KERNEL_FRAMES && i < n; i++)
		hash_word(w, words[i]);
	w->full.nr_kernel = n;
}

static __always_inline bool in_schedule(__u64 pc)
{
	return pc - config_schedule_start < config_schedule_size;
}

/*
 * The kernel's frames from __schedule() (try_to_wake_up()) on: how many; if it is not there, all.
 * What is before that is how we came to be called, mostly `*skip` frames, as the last time.
 */
static __always_inline __u32 take_schedulers_stack(void *ctx, __u64 *words, __u32 *skip)
{
	__u32 i, n = take_helpers_stack(ctx, words, *skip);

	if (n && in_schedule(words[0]))
		return n;
	n = take_helpers_stack(ctx, words, 0);
	for (i = 0; i < SCHEDULE_DEPTH_MAX; i++)
		if (i >= n || in_schedule(words[i]))
			break;
	if (i >= n || i >= SCHEDULE_DEPTH_MAX)
		return n;
	*skip = i;
	return take_helpers_stack(ctx, words, i);
}

/*
 * Of a thread that goes on: from __schedule() on, in which it waited. False: it is not there, so
 * the thread has gone on already.
 */
static __always_inline bool walk_sleeper(void *ctx, struct walk *w)
{
	__u64 *words = walk_words(w);
	__u32 i, n;

	if (!words)
		return false;
	n = take_schedulers_stack(ctx, words, &w->kernel_skip);
	if (config_kicked && (!n || !in_schedule(words[0])))
		return false;
	if (!config_kernel)
		return true;
	for (i = 0; i < SAMPLE_MAX_KERNEL_FRAMES && i < n; i++)
		hash_word(w, words[i]);
	w->full.nr_kernel = n;
	return true;
}

/*
 * Of a thread that wakes another: from try_to_wake_up() on. False: it was interrupted, and what
 * wakes is the interrupt.
 */
static __always_inline bool walk_waker(void *ctx, struct walk *w)
{
	__u64 *words = walk_words(w), at, interrupts = 0;
	__u32 i, n;

	if (!words)
		return true;
	n = take_schedulers_stack(ctx, words, &w->waker_skip);
	/* One loop, and without a branch: the verifier would follow it at each frame. The sign says
	 * if one is. */
	for (i = 0; i < SAMPLE_MAX_KERNEL_FRAMES && i < n; i++) {
		at = words[i] - config_interrupts_start;
		interrupts |= (at - config_interrupts_size) & ~at;
		hash_word(w, words[i]);
	}
	if ((__s64)interrupts < 0)
		return false;
	if (config_kernel)
		w->full.nr_kernel = n;
	return true;
}

/* Is what is in walk->process still what is known of this process? A chosen one, if there is a
 * choice. */
static __always_inline bool is_last_process(const struct walk *w, __u32 pid)
{
	return pid && w->memo_pid == pid && w->memo_epoch == *(volatile __u32 *)&process_epoch;
}

/*
 * What is known of the process, into walk->process. A CPU mostly samples the same process again:
 * the look-up costs a quarter of a short walk, all of it in cold lines.
 */
static __always_inline bool find_process(struct walk *w, __u64 mm)
{
	__u32 epoch = *(volatile __u32 *)&process_epoch;
	struct unwind_process *p;

	if (is_last_process(w, w->header.pid) && w->process.mm == mm)
		return true;
	w->memo_pid = 0;
	w->mapping_len = 0;
	w->process.generation = 0;
	w->process.flags = 0;
	p = bpf_map_lookup_elem(&processes, &w->header.pid);
	if (!p || p->mm != mm)
		return false;
	w->process = *p;
	w->memo_pid = w->header.pid;
	w->memo_epoch = epoch;
	return true;
}

/*
 * The user part, from the registers in `w` on: how it ended, or WALK_CHANGE. `whole`: by one loop
 * with all runtimes' steps.
 */
static __always_inline int walk_process(const user_regs_t *regs, struct walk *w, bool whole)
{
	int stop;

	if (!find_process(w, w->mm))
		return image_is_gone(regs, w->pc) ? STOP_COMPLETE : STOP_NO_PROCESS;
	w->stack_begin = w->regs[REGS_SP];
	w->valid = w->kept = REGS_ALL;
	w->interrupted = 1;
	w->runtime = w->walker = RUNTIME_NATIVE;
	w->nr_changes = 0;
	w->full.generation = w->process.generation;
	if (whole)
		return walk_user();
	/* Most stacks come to their end there: two calls less. */
	stop = native_steps();
	return stop ? stop : walk_native_frames();
}

/* Fields of the scheduler's, as of include/linux/sched.h; the same since 2.6.23. */
struct sched_entity___ran {
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* when it was switched in */
} __preserve;

struct task_struct___ran {
	struct sched_entity___ran se;
} __preserve;

/* Of the current task, which is being switched out: for how long it ran. */
static __always_inline __u64 ran_ns(void)
{
	const struct task_struct___ran *t = (const void *)bpf_get_current_task();

	return BPF_CORE_READ(t, se.sum_exec_runtime) - BPF_CORE_READ(t, se.prev_sum_exec_runtime);
}

/*
 * Of one source, on all CPUs together. What several add at the same moment may be one or two too
 * many: 5.10 has no atomic operation that tells what there was.
 */
static __always_inline bool is_within_rate(void)
{
	__u32 source = config_source;
	struct source_rate *r = bpf_map_lookup_elem(&rates, &source);
	__u64 now = bpf_ktime_get_ns();

	if (!r)
		return true;
	/* Another CPU's clock may be ahead. */
	if ((__s64)(now - *(volatile __u64 *)&r->window_ns) >= (__s64)config_rate_ns) {
		*(volatile __u64 *)&r->window_ns = now;
		*(volatile __u64 *)&r->taken = 0;
	}
	if (*(volatile __u64 *)&r->taken >= config_rate) {
		__sync_fetch_and_add(&r->limited, 1);
		return false;
	}
	__sync_fetch_and_add(&r->taken, 1);
	return true;
}

/*
 * The user part of a walk that has the kernel's: its end, too, is there. `regs` as of sample().
 */
static __always_inline int walk_and_send(void *ctx, const user_regs_t *regs, struct walk *w,
					 bool whole)
{
	enum user_part user = user_part_of_current(regs, w);
	int stop;

	if (user == USER_WALK) {
		stop = walk_process(regs, w, whole);
		if (stop == WALK_CHANGE || config_raw_too || needs_agent(w, stop))
			keep_regs(regs, w);
		/* Of the whole one not even the instruction may be there. */
		if (!whole && stop == WALK_CHANGE) {
			bpf_tail_call(ctx, &walkers, w->runtime);
			stop = STOP_WALKER_PENDING;
		}
	} else {
		if (user == USER_NONE && !config_kernel && !(w->header.flags & SAMPLE_WAKER)) {
			free_walk(w);
			return 0;
		}
		stop = user == USER_COMPAT ? STOP_COMPAT_TASK : STOP_COMPLETE;
	}
	send_sample((__u32)stop);
	return 0;
}

/*
 * `regs`: the user registers that the source's context has; NULL: those saved on kernel entry.
 * `kernel`: the registers if it was the kernel that was interrupted; NULL: none are known.
 * `probe`: as of walk_kernel().
 * `value`: what the sample measures, in the source's unit; `flags`: of struct sample_header.
 * `sleep`: of a thread that goes on; NULL: it is none.
 */
static __always_inline int sample(void *ctx, const user_regs_t *regs, const user_regs_t *kernel,
				  const user_regs_t *probe, __u64 value, const struct woken *sleep,
				  bool whole)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 pid = pid_tgid >> 32;
	__u64 begin_ns = config_measure ? bpf_ktime_get_ns() : 0;
	__u8 flags = sleep ? sleep->state << SAMPLE_STATE_SHIFT : 0;
	struct walk *w = current_walk();
	int stop;

	if (config_targets_only && !(w && is_last_process(w, pid)) &&
	    !bpf_map_lookup_elem(&targets, &pid))
		return 0;
	if (!config_kernel_threads && is_kernel_thread(pid)) {
		count_rejected(config_source);
		return 0;
	}
	if (config_select) {
		stop = select_current();
		if (stop == SELECT_REJECT)
			return 0;
		if (stop != SELECT_TAKE)
			flags |= SAMPLE_UNDECIDED;
		if (stop == SELECT_MET)
			flags |= SAMPLE_MET;
	}
	if (config_rate && !is_within_rate())
		return 0;
	w = take_walk(w);
	if (!w)
		return 0;
	if (config_measure)
		w->begin_ns = begin_ns;
	start_walk(w, pid_tgid, value, flags);
	if (sleep) {
		w->header.waker = sleep->waker;
		if (!walk_sleeper(ctx, w)) {
			count_lost(LOST_SLEEP_MISSED);
			free_walk(w);
			return 0;
		}
	} else if (config_kernel && !regs)
		walk_kernel(ctx, kernel, probe, w);
	return walk_and_send(ctx, regs, w, whole);
}

/*
 * A source: sample_NAME, and sample_NAME_whole where the kernel's JIT cannot mix tail calls with
 * calls of functions (aarch64 before Linux 6.0), or there is none.
 */
#define SOURCE(name, section, type, regs, kernel, value)                                           \
	SEC(section)                                                                               \
	int sample_##name(type *ctx)                                                               \
	{                                                                                          \
		return sample(ctx, regs, kernel, NULL, value, NULL, false);                        \
	}                                                                                          \
	SEC(section)                                                                               \
	int sample_##name##_whole(type *ctx)                                                       \
	{                                                                                          \
		return sample(ctx, regs, kernel, NULL, value, NULL, true);                         \
	}

SOURCE(cpu, "perf_event", struct bpf_perf_event_data, perf_event_regs(ctx), &ctx->regs, 1)
/* Another perf event, which stands for as many as its period. */
SOURCE(event, "perf_event", struct bpf_perf_event_data, perf_event_regs(ctx), &ctx->regs,
       ctx->sample_period)
/* The current task at a raw tracepoint: where it enters the kernel, waits, is switched out. */
SOURCE(task, "raw_tp", struct bpf_raw_tracepoint_args, task_regs(ctx), NULL,
       config_value == VALUE_RAN_NS ? ran_ns() : 1)
/* Is the text that an argument points to the one that is wanted? Negative: it cannot be read, since
 * its page has yet to be touched, say. */
static __always_inline int passes_filter(void *ctx)
{
	__u64 text[FILTER_TEXT_WORDS] = { 0 }, at = 0, differ = 0;

	if (bpf_probe_read_kernel(&at, sizeof(at), ctx + (config_filter.reg & 63) * 8))
		return -1;
	at += config_filter.offset;
	if (config_filter.indirect && bpf_probe_read_user(&at, sizeof(at), (void *)at))
		return -1;
	if (bpf_probe_read_user_str(text, sizeof(text), (void *)at) < 0)
		return -1;
	UNROLL for (int i = 0; i < FILTER_TEXT_WORDS; i++) differ |=
		(text[i] ^ config_filter.text[i]) & config_filter.mask[i];
	return !differ;
}

/* A sample that is wanted, for all that is known without its text. */
static __always_inline void count_unread(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	if (config_targets_only && !bpf_map_lookup_elem(&targets, &pid))
		return;
	if (!config_select || select_current() != SELECT_REJECT)
		count_lost(LOST_ARGUMENT_UNREADABLE);
}

static __always_inline int sample_at_probe(user_regs_t *ctx, bool whole)
{
	__u64 value = 1;
	int passes = config_filter.is_set ? passes_filter(ctx) : 1;

	if (passes < 0)
		count_unread();
	if (passes <= 0)
		return 0;
	if (config_value == VALUE_ARGUMENT)
		value = REGS_ARGUMENT(ctx);
	else if (config_value == VALUE_RETURNED)
		value = REGS_RETURNED(ctx);
	return sample(ctx, probe_regs(ctx), NULL, ctx, value, NULL, whole);
}

/* The current task at a probe in its code (uprobe), or in the kernel's (kprobe). */
SEC("kprobe")
int sample_probe(user_regs_t *ctx)
{
	return sample_at_probe(ctx, false);
}

SEC("kprobe")
int sample_probe_whole(user_regs_t *ctx)
{
	return sample_at_probe(ctx, true);
}

/*
 * The current thread goes on, behind a switch to it: at the end of __schedule(), or in an interrupt
 * within. Its user registers, and the stack that it waits in, are those of the whole sleep. If
 * on_switch (off_cpu.bpf.c) says that this is to be taken.
 */
static __always_inline int sample_sleep(void *ctx, bool whole)
{
	__u32 zero = 0, tid = (__u32)bpf_get_current_pid_tgid();
	struct woken *w = bpf_map_lookup_elem(&woken, &zero);

	if (!w || !w->tid)
		return 0;
	if (w->tid != tid) {
		w->tid = 0;
		count_lost(LOST_SLEEP_MISSED);
		return 0;
	}
	w->tid = 0;
	return sample(ctx, NULL, NULL, NULL, w->value, w, whole);
}

SEC("raw_tp")
int sample_woken(struct bpf_raw_tracepoint_args *ctx)
{
	return sample_sleep(ctx, false);
}

SEC("raw_tp")
int sample_woken_whole(struct bpf_raw_tracepoint_args *ctx)
{
	return sample_sleep(ctx, true);
}

/*
 * Is the current thread's stack wanted, if it wakes another? In the header, too: nobody knows. This
 * is counted nowhere: it is no sample.
 */
static __always_inline bool shows_waker(struct walk *w)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	int verdict;

	if (config_targets_only && !bpf_map_lookup_elem(&targets, &pid))
		return false;
	if (!config_select)
		return true;
	verdict = select_uncounted();
	if (verdict != SELECT_TAKE)
		w->header.flags |= SAMPLE_UNDECIDED;
	return verdict != SELECT_REJECT;
}

/*
 * The current thread wakes another, whose sleep will be a sample if it has been long enough by now.
 * (One that gets long enough by waiting for a CPU from now on is not this thread's doing.) What is
 * sent is known by a hash, which the other one's sample will have. It is locked (pi_lock): no copy
 * of a stack is taken.
 */
static __always_inline int sample_wake_up(struct bpf_raw_tracepoint_args *ctx, bool whole)
{
	const struct task_struct *task = (const void *)ctx->args[0];
	__u64 pid_tgid = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
	__u32 tid = BPF_CORE_READ(task, pid);
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &tid);
	struct walk *w;

	if (!s || !s->since_ns || s->state == OFF_CPU_PREEMPTED ||
	    (__s64)(now - s->since_ns) < (__s64)s->needs_ns)
		return 0;
	w = current_walk();
	/* In the idle task, or within sample_woken (which wakes nobody): an interrupt. */
	if (!pid_tgid || !w || *(volatile __u32 *)&w->in_use) {
		s->waker = WAKER_INTERRUPT;
		return 0;
	}
	w = take_walk(w);
	if (!w)
		return 0;
	start_walk(w, pid_tgid, 0, SAMPLE_WAKER);
	w->wakes = tid;
	w->wakes_since_ns = s->since_ns;
	if (!walk_waker(ctx, w)) {
		s->waker = WAKER_INTERRUPT;
		free_walk(w);
		return 0;
	}
	/* One hash is one thread's. */
	hash_word(w, pid_tgid);
	hash_word(w, *(__u64 *)&w->header.comm[0]);
	hash_word(w, *(__u64 *)&w->header.comm[8]);
	if (shows_waker(w))
		return walk_and_send(ctx, NULL, w, whole);
	w->full.nr_kernel = 0;
	w->mm = 0;
	send_sample(STOP_COMPLETE);
	return 0;
}

SEC("raw_tp")
int sample_waker(struct bpf_raw_tracepoint_args *ctx)
{
	return sample_wake_up(ctx, false);
}

SEC("raw_tp")
int sample_waker_whole(struct bpf_raw_tracepoint_args *ctx)
{
	return sample_wake_up(ctx, true);
}

/* A child runs its parent's program in its parent's cgroup, unless it was forked into another. */
static __always_inline void inherit_facts(__u32 parent_tgid, __u32 tgid, __u64 parent, __u64 child)
{
	struct select_facts *f = bpf_map_lookup_elem(&facts, &parent_tgid), copy;

	if (f)
		copy = *f;
	barrier();
	if (!f || copy.space != parent || copy.known != select_seal(parent_tgid, &copy)) {
		bpf_map_delete_elem(&facts, &tgid);
		return;
	}
	copy.space = child;
	copy.known = select_seal(tgid, &copy);
	bpf_map_update_elem(&facts, &tgid, &copy, BPF_ANY);
}

/*
 * A child begins with its parent's mappings: what the walker knows of the parent holds for it, from
 * its first instruction on.
 */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
	__u32 parent_tgid, tgid, one = 1;
	struct unwind_process *p, copy;
	__u64 exec_id, was, is;
	long r;

	tgid = BPF_CORE_READ(child, tgid);
	if (tgid != (__u32)BPF_CORE_READ(child, pid))
		return 0; /* a thread */
	parent_tgid = BPF_CORE_READ(parent, tgid);
	if (config_targets_only) {
		if (!bpf_map_lookup_elem(&targets, &parent_tgid))
			return 0;
		if (bpf_map_update_elem(&targets, &tgid, &one, BPF_ANY))
			count_lost(LOST_TARGET_TABLE_FULL);
	}
	exec_id = BPF_CORE_READ(parent, self_exec_id);
	was = mm_token((__u64)BPF_CORE_READ(parent, mm), exec_id);
	is = mm_token((__u64)BPF_CORE_READ(child, mm), exec_id);
	if (config_select)
		inherit_facts(parent_tgid, tgid, was, is);
	p = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!p)
		return 0;
	copy = *p;
	if (copy.mm != was)
		return 0;
	copy.mm = is;
	r = bpf_map_update_elem(&processes, &tgid, &copy, BPF_ANY);
	if (r)
		count_lost(LOST_PROCESS_TABLE_FULL);
	return 0;
}

/* Fields that some kernels have: include/linux/sched.h. */
struct sched_entity___spaces {
	__u64 exec_start;
} __preserve;

struct task_struct___spaces {
	unsigned int __state; /* since 5.14 */
	volatile long state;  /* before */
	int wake_cpu;	      /* with CONFIG_SMP: where it ran last */
	struct sched_entity___spaces se;
} __preserve;

/* include/linux/sched.h; the same numbers since 4.14. */
enum { SPACE_UNINTERRUPTIBLE = 0x2, SPACE_NOLOAD = 0x400 };

static __always_inline __u32 space_flags(const struct task_struct___spaces *t)
{
	__u32 state;

	if (bpf_core_field_exists(t->__state))
		state = BPF_CORE_READ(t, __state);
	else
		state = (__u32)BPF_CORE_READ(t, state);
	if (!state)
		return SPACE_RUNNABLE;
	return state & SPACE_UNINTERRUPTIBLE && !(state & SPACE_NOLOAD) ? SPACE_BLOCKED : 0;
}

/*
 * The address spaces of the targets, or of all processes, a struct task_space a thread: so the
 * agent can show them before the first sample.
 */
SEC("iter/task")
int show_spaces(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct task_space space = { 0 };
	const struct task_struct___spaces *t;
	__u64 mm;

	if (!task || task->flags & TASK_PF_KTHREAD)
		return 0;
	space.pid = (__u32)task->tgid;
	if (config_targets_only && !bpf_map_lookup_elem(&targets, &space.pid))
		return 0;
	mm = (__u64)BPF_CORE_READ(task, mm);
	if (!mm)
		return 0;
	space.mm = mm_token(mm, BPF_CORE_READ(task, self_exec_id));
	t = (const void *)task;
	space.flags = space_flags(t);
	space.ran_ns = BPF_CORE_READ(t, se.exec_start);
	if (bpf_core_field_exists(t->wake_cpu))
		space.cpu = (__u32)BPF_CORE_READ(t, wake_cpu);
	bpf_seq_write(seq, &space, sizeof(space));
	return 0;
}
