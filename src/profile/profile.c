// SPDX-License-Identifier: Apache-2.0
/*
 * Interning by full identity (util/intern.h): each table is an array of what was added plus a map
 * from the XXH3 of the key to its index.
 */
#include "profile/profile.h"
#include "util/intern.h"

#include <string.h>
#include <xxhash.h>

int profile_init(struct profile *p)
{
	*p = (struct profile){ 0 };
	return strtab_init(&p->strings);
}

static void free_counts(struct profile_cut *cut)
{
	vec_free(&cut->samples);
	vec_free(&cut->contexts);
	vec_free(&cut->events);
	vec_free(&cut->values);
	map_fini(&cut->sample_ids);
	map_fini(&cut->context_sample_ids);
}

static void free_contexts(struct profile *p)
{
	vec_free(&p->contexts);
	vec_free(&p->labels);
	map_fini(&p->context_ids);
}

static void free_types(struct profile *p)
{
	free_counts(&p->cut);
	for (size_t i = 0; i < p->others.nr; i++)
		free_counts(&p->others.items[i]);
	vec_free(&p->others);
	vec_free(&p->other_units);
	free_contexts(p);
}

void profile_fini(struct profile *p)
{
	strtab_fini(&p->strings);
	vec_free(&p->files);
	vec_free(&p->functions);
	vec_free(&p->lines);
	vec_free(&p->frames);
	vec_free(&p->stacks);
	vec_free(&p->stack_frames);
	vec_free(&p->processes);
	vec_free(&p->threads);
	free_types(p);
	map_fini(&p->file_ids);
	map_fini(&p->function_ids);
	map_fini(&p->frame_ids);
	map_fini(&p->stack_ids);
	map_fini(&p->process_ids);
	map_fini(&p->thread_ids);
}

#define VEC_BYTES(v) ((v)->cap * sizeof(*(v)->items))

static size_t cut_bytes(const struct profile_cut *cut)
{
	return VEC_BYTES(&cut->samples) + VEC_BYTES(&cut->contexts) + VEC_BYTES(&cut->events) +
	       VEC_BYTES(&cut->values) + map_bytes(&cut->sample_ids) +
	       map_bytes(&cut->context_sample_ids);
}

size_t profile_bytes(const struct profile *p)
{
	const struct strtab *s = &p->strings;
	size_t counts = cut_bytes(&p->cut);

	for (size_t i = 0; i < p->others.nr; i++)
		counts += cut_bytes(&p->others.items[i]);
	return counts + VEC_BYTES(&p->others) + VEC_BYTES(&p->other_units) +
	       VEC_BYTES(&p->contexts) + VEC_BYTES(&p->labels) + map_bytes(&p->context_ids) +
	       s->bytes + VEC_BYTES(&s->strings) + map_bytes(&s->by_hash) + VEC_BYTES(&p->files) +
	       VEC_BYTES(&p->functions) + VEC_BYTES(&p->lines) + VEC_BYTES(&p->frames) +
	       VEC_BYTES(&p->stacks) + VEC_BYTES(&p->stack_frames) + VEC_BYTES(&p->processes) +
	       VEC_BYTES(&p->threads) + map_bytes(&p->file_ids) + map_bytes(&p->function_ids) +
	       map_bytes(&p->frame_ids) + map_bytes(&p->stack_ids) + map_bytes(&p->process_ids) +
	       map_bytes(&p->thread_ids);
}

int profile_string(struct profile *p, const char *s, uint32_t *ret)
{
	if (p->full)
		return strtab_find(&p->strings, s, strlen(s), ret) ? 0 : -ENOSPC;
	return strtab_intern(&p->strings, s, strlen(s), ret);
}

/* intern_add(), unless the profile is full. */
#define ADD(p, ids, vec, hash, item, ret)                                                          \
	((p)->full ? -ENOSPC : intern_add((ids), (vec), (hash), (item), (ret)))

/* --- files and functions ---------------------------------------------------------------------- */

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool same_file(const struct profile_file *a, const struct profile_file *b)
{
	return a->path == b->path && a->identity == b->identity &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, sizeof(a->build_id));
}

static uint64_t hash_file(const struct profile_file *file)
{
	return XXH3_64bits_withSeed(file->build_id, sizeof(file->build_id),
				    file->identity ^ file->path);
}

int profile_add_file(struct profile *p, const char *path, const uint8_t *build_id,
		     size_t build_id_len, uint32_t *ret)
{
	return profile_add_met_file(p, path, build_id, build_id_len, 0, ret);
}

int profile_add_met_file(struct profile *p, const char *path, const uint8_t *build_id,
			 size_t build_id_len, uint64_t identity, uint32_t *ret)
{
	struct profile_file file = { .identity = identity };
	uint64_t hash;
	int64_t found;
	int r;

	if (build_id_len > sizeof(file.build_id))
		return -EINVAL;
	r = profile_string(p, path, &file.path);
	if (!r)
		r = profile_string(p, last_component(path), &file.name);
	if (r)
		return r;
	if (build_id_len)
		memcpy(file.build_id, build_id, build_id_len);
	file.build_id_len = (uint8_t)build_id_len;

	hash = hash_file(&file);
	found = intern_find(&p->file_ids, hash, id, same_file(&p->files.items[id], &file));
	if (found < 0)
		return ADD(p, &p->file_ids, &p->files, hash, file, ret);
	*ret = (uint32_t)found;
	return 0;
}

int profile_add_function(struct profile *p, const struct profile_function *function, uint32_t *ret)
{
	uint64_t hash = XXH3_64bits(function, sizeof(*function));
	int64_t found = intern_find(&p->function_ids, hash, id,
				    !memcmp(&p->functions.items[id], function, sizeof(*function)));

	if (found < 0)
		return ADD(p, &p->function_ids, &p->functions, hash, *function, ret);
	*ret = (uint32_t)found;
	return 0;
}

/* --- frames and stacks ------------------------------------------------------------------------ */

static int add_lines(struct profile *p, const struct profile_line *lines, size_t nr,
		     uint32_t *ret_first)
{
	int r;

	if (p->full)
		return -ENOSPC;
	if (p->lines.nr + nr > UINT32_MAX)
		return -EOVERFLOW;
	r = vec_reserve(&p->lines, p->lines.nr + nr);
	if (r)
		return r;
	if (nr)
		memcpy(p->lines.items + p->lines.nr, lines, nr * sizeof(*lines));
	*ret_first = (uint32_t)p->lines.nr;
	p->lines.nr += nr;
	return 0;
}

static bool same_frame(const struct profile *p, const struct profile_frame *known,
		       const struct profile_frame *f, const struct profile_line *lines, size_t nr)
{
	size_t known_nr = known->named_late ? 0 : known->nr_lines;

	return known->address == f->address && known->file == f->file && known->kind == f->kind &&
	       known->scope == f->scope && known_nr == nr &&
	       (!nr || !memcmp(p->lines.items + known->first_line, lines, nr * sizeof(*lines)));
}

int profile_add_named_frame(struct profile *p, const struct profile_frame *frame,
			    const struct profile_line *lines, size_t nr, uint32_t *ret)
{
	const uint64_t key[3] = { frame->address, (uint64_t)frame->file << 32 | frame->scope,
				  frame->kind };
	struct profile_frame added = *frame;
	uint64_t hash = XXH3_64bits(key, sizeof(key));
	int64_t found;
	int r;

	for (size_t i = 0; i < nr; i++)
		if (lines[i].function >= p->functions.nr)
			return -EINVAL;
	if (nr)
		hash = XXH3_64bits_withSeed(lines, nr * sizeof(*lines), hash);
	found = intern_find(&p->frame_ids, hash, id,
			    same_frame(p, &p->frames.items[id], frame, lines, nr));
	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	added.named_late = 0;
	added.first_line = 0;
	added.nr_lines = (uint32_t)nr;
	r = nr ? add_lines(p, lines, nr, &added.first_line) : 0;
	return r ? r : ADD(p, &p->frame_ids, &p->frames, hash, added, ret);
}

int profile_add_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret)
{
	return profile_add_named_frame(p, frame, NULL, 0, ret);
}

static bool same_stack(const struct profile *p, const struct profile_stack *known,
		       const uint32_t *frames, size_t nr, enum stop_reason stop)
{
	return known->nr == nr && known->stop == stop &&
	       (!nr || !memcmp(p->stack_frames.items + known->first, frames, nr * sizeof(*frames)));
}

#define is_within(vec, item)                                                                       \
	((item) && (uintptr_t)(item) >= (uintptr_t)(vec)->items &&                                 \
	 (uintptr_t)(item) < (uintptr_t)(vec)->items + (vec)->nr * sizeof(*(vec)->items))

int profile_add_stack(struct profile *p, const uint32_t *frames, size_t nr, enum stop_reason stop,
		      uint32_t *ret)
{
	uint64_t hash = XXH3_64bits_withSeed(frames, nr * sizeof(*frames), stop);
	int64_t found = intern_find(&p->stack_ids, hash, id,
				    same_stack(p, &p->stacks.items[id], frames, nr, stop));
	/* A part of a known stack may be added: then `frames` moves with what it lies in. */
	bool is_own = is_within(&p->stack_frames, frames);
	size_t at = is_own ? (size_t)(frames - p->stack_frames.items) : 0;
	struct profile_stack stack;
	int r;

	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	if (p->full)
		return -ENOSPC;
	if (p->stack_frames.nr + nr > UINT32_MAX)
		return -EOVERFLOW;
	r = vec_reserve(&p->stack_frames, p->stack_frames.nr + nr);
	if (r)
		return r;
	if (is_own)
		frames = p->stack_frames.items + at;
	stack = (struct profile_stack){ .first = (uint32_t)p->stack_frames.nr,
					.nr = (uint32_t)nr,
					.used = p->cut.number,
					.stop = (uint8_t)stop };
	r = ADD(p, &p->stack_ids, &p->stacks, hash, stack, ret);
	if (r)
		return r;
	if (nr)
		memcpy(p->stack_frames.items + stack.first, frames, nr * sizeof(*frames));
	p->stack_frames.nr += nr;
	return 0;
}

/* --- who was seen, how often, when ------------------------------------------------------------ */

int profile_add_process(struct profile *p, int32_t pid, uint64_t key, uint32_t *ret)
{
	struct profile_process process = { .pid = pid,
					   .key = key,
					   .uid = UINT32_MAX,
					   .real_uid = UINT32_MAX,
					   .saved_uid = UINT32_MAX };
	uint64_t hash = XXH3_64bits_withSeed(&pid, sizeof(pid), key);
	int64_t found =
		intern_find(&p->process_ids, hash, id,
			    p->processes.items[id].pid == pid && p->processes.items[id].key == key);

	if (found < 0)
		return ADD(p, &p->process_ids, &p->processes, hash, process, ret);
	*ret = (uint32_t)found;
	return 0;
}

/* The thread's number, or -ENOENT; *ret_hash is where it is, or a new one goes. */
static int64_t find_thread(const struct profile *p, const struct profile_thread *thread,
			   uint64_t *ret_hash)
{
	const size_t size = offsetof(struct profile_thread, carrier) + sizeof(thread->carrier);

	*ret_hash = XXH3_64bits(thread, size);
	return intern_find(&p->thread_ids, *ret_hash, id,
			   !memcmp(&p->threads.items[id], thread, size));
}

int profile_add_carried_thread(struct profile *p, uint32_t process, int32_t tid, const char *name,
			       const char *carrier, uint32_t *ret)
{
	struct profile_thread thread = { .process = process, .tid = tid, .used = p->cut.number };
	uint64_t hash;
	int64_t found;
	int r;

	if (process >= p->processes.nr)
		return -EINVAL;
	r = profile_string(p, name, &thread.comm);
	r = r ?: profile_string(p, carrier, &thread.carrier);
	if (r)
		return r;
	found = find_thread(p, &thread, &hash);
	if (found < 0)
		return ADD(p, &p->thread_ids, &p->threads, hash, thread, ret);
	*ret = (uint32_t)found;
	return 0;
}

int profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *comm,
		       uint32_t *ret)
{
	return profile_add_carried_thread(p, process, tid, comm, "", ret);
}

/* Counts in a cut of whatever type. */
static int count(struct profile *p, struct profile_cut *cut, const struct profile_sample *sample,
		 uint32_t *ret)
{
	uint64_t key = (uint64_t)sample->thread << 32 | sample->stack, *found;
	uint32_t id;
	int r;

	if (sample->stack >= p->stacks.nr || sample->thread >= p->threads.nr)
		return -EINVAL;
	/* Two 32-bit ids fill the map's key exactly: there is nothing to hash or compare. */
	found = map_get(&cut->sample_ids, key);
	if (found) {
		cut->samples.items[*found].count += sample->count;
		if (ret)
			*ret = (uint32_t)*found;
		return 0;
	}
	r = ADD(p, &cut->sample_ids, &cut->samples, key, *sample, &id);
	if (r)
		return r;
	p->stacks.items[sample->stack].used = p->threads.items[sample->thread].used = p->cut.number;
	if (ret)
		*ret = id;
	return 0;
}

int profile_add_sample(struct profile *p, uint32_t thread, uint32_t stack, uint64_t value,
		       uint32_t *ret)
{
	return count(p, &p->cut, &(struct profile_sample){ thread, stack, value }, ret);
}

int profile_add_comm_sample(struct profile *p, const char *comm, uint32_t stack, uint64_t count)
{
	uint32_t process, thread;
	int r;

	r = profile_add_process(p, 0, 0, &process);
	if (!r)
		r = profile_add_thread(p, process, 0, comm, &thread);
	return r ? r : profile_add_sample(p, thread, stack, count, NULL);
}

int profile_add_event(struct profile *p, uint32_t sample, uint64_t time_ns, uint32_t cpu)
{
	if (sample >= p->cut.samples.nr)
		return -EINVAL;
	return vec_push(&p->cut.events, ((struct profile_event){ time_ns, sample, cpu }));
}

/* --- other types, values and contexts --------------------------------------------------------- */

static struct profile_cut *cut_of(struct profile *p, uint32_t type)
{
	return type ? &p->others.items[type - 1] : &p->cut;
}

int profile_add_type(struct profile *p, const char *type, const char *unit, uint32_t *ret)
{
	struct profile_unit added;
	uint32_t nr = profile_nr_types(p);
	int r;

	for (uint32_t i = 0; i < nr; i++) {
		if (strcmp(profile_type_name(p, i), type) || strcmp(profile_type_unit(p, i), unit))
			continue;
		*ret = i;
		return 0;
	}
	if (nr >= PROFILE_TYPES_MAX)
		return -E2BIG;
	r = profile_string(p, type, &added.type);
	r = r ?: profile_string(p, unit, &added.unit);
	r = r ?: vec_reserve(&p->other_units, nr);
	r = r ?: vec_push(&p->others, (struct profile_cut){ 0 });
	if (r)
		return r;
	p->other_units.items[p->other_units.nr++] = added;
	*ret = nr;
	return 0;
}

static bool same_context(const struct profile *p, uint32_t id, const struct profile_context *c,
			 const struct profile_label *labels)
{
	const struct profile_context *known = &p->contexts.items[id];

	return !memcmp(known->trace_id, c->trace_id, sizeof(c->trace_id)) &&
	       !memcmp(known->span_id, c->span_id, sizeof(c->span_id)) &&
	       known->nr_labels == c->nr_labels &&
	       (!c->nr_labels || !memcmp(p->labels.items + known->first_label, labels,
					 c->nr_labels * sizeof(*labels)));
}

static bool is_none(const struct profile_context *c)
{
	static const struct profile_context none;

	return !c->nr_labels && !memcmp(c->trace_id, none.trace_id, sizeof(c->trace_id)) &&
	       !memcmp(c->span_id, none.span_id, sizeof(c->span_id));
}

/* Sorted by key, each once; how many. */
static size_t sort_labels(const struct profile_label *labels, size_t nr,
			  struct profile_label *sorted)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		size_t at = kept;

		while (at && sorted[at - 1].key > labels[i].key)
			at--;
		if (at && sorted[at - 1].key == labels[i].key)
			continue;
		memmove(sorted + at + 1, sorted + at, (kept++ - at) * sizeof(*sorted));
		sorted[at] = labels[i];
	}
	return kept;
}

int profile_add_context(struct profile *p, const struct profile_context *context,
			const struct profile_label *given, size_t nr, uint32_t *ret)
{
	struct profile_label labels[PROFILE_LABELS_MAX + 1];
	struct profile_context added = *context;
	size_t first = p->labels.nr;
	uint64_t hash;
	int64_t found;
	uint32_t id;
	int r;

	if (nr > PROFILE_LABELS_MAX || first > UINT32_MAX - nr)
		return nr > PROFILE_LABELS_MAX ? -EINVAL : -EOVERFLOW;
	nr = sort_labels(given, nr, labels);
	added.first_label = (uint32_t)first;
	added.nr_labels = (uint32_t)nr;
	if (is_none(&added)) {
		*ret = 0;
		return 0;
	}
	hash = XXH3_64bits(&added, offsetof(struct profile_context, first_label));
	if (nr)
		hash = XXH3_64bits_withSeed(labels, nr * sizeof(*labels), hash);
	found = intern_find(&p->context_ids, hash, number, same_context(p, number, &added, labels));
	if (found >= 0) {
		*ret = (uint32_t)found + 1;
		return 0;
	}
	r = vec_reserve(&p->labels, first + nr);
	r = r ?: ADD(p, &p->context_ids, &p->contexts, hash, added, &id);
	if (r)
		return r;
	if (nr)
		memcpy(p->labels.items + first, labels, nr * sizeof(*labels));
	p->labels.nr += nr;
	*ret = id + 1;
	return 0;
}

static int count_in_context(struct profile *p, struct profile_cut *cut,
			    const struct profile_measured *m, uint32_t *ret)
{
	const uint32_t key[] = { m->thread, m->stack, m->context };
	uint64_t hash = XXH3_64bits(key, sizeof(key));
	int64_t found;
	uint32_t id;
	int r;

	found = intern_find(&cut->context_sample_ids, hash, number,
			    cut->samples.items[number].thread == m->thread &&
				    cut->samples.items[number].stack == m->stack &&
				    profile_context_of(cut, number) == m->context);
	if (found >= 0) {
		cut->samples.items[found].count += m->value;
		*ret = (uint32_t)found;
		return 0;
	}
	r = vec_reserve(&cut->contexts, cut->samples.nr + 1);
	r = r
		    ?: ADD(p, &cut->context_sample_ids, &cut->samples, hash,
			   ((struct profile_sample){ m->thread, m->stack, m->value }), &id);
	if (r)
		return r;
	while (cut->contexts.nr < id)
		cut->contexts.items[cut->contexts.nr++] = 0;
	cut->contexts.items[cut->contexts.nr++] = m->context;
	p->stacks.items[m->stack].used = p->threads.items[m->thread].used = p->cut.number;
	*ret = id;
	return 0;
}

int profile_add_measured(struct profile *p, const struct profile_measured *m, uint32_t *ret)
{
	const struct profile_sample sample = { m->thread, m->stack, m->value };
	uint32_t id;

	if (m->type >= profile_nr_types(p) || m->stack >= p->stacks.nr ||
	    m->thread >= p->threads.nr || m->context > p->contexts.nr)
		return -EINVAL;
	if (!m->context)
		return count(p, cut_of(p, m->type), &sample, ret);
	return count_in_context(p, cut_of(p, m->type), m, ret ? ret : &id);
}

int profile_add_measured_event(struct profile *p, uint32_t type, const struct profile_event *event,
			       uint64_t value)
{
	struct profile_cut *cut;
	int r;

	if (type >= profile_nr_types(p) || (!type && value != 1) ||
	    event->sample >= profile_cut_of(p, type)->samples.nr)
		return -EINVAL;
	cut = cut_of(p, type);
	if (value == 1 && !cut->values.nr)
		return vec_push(&cut->events, *event);
	r = vec_reserve(&cut->values, cut->events.nr + 1);
	r = r ?: vec_push(&cut->events, *event);
	if (r)
		return r;
	while (cut->values.nr + 1 < cut->events.nr)
		cut->values.items[cut->values.nr++] = 1;
	cut->values.items[cut->values.nr++] = value;
	return 0;
}

static void drop_events(struct profile_cut *cut)
{
	vec_free(&cut->events);
	vec_free(&cut->values);
}

int profile_show_type(struct profile *p, const char *type)
{
	for (uint32_t i = 0; i < profile_nr_types(p); i++) {
		struct profile_unit unit = p->unit;
		struct profile_cut cut = p->cut, *shown;

		if (strcmp(profile_type_name(p, i), type))
			continue;
		if (!i)
			return 0;
		shown = cut_of(p, i);
		/* A cut's number and time are kept with type 0 alone. */
		shown->number = cut.number;
		shown->start_ns = cut.start_ns;
		shown->duration_ns = cut.duration_ns;
		p->cut = *shown;
		*shown = cut;
		p->unit = p->other_units.items[i - 1];
		p->other_units.items[i - 1] = unit;
		p->frequency_hz = 0;
		drop_events(&p->cut);
		drop_events(shown);
		return 0;
	}
	return -ENOENT;
}

/* --- cuts ------------------------------------------------------------------------------------- */

void profile_drop_events(struct profile *p)
{
	drop_events(&p->cut);
	p->cut.events_dropped = true;
}

static void delay_events(struct profile_cut *cut, uint64_t by_ns)
{
	for (size_t i = 0; i < cut->events.nr; i++)
		cut->events.items[i].time_ns += by_ns;
}

void profile_begin_earlier(struct profile *p, uint64_t by_ns)
{
	delay_events(&p->cut, by_ns);
	for (size_t i = 0; i < p->others.nr; i++)
		delay_events(&p->others.items[i], by_ns);
	p->cut.start_ns -= by_ns;
}

/* A cut that was large does not make the next ones expensive. */
static void empty_map(struct map *m)
{
	if (m->nr < m->cap / 16)
		map_fini(m);
	else
		map_clear(m);
}

#define EMPTY_VEC(v)                                                                               \
	do {                                                                                       \
		if ((v)->nr < (v)->cap / 16)                                                       \
			vec_free(v);                                                               \
		(v)->nr = 0;                                                                       \
	} while (0)

static void empty_cut(struct profile_cut *cut)
{
	empty_map(&cut->sample_ids);
	empty_map(&cut->context_sample_ids);
	EMPTY_VEC(&cut->samples);
	EMPTY_VEC(&cut->contexts);
	EMPTY_VEC(&cut->events);
	EMPTY_VEC(&cut->values);
	cut->events_dropped = false;
}

void profile_next_cut(struct profile *p)
{
	empty_cut(&p->cut);
	for (size_t i = 0; i < p->others.nr; i++)
		empty_cut(&p->others.items[i]);
	EMPTY_VEC(&p->contexts);
	EMPTY_VEC(&p->labels);
	empty_map(&p->context_ids);
	p->cut.start_ns = p->cut.duration_ns = 0;
	p->cut.number++;
}

/* The memory goes back, too: profile_bytes() is what a caller decides by when to clear. */
void profile_clear_samples(struct profile *p)
{
	free_counts(&p->cut);
	for (size_t i = 0; i < p->others.nr; i++)
		free_counts(&p->others.items[i]);
	free_contexts(p);
	vec_free(&p->threads);
	vec_free(&p->processes);
	vec_free(&p->stacks);
	vec_free(&p->stack_frames);
	vec_free(&p->frames);
	vec_free(&p->lines);
	p->cut.events_dropped = false;
	map_fini(&p->thread_ids);
	map_fini(&p->process_ids);
	map_fini(&p->stack_ids);
	map_fini(&p->frame_ids);
}

/* --- names ------------------------------------------------------------------------------------ */

int profile_set_lines(struct profile *p, uint32_t frame, const struct profile_line *lines,
		      size_t nr)
{
	struct profile_frame *f;
	uint32_t first;
	int r;

	if (frame >= p->frames.nr || !nr)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++)
		if (lines[i].function >= p->functions.nr)
			return -EINVAL;
	f = &p->frames.items[frame];
	if (f->nr_lines && !f->named_late)
		return -EEXIST;
	r = add_lines(p, lines, nr, &first);
	if (r)
		return r;
	f->first_line = first;
	f->nr_lines = (uint32_t)nr;
	f->named_late = 1;
	return 0;
}

int profile_name_frame(struct profile *p, uint32_t frame, const char *name)
{
	struct profile_function function = { 0 };
	struct profile_line line = { 0 };
	int r;

	r = profile_string(p, name, &function.name);
	if (!r)
		r = profile_add_function(p, &function, &line.function);
	return r ? r : profile_set_lines(p, frame, &line, 1);
}

uint64_t profile_total(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->cut.samples.nr; i++)
		total += p->cut.samples.items[i].count;
	return total;
}

static bool is_not_kept(const struct profile *p, const struct profile_frame *frame)
{
	const char *name;

	if (frame->file != PROFILE_NO_FILE || frame->nr_lines != 1)
		return false;
	name = strtab_get(&p->strings,
			  p->functions.items[p->lines.items[frame->first_line].function].name);
	return (frame->kind == FRAME_KIND_NATIVE && !strcmp(name, PROFILE_NOT_KEPT)) ||
	       (frame->kind == FRAME_KIND_KERNEL && !strcmp(name, PROFILE_KERNEL_NOT_KEPT));
}

enum stop_reason profile_stack_stop(const struct profile *p, uint32_t stack)
{
	const struct profile_stack *s = &p->stacks.items[stack];

	if (s->stop == STOP_COMPLETE && s->nr && p->stack_frames.items[s->first] < p->frames.nr &&
	    is_not_kept(p, &p->frames.items[p->stack_frames.items[s->first]]))
		return STOP_NOT_KEPT;
	return (enum stop_reason)s->stop;
}

uint64_t profile_complete(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->cut.samples.nr; i++)
		if (profile_stack_stop(p, p->cut.samples.items[i].stack) == STOP_COMPLETE)
			total += p->cut.samples.items[i].count;
	return total;
}

uint64_t profile_own(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->cut.samples.nr; i++) {
		const struct profile_sample *s = &p->cut.samples.items[i];

		if (p->processes.items[p->threads.items[s->thread].process].is_own)
			total += s->count;
	}
	return total;
}
