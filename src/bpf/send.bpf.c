// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What becomes of a stack that was walked, in each program in which a walk can end: it is interned
 * and sent, as a hit if this CPU sent the same stack before, else in full. If the process or its
 * code is not known yet, the registers and the top of the stack go out instead (SAMPLE_RAW), and
 * the agent walks them.
 */
#include "bpf/prelude.bpf.h"
#include "bpf/access.bpf.h"
#include "bpf/frames.bpf.h"
#include "bpf/regs.bpf.h"
#include "bpf/send.bpf.h"

enum {
	RAW_PER_SECOND = 2000, /* a CPU: 16 KiB each at most */
	RAW_BURST = 500,
	RAW_BATCH = 32, /* pages in one bounded loop, which the verifier follows */
	RAW_BATCHES = 16,
	RAW_STACK_SPAN_MAX = 64 << 20, /* no stack's end is further up */
	RING_KEPT = 8,		       /* one part in so many of the ring is not for raw records */
	RING_CLOCK = 4,		       /* nor so large a one for other sources than the clock */
	RAW_WAKE_NS = 20000000,
};

/* `keep`: how many are left for what is more important. */
static __always_inline bool take_token(struct raw_scratch *raw, __u64 now, __u32 keep)
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
	if (raw->tokens <= keep)
		return false;
	raw->tokens--;
	return true;
}

/*
 * Where the thread's stack ends, as far as that can be told: the first thread's where the program's
 * arguments begin, another's at what libc keeps of the thread; else ~0.
 */
static __always_inline __u64 stack_end(struct walk *w, __u64 from)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u64 end = BPF_CORE_READ(task, mm, start_stack);

	if (end - from < RAW_STACK_SPAN_MAX)
		return end;
	end = walk_thread_pointer(w);
	return end - from < RAW_STACK_SPAN_MAX ? end : ~0ull;
}

/*
 * Copies RAW_BATCH pages of the stack from page `first` on, as far as they are there: one that
 * nobody has touched yet has no memory, such as in a large array. Nonzero: there are no more, or
 * `max` have been copied.
 */
__noinline int copy_stack_pages(__u32 cpu, __u32 first, __u32 max)
{
	struct raw_scratch *raw = bpf_map_lookup_elem(&raws, &cpu);
	__u32 i, n, at, len;
	__u64 from;

	if (!raw)
		return 1;
	for (i = 0; i < RAW_BATCH; i++) {
		n = raw->raw.nr_pages;
		at = raw->raw.stack_size;
		if (n >= max || n >= RAW_PAGES_MAX || at > RAW_STACK_MAX - RAW_PAGE)
			return 1;
		from = raw->raw.stack_start;
		len = RAW_PAGE;
		if (first + i) {
			from = (from & -(__u64)RAW_PAGE) + (__u64)(first + i) * RAW_PAGE;
			if (from >= raw->stack_end)
				return 1;
		} else {
			len -= from & (RAW_PAGE - 1);
		}
		at += raw->raw.nr_kernel * 8;
		/* The verifiers of 5.10 and 6.1 forget bounds when clang spills what has them. */
		barrier_var(at);
		if (at >= RAW_STACK_MAX + 1024)
			return 1;
		if (bpf_probe_read_user(raw->bytes + at, len, (void *)from))
			continue;
		barrier_var(n);
		raw->raw.pages[n & (RAW_PAGES_MAX - 1)] = first + i;
		raw->raw.nr_pages = (__u8)(n + 1);
		raw->raw.stack_size += len;
	}
	return 0;
}

/*
 * Copies the stack from RAW_STACK_BELOW the stack pointer on, up to its end or as much as fits. Of
 * what lies between both ends of a deep stack much is mostly one function's array. Like send_raw()
 * it is global for the verifier, which follows it once, and not in each state of who calls it.
 */
__noinline int copy_stack(void)
{
	struct walk *w = current_walk();
	struct raw_scratch *raw;
	__u32 cpu, i, last, far;
	__u64 start;

	if (!w)
		return 0;
	cpu = w->cpu;
	raw = bpf_map_lookup_elem(&raws, &cpu);
	if (!raw)
		return 0;
	start = raw->raw.regs[REGS_SP] - RAW_STACK_BELOW;
	raw->raw.nr_pages = 0;
	raw->raw.stack_size = 0;
	raw->raw.stack_start = start;
	raw->raw.is_short = w->raws != RAWS_WHOLE;
	if (w->header.flags & SAMPLE_WAKER)
		return 0;
	raw->stack_end = stack_end(w, start);
	if (w->raws != RAWS_WHOLE)
		return copy_stack_pages(cpu, 0, RAW_PAGES_SHORT);
	for (i = 0; i < RAW_BATCHES; i++) {
		if (copy_stack_pages(cpu, i * RAW_BATCH, RAW_PAGES_NEAR))
			break;
		/* Whatever it is, it is no stack that goes on behind so large a hole. */
		if (raw->stack_end == ~0ull)
			break;
	}
	if (raw->raw.nr_pages != RAW_PAGES_NEAR || raw->stack_end == ~0ull)
		return 0;
	last = raw->raw.pages[RAW_PAGES_NEAR - 1];
	far = (raw->stack_end - (start & -(__u64)RAW_PAGE) + RAW_PAGE - 1) / RAW_PAGE;
	far -= RAW_PAGES_MAX - RAW_PAGES_NEAR;
	if ((__s32)far <= (__s32)last)
		far = last + 1;
	return copy_stack_pages(cpu, far, RAW_PAGES_MAX);
}

/*
 * Raw records alone fill the ring while the agent is busy: what is sent in their place finds room.
 * Probes and events that come a hundred thousand times a second fill it too, and leave room for the
 * clock's samples: the machine's time is told by these.
 */
static __always_inline bool ring_has_room(__u32 bytes, bool is_raw)
{
	__u64 size = bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE), kept = 0;

	if (is_raw)
		kept += size / RING_KEPT;
	if (config_source != SOURCE_CLOCK)
		kept += size / RING_CLOCK;
	return bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) + bytes < size - kept;
}

/* Without a look where all of the ring is for it: then the kernel says. */
static __always_inline bool may_send(__u32 bytes)
{
	return config_source == SOURCE_CLOCK || ring_has_room(bytes, false);
}

/* How many raw records are left for others: those of the clock, and of code that can be known. */
static __always_inline __u32 tokens_kept(bool less)
{
	if (less)
		return RAW_BURST / 2;
	return config_source == SOURCE_CLOCK ? 0 : RAW_BURST / 4;
}

/*
 * The agent is woken at once: until it knows this code, every sample of it costs this much. Code
 * that only it can follow is never known: woken for each sample it would run right behind each, and
 * what runs beside it would be sampled always, or never.
 */
static __always_inline __u64 wake_for_raw(struct raw_scratch *raw, __u64 now, bool less)
{
	if (less && now - raw->woken_ns < RAW_WAKE_NS)
		return BPF_RB_NO_WAKEUP;
	if (less)
		raw->woken_ns = now;
	return BPF_RB_FORCE_WAKEUP;
}

/* Sends the registers and the stack for the agent to walk; 0, or a lost_reason + 1. */
__noinline int send_raw(__u32 stop)
{
	struct walk *w = current_walk();
	__u32 cpu, kernel, size;
	struct raw_scratch *raw;
	__u64 *words, pc;
	bool less;

	if (!w)
		return LOST_NO_SCRATCH + 1;
	cpu = w->cpu;
	kernel = w->full.nr_kernel;
	raw = bpf_map_lookup_elem(&raws, &cpu);
	words = walk_words(w);
	if (!raw || !words)
		return LOST_NO_SCRATCH + 1;
	less = stop == STOP_CODE_PENDING || w->header.flags & SAMPLE_WAKER;
	if (!take_token(raw, w->header.time_ns, tokens_kept(less)))
		return LOST_RAW_THROTTLED + 1;
	if (kernel > SAMPLE_MAX_KERNEL_FRAMES)
		return LOST_NO_SCRATCH + 1;
	raw->header = w->header;
	raw->header.type = SAMPLE_RAW;
	raw->header.stop = stop;
	raw->header.hash = 0;
	raw->header.flags |= config_raw_too && !needs_agent(w, stop) ? SAMPLE_ALSO_FULL : 0;
	raw->raw.mm = w->mm;
	raw->raw.generation = w->process.generation;
	raw->raw.file = w->mapping_file;
	raw->raw.user = current_user();
	raw->raw.nr_kernel = kernel;
	/* The walk has moved on; the registers are still where they were. */
	if (!first_regs(w, raw->raw.regs, &pc))
		return LOST_NO_SCRATCH + 1;
	raw->raw.pc = pc;
	if (bpf_probe_read_user(raw->raw.code, sizeof(raw->raw.code),
				(void *)(pc - RAW_CODE_BEFORE)))
		__builtin_memset(raw->raw.code, 0, sizeof(raw->raw.code));
	barrier_var(kernel);
	size = (kernel & SAMPLE_MAX_KERNEL_FRAMES) * 8;
	if (size)
		bpf_probe_read_kernel(raw->bytes, size, words);
	copy_stack();
	size += raw->raw.stack_size;
	if (size > sizeof(raw->bytes))
		return LOST_NO_SCRATCH + 1;
	if (!ring_has_room(size, true) ||
	    bpf_ringbuf_output(&samples, &raw->header,
			       sizeof(raw->header) + sizeof(raw->raw) + size,
			       wake_for_raw(raw, w->header.time_ns, less)))
		return LOST_RAW_THROTTLED + 1;
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
 * Puts a hit where the agent finds it without the ring. False: there is no room, or, on a machine
 * that may show its number before the hit itself, no way to keep their order (5.10 has no atomic
 * operation for that).
 */
static __always_inline bool put_hit(const struct walk *w)
{
	struct cpu_hits *h;
	__u32 cpu = w->cpu;
	__u64 head;

	if (!ARCH_STORES_IN_ORDER)
		return false;
	h = bpf_map_lookup_elem(&hits, &cpu);
	if (!h)
		return false;
	head = h->head;
	if (head == h->allowed) {
		h->allowed = *(volatile __u64 *)&h->may_write;
		if (head == h->allowed)
			return false;
	}
	h->hits[head & (CPU_HITS - 1)] = w->header;
	barrier();
	*(volatile __u64 *)&h->head = head + 1;
	return true;
}

/* Is the agent to look at once? */
static __always_inline __u64 wake_up(const struct walk *w)
{
	return w->header.flags & SAMPLE_MET ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/* The thread that the current one wakes will say by whom it was. */
static __always_inline void tell_sleeper(const struct walk *w)
{
	__u32 tid = w->wakes;
	struct sleeper *s = bpf_map_lookup_elem(&sleepers, &tid);

	if (s && s->since_ns == w->wakes_since_ns)
		s->waker = w->header.hash;
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
	__u64 hash, names = 0, wake = wake_up(w), *slot, *asked;

	if (!k || !record) {
		count_lost(LOST_NO_SCRATCH);
		return;
	}
	hash_word(w, (__u64)w->full.generation << 32 | w->full.nr_kernel << 8 | stop);
	hash = finish_hash(w->hash);
	if (w->header.flags & SAMPLE_WAKER)
		hash = WAKER_HASH(hash, w->header.pid);
	w->header.hash = hash;
	w->header.stop = stop;
	slot = &k->hash[hash & (KNOWN_STACKS - 1)];
	if (*slot == hash && !config_raw_too) {
		if (w->header.flags & SAMPLE_WAKER) {
			tell_sleeper(w);
			return;
		}
		w->header.type = SAMPLE_HIT;
		if ((w->header.flags & SAMPLE_MET || !put_hit(w)) &&
		    (!may_send(sizeof(w->header)) ||
		     bpf_ringbuf_output(&samples, &w->header, sizeof(w->header), wake)))
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
	if (!may_send(sizeof(record->header) + sizeof(record->full) + words * 8) ||
	    bpf_ringbuf_output(&samples, record,
			       sizeof(record->header) + sizeof(record->full) + words * 8,
			       asked && *asked != names ? BPF_RB_FORCE_WAKEUP : wake)) {
		if (!(w->header.flags & SAMPLE_WAKER))
			count_lost(LOST_RING_FULL);
		return;
	}
	if (asked)
		*asked = names;
	*slot = hash;
	if (w->header.flags & SAMPLE_WAKER)
		tell_sleeper(w);
}

static __always_inline void send(struct walk *w, __u32 stop)
{
	int r;

	if (!stop || stop >= STOP_MAX_)
		stop = STOP_INTERNAL;
	if (w->header.flags & SAMPLE_WAKER) {
		/* The agent shall know its process the next time; this time it is cut. */
		if (w->mm && needs_agent(w, stop))
			send_raw(stop);
	} else if (w->mm && (config_raw_too || needs_agent(w, stop))) {
		r = send_raw(stop);
		if (!r && needs_agent(w, stop))
			return;
		if (r)
			count_lost(r - 1);
	}
	send_walked(w, stop);
}

/* The yardstick of the benchmarks, with two looks at the clock in it. */
static __always_inline void count_time(const struct walk *w)
{
	__u64 step = (bpf_ktime_get_ns() - w->begin_ns) >> SAMPLE_TIMES_SHIFT;
	struct sample_times *t;
	__u32 zero = 0;

	t = bpf_map_lookup_elem(&times, &zero);
	if (step >= SAMPLE_TIMES)
		step = SAMPLE_TIMES - 1;
	barrier_var(step);
	if (t && step < SAMPLE_TIMES)
		t->nr[step]++;
}

__noinline int send_sample(__u32 stop)
{
	struct walk *w = current_walk();

	if (!w)
		return 0;
	send(w, stop);
	if (config_measure && !(w->header.flags & SAMPLE_WAKER))
		count_time(w);
	free_walk(w);
	return 0;
}
