// SPDX-License-Identifier: Apache-2.0
/*
 * What becomes of a sample: a hit counts a known stack, a full record adds one, a raw one is walked
 * here. All of it against the process's mappings as of the sample's time.
 */
#include "record/frame_places.h"
#include "record/recorder_internal.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

enum {
	REFRESH_INTERVAL_NS = 100000000, /* between two looks at one process's /proc/PID/maps */
	TO_ASK_MAX = 1 << 14,		 /* stacks, between two ticks */
};

/*
 * Times take at most half of the profile's room: stacks matter more. What was on its way when the
 * cut began was taken before that: then the cut begins with it. Samples come in the order of time,
 * nearly so, which is why that is rarely done.
 */
static void keep_event(struct recorder *r, const struct sample_header *h, uint32_t sample)
{
	size_t bytes = r->profile->cut.events.nr * sizeof(struct profile_event);

	if (h->time_ns < r->cut_clock.begin_ns) {
		profile_begin_earlier(r->profile, r->cut_clock.begin_ns - h->time_ns);
		cut_clock_begin_earlier(&r->cut_clock, h->time_ns);
	}
	if (bytes < r->profile_bytes_max / 2 &&
	    !profile_add_event(r->profile, sample, cut_clock_since(&r->cut_clock, h->time_ns),
			       h->cpu))
		return;
	log_debug("no room for the times of samples: they are counted only");
	profile_drop_events(r->profile);
	r->keep_events = false;
}

/* The profile's thread of a sample; `name`: of the virtual thread, in the profile's strings; 0: it
 * is none. */
static int find_thread(struct recorder *r, const struct sample_header *h, uint32_t name,
		       uint32_t *ret)
{
	int32_t pid = (int32_t)h->pid, tid = (int32_t)h->tid;

	if (!name)
		return metadata_thread(&r->metadata, pid, tid, h->comm, ret);
	return metadata_virtual_thread(&r->metadata, pid, tid, h->comm,
				       strtab_get(&r->profile->strings, name), ret);
}

/* What is known of a stack beside its frames. */
struct said {
	uint32_t
		thread_name; /* of the virtual thread whose it is: the profile's strings; 0: none */
	const struct profile_label *labels;
	size_t nr_labels;
};

/* Who has ended a sleep. */
struct ended {
	struct profile_label labels[WAKER_LABELS];
	size_t nr_labels; /* 0: nobody knows */
};

/*
 * What a sample says of its thread's state and of who has woken it, and its program of what it
 * works for, as labels.
 */
static int find_context(struct recorder *r, const struct sample_header *h, const struct said *said,
			const struct ended *ended, uint32_t *ret)
{
	const char *state = off_cpu_state_name(h->flags >> SAMPLE_STATE_SHIFT);
	const struct profile_context context = { .first_label = 0 };
	struct profile_label labels[PROFILE_LABELS_MAX] = { { .key = 0 } };
	size_t nr = 0;
	int err = 0;

	*ret = 0;
	if (state) {
		err = profile_string(r->profile, "thread.state", &labels[0].key);
		if (!err)
			err = profile_string(r->profile, state, &labels[0].text);
		nr = 1;
	}
	for (size_t i = 0; i < ended->nr_labels; i++)
		labels[nr++] = ended->labels[i];
	for (size_t i = 0; i < said->nr_labels && nr < PROFILE_LABELS_MAX; i++)
		labels[nr++] = said->labels[i];
	return err || !nr ? err : profile_add_context(r->profile, &context, labels, nr, ret);
}

/* The time of the next exec of the process that is known of, behind what was taken in; 0: none. */
static uint64_t next_exec(const struct recorder *r, uint32_t pid)
{
	size_t i;

	for (i = r->event_at; i < r->events.events.nr; i++)
		if (r->events.events.items[i].type == SIDE_EXEC &&
		    r->events.events.items[i].pid == (int32_t)pid)
			return r->events.events.items[i].time_ns;
	return 0;
}

/*
 * Is the sample's process selected? What the kernel asks for is what it saw then, and what is found
 * out now may be of an image that has taken the process over since: that holds for no sample of
 * before, and is void in the kernel by itself.
 */
static enum select_verdict decide(struct recorder *r, const struct sample_header *h)
{
	const uint64_t *at_exec = map_get(&r->at_exec, h->pid);
	struct select_facts asked = { 0 };
	struct selection_process found;
	bool is_asked;
	int err;

	if (next_exec(r, h->pid))
		return SELECT_UNDECIDED;
	/* Several of one process come in a turn until the kernel has been told. */
	if (r->decided_pid == h->pid && r->decided_ns == r->turn_ns)
		return h->time_ns < r->decided_met_ns ? SELECT_UNDECIDED : r->decided;
	is_asked = !bpf_sampler_get_facts(r->sampler, h->pid, &asked);
	err = selection_look(&r->selection, (int32_t)h->pid, &found);
	if (err && at_exec)
		return (enum select_verdict) * at_exec;
	if (err || !selection_holds_for(&found, is_asked ? &asked : NULL, h))
		return SELECT_UNDECIDED;
	r->decided_pid = h->pid;
	r->decided_ns = r->turn_ns;
	r->decided = found.verdict;
	r->decided_met_ns = asked.met_ns;
	asked.facts = found.facts;
	if (is_asked && bpf_sampler_set_facts(r->sampler, h->pid, &asked))
		log_debug("the kernel cannot be told what process %u is", h->pid);
	return found.verdict;
}

/* In the unit of its source. */
static uint64_t value_of(const struct recorder *r, const struct sample_header *h)
{
	double value;

	if (!(h->flags >> SAMPLE_STATE_SHIFT) || r->sleep_scale == 1)
		return h->value;
	value = (double)h->value * r->sleep_scale + 0.5;
	return value < 0x1p62 ? (uint64_t)value : 1ull << 62;
}

/* True: the sample is not wanted, and counted so. */
static bool is_rejected(struct recorder *r, const struct sample_header *h)
{
	enum select_verdict verdict = SELECT_TAKE;

	if (h->flags & SAMPLE_UNDECIDED)
		verdict = decide(r, h);
	if (verdict == SELECT_TAKE)
		return false;
	if (verdict == SELECT_UNDECIDED)
		r->stats.undecided++;
	else
		r->rejected_here[h->source]++;
	return true;
}

static int follow_kernel(struct recorder *r, struct known_stack *known);
static uint32_t known_part(struct recorder *r, const struct known_stack *known, uint32_t pid);

/* By whom a sleep was ended, and its stack with that of who did; as it is, if there is no room. */
static uint32_t join_waker(struct recorder *r, const struct sample_header *h, uint32_t stack,
			   struct ended *ret)
{
	const struct profile_label *labels = NULL;
	struct known_stack *known;
	uint32_t waker = 0, joined;

	if (h->waker == WAKER_INTERRUPT) {
		if (waker_interrupt_label(r->profile, &ret->labels[0]))
			return stack;
		ret->nr_labels = 1;
	} else {
		known = known_stacks_find_waker(&r->known, h->waker, &labels);
		if (!known || known->nr_labels != WAKER_LABELS || follow_kernel(r, known))
			return stack;
		memcpy(ret->labels, labels, sizeof(ret->labels));
		ret->nr_labels = WAKER_LABELS;
		waker = known_part(
			r, known,
			(uint32_t)waker_number(r->profile, labels, WAKER_LABELS, "waker.pid"));
	}
	if (waker_join(r->profile, stack, waker, ret->labels, ret->nr_labels, &r->waker_frames,
		       &joined))
		return stack;
	return joined;
}

static void count_sample(struct recorder *r, const struct sample_header *h, const struct said *said,
			 uint32_t stack)
{
	const uint32_t nr_frames = r->profile->stacks.items[stack].nr; /* joining moves them */
	const enum stop_reason stop = profile_stack_stop(r->profile, stack);
	struct profile_measured m = { .type = r->types[h->source],
				      .stack = stack,
				      .value = value_of(r, h) };
	struct ended ended = { .nr_labels = 0 };
	struct recorder_type_stats *type;
	uint32_t sample;
	int err;

	if (r->awaits_exec && (int32_t)h->pid == r->awaits_exec) {
		r->stats.left_out++;
		return;
	}
	/* A raw one was asked before. */
	if (h->type != SAMPLE_RAW && is_rejected(r, h))
		return;
	if (h->waker != WAKER_UNKNOWN)
		m.stack = join_waker(r, h, stack, &ended);
	err = find_thread(r, h, said->thread_name, &m.thread);
	if (!err)
		err = find_context(r, h, said, &ended, &m.context);
	if (!err)
		err = profile_add_measured(r->profile, &m, &sample);
	if (err) {
		recorder_lose(r, h->source, LOST_OUT_OF_MEMORY, 1);
		return;
	}
	type = &r->stats.types[m.type];
	type->samples++;
	type->complete += stop == STOP_COMPLETE;
	if (h->source != SOURCE_CLOCK) {
		r->stats.others++;
		return;
	}
	if (r->keep_events)
		keep_event(r, h, sample);
	r->stats.samples++;
	if (own_has(&r->own, h->pid)) {
		r->stats.own++;
		r->profile->processes.items[r->profile->threads.items[m.thread].process].is_own =
			true;
	}
	r->stats.frames += nr_frames;
	if (stop == STOP_COMPLETE)
		r->stats.complete++;
	else
		r->stats.truncated[stop]++;
}

void recorder_ask_again(struct recorder *r, uint64_t hash)
{
	/* Those that find no room are asked for when they are met the next time. */
	if (r->to_ask.nr < TO_ASK_MAX && map_put(&r->to_ask, hash, 1))
		log_debug("a stack is asked for later: out of memory");
}

void recorder_forget_stacks(struct recorder *r)
{
	log_debug("stacks were dropped: the kernel sends all of them once more");
	r->has_pruned = false;
	bpf_sampler_forget_stacks(r->sampler);
	known_stacks_forget(&r->known, now_ns());
}

/* Hits of this hash mean that stack, and what is said of it. */
static int remember_stack(struct recorder *r, const struct sample_header *h, uint64_t hash,
			  uint32_t generation, uint32_t stack, const struct said *said)
{
	struct known_stack known = { .stack = stack,
				     .pid = h->pid,
				     .generation = generation,
				     .thread_name = said->thread_name,
				     .nr_files = (uint16_t)r->decoder.nr_needed,
				     .lacks_names = r->decoder.lacks_names,
				     .kernel_version = decoder_kernel_version(&r->decoder) };
	int err;

	memcpy(known.files, r->decoder.needed, sizeof(known.files));
	err = known_stacks_put(&r->known, hash, &known, said->labels, said->nr_labels);
	if (err != -ENOSPC)
		return err;
	recorder_forget_stacks(r);
	return known_stacks_put(&r->known, hash, &known, said->labels, said->nr_labels);
}

/* Where room for tables runs short, those that a stack needs are in use. */
static void touch_tables(struct recorder *r, uint32_t generation, const uint16_t *files,
			 uint16_t nr)
{
	const struct mapping_snapshot *snapshot;

	if (!nr || !unwind_store_is_half_full(&r->unwinder.store))
		return;
	snapshot = publisher_snapshot(&r->unwinder.publisher, generation);
	for (uint16_t i = 0; i < nr; i++)
		unwind_store_touch(&r->unwinder.store, files[i], snapshot_user(snapshot));
}

/* Adds a stack and counts it; `hash` 0: no hits will refer to it. */
static void add_stack(struct recorder *r, const struct sample_header *h,
		      const struct decoder_stack *stack, uint64_t hash)
{
	uint32_t id, generation = stack->snapshot ? stack->snapshot->generation : 0;
	struct said said;
	int err;

	err = decoder_add(&r->decoder, stack, &id);
	said = (struct said){ r->decoder.thread_name, r->decoder.labels.items,
			      r->decoder.labels.nr };
	if (err == -ENOSPC && hash)
		r->refused_until_ns = UINT64_MAX;
	if (!err && hash)
		err = remember_stack(r, h, hash, generation, id, &said);
	else if (!err)
		touch_tables(r, generation, r->decoder.needed, (uint16_t)r->decoder.nr_needed);
	if (err)
		recorder_lose(r, h->source, err == -EINVAL ? LOST_MALFORMED : LOST_OUT_OF_MEMORY,
			      1);
	else
		count_sample(r, h, &said, id);
}

/*
 * Of a thread that wakes others: what a sleep means that was ended so. Of a process that is not
 * wanted who it is, alone.
 */
static void add_waker(struct recorder *r, const struct sample_header *h,
		      const struct decoder_stack *stack)
{
	struct profile_label labels[WAKER_LABELS];
	const struct said said = { .labels = labels, .nr_labels = WAKER_LABELS };
	struct decoder_stack wanted = *stack;
	uint32_t id;
	int err;

	if (h->flags & SAMPLE_UNDECIDED && decide(r, h) != SELECT_TAKE)
		wanted = (struct decoder_stack){ .pid = h->pid, .stop = STOP_COMPLETE };
	err = decoder_add(&r->decoder, &wanted, &id);
	if (!err)
		err = waker_labels(r->profile, h, labels);
	if (err == -ENOSPC)
		r->refused_until_ns = UINT64_MAX;
	if (!err)
		err = remember_stack(r, h, h->hash,
				     wanted.snapshot ? wanted.snapshot->generation : 0, id, &said);
	if (err)
		log_debug("no room for who wakes others: %s", strerror(-err));
}

/* Has what lay at `pc` when the kernel walked not been replaced by the time of the sample? */
static bool mapping_still_there(struct recorder *r, const struct process *proc,
				const struct mapping_snapshot *snapshot, uint64_t pc)
{
	const struct unwind_mapping *then = publisher_mapping(&r->unwinder.publisher, snapshot, pc);
	const struct mapping *now = process_mapping(proc, pc);

	if (!then || !now || then->file == MAPPING_ANON)
		return then;
	/* Another part of the file that was there is a replacement too. */
	return r->unwinder.processes.files.items[now->file] ==
		       publisher_file(&r->unwinder.publisher, then->file) &&
	       mapping_bias(r->unwinder.processes.files.items[now->file], now) == then->bias;
}

/* The words of a stack, walked in mappings of `snapshot`, up to where a mapping has been replaced.
 */
static size_t frames_still_true(struct recorder *r, const struct process *proc,
				const struct mapping_snapshot *snapshot, const __u64 *words,
				size_t nr_words)
{
	size_t i;

	for (i = 0; i < nr_words; i += 1 + FRAME_EXTRA(words[i]))
		if (FRAME_IS_NATIVE(words[i]) &&
		    !mapping_still_there(r, proc, snapshot, FRAME_DATA(words[i])))
			return i;
	return nr_words;
}

/*
 * The process of a sample that the kernel walked; NULL: nothing is known of it. If news were lost
 * that may have been its own it is read again: what it shows stays if nothing has changed. Of one
 * whose fork was not heard of the kernel has its parent's entry: it shall ask.
 */
static struct process *current(struct recorder *r, uint32_t pid)
{
	struct process *proc = process_find(&r->unwinder.processes, (int32_t)pid);
	uint64_t begin;

	if (proc)
		publisher_sampled(&r->unwinder.publisher, proc);
	if (proc && !proc->stale)
		return proc;
	if (proc) {
		begin = now_ns();
		if (process_get(&r->unwinder.processes, (int32_t)pid, &proc))
			log_debug("cannot read the mappings of process %u again", pid);
		r->read_again_ns += now_ns() - begin;
		recorder_mark_changed(r, (int32_t)pid);
		return proc;
	}
	bpf_sampler_del_process(r->sampler, pid);
	return process_get_unknown(&r->unwinder.processes, (int32_t)pid, &proc) ? NULL : proc;
}

/*
 * Can nobody tell what it mapped when the kernel walked? A new image may have taken the process
 * over, which the kernel's entry did not show yet.
 */
static bool is_lost(const struct process *proc)
{
	return !proc || !proc->user || proc->stale;
}

static bool is_stale(const struct process *proc, uint32_t generation)
{
	const struct published_process *v = proc ? proc->user : NULL;

	return v && (v->snapshot->generation != generation || v->version != proc->version);
}

/* How many of a stack's words are still true at the time of the sample. */
static size_t true_words(struct recorder *r, uint32_t pid, const struct mapping_snapshot *snapshot,
			 const __u64 *words, size_t nr_words)
{
	const struct process *proc = current(r, pid);

	if (is_lost(proc))
		return 0;
	if (!is_stale(proc, snapshot->generation))
		return nr_words;
	return frames_still_true(r, proc, snapshot, words, nr_words);
}

/*
 * The kernel walked by what has been given up, since it has an entry of which we know nothing: a
 * child's whose fork was not heard of. It shall ask.
 */
static void take_back(struct recorder *r, uint32_t pid, uint32_t generation)
{
	struct unwind_process entry;

	if (!bpf_sampler_get_process(r->sampler, pid, &entry) && entry.generation == generation)
		bpf_sampler_del_process(r->sampler, pid);
}

static void on_full(struct recorder *r, const struct sample_header *h, const uint8_t *body,
		    size_t size)
{
	const struct sample_full *full = (const struct sample_full *)body;
	struct decoder_stack stack = { .pid = h->pid, .stop = h->stop };
	uint64_t hash = h->hash;

	if (size < sizeof(*full) ||
	    size < sizeof(*full) + 8 * ((size_t)full->nr_kernel + full->nr_words)) {
		recorder_lose(r, h->source, LOST_MALFORMED, 1);
		return;
	}
	stack.kernel = (const __u64 *)(full + 1);
	stack.nr_kernel = full->nr_kernel;
	stack.words = stack.kernel + full->nr_kernel;
	stack.nr_words = full->nr_words;
	if (full->nr_words) {
		stack.snapshot = publisher_snapshot(&r->unwinder.publisher, full->generation);
		if (!stack.snapshot) {
			recorder_lose(r, h->source, LOST_UNKNOWN_STACK, !(h->flags & SAMPLE_WAKER));
			recorder_ask_again(r, h->hash);
			take_back(r, h->pid, full->generation);
			return;
		}
		if (r->observer && !(h->flags & SAMPLE_WAKER))
			r->observer->full(r->observer->ctx, h, full, stack.words);
		stack.nr_words = true_words(r, h->pid, stack.snapshot, stack.words, stack.nr_words);
		if (stack.nr_words < full->nr_words)
			stack.stop = STOP_STALE_MAPPING;
	}
	if (h->flags & SAMPLE_WAKER)
		add_waker(r, h, &stack);
	else
		add_stack(r, h, &stack, hash);
}

/* A file of the publisher's as the profile knows it. */
static uint32_t profile_file_of(void *ctx, uint32_t mapping_file)
{
	struct recorder *r = ctx;
	uint32_t file = publisher_file(&r->unwinder.publisher, mapping_file)->index;

	return file < r->decoder.profile_files.nr ? r->decoder.profile_files.items[file]
						  : UINT32_MAX;
}

/*
 * A stack that the kernel knew, sampled after the process's mappings changed and before the kernel
 * was told: the part of it that is still true. Its number, or the stack's own if all of it is.
 */
static uint32_t true_part(struct recorder *r, const struct process *proc,
			  const struct mapping_snapshot *snapshot, uint32_t id)
{
	struct profile *p = r->profile;
	const struct profile_stack *s = &p->stacks.items[id];
	struct frame_places places = {
		.mappings = publisher_mappings(&r->unwinder.publisher, snapshot),
		.nr = snapshot->nr,
		.file_of = profile_file_of,
		.ctx = r,
	};
	uint32_t i, cut;

	for (i = 0; i < s->nr; i++) {
		const struct profile_frame *f =
			&p->frames.items[p->stack_frames.items[s->first + i]];
		uint64_t pc;

		if (f->kind != FRAME_KIND_NATIVE || f->file == PROFILE_NO_FILE)
			continue;
		pc = is_lost(proc) ? 0 : frame_places_find(&places, f->file, f->address);
		if (!pc || !mapping_still_there(r, proc, snapshot, pc))
			break;
	}
	if (i == s->nr ||
	    profile_add_stack(p, &p->stack_frames.items[s->first], i, STOP_STALE_MAPPING, &cut))
		return id;
	return cut;
}

/* Of what is in the kernel by now; on failure it is not known what that stack is. */
static int follow_kernel(struct recorder *r, struct known_stack *known)
{
	uint32_t version = decoder_kernel_version(&r->decoder);
	int err;

	if (known->kernel_version == version)
		return 0;
	err = decoder_look_again(&r->decoder, known->stack, &known->stack);
	if (!err)
		known->kernel_version = version;
	return err;
}

/* What is still true of a stack of that process. */
static uint32_t known_part(struct recorder *r, const struct known_stack *known, uint32_t pid)
{
	const struct mapping_snapshot *snapshot =
		publisher_snapshot(&r->unwinder.publisher, known->generation);
	const struct process *proc;

	if (!snapshot && known->generation)
		take_back(r, pid, known->generation);
	proc = snapshot ? current(r, pid) : NULL;
	if (snapshot && (is_lost(proc) || is_stale(proc, snapshot->generation)))
		return true_part(r, proc, snapshot, known->stack);
	return known->stack;
}

static void on_hit(struct recorder *r, const struct sample_header *h)
{
	const struct profile_label *labels;
	struct known_stack *found = known_stacks_find_of(&r->known, h->hash, h->pid, &labels);
	struct said said;

	/* One that was new when the profile was full: it is asked for when there is room. */
	if (!found && r->refused_until_ns != UINT64_MAX)
		recorder_ask_again(r, h->hash);
	if (!found || follow_kernel(r, found)) {
		recorder_lose(
			r, h->source,
			found || r->refused_until_ns ? LOST_OUT_OF_MEMORY : LOST_UNKNOWN_STACK, 1);
		return;
	}
	touch_tables(r, found->generation, found->files, found->nr_files);
	said = (struct said){ found->thread_name, labels, found->nr_labels };
	count_sample(r, h, &said, known_part(r, found, h->pid));
}

/*
 * An address was in no mapping: look whether /proc knows of one, but not too often. True if the
 * process is shown anew; else the kernel need not ask again.
 */
static bool refresh(struct recorder *r, struct process *proc, uint64_t mm)
{
	uint32_t version = proc->version;
	uint64_t *last = map_get(&r->refreshed, (uint32_t)proc->pid), now = now_ns();
	bool first = !last;

	if (last && *last + REFRESH_INTERVAL_NS > now)
		return false;
	if (map_put(&r->refreshed, (uint32_t)proc->pid, now) ||
	    process_refresh(&r->unwinder.processes, proc))
		return false;
	if (proc->version == version) {
		/* A program that has just begun will map more. */
		if (!first)
			publisher_set_final(&r->unwinder.publisher, proc);
		return false;
	}
	return !publisher_show(&r->unwinder.publisher, proc, mm);
}

/*
 * Where events were lost the process may have executed another program between the sample and when
 * its mappings were read: one that is at the same addresses, as those have that are not relocated.
 */
static bool is_its_image(const struct recorder *r, const struct process *proc,
			 const struct sample_header *h, const struct sample_raw *raw)
{
	return r->events.is_whole || proc->read_ns <= h->time_ns ||
	       process_has_code(&r->unwinder.processes, proc, raw->pc, raw->code + RAW_CODE_BEFORE,
				RAW_CODE_AFTER);
}

/* `gone`: an exec has taken the process over since. The kernel need not know, and /proc does not.
 */
static int walk_raw(struct recorder *r, struct process *proc, const struct sample_header *h,
		    const struct sample_raw *raw, const struct stack_copy *copy, bool gone)
{
	const struct published_process *v;
	bool nowhere, is_shown;
	int stop;

	if (publisher_show(&r->unwinder.publisher, proc, gone ? 0 : raw->mm))
		return STOP_NO_PROCESS;
	if (!is_its_image(r, proc, h, raw)) {
		publisher_hide(&r->unwinder.publisher, proc);
		return STOP_NO_PROCESS;
	}
	v = proc->user;
	/* The kernel's walk may have gone further up than the copy of the stack reaches. */
	if (h->stop == STOP_FILE_PENDING)
		publisher_load(&r->unwinder.publisher, v->snapshot, raw->file);
	stop = raw_walk(&r->unwinder.publisher, v->snapshot, raw, copy, proc->pid, false,
			r->options.max_frames, r->walk);
	/* The kernel may have met it further up, but only by the same mappings does that mean
	 * anything. */
	nowhere = stop == STOP_NO_MAPPING ||
		  (h->stop == STOP_NO_MAPPING && raw->generation == v->snapshot->generation);
	is_shown = nowhere && !gone && refresh(r, proc, raw->mm);
	/* We have looked: /proc knows of nothing there either. */
	if (is_shown || stop == STOP_NO_MAPPING)
		stop = raw_walk(&r->unwinder.publisher, v->snapshot, raw, copy, proc->pid, true,
				r->options.max_frames, r->walk);
	if (h->stop == STOP_CODE_PENDING)
		publisher_hold_asks(&r->unwinder.publisher, proc);
	return stop;
}

/*
 * The process, with its mappings at the time of the sample; NULL if they can't be had. An exec is
 * in progress if its address space is not the one that we know, or news of it were lost. If the
 * event of an exec comes later in this turn, what /proc says now, or has said, is that image's; the
 * mappings of before are known if events told all of them.
 */
static struct process *process_of_raw(struct recorder *r, const struct sample_header *h,
				      const struct sample_raw *raw, uint64_t exec_ns)
{
	struct process *proc = process_find(&r->unwinder.processes, (int32_t)h->pid);
	const struct published_process *v = proc ? proc->user : NULL;

	if (v && v->mm && v->mm != raw->mm) {
		publisher_hide(&r->unwinder.publisher, proc);
		if (!proc->stale)
			return NULL;
	}
	if (!exec_ns)
		return process_get(&r->unwinder.processes, (int32_t)h->pid, &proc) ? NULL : proc;
	return proc && proc->complete && !proc->stale && proc->read_ns < exec_ns ? proc : NULL;
}

/*
 * Within execve() the old image is gone, and the new one has not begun: the registers are of code
 * that is nowhere any more. The kernel's frames are all that there is.
 */
static bool in_exec(const struct decoder_stack *stack)
{
	return stack->nr_kernel && ((stack->stop == STOP_NO_PROCESS && !stack->nr_words) ||
				    (stack->stop == STOP_NO_MAPPING && stack->nr_words == 1));
}

static void on_raw(struct recorder *r, const struct sample_header *h, const uint8_t *body,
		   size_t size)
{
	const struct sample_raw *raw = (const struct sample_raw *)body;
	struct decoder_stack stack = { .pid = h->pid, .stop = STOP_NO_PROCESS };
	const uint8_t *bytes = body + sizeof(*raw);
	struct stack_copy copy;
	struct process *proc;
	uint64_t exec_ns;

	if (size < sizeof(*raw) || raw->nr_kernel > SAMPLE_MAX_KERNEL_FRAMES ||
	    size < sizeof(*raw) + 8 * (size_t)raw->nr_kernel + raw->stack_size ||
	    !stack_copy_of_raw(raw, bytes + 8 * (size_t)raw->nr_kernel, &copy)) {
		recorder_lose(r, h->source, LOST_MALFORMED, 1);
		return;
	}
	stack.kernel = (const __u64 *)bytes;
	stack.nr_kernel = raw->nr_kernel;
	if (h->flags & SAMPLE_WAKER) {
		if (h->flags & SAMPLE_UNDECIDED && decide(r, h) != SELECT_TAKE)
			return;
	} else if (!(h->flags & SAMPLE_ALSO_FULL) && is_rejected(r, h)) {
		return;
	}
	r->stats.raw[h->stop & (STOP_MAX_ - 1)]++;
	/* Where there is no room for a table all samples come so: nothing is about to get better.
	 */
	r->met_raw |= h->stop != STOP_FILE_PENDING ||
		      !publisher_has_spilled(&r->unwinder.publisher, raw->file);
	exec_ns = next_exec(r, h->pid);
	proc = process_of_raw(r, h, raw, exec_ns);
	if (proc) {
		process_set_owner(proc, raw->user);
		stack.stop = walk_raw(r, proc, h, raw, &copy, exec_ns);
		if (proc->user) {
			stack.snapshot = ((struct published_process *)proc->user)->snapshot;
			stack.words = r->walk->words;
			stack.nr_words = r->walk->full.nr_words;
		}
	}
	if (h->flags & SAMPLE_WAKER)
		return; /* there is no stack, but its process is known now */
	if (in_exec(&stack)) {
		stack.nr_words = 0;
		stack.stop = STOP_COMPLETE;
	}
	if (r->observer && stack.snapshot)
		r->observer->raw(r->observer->ctx, h, raw, &copy, r->walk, stack.stop);
	stack.stop = raw_walk_reason(raw, stack.stop);
	/* Sent for comparison only: the kernel's own walk of it follows. */
	if (!(h->flags & SAMPLE_ALSO_FULL))
		add_stack(r, h, &stack, 0);
}

/* Tables grow by leaps: there may have been room a sample ago. */
static bool is_full(struct recorder *r)
{
	if (profile_bytes(r->profile) <= r->profile_bytes_max)
		return false;
	recorder_make_room_at_once(r);
	return profile_bytes(r->profile) > r->profile_bytes_max;
}

void recorder_on_sample(struct recorder *r, const uint8_t *record, size_t size)
{
	const struct sample_header *h = (const struct sample_header *)record;

	if (h->source >= SAMPLE_SOURCES_MAX) {
		recorder_lose(r, h->source, LOST_MALFORMED, 1);
		return;
	}
	if (h->pid == 0 && !r->options.idle) {
		r->stats.left_out++;
		return;
	}
	/* A profile that is full counts on, but takes in nothing new: names alone are still to
	 * come. */
	r->profile->full = is_full(r);
	switch (h->type) {
	case SAMPLE_HIT:
		on_hit(r, h);
		break;
	case SAMPLE_FULL:
		on_full(r, h, record + sizeof(*h), size - sizeof(*h));
		break;
	case SAMPLE_RAW:
		on_raw(r, h, record + sizeof(*h), size - sizeof(*h));
		break;
	default:
		recorder_lose(r, h->source, LOST_MALFORMED, 1);
	}
	r->profile->full = false;
}
