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
	struct decoder *d = ctx;

	if (index < d->profile_files.nr)
		d->profile_files.items[index] = UINT32_MAX;
}

int decoder_init(struct decoder *d, struct publisher *publisher, struct profile *profile,
		 const struct symbolizer_options *options)
{
	*d = (struct decoder){ .publisher = publisher, .profile = profile, .epoch = 1 };
	publisher->forget_file = forget_file;
	publisher->ctx = d;
	jit_names_init(&d->jit, profile, publisher->processes);
	kernel_places_init(&d->kernel, profile);
	if (options)
		publisher->runtimes.options = options->runtimes.runtime;
	return symbolizer_init(&d->symbolizer, profile, options);
}

void decoder_fini(struct decoder *d)
{
	symbolizer_fini(&d->symbolizer);
	vec_free(&d->profile_files);
	vec_free(&d->scratch);
	jit_names_fini(&d->jit);
	vec_free(&d->wanted);
	vec_free(&d->inline_frames);
	vec_free(&d->labels);
	kernel_places_fini(&d->kernel);
	time_shares_fini(&d->name_time);
}

/* Has the symbols of a file made ready while it can be had. Without them it stays addresses. */
static void want_names(struct decoder *d, const struct wanted_file *w)
{
	const struct mapped_file *file = w->file;
	const struct runtime_dso *dso = runtimes_dso(&d->publisher->runtimes, file->index);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct symbol_file symbols = { .path = file->place ? file->place : file->path,
				       .identity = file->identity,
				       .root_pid = (int)w->pid };
	int r;

	if (file->state != FILE_OPEN || !file->is_elf)
		return;
	/* What lies beside it is behind its server, too; the memfd is ours. */
	if (file->is_copy)
		symbols.owner = &file->owner;
	if (file->is_copy || (!file->place && w->pid &&
			      process_root_may_hang(d->publisher->processes, (int32_t)w->pid))) {
		symbols.path = "";
		symbols.root_pid = 0;
	}
	r = mapped_file_elf(d->publisher->processes, file, &elf);
	if (!r) {
		symbols.elf = elf;
		symbols.fd = elf->fd;
		symbols.image = elf->memory;
		symbols.size = elf->size;
		r = symbolizer_want(&d->symbolizer, w->number, &symbols,
				    dso ? dso->ops->hides : NULL);
	}
	if (r)
		log_debug("no symbols of %s: %s", file->path, strerror(-r));
}

void decoder_want_names(struct decoder *d)
{
	for (size_t i = 0; i < d->wanted.nr; i++) {
		want_names(d, &d->wanted.items[i]);
		process_let_file_go(d->wanted.items[i].file);
	}
	d->wanted.nr = 0;
}

/* The profile's number of a mapped file, which process `pid` maps. */
static int file_number(struct decoder *d, struct mapped_file *file, uint32_t pid, uint32_t *ret)
{
	size_t known = d->profile->files.nr;
	uint64_t identity;
	uint32_t *number;
	int r;

	while (d->profile_files.nr <= file->index) {
		r = vec_push(&d->profile_files, UINT32_MAX);
		if (r)
			return r;
	}
	number = &d->profile_files.items[file->index];
	if (*number == UINT32_MAX) {
		memcpy(&identity, file->identity.hash, sizeof(identity));
		r = profile_add_met_file(d->profile, file->path, file->build_id,
					 file->build_id_len <= 20 ? file->build_id_len : 0,
					 identity, number);
		if (r)
			return r;
		r = vec_push(&d->wanted, (struct wanted_file){ file, *number, pid });
		if (r)
			return r;
		process_hold_file(file);
		d->nr_files += *number >= known;
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
static void need_table(struct decoder *d, uint32_t file, uint32_t user)
{
	_Static_assert(UNWIND_FILES_MAX <= UINT16_MAX + 1, "files' numbers");
	for (uint32_t i = 0; i < d->nr_needed; i++)
		if (d->needed[i] == file)
			return;
	if (d->nr_needed < DECODER_NEEDED_MAX)
		d->needed[d->nr_needed++] = (uint16_t)file;
	unwind_store_touch(d->publisher->store, file, user);
}

/* A new frame in code of no file. What its process has registered with GDB names it; a perf map, if
 * there is one, may tell more. */
static int name_code(struct decoder *d, const struct decoder_stack *stack, uint64_t addr,
		     uint32_t id)
{
	char name[JIT_NAME_MAX];
	int r = jit_code_name(d->publisher, stack->snapshot, (int32_t)stack->pid, addr, name);

	r = r ? 0 : profile_name_frame(d->profile, id, name);
	return r ? r : jit_names_want(&d->jit, stack->pid, id);
}

static int add_native(struct decoder *d, const struct decoder_stack *stack,
		      const struct process *proc, const struct process_runtimes *list,
		      uint64_t addr)
{
	const struct unwind_mapping *m = publisher_mapping(d->publisher, stack->snapshot, addr);
	struct profile_frame frame = { .kind = FRAME_KIND_NATIVE, .address = addr };
	struct mapped_file *file = publisher_file(d->publisher, m ? m->file : MAPPING_ANON);
	bool is_file = m && m->file != MAPPING_ANON;
	size_t known;
	uint32_t id;
	int r;

	if (is_file) {
		need_table(d, m->file, stack->snapshot->user);
		frame.address = addr - m->bias;
		if (runtimes_hides(list, file->index, frame.address) &&
		    !d->symbolizer.options.runtimes.interpreter_frames)
			return 0;
	} else {
		frame.scope = scope_of(proc, stack->pid);
	}
	if (m)
		r = file_number(d, file, stack->pid, &frame.file);
	else
		r = profile_add_file(d->profile, "[unknown]", NULL, 0, &frame.file);
	known = d->profile->frames.nr;
	if (!r)
		r = profile_add_frame(d->profile, &frame, &id);
	if (!r && id >= known)
		r = m && !is_file ? name_code(d, stack, addr, id)
				  : symbolizer_met(&d->symbolizer, id);
	return r ? r : vec_push(&d->scratch, id);
}

static int add_kernel(struct decoder *d, uint64_t addr)
{
	struct profile_frame frame = { .kind = FRAME_KIND_KERNEL, .address = addr };
	size_t known = d->profile->frames.nr;
	uint32_t id;
	int r = kernel_places_find(&d->kernel, addr, &frame.file, &frame.scope);

	if (!r)
		r = profile_add_frame(d->profile, &frame, &id);
	if (!r && id >= known && frame.scope != KERNEL_SCOPE_UNSURE)
		r = symbolizer_met(&d->symbolizer, id);
	return r ? r : vec_push(&d->scratch, id);
}

enum kernel_change decoder_look_at_kernel(struct decoder *d)
{
	enum kernel_change change;

	symbolizer_kernel_text(&d->symbolizer, &d->kernel.text_start, &d->kernel.text_end);
	change = kernel_places_look(&d->kernel);
	/* Frames of a module that went have its file: they are no others' names. */
	if (change != KERNEL_SAME)
		symbolizer_kernel_changed(&d->symbolizer);
	return change;
}

bool decoder_on_kernel_code(struct decoder *d, const struct side_event *e, const char *name)
{
	bool is_gone = e->type == SIDE_CODE_GONE;

	if (!is_gone)
		symbolizer_kernel_code(&d->symbolizer, e->time_ns, e->start, e->len, name);
	else if (symbolizer_kernel_code_gone(&d->symbolizer, e->start, e->len, name))
		log_debug("a BPF program has no name: out of memory");
	return kernel_places_code(&d->kernel, e->start, e->len, is_gone) == KERNEL_LESS;
}

void decoder_on_lost_events(struct decoder *d)
{
	symbolizer_kernel_code_lost(&d->symbolizer);
	kernel_places_lost(&d->kernel);
}

/* --- frames of runtimes ----------------------------------------------------------------------- */

static int add_inline_frame(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct decoder *d = ctx;
	struct profile_function function = { .start_line = inline_frame->start_line };
	struct profile_line line = { .line = inline_frame->line };
	int r = profile_string(d->profile, inline_frame->name ? inline_frame->name : "",
			       &function.name);

	if (!r)
		r = profile_string(d->profile, inline_frame->source ? inline_frame->source : "",
				   &function.source);
	if (!r)
		r = profile_add_function(d->profile, &function, &line.function);
	return r ? r : vec_push(&d->inline_frames, line);
}

static int take_thread(void *ctx, const char *name)
{
	struct decoder *d = ctx;

	return profile_string(d->profile, name, &d->named_thread);
}

/* What stands for frames of runtime `id` whose names are not known. */
static int unknown_frame(struct decoder *d, uint32_t id, uint32_t *ret)
{
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };

	return profile_add_frame(d->profile, &frame, ret);
}

static int note_frame(struct decoder *d, uint32_t id, uint32_t note, uint32_t *ret)
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
	int r;

	if (note >= FRAME_NOTES || !notes[note])
		return -EINVAL;
	snprintf(name, sizeof(name), "[%s: %s]", runtimes[id]->name, notes[note]);
	d->inline_frames.nr = 0;
	r = add_inline_frame(d, &(struct runtime_inline_frame){ .name = name });
	if (!r)
		r = profile_add_named_frame(d->profile, &frame, d->inline_frames.items,
					    d->inline_frames.nr, ret);
	return r;
}

/* In place of a frame's number, beside that of a thread's name. */
#define NAMES_THREAD (UINT64_C(1) << 32)

/* Asks the runtime: a frame's number, or a thread's name. */
static int name_frame(struct decoder *d, struct runtime_instance *in, const uint64_t *words,
		      size_t nr, uint64_t *ret)
{
	const struct runtime_sink sink = { add_inline_frame, d, take_thread };
	uint32_t id = in->dso->ops->id;
	struct profile_frame frame = { .kind = FRAME_KIND_OF(id), .file = PROFILE_NO_FILE };
	uint32_t number;
	int r;

	d->inline_frames.nr = 0;
	d->named_thread = 0;
	r = in->dso->ops->symbolize(in->proc, words, nr, &sink);
	if (r == -ENOMEM)
		return r;
	if (d->named_thread) {
		*ret = NAMES_THREAD | d->named_thread;
		return 0;
	}
	if (r || !d->inline_frames.nr)
		r = unknown_frame(d, id, &number);
	else
		r = profile_add_named_frame(d->profile, &frame, d->inline_frames.items,
					    d->inline_frames.nr, &number);
	*ret = number;
	return r;
}

enum { NAMED_FRAMES_MAX = 1 << 18 }; /* of all processes; then they begin anew */

/*
 * name_frame() in that user's share of the time. -EAGAIN: he has had it. What his processes run is
 * made up perhaps, new in each stack and long to read, while everybody's samples wait.
 */
static int name_in_time(struct decoder *d, struct runtime_instance *in, uint32_t user,
			const uint64_t *words, size_t nr, uint64_t *ret)
{
	uint64_t begin;
	int r;

	if (!d->name_time.part)
		return name_frame(d, in, words, nr, ret);
	if (!time_shares_begin(&d->name_time, user, &begin))
		return -EAGAIN;
	r = name_frame(d, in, words, nr, ret);
	time_shares_end(&d->name_time, user, begin);
	return r;
}

/* It is asked for again when another stack has it. */
static int unnamed_frame(struct decoder *d, const struct runtime_instance *in, uint64_t *ret)
{
	uint32_t number;
	int r = unknown_frame(d, in->dso->ops->id, &number);

	d->nr_unnamed++;
	d->lacks_names = true;
	if (!r)
		*ret = number;
	return r;
}

/* Names a runtime's frame from memory: equal words have equal names. */
static int runtime_frame(struct decoder *d, struct runtime_instance *in, uint32_t user,
			 const uint64_t *words, size_t nr, uint64_t *ret)
{
	uint64_t hash = XXH3_64bits(words, nr * sizeof(*words)), *found;
	int r;

	if (d->nr_named >= NAMED_FRAMES_MAX) {
		d->nr_named = 0;
		d->epoch++;
	}
	if (in->epoch != d->epoch)
		map_fini(&in->frames);
	in->epoch = d->epoch;
	found = map_get(&in->frames, hash);
	if (found) {
		*ret = *found;
		return 0;
	}
	r = name_in_time(d, in, user, words, nr, ret);
	if (r == -EAGAIN)
		return unnamed_frame(d, in, ret);
	d->nr_named++;
	return r ? r : map_put(&in->frames, hash, *ret);
}

static int add_label(struct decoder *d, const struct runtime_label *from)
{
	struct profile_label label = { .key = 0 };
	int r = profile_string(d->profile, from->key, &label.key);

	/* One without a text would be a number. */
	if (!*from->text)
		return 0;
	if (!r)
		r = profile_string(d->profile, from->text, &label.text);
	return r ? r : vec_push(&d->labels, label);
}

/* What is said once in place of frames that follow each other, if nothing else is shown between. */
static bool is_said(const struct decoder *d, uint64_t note, uint32_t frame)
{
	return (note == FRAME_NOTE_NOT_READY || note == FRAME_NOTE_NO_THREAD_STATE) &&
	       d->scratch.nr && d->scratch.items[d->scratch.nr - 1] == frame;
}

static int add_runtime(struct decoder *d, struct process *proc, const struct process_runtimes *list,
		       uint32_t user, const __u64 *words, size_t left)
{
	uint32_t id = FRAME_RUNTIME(words[0]), frame;
	size_t nr = 1 + FRAME_EXTRA(words[0]);
	struct runtime_instance *in;
	struct runtime_label label;
	uint64_t copy[16], named;
	int r;

	if (id >= RUNTIME_MAX_ || !runtimes[id] || nr > left)
		return -EINVAL;
	memcpy(copy, words, nr * sizeof(*words));
	if (runtimes[id]->sample_label && runtimes[id]->sample_label(copy, nr, &label))
		return add_label(d, &label);
	in = runtimes_find(list, id);
	if (FRAME_IS_NOTE(words[0])) {
		r = note_frame(d, id, (uint32_t)FRAME_DATA(words[0]), &frame);
		if (proc && FRAME_DATA(words[0]) == FRAME_NOTE_NOT_READY)
			publisher_runtime_missed(d->publisher, proc);
		if (!r && is_said(d, FRAME_DATA(words[0]), frame))
			return 0;
	} else if (in) {
		r = runtime_frame(d, in, user, copy, nr, &named);
		frame = (uint32_t)named;
		if (!r && named & NAMES_THREAD) {
			d->thread_name = d->thread_name ?: frame;
			return 0;
		}
	} else {
		r = unknown_frame(d, id, &frame);
	}
	return r ? r : vec_push(&d->scratch, frame);
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int add_user(struct decoder *d, const struct decoder_stack *stack)
{
	struct process *proc = stack->proc
				       ? stack->proc
				       : process_find(d->publisher->processes, (int32_t)stack->pid);
	const struct process_runtimes *list = proc ? publisher_runtimes(d->publisher, proc) : NULL;
	size_t i;
	int r = 0;

	if (stack->nr_words && !stack->snapshot)
		return -EINVAL;
	if (proc && stack->stop == STOP_RUNTIME_UNREADABLE)
		publisher_runtime_missed(d->publisher, proc);
	for (i = 0; i < stack->nr_words && !r; i += 1 + FRAME_EXTRA(stack->words[i])) {
		if (FRAME_IS_NATIVE(stack->words[i]))
			r = add_native(d, stack, proc, list, FRAME_DATA(stack->words[i]));
		else
			r = add_runtime(d, proc, list, stack->snapshot->user, stack->words + i,
					stack->nr_words - i);
	}
	return r;
}

int decoder_add(struct decoder *d, const struct decoder_stack *stack, uint32_t *ret)
{
	size_t i;
	int r = 0;

	d->scratch.nr = d->labels.nr = 0;
	d->thread_name = d->nr_needed = 0;
	d->lacks_names = false;
	for (i = 0; i < stack->nr_kernel && !r; i++)
		/* Callers are return addresses; a call may be its function's last instruction. */
		r = add_kernel(d, stack->kernel[i] - (i > 0));
	if (!r)
		r = add_user(d, stack);
	if (r)
		return r;
	return profile_add_stack(d->profile, d->scratch.items, d->scratch.nr, stack->stop, ret);
}

int decoder_look_again(struct decoder *d, uint32_t stack, uint32_t *ret)
{
	const struct profile_stack s = d->profile->stacks.items[stack];
	bool differs = false;
	uint32_t i;
	int r = 0;

	d->scratch.nr = 0;
	for (i = 0; i < s.nr && !r; i++) {
		uint32_t id = d->profile->stack_frames.items[s.first + i];
		const struct profile_frame *f = &d->profile->frames.items[id];

		if (f->kind == FRAME_KIND_KERNEL && f->file != PROFILE_NO_FILE)
			r = add_kernel(d, f->address);
		else
			r = vec_push(&d->scratch, id);
		differs |= !r && d->scratch.items[i] != id;
	}
	if (r)
		return r;
	if (differs)
		return profile_add_stack(d->profile, d->scratch.items, d->scratch.nr,
					 (enum stop_reason)s.stop, ret);
	*ret = stack;
	return 0;
}

/* --- names ----------------------------------------------------------------------------------- */

int decoder_name_ready(struct decoder *d)
{
	decoder_want_names(d);
	symbolizer_tick(&d->symbolizer);
	jit_names_tick(&d->jit);
	return symbolizer_apply(&d->symbolizer);
}

int decoder_name_all(struct decoder *d)
{
	size_t left;

	decoder_want_names(d);
	symbolizer_wait(&d->symbolizer);
	left = jit_names_finish(&d->jit, JIT_NAMES_END_NS);
	if (left || d->jit.nr_dropped)
		log_warn("%zu places in code of JITs have no name: there are too many, or their "
			 "perf "
			 "maps are too large",
			 left + (size_t)d->jit.nr_dropped);
	return decoder_name_ready(d);
}

/* --- what the profile has forgotten ----------------------------------------------------------- */

/* Those that are gone are met anew. */
static void move_numbers(uint32_t *numbers, size_t nr, const struct profile_moves *moves)
{
	for (size_t i = 0; i < nr; i++)
		numbers[i] = profile_moved(moves, numbers[i]);
}

static void move_wanted(struct decoder *d, const struct profile_collected *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->wanted.nr; i++) {
		struct wanted_file w = d->wanted.items[i];

		w.number = profile_moved(&c->files, w.number);
		if (w.number != PROFILE_GONE)
			d->wanted.items[kept++] = w;
		else
			process_let_file_go(w.file);
	}
	d->wanted.nr = kept;
}

/* What a runtime named in one process. */
static void move_named(struct decoder *d, struct runtime_instance *in,
		       const struct profile_collected *c)
{
	struct map old = in->frames;
	struct map_slot *slot;
	size_t i = 0;

	in->frames = (struct map){ 0 };
	while (in->epoch == d->epoch && (slot = map_next(&old, &i))) {
		bool is_thread = slot->value & NAMES_THREAD;
		uint32_t to =
			profile_moved(is_thread ? &c->strings : &c->frames, (uint32_t)slot->value);

		if (to != PROFILE_GONE &&
		    !map_put(&in->frames, slot->key, (is_thread ? NAMES_THREAD : 0) | to))
			d->nr_named++;
	}
	map_fini(&old);
}

static void move_all_named(struct decoder *d, const struct profile_collected *c)
{
	struct process_table *processes = d->publisher->processes;
	struct map_slot *slot;
	size_t i = 0;

	d->nr_named = 0;
	while ((slot = map_next(&processes->by_pid, &i))) {
		const struct process *proc = (struct process *)(uintptr_t)slot->value;
		const struct published_process *v = proc->user;

		for (uint32_t k = 0; v && v->runtimes && k < v->runtimes->nr; k++)
			move_named(d, v->runtimes->items[k], c);
	}
}

void decoder_collected(struct decoder *d, const struct profile_collected *c)
{
	_Static_assert(PROFILE_GONE == UINT32_MAX, "what is gone is as if it was never met");
	move_numbers(d->profile_files.items, d->profile_files.nr, &c->files);
	kernel_places_collected(&d->kernel, c);
	move_wanted(d, c);
	move_all_named(d, c);
	jit_names_collected(&d->jit, c);
	if (symbolizer_collected(&d->symbolizer, c))
		for (size_t i = 0; i < d->profile_files.nr; i++)
			d->profile_files.items[i] = UINT32_MAX;
}
