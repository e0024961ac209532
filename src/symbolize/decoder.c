// SPDX-License-Identifier: Apache-2.0
#include "symbolize/decoder.h"
#include "process/memory.h"
#include "unwinder/jit_code.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* For perf maps at the end of a recording: a gigabyte of them. */
#define JIT_NAMES_END_NS (UINT64_C(3) * 1000000000)

static void forget_file(void *ctx, uint32_t index)
{
	struct decoder *r = ctx;

	if (index < r->profile_files.nr)
		r->profile_files.items[index] = UINT32_MAX;
}

int decoder_init(struct decoder *r, struct publisher *publisher, struct profile *profile,
		 const struct symbolizer_options *options)
{
	*r = (struct decoder){ .publisher = publisher, .profile = profile, .epoch = 1 };
	publisher->forget_file = forget_file;
	publisher->ctx = r;
	jit_names_init(&r->jit, profile, publisher->processes);
	kernel_places_init(&r->kernel, profile);
	if (options)
		publisher->runtimes.options = options->runtimes.runtime;
	return symbolizer_init(&r->symbolizer, profile, options);
}

void decoder_fini(struct decoder *r)
{
	symbolizer_fini(&r->symbolizer);
	vec_free(&r->profile_files);
	vec_free(&r->scratch);
	jit_names_fini(&r->jit);
	vec_free(&r->wanted);
	vec_free(&r->inline_frames);
	vec_free(&r->labels);
	kernel_places_fini(&r->kernel);
	time_shares_fini(&r->naming);
}

/* Has the symbols of a file made ready while it can be had. Without them it stays addresses. */
static void want_names(struct decoder *r, const struct wanted_file *w)
{
	const struct mapped_file *file = w->file;
	const struct runtime_dso *dso = runtimes_dso(&r->publisher->runtimes, file->index);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct symbol_file symbols = { .path = file->place ? file->place : file->path,
				       .identity = file->identity,
				       .root_pid = (int)w->pid };
	int err;

	if (file->state != FILE_OPEN || !file->is_elf)
		return;
	/* What lies beside it is behind its server, too; the memfd is ours. */
	if (file->is_copy)
		symbols.owner = &file->owner;
	if (file->is_copy || (!file->place && w->pid &&
			      process_root_may_hang(r->publisher->processes, (int32_t)w->pid))) {
		symbols.path = "";
		symbols.root_pid = 0;
	}
	err = mapped_file_elf(r->publisher->processes, file, &elf);
	if (!err) {
		symbols.elf = elf;
		symbols.fd = elf->fd;
		symbols.image = elf->memory;
		symbols.size = elf->size;
		err = symbolizer_want(&r->symbolizer, w->number, &symbols,
				      dso ? dso->ops->hides : NULL);
	}
	if (err)
		log_debug("no symbols of %s: %s", file->path, strerror(-err));
}

void decoder_want_names(struct decoder *r)
{
	for (size_t i = 0; i < r->wanted.nr; i++) {
		want_names(r, &r->wanted.items[i]);
		process_let_file_go(r->wanted.items[i].file);
	}
	r->wanted.nr = 0;
}

/* The profile's number of a mapped file, which process `pid` maps. */
static int file_number(struct decoder *r, struct mapped_file *file, uint32_t pid, uint32_t *ret)
{
	size_t known = r->profile->files.nr;
	uint64_t identity;
	uint32_t *number;
	int err;

	while (r->profile_files.nr <= file->index) {
		err = vec_push(&r->profile_files, UINT32_MAX);
		if (err)
			return err;
	}
	number = &r->profile_files.items[file->index];
	if (*number == UINT32_MAX) {
		memcpy(&identity, file->identity.hash, sizeof(identity));
		err = profile_add_met_file(r->profile, file->path, file->build_id,
					   file->build_id_len <= 20 ? file->build_id_len : 0,
					   identity, number);
		if (err)
			return err;
		err = vec_push(&r->wanted, (struct wanted_file){ file, *number, pid });
		if (err)
			return err;
		process_hold_file(file);
		r->nr_files += *number >= known;
	}
	*ret = *number;
	return 0;
}

/* What tells code in memory of this process's from another one's, also of one with the same PID. */
static uint32_t scope_of(const struct process *proc, uint32_t pid)
{
	return proc ? (uint32_t)proc->image : pid | UINT32_C(1) << 31;
}

/* The file's table is needed, once for a stack. */
static void need_table(struct decoder *r, uint32_t file, uint32_t user)
{
	_Static_assert(UNWIND_FILES_MAX <= UINT16_MAX + 1, "files' numbers");
	for (uint32_t i = 0; i < r->nr_needed; i++)
		if (r->needed[i] == file)
			return;
	if (r->nr_needed < DECODER_NEEDED_MAX)
		r->needed[r->nr_needed++] = (uint16_t)file;
	unwind_store_touch(r->publisher->store, file, user);
}

/* A new frame in code of no file. What its process has registered with GDB names it; a perf map, if
 * there is one, may tell more. */
static int name_code(struct decoder *r, const struct decoder_stack *stack, uint64_t addr,
		     uint32_t id)
{
	char name[JIT_NAME_MAX];
	int err = jit_code_name(r->publisher, stack->snapshot, (int32_t)stack->pid, addr, name);

	err = err ? 0 : profile_name_frame(r->profile, id, name);
	return err ? err : jit_names_want(&r->jit, stack->pid, id);
}

static int add_native(struct decoder *r, const struct decoder_stack *stack,
		      const struct process *proc, const struct process_runtimes *list,
		      uint64_t addr)
{
	const struct unwind_mapping *m = publisher_mapping(r->publisher, stack->snapshot, addr);
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .address = addr };
	struct mapped_file *file = publisher_file(r->publisher, m ? m->file : MAPPING_ANON);
	bool is_file = m && m->file != MAPPING_ANON;
	size_t known;
	uint32_t id;
	int err;

	if (is_file) {
		need_table(r, m->file, stack->snapshot->user);
		frame.address = addr - m->bias;
		if (runtimes_hides(list, file->index, frame.address) &&
		    !r->symbolizer.options.runtimes.interpreter_frames)
			return 0;
	} else {
		frame.scope = scope_of(proc, stack->pid);
	}
	if (m)
		err = file_number(r, file, stack->pid, &frame.file);
	else
		err = profile_add_file(r->profile, "[unknown]", NULL, 0, &frame.file);
	known = r->profile->frames.nr;
	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	if (!err && id >= known)
		err = m && !is_file ? name_code(r, stack, addr, id)
				    : symbolizer_met(&r->symbolizer, id);
	return err ? err : vec_push(&r->scratch, id);
}

static int add_kernel(struct decoder *r, uint64_t addr)
{
	struct profile_frame frame = { .kind = FRAME_KIND_KERNEL, .address = addr };
	size_t known = r->profile->frames.nr;
	uint32_t id;
	int err = kernel_places_find(&r->kernel, addr, &frame.file, &frame.scope);

	if (!err)
		err = profile_add_frame(r->profile, &frame, &id);
	if (!err && id >= known)
		err = symbolizer_met(&r->symbolizer, id);
	return err ? err : vec_push(&r->scratch, id);
}

enum kernel_change decoder_look_at_kernel(struct decoder *r)
{
	enum kernel_change change;

	symbolizer_kernel_text(&r->symbolizer, &r->kernel.text_start, &r->kernel.text_end);
	change = kernel_places_look(&r->kernel);
	/* Frames of a module that went have its file: they are no others' names. */
	if (change != KERNEL_SAME)
		symbolizer_kernel_changed(&r->symbolizer);
	return change;
}

bool decoder_on_kernel_code(struct decoder *r, const struct side_event *e, const char *name)
{
	bool is_gone = e->type == SIDE_CODE_GONE;

	if (!is_gone)
		symbolizer_kernel_code(&r->symbolizer, e->time_ns, e->start, e->len, name);
	else if (symbolizer_kernel_code_gone(&r->symbolizer, e->start, e->len, name))
		log_debug("a BPF program has no name: out of memory");
	return kernel_places_code(&r->kernel, e->start, e->len, is_gone) == KERNEL_LESS;
}

void decoder_on_lost_events(struct decoder *r)
{
	symbolizer_kernel_code_lost(&r->symbolizer);
}

/* --- frames of runtimes ----------------------------------------------------------------------- */

static int add_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct decoder *r = ctx;
	struct profile_function function = { .start_line = inline_frame->start_line };
	struct profile_line line = { .line = inline_frame->line };
	int err = profile_string(r->profile, inline_frame->name ? inline_frame->name : "",
				 &function.name);

	if (!err)
		err = profile_string(r->profile, inline_frame->source ? inline_frame->source : "",
				     &function.source);
	if (!err)
		err = profile_add_function(r->profile, &function, &line.function);
	return err ? err : vec_push(&r->inline_frames, line);
}

static int take_thread(void *ctx, const char *name)
{
	struct decoder *r = ctx;

	return profile_string(r->profile, name, &r->named_thread);
}

/* What stands for frames of runtime `id` whose names are not known. */
static int unknown_frame(struct decoder *r, uint32_t id, uint32_t *ret)
{
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };

	return profile_add_frame(r->profile, &frame, ret);
}

static int note_frame(struct decoder *r, uint32_t id, uint32_t note, uint32_t *ret)
{
	static const char *const notes[FRAME_NOTES] = {
#define NOTE(name, NAME, number, sentence) [number] = #name,
#include "abi/frame_notes.def"
#undef NOTE
	};
	struct profile_frame frame = { .kind = id == RUNTIME_NATIVE ? FRAME_KIND_NATIVE
								    : FRAME_KIND_OF(id),
				       .file = PROFILE_NO_FILE };
	char name[64];
	int err;

	if (note >= FRAME_NOTES || !notes[note])
		return -EINVAL;
	snprintf(name, sizeof(name), "[%s: %s]", runtimes[id]->name, notes[note]);
	r->inline_frames.nr = 0;
	err = add_inline_frame(r, &(struct runtime_inline_frame){ .name = name });
	if (!err)
		err = profile_add_named_frame(r->profile, &frame, r->inline_frames.items,
					      r->inline_frames.nr, ret);
	return err;
}

/* In place of a frame's number, beside that of a thread's name. */
#define NAMES_THREAD (UINT64_C(1) << 32)

/* Asks the runtime: a frame's number, or a thread's name. */
static int name_frame(struct decoder *r, struct runtime_instance *in, const uint64_t *words,
		      size_t nr, uint64_t *ret)
{
	const struct runtime_sink sink = { add_inline_frame, r, take_thread };
	uint32_t id = in->dso->ops->id;
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };
	uint32_t number;
	int err;

	r->inline_frames.nr = 0;
	r->named_thread = 0;
	err = in->dso->ops->symbolize(in->proc, words, nr, &sink);
	if (err == -ENOMEM)
		return err;
	if (r->named_thread) {
		*ret = NAMES_THREAD | r->named_thread;
		return 0;
	}
	if (err || !r->inline_frames.nr)
		err = unknown_frame(r, id, &number);
	else
		err = profile_add_named_frame(r->profile, &frame, r->inline_frames.items,
					      r->inline_frames.nr, &number);
	*ret = number;
	return err;
}

enum { NAMED_FRAMES_MAX = 1 << 18 }; /* of all processes; then they begin anew */

/*
 * name_frame() in that user's share of the time. -EAGAIN: he has had it. What his processes run is
 * made up perhaps, new in each stack and long to read, while everybody's samples wait.
 */
static int name_in_time(struct decoder *r, struct runtime_instance *in, uint32_t user,
			const uint64_t *words, size_t nr, uint64_t *ret)
{
	uint64_t begin;
	int err;

	if (!r->naming.part)
		return name_frame(r, in, words, nr, ret);
	if (!time_shares_begin(&r->naming, user, &begin))
		return -EAGAIN;
	err = name_frame(r, in, words, nr, ret);
	time_shares_end(&r->naming, user, begin);
	return err;
}

/* It is asked for again when another stack has it. */
static int unnamed_frame(struct decoder *r, const struct runtime_instance *in, uint64_t *ret)
{
	uint32_t number;
	int err = unknown_frame(r, in->dso->ops->id, &number);

	r->nr_unnamed++;
	if (!err)
		*ret = number;
	return err;
}

/* Names a runtime's frame from memory: equal words have equal names. */
static int runtime_frame(struct decoder *r, struct runtime_instance *in, uint32_t user,
			 const uint64_t *words, size_t nr, uint64_t *ret)
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
	err = name_in_time(r, in, user, words, nr, ret);
	if (err == -EAGAIN)
		return unnamed_frame(r, in, ret);
	r->nr_named++;
	return err ? err : map_put(&in->frames, hash, *ret);
}

static int add_label(struct decoder *r, const struct runtime_label *from)
{
	struct profile_label label = { .key = 0 };
	int err = profile_string(r->profile, from->key, &label.key);

	/* One without a text would be a number. */
	if (!*from->text)
		return 0;
	if (!err)
		err = profile_string(r->profile, from->text, &label.text);
	return err ? err : vec_push(&r->labels, label);
}

/* What is said once in place of frames that follow each other, if nothing else is shown between. */
static bool is_said(const struct decoder *r, uint64_t note, uint32_t frame)
{
	return (note == FRAME_NOTE_NOT_READY || note == FRAME_NOTE_NO_THREAD_STATE) &&
	       r->scratch.nr && r->scratch.items[r->scratch.nr - 1] == frame;
}

static int add_runtime(struct decoder *r, struct process *proc, const struct process_runtimes *list,
		       uint32_t user, const __u64 *words, size_t left)
{
	uint32_t id = FRAME_RUNTIME(words[0]), frame;
	size_t nr = 1 + FRAME_EXTRA(words[0]);
	struct runtime_instance *in;
	struct runtime_label label;
	uint64_t copy[16], named;
	int err;

	if (id >= RUNTIME_MAX_ || !runtimes[id] || nr > left)
		return -EINVAL;
	memcpy(copy, words, nr * sizeof(*words));
	if (runtimes[id]->sample_label && runtimes[id]->sample_label(copy, nr, &label))
		return add_label(r, &label);
	in = runtimes_find(list, id);
	if (FRAME_IS_NOTE(words[0])) {
		err = note_frame(r, id, (uint32_t)FRAME_DATA(words[0]), &frame);
		if (proc && FRAME_DATA(words[0]) == FRAME_NOTE_NOT_READY)
			publisher_runtime_missed(r->publisher, proc);
		if (!err && is_said(r, FRAME_DATA(words[0]), frame))
			return 0;
	} else if (in) {
		err = runtime_frame(r, in, user, copy, nr, &named);
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

static int add_user(struct decoder *r, const struct decoder_stack *stack)
{
	struct process *proc = stack->proc
				       ? stack->proc
				       : process_find(r->publisher->processes, (int32_t)stack->pid);
	const struct process_runtimes *list = proc ? publisher_runtimes(r->publisher, proc) : NULL;
	size_t i;
	int err = 0;

	if (stack->nr_words && !stack->snapshot)
		return -EINVAL;
	if (proc && stack->stop == STOP_RUNTIME_UNREADABLE)
		publisher_runtime_missed(r->publisher, proc);
	for (i = 0; i < stack->nr_words && !err; i += 1 + FRAME_EXTRA(stack->words[i])) {
		if (FRAME_IS_NATIVE(stack->words[i]))
			err = add_native(r, stack, proc, list, FRAME_DATA(stack->words[i]));
		else
			err = add_runtime(r, proc, list, stack->snapshot->user, stack->words + i,
					  stack->nr_words - i);
	}
	return err;
}

int decoder_add(struct decoder *r, const struct decoder_stack *stack, uint32_t *ret)
{
	size_t i;
	int err = 0;

	r->scratch.nr = r->labels.nr = 0;
	r->thread_name = r->nr_needed = 0;
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

int decoder_name_ready(struct decoder *r)
{
	decoder_want_names(r);
	symbolizer_tick(&r->symbolizer);
	jit_names_tick(&r->jit);
	return symbolizer_apply(&r->symbolizer);
}

int decoder_name_all(struct decoder *r)
{
	size_t left;

	decoder_want_names(r);
	symbolizer_wait(&r->symbolizer);
	left = jit_names_finish(&r->jit, JIT_NAMES_END_NS);
	if (left || r->jit.nr_dropped)
		log_warn("%zu places in code of JITs have no name: there are too many, or their "
			 "perf "
			 "maps are too large",
			 left + (size_t)r->jit.nr_dropped);
	return decoder_name_ready(r);
}

/* --- what the profile has forgotten ----------------------------------------------------------- */

/* Those that are gone are met anew. */
static void move_numbers(uint32_t *numbers, size_t nr, const struct profile_moves *moves)
{
	for (size_t i = 0; i < nr; i++)
		numbers[i] = profile_moved(moves, numbers[i]);
}

static void move_wanted(struct decoder *r, const struct profile_collected *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->wanted.nr; i++) {
		struct wanted_file w = r->wanted.items[i];

		w.number = profile_moved(&c->files, w.number);
		if (w.number != PROFILE_GONE)
			r->wanted.items[kept++] = w;
		else
			process_let_file_go(w.file);
	}
	r->wanted.nr = kept;
}

/* What a runtime named in one process. */
static void move_named(struct decoder *r, struct runtime_instance *in,
		       const struct profile_collected *c)
{
	struct map old = in->frames;
	struct map_slot *slot;
	size_t i = 0;

	in->frames = (struct map){ 0 };
	while (in->epoch == r->epoch && (slot = map_next(&old, &i))) {
		bool is_thread = slot->value & NAMES_THREAD;
		uint32_t to =
			profile_moved(is_thread ? &c->strings : &c->frames, (uint32_t)slot->value);

		if (to != PROFILE_GONE &&
		    !map_put(&in->frames, slot->key, (is_thread ? NAMES_THREAD : 0) | to))
			r->nr_named++;
	}
	map_fini(&old);
}

static void move_all_named(struct decoder *r, const struct profile_collected *c)
{
	struct process_table *processes = r->publisher->processes;
	struct map_slot *slot;
	size_t i = 0;

	r->nr_named = 0;
	while ((slot = map_next(&processes->by_pid, &i))) {
		const struct process *proc = (struct process *)(uintptr_t)slot->value;
		const struct published_process *v = proc->user;

		for (uint32_t k = 0; v && v->runtimes && k < v->runtimes->nr; k++)
			move_named(r, v->runtimes->items[k], c);
	}
}

void decoder_collected(struct decoder *r, const struct profile_collected *c)
{
	_Static_assert(PROFILE_GONE == UINT32_MAX, "what is gone is as if it was never met");
	move_numbers(r->profile_files.items, r->profile_files.nr, &c->files);
	kernel_places_collected(&r->kernel, c);
	move_wanted(r, c);
	move_all_named(r, c);
	jit_names_collected(&r->jit, c);
	if (symbolizer_collected(&r->symbolizer, c))
		for (size_t i = 0; i < r->profile_files.nr; i++)
			r->profile_files.items[i] = UINT32_MAX;
}
