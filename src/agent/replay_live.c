// SPDX-License-Identifier: Apache-2.0
#include "agent/replay_live.h"
#include "agent/replay_names.h"
#include "agent/replay_save.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/*
 * Cases have whole lines of memory: who reads a neighbouring field tomorrow can still replay
 * today's cases.
 */
enum { LINE = 64 };

struct replay_live {
	struct replay_save *save;
	struct publisher *publisher;
	int32_t pid;
	struct replay_memory process; /* what runtimes read, ever */
	struct replay_memory walk;    /* the present walk */
	const struct walk_memory *inner;
	/* Made with the first walk that has frames of runtimes. */
	struct replay_image images[RUNTIMES_OF_PROCESS_MAX];
	uint32_t nr_images;
	bool images_made;
};

static int read_for_runtime(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct replay_live *l = ctx;
	int r = process_read_memory(l->pid, addr, to, size);

	if (!r)
		replay_memory_add(&l->process, addr, to, size);
	return r;
}

static int read_for_walk(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct replay_live *l = ctx;
	int r = l->inner->read(l->inner->ctx, addr, to, size);

	if (!r)
		replay_memory_add(&l->walk, addr, to, size);
	return r;
}

int replay_live_open(const char *dir, struct publisher *p, int32_t pid, struct replay_live **ret)
{
	struct replay_live *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->publisher = p;
	l->pid = pid;
	r = replay_save_open(dir, UINT32_MAX, p, &l->save);
	if (r) {
		free(l);
		return r;
	}
	p->runtimes.memory = (struct runtime_memory){ read_for_runtime, l };
	*ret = l;
	return 0;
}

void replay_live_free(struct replay_live *l)
{
	if (!l)
		return;
	replay_save_free(l->save);
	replay_memory_fini(&l->process);
	replay_memory_fini(&l->walk);
	for (uint32_t i = 0; i < l->nr_images; i++)
		replay_image_fini(&l->images[i]);
	free(l);
}

struct walk_memory replay_live_tap(struct replay_live *l, const struct walk_memory *memory)
{
	l->inner = memory;
	replay_memory_cut(&l->walk, 0);
	l->walk.full = false;
	return (struct walk_memory){ read_for_walk, l };
}

/* All that was read, in whole lines as far as they can be read. */
static int gather(struct replay_live *l, struct replay_memory *ret)
{
	struct replay_memory lines = { 0 };
	uint8_t line[LINE];
	int r;

	for (size_t i = 0; i < l->process.reads.nr; i++) {
		const struct replay_read *read = &l->process.reads.items[i];

		replay_memory_add(ret, read->addr, l->process.bytes.items + read->at, read->size);
	}
	for (size_t i = 0; i < l->walk.reads.nr; i++) {
		const struct replay_read *read = &l->walk.reads.items[i];

		replay_memory_add(ret, read->addr, l->walk.bytes.items + read->at, read->size);
	}
	ret->full |= l->process.full || l->walk.full;
	r = replay_memory_merge(ret);
	for (size_t i = 0; i < ret->reads.nr && !r; i++) {
		uint64_t first = ret->reads.items[i].addr & -(uint64_t)LINE,
			 last = (ret->reads.items[i].addr + ret->reads.items[i].size - 1) &
				-(uint64_t)LINE;

		if (!process_read_memory(l->pid, first, line, LINE))
			replay_memory_add(&lines, first, line, LINE);
		if (!process_read_memory(l->pid, last, line, LINE))
			replay_memory_add(&lines, last, line, LINE);
	}
	/* What was read itself counts most: it comes last. */
	for (size_t i = 0; i < ret->reads.nr && !r; i++)
		replay_memory_add(&lines, ret->reads.items[i].addr,
				  ret->bytes.items + ret->reads.items[i].at,
				  ret->reads.items[i].size);
	lines.full |= ret->full;
	replay_memory_fini(ret);
	*ret = lines;
	return r;
}

static void thread_name(int32_t pid, int32_t tid, char *ret, size_t size)
{
	_cleanup_free_ char *comm = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/task/%" PRId32 "/comm", pid, tid);
	if (read_file_at(AT_FDCWD, path, 64, &comm, NULL) < 0 || !*comm || *comm == '\n')
		snprintf(ret, size, "thread-%" PRId32 ".case.zst", tid);
	else
		snprintf(ret, size, "%.*s-%" PRId32 ".case.zst", (int)strcspn(comm, "\n"), comm,
			 tid);
	for (; *ret; ret++)
		if (*ret == '/' || *ret == ' ')
			*ret = '_';
}

/* The files of the runtimes, as far as they are needed. */
static void make_images(struct replay_live *l, const struct process_runtimes *list,
			struct replay_image_wanted *wanted)
{
	for (uint32_t i = 0; list && i < list->nr; i++) {
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		const struct runtime_instance *in = list->items[i];
		struct replay_image *image = &l->images[l->nr_images];
		int r;

		if (!in->proc)
			continue;
		wanted->record = in->record;
		*image = (struct replay_image){ .runtime = in->dso->ops->id,
						.bias = in->target.bias };
		r = mapped_file_elf(l->publisher->processes->files.items[in->file], &elf);
		if (!r)
			r = replay_image_make(elf, wanted, image);
		if (r)
			log_debug("replay: no image of %s: %s", in->dso->ops->name, strerror(-r));
		else
			l->nr_images++;
	}
	l->images_made = true;
}

static bool has_runtime_frames(const struct walk *walk)
{
	for (uint32_t i = 0; i < walk->full.nr_words; i += 1 + FRAME_EXTRA(walk->words[i]))
		if (FRAME_RUNTIME(walk->words[i]) != RUNTIME_NATIVE && FRAME_EXTRA(walk->words[i]))
			return true;
	return false;
}

void replay_live_keep(struct replay_live *l, struct process *proc, int32_t tid,
		      const struct walk_input *input, const struct walk *walk,
		      enum stop_reason stop)
{
	const struct process_runtimes *list = publisher_runtimes(l->publisher, proc);
	const struct block *block = publisher_block(l->publisher, input->process.generation);
	struct runtime_proc *procs[RUNTIME_MAX_] = { 0 };
	struct replay_memory memory = { 0 };
	struct replay_image_wanted wanted = { .machine = input->machine,
					      .memory = &memory,
					      .words = walk->words,
					      .nr_words = walk->full.nr_words };
	_cleanup_free_ char *names = NULL;
	char name[96];

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		const struct runtime_instance *in = runtimes_find(list, id);

		procs[id] = in ? in->proc : NULL;
	}
	if (!block || replay_names(procs, walk->words, walk->full.nr_words, &names))
		return;
	thread_name(l->pid, tid, name, sizeof(name));
	if (!gather(l, &memory) && !replay_memory_merge(&memory)) {
		struct replay_walk kept = { .input = input,
					    .block = block,
					    .walk = walk,
					    .stop = stop,
					    .memory = &memory,
					    .names = names,
					    .images = l->images };

		if (!l->images_made && has_runtime_frames(walk))
			make_images(l, list, &wanted);
		kept.nr_images = l->nr_images;
		replay_save_walk(l->save, name, &kept);
	}
	replay_memory_fini(&memory);
}
