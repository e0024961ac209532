// SPDX-License-Identifier: Apache-2.0
#include "agent/resolver.h"
#include "symbol/perf_map.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Between two looks at perf maps: so many times what the last one took of the CPU. */
enum { ANONYMOUS_PAUSE = 20 };

int resolver_init(struct resolver *r, struct publisher *publisher, struct profile *profile,
		  const struct naming_options *options)
{
	*r = (struct resolver){ .publisher = publisher, .profile = profile, .epoch = 1 };
	if (options)
		publisher->runtimes.options = options->runtimes.runtime;
	return naming_init(&r->naming, profile, options);
}

void resolver_fini(struct resolver *r)
{
	naming_fini(&r->naming);
	vec_free(&r->profile_files);
	vec_free(&r->scratch);
	vec_free(&r->anonymous);
	vec_free(&r->wanted);
	vec_free(&r->levels);
	kernel_image_fini(&r->kernel);
	vec_free(&r->kernel_files);
}

/* Has the symbols of a file made ready while it can be had. Without them it stays addresses. */
static void want_names(struct resolver *r, const struct wanted_file *w)
{
	const struct mapped_file *file = r->publisher->processes->files.items[w->file];
	const struct runtime_dso *dso = runtimes_dso(&r->publisher->runtimes, w->file);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct symbol_file symbols = { .path = file->place ? file->place : file->path,
				       .root_pid = (int)w->pid };
	int err;

	if (file->state != FILE_OPEN || !file->is_elf)
		return;
	err = mapped_file_elf(file, &elf);
	if (!err) {
		symbols.elf = elf;
		symbols.fd = elf->fd;
		symbols.image = elf->memory;
		symbols.size = elf->size;
		err = naming_want(&r->naming, w->number, &symbols, dso ? dso->ops->folds : NULL);
	}
	if (err)
		log_debug("no symbols of %s: %s", file->path, strerror(-err));
}

void resolver_want_names(struct resolver *r)
{
	for (size_t i = 0; i < r->wanted.nr; i++)
		want_names(r, &r->wanted.items[i]);
	r->wanted.nr = 0;
}

/* The profile's number of a mapped file, which process `pid` maps. */
static int file_number(struct resolver *r, uint32_t index, uint32_t pid, uint32_t *ret)
{
	const struct mapped_file *file = r->publisher->processes->files.items[index];
	uint32_t *number;
	int err;

	while (r->profile_files.nr <= index) {
		err = vec_push(&r->profile_files, UINT32_MAX);
		if (err)
			return err;
	}
	number = &r->profile_files.items[index];
	if (*number == UINT32_MAX) {
		err = profile_add_file(r->profile, file->path, file->build_id,
				       file->build_id_len <= 20 ? file->build_id_len : 0, number);
		if (err)
			return err;
		err = vec_push(&r->wanted, (struct wanted_file){ index, *number, pid });
		if (err)
			return err;
	}
	*ret = *number;
	return 0;
}

static int add_native(struct resolver *r, const struct resolver_stack *stack,
		      const struct process_runtimes *list, uint64_t addr)
{
	const struct unwind_mapping *m = publisher_mapping(r->publisher, stack->block, addr);
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .address = addr };
	bool is_file = m && m->file != MAPPING_ANON && m->file < r->publisher->processes->files.nr;
	size_t known;
	uint32_t id;
	int err;

	if (is_file) {
		frame.address = addr - m->bias;
		if (runtimes_folds(list, m->file, frame.address) &&
		    !r->naming.options.runtimes.interpreter_frames)
			return 0;
		unwind_store_touch(r->publisher->store, m->file);
	} else {
		frame.scope = stack->pid; /* the same address is other code in another process */
	}
	if (m)
		err = file_number(r, is_file ? m->file : MAPPING_ANON, stack->pid, &frame.file);
	else
		err = profile_add_file(r->profile, "[unknown]", NULL, 0, &frame.file);
	known = r->profile->frames.nr;
	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	if (!err && m && !is_file && id >= known && r->anonymous.nr < ANONYMOUS_FRAMES_MAX)
		err = vec_push(&r->anonymous, (struct anonymous_frame){ stack->pid, id });
	return err ? err : vec_push(&r->scratch, id);
}

/* The profile's number of the kernel, or of the module that has the address. */
static int kernel_file_number(struct resolver *r, uint64_t addr, uint32_t *ret)
{
	const struct kernel_file *file;
	uint32_t *number;
	int err;

	if (!r->kernel_known) {
		err = kernel_image_read(&r->kernel);
		if (err)
			return err;
		r->kernel_known = true;
	}
	file = kernel_image_find(&r->kernel, addr);
	while (r->kernel_files.nr < r->kernel.nr) {
		err = vec_push(&r->kernel_files, UINT32_MAX);
		if (err)
			return err;
	}
	number = &r->kernel_files.items[file - r->kernel.files];
	if (*number == UINT32_MAX) {
		err = profile_add_file(r->profile, file->name, file->build_id, file->build_id_len,
				       number);
		if (err)
			return err;
		r->profile->files.items[*number].start = file->start;
		r->profile->files.items[*number].end = file->end;
	}
	*ret = *number;
	return 0;
}

static int add_kernel(struct resolver *r, uint64_t addr)
{
	struct profile_frame frame = { .kind = FRAME_KIND_KERNEL, .address = addr };
	uint32_t id;
	int err = kernel_file_number(r, addr, &frame.file);

	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	return err ? err : vec_push(&r->scratch, id);
}

/* --- frames of runtimes ----------------------------------------------------------------------- */

static int add_level(void *ctx, const struct runtime_level *level)
{
	struct resolver *r = ctx;
	struct profile_function function = { .start_line = level->start_line };
	struct profile_line line = { .line = level->line };
	int err = profile_string(r->profile, level->name ? level->name : "", &function.name);

	if (!err)
		err = profile_string(r->profile, level->source ? level->source : "",
				     &function.source);
	if (!err)
		err = profile_add_function(r->profile, &function, &line.function);
	return err ? err : vec_push(&r->levels, line);
}

static int take_thread(void *ctx, const char *name)
{
	struct resolver *r = ctx;

	return profile_string(r->profile, name, &r->named_thread);
}

/* What stands for frames of runtime `id` whose names are not known. */
static int unknown_frame(struct resolver *r, uint32_t id, uint32_t *ret)
{
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };

	return profile_add_frame(r->profile, &frame, ret);
}

static int note_frame(struct resolver *r, uint32_t id, uint32_t note, uint32_t *ret)
{
	static const char *const notes[FRAME_NOTES] = {
#define NOTE(name, NAME, number, sentence) [number] = #name,
#include "abi/frame_notes.def"
#undef NOTE
	};
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };
	char name[64];
	int err;

	if (!notes[note])
		return -EINVAL;
	snprintf(name, sizeof(name), "[%s: %s]", runtimes[id]->name, notes[note]);
	r->levels.nr = 0;
	err = add_level(r, &(struct runtime_level){ .name = name });
	if (!err)
		err = profile_add_named_frame(r->profile, &frame, r->levels.items, r->levels.nr,
					      ret);
	return err;
}

/* In place of a frame's number, beside that of a thread's name. */
#define NAMES_THREAD (UINT64_C(1) << 32)

/* Asks the runtime: a frame's number, or a thread's name. */
static int name_frame(struct resolver *r, struct runtime_instance *in, const uint64_t *words,
		      size_t nr, uint64_t *ret)
{
	const struct runtime_sink sink = { add_level, r, take_thread };
	uint32_t id = in->dso->ops->id;
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };
	uint32_t number;
	int err;

	r->levels.nr = 0;
	r->named_thread = 0;
	err = in->dso->ops->symbolize(in->proc, words, nr, &sink);
	if (err == -ENOMEM)
		return err;
	if (r->named_thread) {
		*ret = NAMES_THREAD | r->named_thread;
		return 0;
	}
	if (err || !r->levels.nr)
		err = unknown_frame(r, id, &number);
	else
		err = profile_add_named_frame(r->profile, &frame, r->levels.items, r->levels.nr,
					      &number);
	*ret = number;
	return err;
}

enum { NAMED_FRAMES_MAX = 1 << 18 }; /* of all processes; then they begin anew */

/* The same from memory: equal words have equal names. */
static int runtime_frame(struct resolver *r, struct runtime_instance *in, const uint64_t *words,
			 size_t nr, uint64_t *ret)
{
	uint64_t hash = XXH3_64bits(words, nr * sizeof(*words)), *found;
	int err;

	if (r->nr_named >= NAMED_FRAMES_MAX) {
		r->nr_named = 0;
		r->epoch++;
	}
	if (in->epoch != r->epoch)
		map_fini(&in->frames);
	in->epoch = r->epoch;
	found = map_get(&in->frames, hash);
	if (found) {
		*ret = *found;
		return 0;
	}
	err = name_frame(r, in, words, nr, ret);
	r->nr_named++;
	return err ? err : map_put(&in->frames, hash, *ret);
}

/* What is said once in place of frames that follow each other, if nothing else is shown between. */
static bool is_said(const struct resolver *r, uint64_t note, uint32_t frame)
{
	return (note == FRAME_NOTE_NOT_READY || note == FRAME_NOTE_NO_THREAD_STATE) &&
	       r->scratch.nr && r->scratch.items[r->scratch.nr - 1] == frame;
}

static int add_runtime(struct resolver *r, struct process *proc,
		       const struct process_runtimes *list, const __u64 *words, size_t left)
{
	uint32_t id = FRAME_RUNTIME(words[0]), frame;
	size_t nr = 1 + FRAME_EXTRA(words[0]);
	struct runtime_instance *in;
	uint64_t copy[16], named;
	int err;

	if (id >= RUNTIME_MAX_ || !runtimes[id] || nr > left)
		return -EINVAL;
	in = runtimes_find(list, id);
	if (FRAME_IS_NOTE(words[0])) {
		err = note_frame(r, id, (uint32_t)FRAME_DATA(words[0]), &frame);
		if (proc && FRAME_DATA(words[0]) == FRAME_NOTE_NOT_READY)
			publisher_runtime_missed(r->publisher, proc);
		if (!err && is_said(r, FRAME_DATA(words[0]), frame))
			return 0;
	} else if (in) {
		memcpy(copy, words, nr * sizeof(*words));
		err = runtime_frame(r, in, copy, nr, &named);
		frame = (uint32_t)named;
		if (!err && named & NAMES_THREAD) {
			r->thread_name = r->thread_name ?: frame;
			return 0;
		}
	} else {
		err = unknown_frame(r, id, &frame);
	}
	return err ? err : vec_push(&r->scratch, frame);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int add_user(struct resolver *r, const struct resolver_stack *stack)
{
	struct process *proc = stack->proc
				       ? stack->proc
				       : process_find(r->publisher->processes, (int32_t)stack->pid);
	const struct process_runtimes *list = proc ? publisher_runtimes(r->publisher, proc) : NULL;
	size_t i;
	int err = 0;

	if (stack->nr_words && !stack->block)
		return -EINVAL;
	if (proc && stack->stop == STOP_RUNTIME_UNREADABLE)
		publisher_runtime_missed(r->publisher, proc);
	for (i = 0; i < stack->nr_words && !err; i += 1 + FRAME_EXTRA(stack->words[i])) {
		if (FRAME_RUNTIME(stack->words[i]) == RUNTIME_NATIVE)
			err = add_native(r, stack, list, FRAME_DATA(stack->words[i]));
		else
			err = add_runtime(r, proc, list, stack->words + i, stack->nr_words - i);
	}
	return err;
}

int resolver_add(struct resolver *r, const struct resolver_stack *stack, uint32_t *ret)
{
	size_t i;
	int err = 0;

	r->scratch.nr = 0;
	r->thread_name = 0;
	for (i = 0; i < stack->nr_kernel && !err; i++)
		/* Callers are return addresses; a call may be its function's last instruction. */
		err = add_kernel(r, stack->kernel[i] - (i > 0));
	if (!err)
		err = add_user(r, stack);
	if (err)
		return err;
	return profile_add_stack(r->profile, r->scratch.items, r->scratch.nr, stack->stop, ret);
}

/* --- names ----------------------------------------------------------------------------------- */

/* Names those of process `pid` that its perf map knows; drops them from the list. */
static void name_by_map(struct resolver *r, uint32_t pid, const struct perf_map *map)
{
	size_t i, kept = 0;

	for (i = 0; i < r->anonymous.nr; i++) {
		struct anonymous_frame a = r->anonymous.items[i];
		const char *name = NULL;

		if (a.pid == pid)
			name = perf_map_find(map, r->profile->frames.items[a.frame].address);
		if (name)
			profile_name_frame(r->profile, a.frame, name);
		else
			r->anonymous.items[kept++] = a;
	}
	r->anonymous.nr = kept;
}

static void name_anonymous(struct resolver *r)
{
	struct map tried = { 0 };
	size_t i = 0;

	while (i < r->anonymous.nr) {
		_cleanup_(perf_map_free_p) struct perf_map *map = NULL;
		uint32_t pid = r->anonymous.items[i].pid;

		if (map_get(&tried, pid) || map_put(&tried, pid, 1) ||
		    perf_map_read((int)pid, &map)) {
			i++;
			continue;
		}
		name_by_map(r, pid, map);
		i = 0;
	}
	map_fini(&tried);
}

void resolver_name_anonymous(struct resolver *r)
{
	uint64_t begin;

	if (!r->anonymous.nr || now_ns() < r->anonymous_at_ns)
		return;
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	name_anonymous(r);
	r->anonymous_at_ns =
		now_ns() + ANONYMOUS_PAUSE * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

int resolver_name_ready(struct resolver *r)
{
	resolver_want_names(r);
	naming_tick(&r->naming);
	resolver_name_anonymous(r);
	return naming_apply(&r->naming);
}

int resolver_name_all(struct resolver *r)
{
	resolver_want_names(r);
	naming_wait(&r->naming);
	r->anonymous_at_ns = 0;
	return resolver_name_ready(r);
}

void resolver_forget(struct resolver *r)
{
	r->anonymous.nr = 0;
	r->epoch++;
}
