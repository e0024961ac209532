// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_live.h"
#include "process/memory.h"
#include "replay/replay_names.h"
#include "replay/replay_save.h"
#include "replay/replay_thin.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#if defined(__x86_64__)
enum { HOST_SP = X86_RSP };
#else
enum { HOST_SP = A64_SP };
#endif

enum {
	WALKS_MAX = 64,
	/*
	 * Cases have whole lines of memory: who reads a neighbouring field tomorrow can still
	 * replay today's cases.
	 */
	LINE = 64,
	THIN_FIRST = 65536, /* memory that is tried at once */
	THIN_LAST = 64,
};

/* A thread's last walk. */
struct kept_walk {
	int32_t tid;
	enum stop_reason stop;
	struct walk_input input; /* its registers are `regs` */
	__u64 regs[UNWIND_REGS_MAX];
	__u64 *words;
	uint32_t nr_words;
	bool has_runtimes;		 /* frames of theirs */
	uint64_t blank_start, blank_end; /* of the stack: not to be kept */
	struct replay_memory memory;	 /* what it read */
};

struct replay_live {
	struct replay_save *save;
	struct publisher *publisher;
	int32_t pid;
	struct replay_memory process; /* what runtimes read, ever */
	struct replay_memory walk;    /* the present walk */
	const struct walk_memory *inner;
	struct kept_walk walks[WALKS_MAX];
	uint32_t nr_walks;
	bool any_runtimes;
	struct replay_image images[RUNTIMES_OF_PROCESS_MAX];
	uint32_t nr_images;
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

int replay_live_open(const char *dir, struct replay_live **ret)
{
	struct replay_live *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	r = replay_save_open(dir, UINT32_MAX, &l->save);
	if (r) {
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

static int begin(void *ctx, struct publisher *p, int32_t pid)
{
	struct replay_live *l = ctx;

	l->publisher = p;
	l->pid = pid;
	p->runtimes.memory = (struct runtime_memory){ read_for_runtime, l };
	return 0;
}

static void kept_walk_fini(struct kept_walk *w)
{
	free(w->words);
	replay_memory_fini(&w->memory);
	*w = (struct kept_walk){ 0 };
}

void replay_live_free(struct replay_live *l)
{
	if (!l)
		return;
	replay_save_free(l->save);
	replay_memory_fini(&l->process);
	replay_memory_fini(&l->walk);
	for (uint32_t i = 0; i < l->nr_walks; i++)
		kept_walk_fini(&l->walks[i]);
	for (uint32_t i = 0; i < l->nr_images; i++)
		replay_image_fini(&l->images[i]);
	free(l);
}

static struct walk_memory tap(void *ctx, const struct walk_memory *memory)
{
	struct replay_live *l = ctx;

	l->inner = memory;
	replay_memory_fini(&l->walk);
	return (struct walk_memory){ .read = read_for_walk, .ctx = l };
}

static bool has_runtime_frames(const struct walk *walk)
{
	for (uint32_t i = 0; i < walk->full.nr_words; i += 1 + FRAME_EXTRA(walk->words[i]))
		if (FRAME_RUNTIME(walk->words[i]) != RUNTIME_NATIVE && FRAME_EXTRA(walk->words[i]))
			return true;
	return false;
}

static struct kept_walk *place_for(struct replay_live *l, int32_t tid)
{
	for (uint32_t i = 0; i < l->nr_walks; i++) {
		if (l->walks[i].tid != tid)
			continue;
		kept_walk_fini(&l->walks[i]);
		return &l->walks[i];
	}
	return l->nr_walks < WALKS_MAX ? &l->walks[l->nr_walks++] : NULL;
}

/* Takes the place of an earlier walk of that thread. */
static void keep(void *ctx, int32_t tid, const struct walk_input *input, const struct walk *walk,
		 enum stop_reason stop)
{
	struct replay_live *l = ctx;
	uint64_t sp = walk->regs[HOST_SP], window_end = walk->window_start + walk->window_len;
	struct kept_walk *w = place_for(l, tid);
	size_t size = walk->full.nr_words * sizeof(*walk->words);

	if (!w)
		return;
	w->tid = tid;
	w->words = malloc(size + 1);
	if (!w->words)
		return;
	memcpy(w->words, walk->words, size);
	w->nr_words = walk->full.nr_words;
	w->stop = stop;
	w->input = *input;
	memcpy(w->regs, input->regs, sizeof(w->regs));
	w->input.regs = w->regs;
	w->has_runtimes = has_runtime_frames(walk);
	l->any_runtimes |= w->has_runtimes;
	if (sp >= walk->window_start && sp < window_end) {
		w->blank_start = sp + REPLAY_KEPT_ABOVE;
		w->blank_end = window_end;
	}
	w->memory = l->walk;
	l->walk = (struct replay_memory){ 0 };
}

/* --- memory ---------------------------------------------------------------------------------- */

static void add_all(struct replay_memory *to, const struct replay_memory *from)
{
	for (size_t i = 0; i < from->reads.nr; i++) {
		const struct replay_read *read = &from->reads.items[i];

		replay_memory_add(to, read->addr, from->bytes.items + read->at, read->size);
	}
	to->full |= from->full;
}

/* What the walks read counts most: it comes last. Merges. */
static int add_walks(const struct replay_live *l, struct replay_memory *to)
{
	for (uint32_t i = 0; i < l->nr_walks; i++)
		if (l->walks[i].has_runtimes || !l->any_runtimes)
			add_all(to, &l->walks[i].memory);
	for (uint32_t i = 0; i < l->nr_walks; i++)
		replay_memory_blank(to, l->walks[i].blank_start, l->walks[i].blank_end);
	return replay_memory_merge(to);
}

static void add_line(const struct replay_live *l, struct replay_memory *to, uint64_t addr)
{
	uint8_t line[LINE];

	addr &= -(uint64_t)LINE;
	if (!process_read_memory(l->pid, addr, line, LINE))
		replay_memory_add(to, addr, line, LINE);
}

/* All that was read, in whole lines as far as they can be read; merged. */
static int gather(const struct replay_live *l, struct replay_memory *ret)
{
	struct replay_memory read = { 0 };
	int r;

	if (l->any_runtimes)
		add_all(&read, &l->process);
	r = add_walks(l, &read);
	for (size_t i = 0; i < read.reads.nr && !r; i++) {
		add_line(l, ret, read.reads.items[i].addr);
		add_line(l, ret, read.reads.items[i].addr + read.reads.items[i].size - 1);
	}
	if (l->any_runtimes)
		add_all(ret, &l->process);
	replay_memory_fini(&read);
	return r ? r : add_walks(l, ret);
}

/* --- names ----------------------------------------------------------------------------------- */

/* The frame words of all walks. */
static int join_words(const struct replay_live *l, __u64 **ret, uint32_t *ret_nr)
{
	uint32_t nr = 0;
	__u64 *words;

	for (uint32_t i = 0; i < l->nr_walks; i++)
		nr += l->walks[i].nr_words;
	words = malloc(nr * sizeof(*words) + 1);
	if (!words)
		return -ENOMEM;
	nr = 0;
	for (uint32_t i = 0; i < l->nr_walks; i++) {
		memcpy(words + nr, l->walks[i].words, l->walks[i].nr_words * sizeof(*words));
		nr += l->walks[i].nr_words;
	}
	*ret = words;
	*ret_nr = nr;
	return 0;
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
		*image =
			(struct replay_image){ .runtime = in->dso->ops->id,
					       .options = replay_image_options(&in->target.options),
					       .bias = in->target.bias };
		r = mapped_file_elf(l->publisher->processes,
				    l->publisher->processes->files.items[in->file], &elf);
		if (!r)
			r = replay_image_make(elf, wanted, image);
		if (r)
			log_debug("replay: no image of %s: %s", in->dso->ops->name, strerror(-r));
		else
			l->nr_images++;
	}
}

struct thinning {
	const struct replay_live *l;
	const struct replay_image_wanted *wanted;
	const char *names;
};

static bool names_hold(void *ctx)
{
	const struct thinning *t = ctx;
	_cleanup_free_ char *names = NULL;

	return !replay_images_name(t->l->images, t->l->nr_images, t->wanted, &names) &&
	       !strcmp(names, t->names);
}

/* Leaves out what nobody needs: of tables that are searched, runtimes need little. */
static int thin_memory(struct thinning *t, struct replay_memory *memory)
{
	struct replay_thin thin = {
		.data = memory->bytes.items,
		.first_piece = THIN_FIRST,
		.last_piece = THIN_LAST,
		.is_enough = names_hold,
		.ctx = t,
	};
	int r = replay_thin(&thin, memory->bytes.nr);

	log_debug("replay: %zu tries for memory", thin.nr_tries);
	return r ? r : add_walks(t->l, memory);
}

/* Makes the images, and `memory` (gathered) thin: both are as good as they were. */
static int thin_all(struct replay_live *l, const struct process_runtimes *list,
		    struct replay_memory *memory)
{
	struct replay_image_wanted wanted = { .machine = l->walks[0].input.machine,
					      .memory = memory };
	struct runtime_proc *procs[RUNTIME_MAX_] = { 0 };
	struct thinning t = { l, &wanted, NULL };
	_cleanup_free_ __u64 *words = NULL;
	_cleanup_free_ char *names = NULL;
	int r = join_words(l, &words, &wanted.nr_words);

	if (r)
		return r;
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		const struct runtime_instance *in = runtimes_find(list, id);

		procs[id] = in ? in->proc : NULL;
	}
	r = replay_names(procs, words, wanted.nr_words, &names);
	if (r)
		return r;
	wanted.words = words;
	t.names = names;
	make_images(l, list, &wanted);
	if (!names_hold(&t)) {
		log_debug("replay: the names can't be found again: no names");
		l->nr_images = 0;
		return 0;
	}
	return thin_memory(&t, memory);
}

/* --- the file -------------------------------------------------------------------------------- */

static void file_name(int32_t pid, char *ret, size_t size)
{
	_cleanup_free_ char *comm = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/comm", pid);
	if (read_file_at(AT_FDCWD, path, 64, &comm, NULL) < 0 || !*comm || *comm == '\n')
		snprintf(ret, size, "process-%" PRId32 ".case.zst", pid);
	else
		snprintf(ret, size, "%.*s-%" PRId32 ".case.zst", (int)strcspn(comm, "\n"), comm,
			 pid);
	for (; *ret; ret++)
		if (*ret == '/' || *ret == ' ')
			*ret = '_';
}

static int put_case(struct replay_live *l, const struct kept_walk *w, struct replay_memory *memory,
		    FILE *out)
{
	struct replay_capture capture = {
		.publisher = l->publisher,
		.snapshot = publisher_snapshot(l->publisher, w->input.process.generation),
		.machine = w->input.machine,
		.valid = w->input.valid,
		.max_frames = w->input.max_frames,
		.runtimes = w->input.process.runtimes,
		.late = w->input.late,
		.pc = w->input.pc,
		.thread_pointer = w->input.thread_pointer,
		.regs = (const uint64_t *)w->regs,
		.memory = memory,
		.words = w->words,
		.nr_words = w->nr_words,
		.stop = w->stop,
		.images = l->images,
		.nr_images = l->nr_images,
	};
	const struct replay_image_wanted wanted = { .machine = w->input.machine,
						    .memory = memory,
						    .words = w->words,
						    .nr_words = w->nr_words };
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_free_ char *names = NULL;
	size_t size;
	int r = 0;

	if (l->nr_images)
		r = replay_images_name(l->images, l->nr_images, &wanted, &names);
	capture.names = names;
	if (!r)
		r = capture.snapshot ? replay_case_make(&capture, &data, &size) : -ESTALE;
	if (r) {
		log_debug("replay: no case of thread %" PRId32 ": %s", w->tid, strerror(-r));
		return 0;
	}
	return fwrite(data, size, 1, out) == 1 ? 0 : -ENOMEM;
}

static int put_all(struct replay_live *l, struct replay_memory *memory, uint8_t **ret,
		   size_t *ret_size)
{
	FILE *out = open_memstream((char **)ret, ret_size);
	int r = 0;

	if (!out)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->nr_walks && !r; i++)
		if (l->walks[i].words && (l->walks[i].has_runtimes || !l->any_runtimes))
			r = put_case(l, &l->walks[i], memory, out);
	return fclose(out) ? -ENOMEM : r;
}

static void write_all(void *ctx, struct process *proc)
{
	struct replay_live *l = ctx;
	struct replay_memory memory = { 0 };
	enum log_level level = log_get_level();
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	char name[96];
	int r = l->nr_walks ? gather(l, &memory) : -ENOENT;

	if (!r && memory.full)
		r = -EFBIG;
	/* Files and memory with holes are complained about. */
	if (level < LOG_LEVEL_DEBUG)
		log_set_level(LOG_LEVEL_ERROR);
	if (!r && l->any_runtimes)
		r = thin_all(l, publisher_runtimes(l->publisher, proc), &memory);
	if (!r)
		r = put_all(l, &memory, &data, &size);
	log_set_level(level);
	replay_memory_fini(&memory);
	file_name(l->pid, name, sizeof(name));
	if (!r && size)
		replay_save_file(l->save, name, data, size);
	else
		log_debug("replay: no cases: %s", strerror(-r));
}

struct thread_observer replay_live_observer(struct replay_live *l)
{
	return (struct thread_observer){
		.ctx = l,
		.begin = begin,
		.tap = tap,
		.walked = keep,
		.end = write_all,
	};
}
