// SPDX-License-Identifier: Apache-2.0
#include "snapshot/live_walk.h"
#include "process/memory.h"
#include "unwinder/host_walk.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#endif

#define ARENA_MAX ((size_t)1 << 30) /* unwind tables of one process: address space, not memory */

/* By a thread that lives: the first one may have ended before the others, and has no memory then.
 */
static int read_live(void *ctx, __u64 addr, void *to, __u32 size)
{
	const int32_t *tid = ctx;

	return process_read_memory(*tid, addr, to, size);
}

/* May we, and is it there? What it maps need not be readable. */
static int try_reading(struct process *proc)
{
	char byte;
	int r = read_live(&proc->pid, proc->mappings.items[0].start, &byte, 1);

	return r == -EPERM || r == -EACCES ? -EPERM : 0;
}

static int show(struct live_walker *w)
{
	int r;

	if (!w->process->mappings.nr) {
		w->snapshot = NULL;
		return 0;
	}
	r = publisher_show(&w->unwinder.publisher, w->process, 0);
	if (!r)
		w->snapshot = ((const struct published_process *)w->process->user)->snapshot;
	return r;
}

int live_walker_init(struct live_walker *w, int32_t pid, uint32_t max_frames,
		     struct profile *profile, const struct symbolizer_options *symbolizer,
		     const struct thread_observer *observer)
{
	const struct unwinder_options options = { .arena_bytes = ARENA_MAX };
	int r;

	*w = (struct live_walker){ .max_frames = max_frames };
	w->walk = calloc(1, sizeof(*w->walk));
	if (!w->walk)
		return -ENOMEM;
	r = unwinder_init(&w->unwinder, &options);
	if (r)
		return r;
	r = decoder_init(&w->decoder, &w->unwinder.publisher, profile, symbolizer);
	if (!r && observer)
		r = observer->begin(observer->ctx, &w->unwinder.publisher, pid);
	if (!r)
		w->observer = observer;
	if (!r)
		r = process_get(&w->unwinder.processes, pid, &w->process);
	if (r)
		return r == -EACCES ? -EPERM : r;
	if (w->process->mappings.nr)
		r = try_reading(w->process);
	return r ? r : show(w);
}

void live_walker_fini(struct live_walker *w)
{
	if (w->observer && w->process)
		w->observer->end(w->observer->ctx, w->process);
	decoder_fini(&w->decoder);
	unwinder_fini(&w->unwinder);
	free(w->walk);
	*w = (struct live_walker){ 0 };
}

void live_walker_new_round(struct live_walker *w)
{
	const struct published_process *v;

	w->refreshed = false;
	/* A runtime may have become ready. */
	publisher_update_runtimes(&w->unwinder.publisher);
	v = w->process->user;
	if (v)
		w->snapshot = v->snapshot;
}

/* Once, loading the tables that the walk meets. */
static int walk_once(struct live_walker *w, struct walk_input *input,
		     const struct walk_memory *memory)
{
	const struct thread_observer *o = w->observer;
	const struct walk_memory read = o ? o->tap(o->ctx, memory) : *memory;

	input->process = publisher_entry(w->snapshot, 0);
	input->process.flags |= w->refreshed ? PROCESS_MAPPINGS_FINAL : 0;
	return host_walk(&w->unwinder.publisher, &read, input, w->walk);
}

/* From what `input` says of the thread. */
static int walk_from(struct live_walker *w, struct walk_input *input,
		     const struct walk_memory *memory)
{
	int stop;

	input->machine = HOST_MACHINE;
	input->max_frames = w->max_frames;

	w->walk->full.nr_words = 0;
	if (!w->snapshot)
		return STOP_NO_PROCESS;
	stop = walk_once(w, input, memory);
	if (stop != STOP_NO_MAPPING || w->refreshed)
		return stop;
	/* Something may have been loaded since the mappings were read. */
	w->refreshed = true;
	if (process_refresh(&w->unwinder.processes, w->process) || show(w) || !w->snapshot)
		return stop;
	return walk_once(w, input, memory);
}

static void keep(struct live_walker *w, int32_t tid, const struct walk_input *input, int stop)
{
	if (w->observer && w->snapshot)
		w->observer->walked(w->observer->ctx, tid, input, w->walk, stop);
}

/* In the memory of a thread that stands still. */
static enum stop_reason walk_in_memory(struct live_walker *w, int32_t tid, struct walk_input *input)
{
	const struct walk_memory memory = { .read = read_live, .ctx = &tid };
	int stop = walk_from(w, input, &memory);

	keep(w, tid, input, stop);
	return stop;
}

enum stop_reason live_walker_still(struct live_walker *w, const struct live_thread *thread)
{
	__u64 regs[UNWIND_REGS_MAX];
	struct walk_input input = {
		.pc = thread->pc,
		.regs = regs,
		.valid = thread->valid,
		.thread_pointer = thread->thread_pointer,
	};

	memcpy(regs, thread->regs, sizeof(regs));
	return walk_in_memory(w, thread->tid, &input);
}

static struct walk_input input_of(const struct caught_thread *caught, __u64 *regs)
{
	memcpy(regs, caught->regs, sizeof(caught->regs));
	return (struct walk_input){
		.pc = caught->pc,
		.regs = regs,
		.valid = live_all_registers,
		.thread_pointer = caught->thread_pointer,
	};
}

enum stop_reason live_walker_stopped(struct live_walker *w, int32_t tid,
				     const struct caught_thread *caught)
{
	__u64 regs[UNWIND_REGS_MAX];
	struct walk_input input = input_of(caught, regs);

	return walk_in_memory(w, tid, &input);
}

bool live_walker_wants_stop(const struct live_walker *w)
{
	const struct walk *walk = w->walk;

	for (uint32_t i = 0; i < walk->full.nr_words; i += 1 + FRAME_EXTRA(walk->words[i])) {
		uint64_t word = walk->words[i];

		if (FRAME_IS_NOTE(word) &&
		    ((walk->late && FRAME_DATA(word) == FRAME_NOTE_NOT_READY) ||
		     (!walk->thread_pointer && FRAME_DATA(word) == FRAME_NOTE_NO_THREAD_STATE)))
			return true;
	}
	return false;
}

enum stop_reason live_walker_caught(struct live_walker *w, int32_t tid,
				    const struct caught_thread *caught)
{
	struct copied_memory copied = {
		.stack = { .start = caught->stack_start,
			   .size = caught->stack_size,
			   .bytes = caught->stack },
		.code_start = caught->pc - RAW_CODE_BEFORE,
		.code_size = RAW_CODE_BEFORE + RAW_CODE_AFTER, /* code does not change */
		.pid = tid,
	};
	const struct walk_memory memory = { .read = copied_memory_read,
					    .ctx = &copied,
					    .read_stack = copied_memory_read_stack };
	__u64 regs[UNWIND_REGS_MAX];
	struct walk_input input = input_of(caught, regs);
	int stop;

	input.late = true;
	stop = walk_from(w, &input, &memory);
	if (copied_memory_stop(&copied, stop) != stop)
		return STOP_STACK_COPY_END;
	keep(w, tid, &input, stop);
	return stop;
}
