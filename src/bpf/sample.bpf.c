// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs that the kernel runs: sample_cpu at each tick of a CPU's clock, on_fork at each
 * fork, and show_spaces when the agent asks which address spaces there are.
 *
 * A sample is walked, interned and sent: as a hit if this CPU sent the same stack before, else in
 * full. If the process or its code is not known yet, the registers and the top of the stack go out
 * instead (SAMPLE_RAW), and the agent walks them.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/regs.bpf.h"
#include "abi/task.h"

/* Set before loading. */
const volatile __u32 config_max_frames = SAMPLE_FRAMES_DEFAULT;
const volatile __u64 config_address_mask = (1ull << 48) - 1;
const volatile bool config_targets_only = false;
const volatile bool config_kernel = true;
/* For tests: send a raw record behind each full one, so that both walks can be compared. */
const volatile bool config_raw_too = false;

/* Changed by the agent when it has forgotten its stacks: none is known any more then. */
__u64 known_epoch = 0;

/* Moved by the agent with every change of the maps `processes` and `targets`: voids what CPUs
 * remember of it. */
__u32 process_epoch = 0;

/* Set by the agent when more raw records wait than it has room for: then a cut stack is better. */
__u32 raws_held = 0;

enum {
	RAW_PER_SECOND = 2000, /* a CPU: 16 KiB each at most */
	RAW_BURST = 500,
};

static __always_inline void count_lost(__u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&lost, &reason);

	if (n)
		++*n;
}

static __always_inline void start_walk(struct walk *w, __u64 pid_tgid)
{
	w->header.flags = 0;
	w->header.cpu = w->cpu = bpf_get_smp_processor_id();
	w->header.pid = pid_tgid >> 32;
	w->header.tid = (__u32)pid_tgid;
	w->header.time_ns = bpf_ktime_get_ns();
	bpf_get_current_comm(w->header.comm, sizeof(w->header.comm));
	w->full.generation = 0;
	w->full.nr_kernel = 0;
	w->full.nr_words = 0;
	w->nr_frames = 0;
	w->window_start = 0;
	w->window_len = 0;
	w->frames_len = 0;
	w->mapping_len = 0;
	w->begun = 0;
	w->thread_pointer = 0;
	w->by_frame_pointer = 0;
	w->guessed = 0;
	w->max_frames = config_max_frames;
	w->address_mask = config_address_mask;
	w->hash = known_epoch + w->header.pid;
	w->names = 0;
}

static __always_inline void walk_kernel(void *ctx, struct walk *w)
{
	__u64 *words = walk_words(w);
	long size;
	__u32 i, n;

	if (!words)
		return;
	size = bpf_get_stack(ctx, words, SAMPLE_MAX_KERNEL_FRAMES * 8, 0);
	if (size <= 0)
		return;
	n = size / 8;
	if (n > SAMPLE_MAX_KERNEL_FRAMES)
		n = SAMPLE_MAX_KERNEL_FRAMES;
	for (i = 0; i < SAMPLE_MAX_KERNEL_FRAMES && i < n; i++)
		hash_word(w, words[i]);
	w->full.nr_kernel = n;
}

static __always_inline bool take_token(struct raw_scratch *raw, __u64 now)
{
	__u64 more = (now - raw->refilled_ns) * RAW_PER_SECOND / 1000000000;

	if (now - raw->refilled_ns > 1000000000ull)
		more = RAW_BURST;
	if (more) {
		raw->refilled_ns = now;
		raw->tokens += more;
		if (raw->tokens > RAW_BURST)
			raw->tokens = RAW_BURST;
	}
	if (!raw->tokens)
		return false;
	raw->tokens--;
	return true;
}

/* Copies the stack from `from` up to where it ends or no further page fits; the bytes copied. */
static __noinline __u32 copy_stack(__u8 *to, __u64 from)
{
	__u32 done = 0, i;

	/* To the end of the first page, then whole pages: a read that runs past the stack's end
	 * fails whole. */
	for (i = 0; i <= RAW_STACK_MAX / 4096; i++) {
		__u32 len = 4096 - ((from + done) & 4095);

		if (done > RAW_STACK_MAX - 4096)
			break;
		/* The verifiers of 5.10 and 6.1 forget the bound when clang spills it. */
		barrier_var(done);
		done &= RAW_STACK_MAX - 1;
		if (bpf_probe_read_user(to + done, len, (void *)(from + done)))
			break;
		done += len;
	}
	return done;
}

/* The walk met what only the agent can get: mappings or a table. */
static __always_inline bool needs_agent(const struct walk *w, __u32 stop)
{
	if (*(volatile __u32 *)&raws_held)
		return false;
	return stop == STOP_NO_PROCESS || stop == STOP_FILE_PENDING ||
	       (stop == STOP_NO_MAPPING && !(w->process.flags & PROCESS_MAPPINGS_FINAL));
}

/* Sends the registers and the stack for the agent to walk; 0, or a lost_reason + 1. */
static __noinline int send_raw(void *ctx, struct walk *w, __u64 mm, __u32 stop)
{
	__u32 cpu = w->cpu, kernel = w->full.nr_kernel, size;
	struct raw_scratch *raw = bpf_map_lookup_elem(&raws, &cpu);
	__u64 *words = walk_words(w), pc;

	if (!raw || !words)
		return LOST_NO_SCRATCH + 1;
	if (!take_token(raw, w->header.time_ns))
		return LOST_RAW_THROTTLED + 1;
	if (kernel > SAMPLE_MAX_KERNEL_FRAMES)
		return LOST_NO_SCRATCH + 1;
	raw->header = w->header;
	raw->header.type = SAMPLE_RAW;
	raw->header.stop = stop;
	raw->header.hash = 0;
	raw->header.flags = config_raw_too && !needs_agent(w, stop) ? SAMPLE_ALSO_FULL : 0;
	raw->raw.mm = mm;
	raw->raw.generation = w->process.generation;
	raw->raw.file = w->mapping_file;
	raw->raw.nr_kernel = kernel;
	/* The walk has moved on; the registers are still where they were. */
	if (!user_regs(ctx, w, raw->raw.regs, &pc))
		return LOST_NO_SCRATCH + 1;
	raw->raw.pc = pc;
	if (bpf_probe_read_user(raw->raw.code, sizeof(raw->raw.code),
				(void *)(pc - RAW_CODE_BEFORE)))
		__builtin_memset(raw->raw.code, 0, sizeof(raw->raw.code));
	barrier_var(kernel);
	size = (kernel & SAMPLE_MAX_KERNEL_FRAMES) * 8;
	if (size)
		bpf_probe_read_kernel(raw->bytes, size, words);
	raw->raw.stack_start = raw->raw.regs[REGS_SP] - RAW_STACK_BELOW;
	raw->raw.stack_size = copy_stack(raw->bytes + size, raw->raw.stack_start);
	if (!raw->raw.stack_size) {
		raw->raw.stack_start = raw->raw.regs[REGS_SP];
		raw->raw.stack_size = copy_stack(raw->bytes + size, raw->raw.stack_start);
	}
	size += raw->raw.stack_size;
	if (size > sizeof(raw->bytes))
		return LOST_NO_SCRATCH + 1;
	/* Wake the agent: until it knows this code, every sample of it costs this much. */
	if (bpf_ringbuf_output(&samples, &raw->header,
			       sizeof(raw->header) + sizeof(raw->raw) + size, BPF_RB_FORCE_WAKEUP))
		return LOST_RING_FULL + 1;
	return 0;
}

/*
 * Where the names that the stack needs are remembered, once they were asked for; NULL: it needs
 * none. In *ret: their hash.
 */
static __always_inline __u64 *names_slot(struct walk *w, struct known_stacks *k, __u64 *ret)
{
	if (!w->names)
		return NULL;
	hash_name(w, known_epoch + ((__u64)w->full.generation << 32 | w->header.pid));
	*ret = finish_hash(w->names);
	return &k->hash[*ret & (KNOWN_STACKS - 1)];
}

/*
 * Sends what was walked: a hit, or the whole stack and then the right to send hits of it. Frames of
 * runtimes are named out of the process's memory: the agent shall look at once, unless this CPU has
 * woken it for the same functions before.
 */
static __always_inline void send_walked(struct walk *w, __u32 stop)
{
	__u32 zero = 0, words = w->full.nr_kernel + w->full.nr_words;
	struct known_stacks *k = bpf_map_lookup_elem(&known, &zero);
	struct walk_record *record = record_at(w);
	__u64 hash, names = 0, *slot, *asked;

	if (!k || !record) {
		count_lost(LOST_NO_SCRATCH);
		return;
	}
	hash_word(w, (__u64)w->full.generation << 32 | w->full.nr_kernel << 8 | stop);
	hash = finish_hash(w->hash);
	w->header.hash = hash;
	w->header.stop = stop;
	slot = &k->hash[hash & (KNOWN_STACKS - 1)];
	if (*slot == hash && !config_raw_too) {
		w->header.type = SAMPLE_HIT;
		if (bpf_ringbuf_output(&samples, &w->header, sizeof(w->header), BPF_RB_NO_WAKEUP))
			count_lost(LOST_RING_FULL);
		return;
	}
	w->header.type = SAMPLE_FULL;
	if (words > SAMPLE_MAX_KERNEL_FRAMES + SAMPLE_WORDS_MAX) {
		count_lost(LOST_NO_SCRATCH);
		return;
	}
	record->header = w->header;
	record->full = w->full;
	asked = names_slot(w, k, &names);
	if (bpf_ringbuf_output(&samples, record,
			       sizeof(record->header) + sizeof(record->full) + words * 8,
			       asked && *asked != names ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP)) {
		count_lost(LOST_RING_FULL);
		return;
	}
	if (asked)
		*asked = names;
	*slot = hash;
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

/* The user part, from the registers in `w` on: how it ended. */
static __always_inline int walk_process(void *ctx, struct walk *w, __u64 mm)
{
	int stop;

	if (!find_process(w, mm))
		return image_is_gone(ctx, w->pc) ? STOP_COMPLETE : STOP_NO_PROCESS;
	w->valid = REGS_ALL;
	w->interrupted = 1;
	w->runtime = RUNTIME_NATIVE;
	w->full.generation = w->process.generation;
	stop = walk_user();
	return stop > 0 && stop < STOP_MAX_ ? stop : STOP_INTERNAL;
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *ctx)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid(), mm;
	__u32 pid = pid_tgid >> 32;
	enum user_part user;
	struct walk *w;
	int stop, r;

	w = current_walk();
	if (!w) {
		count_lost(LOST_NO_SCRATCH);
		return 0;
	}
	if (config_targets_only && !is_last_process(w, pid) && !bpf_map_lookup_elem(&targets, &pid))
		return 0;
	start_walk(w, pid_tgid);
	if (config_kernel && !interrupted_user(ctx))
		walk_kernel(ctx, w);
	user = user_part_of_current(ctx, w, &mm);
	if (user == USER_NONE) {
		if (config_kernel)
			send_walked(w, STOP_COMPLETE);
		return 0;
	}
	if (user == USER_COMPAT) {
		send_walked(w, STOP_COMPAT_TASK);
		return 0;
	}
	stop = walk_process(ctx, w, mm);
	if (config_raw_too || needs_agent(w, stop)) {
		r = send_raw(ctx, w, mm, stop);
		if (!r && needs_agent(w, stop))
			return 0;
		if (r)
			count_lost(r - 1);
		if (r == LOST_RING_FULL + 1)
			return 0;
	}
	send_walked(w, stop);
	return 0;
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
	__u64 exec_id;
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
	p = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!p)
		return 0;
	copy = *p;
	exec_id = BPF_CORE_READ(parent, self_exec_id);
	if (copy.mm != mm_token((__u64)BPF_CORE_READ(parent, mm), exec_id))
		return 0;
	copy.mm = mm_token((__u64)BPF_CORE_READ(child, mm), exec_id);
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
