// SPDX-License-Identifier: Apache-2.0
/*
 * Rounds: read all threads, walk those that are on no CPU, read all threads again, keep what did
 * not run in between. The tables of the code are loaded in the first round, which makes it slow;
 * the second one is fast. What is left then is at work: events are put on it.
 */
#include "snapshot/live_stacks.h"
#include "snapshot/task_iter.h"
#include "snapshot/thread_stop.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

enum {
	QUIET_ROUNDS = 2, /* before anything else is tried on threads that do not stand still */
	EVENTS_MAX = 64,  /* at once: 132 KiB of locked memory each */
	EVENT_WAIT_MS = 2,
	EVENT_PATIENCE_MS = 300,
	STOPS_MAX = 16,	    /* at once */
	PROMPT_TRIES = 50,  /* to take one that has stopped, before the others have their turn */
	ROUND_MS = 20,	    /* between rounds while something is to stop */
	EVENT_TRIES = 4,    /* samples of a thread until one is whole */
	PATIENCE_MS = 5000, /* for all threads that do not stand still */
};

/* A thread that we want, and how far it is. */
struct wanted {
	struct live_stack found;
	uint64_t thread_pointer; /* 0: not known */
	struct thread_event *event;
	uint64_t event_ms; /* since when */
	uint8_t nr_tries;
	bool done, no_event;
	bool event_fails; /* not even tried: it cannot be had */
	bool partial; /* found.stack is as good as it gets without all registers: wants a stop */
	bool stopping, was_stopped;
	bool wants_memory; /* a runtime's frames are only found while it does not run */
};

/* A walk whose thread may have run meanwhile. */
struct pending {
	size_t wanted;
	const struct mapping_snapshot *snapshot;
	size_t first_word, nr_words;
	enum stop_reason stop;
};

struct taking {
	const struct live_options *options;
	struct live_stacks *stacks;
	struct task_iter *iter; /* NULL: /proc */
	struct live_threads before, after;
	bool is_compat; /* known without BPF only */
	VEC(struct wanted) wanted;
	VEC(struct pending) pending;
	VEC(uint64_t) words; /* of the pending walks */
	size_t nr_open, nr_events, nr_stopping, nr_rounds;
};

static void taking_fini(struct taking *t)
{
	for (size_t i = 0; i < t->wanted.nr; i++)
		thread_event_free(t->wanted.items[i].event);
	task_iter_free(t->iter);
	live_threads_fini(&t->before);
	live_threads_fini(&t->after);
	vec_free(&t->wanted);
	vec_free(&t->pending);
	vec_free(&t->words);
}

static int read_threads(struct taking *t, struct live_threads *ret)
{
	if (t->iter)
		return task_iter_read(t->iter, ret);
	return live_threads_read_proc(t->options->pid, t->is_compat, ret);
}

/* --- results --------------------------------------------------------------------------------- */

static void finish(struct taking *t, struct wanted *w, const char *problem)
{
	w->found.problem = problem;
	w->done = true;
	t->nr_open--;
	if (w->event)
		t->nr_events--;
	thread_event_free(w->event);
	w->event = NULL;
}

static void describe(struct wanted *w, const struct live_thread *thread)
{
	w->found.state = thread->state;
	w->thread_pointer = thread->thread_pointer;
	memcpy(w->found.name, thread->name, sizeof(w->found.name));
}

static int add_stack(struct taking *t, const struct decoder_stack *stack, struct live_stack *found)
{
	struct decoder *decoder = &t->stacks->walker.decoder;
	struct decoder_stack copy = *stack;
	int r;

	copy.pid = (uint32_t)t->options->pid;
	r = decoder_add(decoder, &copy, &found->stack);
	if (!r)
		found->virtual_name = decoder->thread_name;
	return r;
}

/* Without BPF, few registers of a blocked thread are known: a stop may give the others. */
static bool wants_stop(const struct live_thread *thread, enum stop_reason stop)
{
	return thread->valid != live_all_registers && stop != STOP_COMPLETE &&
	       stop != STOP_COMPAT_TASK;
}

/*
 * The stack of a thread that stood still. The innermost kernel address stays as it is: of a thread
 * that never ran it is a function's first.
 */
static int keep_still(struct taking *t, struct wanted *w, const struct live_thread *thread,
		      const struct pending *p)
{
	struct decoder_stack stack = { .snapshot = p->snapshot,
				       .nr_kernel = thread->nr_kernel,
				       .words = (const __u64 *)t->words.items + p->first_word,
				       .nr_words = p->nr_words,
				       .stop = p->stop };
	int r;

	if (thread->nr_kernel)
		stack.kernel = (const __u64 *)t->before.kernel.items + thread->first_kernel;
	describe(w, thread);
	r = add_stack(t, &stack, &w->found);
	w->partial = !r && wants_stop(thread, p->stop);
	if (!r && !w->partial)
		finish(t, w, NULL);
	return r;
}

enum { CAUGHT_IN_PART = 1, CAUGHT_TOO_DEEP = 2 };

/* The walker's walk of that thread, which ended so. */
static int keep_walk(struct taking *t, struct wanted *w, const struct caught_thread *caught,
		     enum stop_reason stop)
{
	struct live_walker *walker = &t->stacks->walker;
	struct decoder_stack stack = {
		.kernel = (const __u64 *)caught->kernel,
		.nr_kernel = t->options->kernel ? caught->nr_kernel : 0,
		.stop = stop,
	};
	int r;

	if (!caught->is_compat) {
		stack.snapshot = walker->snapshot;
		stack.words = walker->walk->words;
		stack.nr_words = walker->walk->full.nr_words;
	}
	r = add_stack(t, &stack, &w->found);
	if (!r)
		finish(t, w, NULL);
	return r;
}

/*
 * The stack of a thread that was caught at work. 0, or CAUGHT_*: it is not whole, and not kept:
 * another sample may be better, or another way.
 */
static int keep_caught(struct taking *t, struct wanted *w, struct caught_thread *caught, bool last)
{
	struct live_walker *walker = &t->stacks->walker;
	enum stop_reason stop;

	if (caught->is_compat)
		return keep_walk(t, w, caught, STOP_COMPAT_TASK);
	/* It stays where it is for a thread's life. */
	if (!caught->thread_pointer)
		caught->thread_pointer = w->thread_pointer;
	stop = live_walker_caught(walker, w->found.tid, caught);
	if (!w->wants_memory && live_walker_wants_stop(walker)) {
		w->wants_memory = true;
		return CAUGHT_IN_PART;
	}
	if (stop == STOP_STACK_COPY_END && !last)
		return CAUGHT_TOO_DEEP;
	if (stop != STOP_COMPLETE && !last)
		return CAUGHT_IN_PART;
	return keep_walk(t, w, caught, stop);
}

/* --- threads that stand still ---------------------------------------------------------------- */

static int walk_still(struct taking *t, size_t i, const struct live_thread *thread)
{
	struct live_walker *walker = &t->stacks->walker;
	struct pending p = { .wanted = i, .first_word = t->words.nr, .stop = STOP_COMPLETE };
	int r;

	if (thread->flags & TASK_COMPAT) {
		p.stop = STOP_COMPAT_TASK;
	} else if (thread->flags & TASK_USER) {
		p.stop = live_walker_still(walker, thread);
		p.snapshot = walker->snapshot;
		p.nr_words = walker->walk->full.nr_words;
	}
	r = vec_reserve(&t->words, t->words.nr + p.nr_words);
	if (r)
		return r;
	if (p.nr_words)
		memcpy(t->words.items + t->words.nr, walker->walk->words, p.nr_words * 8);
	t->words.nr += p.nr_words;
	return vec_push(&t->pending, p);
}

static int walk_all(struct taking *t)
{
	t->pending.nr = t->words.nr = 0;
	live_walker_new_round(&t->stacks->walker);
	for (size_t i = 0; i < t->wanted.nr; i++) {
		struct wanted *w = &t->wanted.items[i];
		const struct live_thread *thread;
		int r;

		if (w->done || w->partial || w->stopping)
			continue;
		thread = live_threads_find(&t->before, w->found.tid);
		if (!thread) {
			finish(t, w, "it ended meanwhile");
			continue;
		}
		describe(w, thread);
		if (thread->state == 'Z' || thread->state == 'X') {
			finish(t, w, "it has ended");
			continue;
		}
		if (thread->flags & TASK_ON_CPU)
			continue;
		r = walk_still(t, i, thread);
		if (r)
			return r;
	}
	return 0;
}

/* Keeps the walks of the threads that did not run since `before`. */
static int keep_pending(struct taking *t)
{
	for (size_t i = 0; i < t->pending.nr; i++) {
		const struct pending *p = &t->pending.items[i];
		struct wanted *w = &t->wanted.items[p->wanted];
		const struct live_thread *before = live_threads_find(&t->before, w->found.tid),
					 *after = live_threads_find(&t->after, w->found.tid);
		int r;

		if (!after || !live_thread_stood_still(before, after))
			continue;
		r = keep_still(t, w, before, p);
		if (r)
			return r;
	}
	return 0;
}

/* Threads that come later are not shown. */
static int want_all(struct taking *t)
{
	int r = vec_reserve(&t->wanted, t->before.list.nr);

	for (size_t i = 0; i < t->before.list.nr && !r; i++) {
		struct wanted w = { .found = { .tid = t->before.list.items[i].tid,
					       .state = '?',
					       .stack = UINT32_MAX } };

		r = vec_push(&t->wanted, w);
	}
	t->nr_open = t->wanted.nr;
	return r;
}

static int quiet_round(struct taking *t)
{
	struct live_threads swap;
	int r = walk_all(t);

	t->nr_rounds++;
	if (!r)
		r = read_threads(t, &t->after);
	if (r)
		return r;
	r = keep_pending(t);
	swap = t->before;
	t->before = t->after;
	t->after = swap;
	return r;
}

/* --- threads at work ------------------------------------------------------------------------- */

static void close_event(struct taking *t, struct wanted *w)
{
	thread_event_free(w->event);
	w->event = NULL;
	t->nr_events--;
}

static void open_events(struct taking *t)
{
	for (size_t i = 0; i < t->wanted.nr && t->nr_events < EVENTS_MAX; i++) {
		struct wanted *w = &t->wanted.items[i];

		if (w->done || w->event || w->no_event || w->partial)
			continue;
		if (t->options->without_events ||
		    thread_event_open(w->found.tid, t->options->kernel, &w->event)) {
			w->event = NULL;
			w->no_event = w->event_fails = true;
			continue;
		}
		w->event_ms = now_ms();
		t->nr_events++;
	}
}

/* Takes what the thread's event has caught by now. */
static int read_event(struct taking *t, struct wanted *w)
{
	_cleanup_free_ uint8_t *stack = NULL;
	struct caught_thread caught = { 0 };
	int r = thread_event_read(w->event, &caught);

	if (r == -EAGAIN && now_ms() < w->event_ms + EVENT_PATIENCE_MS)
		return 0;
	if (r) {
		close_event(t, w);
		w->no_event = true;
		return r == -ENOMEM ? r : 0;
	}
	stack = caught.stack;
	w->found.state = 'R';
	w->nr_tries++;
	/* In the last try it is kept as it is, unless a stop may still show more. */
	r = keep_caught(t, w, &caught, w->nr_tries == EVENT_TRIES && w->was_stopped);
	if (r <= 0)
		return r;
	/* Else another event: this one cannot be begun again without a race in the kernel. */
	close_event(t, w);
	w->no_event = r == CAUGHT_TOO_DEEP || w->nr_tries >= EVENT_TRIES ||
		      (w->wants_memory && !w->was_stopped);
	return 0;
}

/* A stop came to nothing: what there is must do, or events again, if another tracer has it, until
 * it gets a CPU. */
static void do_without_stop(struct taking *t, struct wanted *w)
{
	if (w->partial)
		finish(t, w, NULL);
	else
		w->no_event = w->event_fails;
	w->nr_tries = 0;
}

struct stopped_walk {
	struct taking *t;
	struct wanted *w;
	enum stop_reason stop; /* STOP_NONE: it was not walked */
};

/* Its tables are loaded: that is how we know that it wants this. */
static void walk_stopped(void *ctx, const struct caught_thread *caught)
{
	struct stopped_walk *s = ctx;

	if (!caught->is_compat)
		s->stop = live_walker_stopped(&s->t->stacks->walker, s->w->found.tid, caught);
}

static int finish_stop(struct taking *t, struct wanted *w)
{
	struct stopped_walk s = { t, w, STOP_NONE };
	struct caught_thread caught = { 0 };
	int r = thread_stop_finish(w->found.tid, &caught, w->wants_memory ? walk_stopped : NULL,
				   &s);

	if (r == -EAGAIN)
		return 0;
	w->stopping = false;
	t->nr_stopping--;
	if (!r && s.stop)
		r = keep_walk(t, w, &caught, s.stop);
	else if (!r)
		r = keep_caught(t, w, &caught, true);
	/* Once more: now it is known what it takes. */
	if (r == CAUGHT_IN_PART) {
		w->was_stopped = false;
		w->no_event = true;
		r = 0;
	}
	free(caught.stack);
	return r == -ENOMEM ? r : 0;
}

/* Most react at once, and go on before the next one is asked. */
static int begin_stop(struct taking *t, struct wanted *w)
{
	int r = 0;

	w->was_stopped = true;
	/* A "disk sleep" would not react. */
	if (w->found.state == 'D' || thread_stop_begin(w->found.tid))
		return 0;
	w->stopping = true;
	t->nr_stopping++;
	for (int i = 0; i < PROMPT_TRIES && w->stopping && !r; i++) {
		r = finish_stop(t, w);
		if (w->stopping)
			sched_yield();
	}
	return r;
}

/* Asks for the short stop: of threads on which no event can be put or from which none was whole. */
static int begin_stops(struct taking *t)
{
	int r = 0;

	for (size_t i = 0; i < t->wanted.nr && t->nr_stopping < STOPS_MAX && !r; i++) {
		struct wanted *w = &t->wanted.items[i];

		if (!w->done && !w->stopping && !w->was_stopped && (w->no_event || w->partial))
			r = begin_stop(t, w);
	}
	return r;
}

static int finish_stops(struct taking *t)
{
	int r = 0;

	for (size_t i = 0; i < t->wanted.nr && !r; i++) {
		struct wanted *w = &t->wanted.items[i];

		if (w->stopping)
			r = finish_stop(t, w);
		if (!r && !w->done && w->was_stopped && !w->stopping && !w->event &&
		    (w->no_event || w->partial))
			do_without_stop(t, w);
	}
	return r;
}

static int wait_for_events(struct taking *t, int patience_ms)
{
	struct pollfd fds[EVENTS_MAX];
	size_t of[EVENTS_MAX], nr = 0;
	int r = 0;

	for (size_t i = 0; i < t->wanted.nr && nr < EVENTS_MAX; i++) {
		if (!t->wanted.items[i].event)
			continue;
		fds[nr] = (struct pollfd){ .fd = thread_event_fd(t->wanted.items[i].event),
					   .events = POLLIN };
		of[nr++] = i;
	}
	if (poll(fds, nr, patience_ms) < 0 && errno != EINTR)
		return -errno;
	for (size_t i = 0; i < nr && !r; i++)
		r = read_event(t, &t->wanted.items[of[i]]);
	return r;
}

static int catch_all(struct taking *t)
{
	const struct timespec moment = { .tv_nsec = 50000 };
	uint64_t deadline = now_ms() + PATIENCE_MS, last_round = 0;
	int r = 0;

	while (t->nr_open && !r && now_ms() < deadline) {
		open_events(t);
		r = begin_stops(t);
		if (!r)
			r = wait_for_events(t, t->nr_stopping ? 0 : EVENT_WAIT_MS);
		if (!r)
			r = finish_stops(t);
		/* Who has stopped must not wait for a round. */
		if (!r && t->nr_stopping && now_ms() < last_round + ROUND_MS) {
			nanosleep(&moment, NULL);
			continue;
		}
		if (!r)
			r = quiet_round(t);
		last_round = now_ms();
	}
	for (size_t i = 0; i < t->wanted.nr && !r; i++)
		if (!t->wanted.items[i].done)
			finish(t, &t->wanted.items[i],
			       t->wanted.items[i].partial ? NULL
							  : "it ran whenever it was looked at");
	return r;
}

/* --- the kernel's names ---------------------------------------------------------------------- */

struct kernel_names {
	struct profile *profile;
	VEC(uint32_t) frames;
	VEC(uint64_t) addresses;
};

static int name_frame(void *ctx, size_t index, const char *name)
{
	struct kernel_names *k = ctx;

	return profile_name_frame(k->profile, k->frames.items[index], name);
}

/* By the iterator, where it can: what it leaves is named by /proc/kallsyms later. */
static int name_kernel_frames(struct taking *t, struct profile *profile)
{
	struct kernel_names k = { .profile = profile };
	int r = 0;

	for (uint32_t i = 0; i < profile->frames.nr && !r; i++) {
		if (profile->frames.items[i].kind != FRAME_KIND_KERNEL)
			continue;
		r = vec_push(&k.frames, i);
		if (!r)
			r = vec_push(&k.addresses, profile->frames.items[i].address);
	}
	if (!r)
		r = task_iter_name(t->iter, k.addresses.items, k.addresses.nr, name_frame, &k);
	vec_free(&k.frames);
	vec_free(&k.addresses);
	if (r && r != -ENOMEM)
		log_debug("the kernel does not name its functions: %s", strerror(-r));
	return r == -ENOMEM ? r : 0;
}

/* --- the whole ------------------------------------------------------------------------------- */

/* The process's program is a 32-bit one. */
static bool is_compat_program(int32_t pid)
{
	_cleanup_close_ int fd = -1;
	unsigned char ident[EI_NIDENT];
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, ident, sizeof(ident)) == sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG) && ident[EI_CLASS] == ELFCLASS32;
}

static int begin(struct taking *t)
{
	const struct live_options *o = t->options;
	int r = -ENOTSUP;

	if (!o->without_bpf)
		r = task_iter_open(o->pid, o->kernel, &t->iter);
	if (r) {
		log_debug("no BPF iterator over tasks: %s", strerror(-r));
		t->is_compat = is_compat_program(o->pid);
	}
	t->stacks->by_bpf = t->iter;
	r = read_threads(t, &t->before);
	if (r == -EACCES)
		return -EPERM;
	t->stacks->capped = t->before.capped;
	return r ? r : want_all(t);
}

static int hand_over(struct taking *t)
{
	struct live_stacks *s = t->stacks;
	bool any = false;

	for (size_t i = 0; i < t->wanted.nr; i++) {
		int r = vec_push(&s->threads, t->wanted.items[i].found);

		if (r)
			return r;
		any |= t->wanted.items[i].found.stack != UINT32_MAX;
	}
	return any ? 0 : -ESRCH;
}

static int take(struct taking *t, struct profile *profile)
{
	const struct live_options *o = t->options;
	int r;

	r = live_walker_init(&t->stacks->walker, o->pid, o->max_frames, profile, o->symbolizer,
			     o->observer);
	if (!r)
		r = begin(t);
	for (int i = 0; i < QUIET_ROUNDS && !r && t->nr_open; i++)
		r = quiet_round(t);
	if (!r)
		r = catch_all(t);
	if (!r && t->iter && o->kernel)
		r = name_kernel_frames(t, profile);
	/* All threads are gone: what was found of them counts. */
	return r == -ESRCH && t->wanted.nr ? 0 : r;
}

struct job {
	struct taking *taking;
	struct profile *profile;
	int r;
};

static void *run(void *arg)
{
	struct job *job = arg;
	uint64_t begin_ms = now_ms();

	/* Of this thread alone. The less it is held up, the less runs between two looks. Only root
	 * may. */
	if (setpriority(PRIO_PROCESS, (id_t)gettid(), -20))
		log_debug("no higher priority: %s", strerror(errno));
	job->r = take(job->taking, job->profile);
	log_debug("%zu threads, %zu rounds, %" PRIu64 " ms", job->taking->wanted.nr,
		  job->taking->nr_rounds, now_ms() - begin_ms);
	return NULL;
}

/*
 * In a thread of its own: when it ends, the kernel lets go whatever it still traces, a thread that
 * did not react to its stop in time.
 */
int live_stacks_take(struct live_stacks *s, const struct live_options *options,
		     struct profile *profile)
{
	_cleanup_(taking_fini) struct taking t = { .options = options, .stacks = s };
	struct job job = { &t, profile, 0 };
	pthread_t thread;
	int r;

	*s = (struct live_stacks){ 0 };
	r = pthread_create(&thread, NULL, run, &job);
	if (r)
		return -r;
	pthread_join(thread, NULL);
	return job.r ? job.r : hand_over(&t);
}

void live_stacks_fini(struct live_stacks *s)
{
	vec_free(&s->threads);
	live_walker_fini(&s->walker);
}
