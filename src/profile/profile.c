// SPDX-License-Identifier: Apache-2.0
/*
 * Interning by full identity. Each table is an array of what was added plus a map from the XXH3 of
 * the key to its index. A hash is never taken for the key: on a hit the key is compared, and two
 * keys of one hash take consecutive map keys (hash, hash + 1, ...), so nothing may ever be deleted.
 */
#include "profile/profile.h"

#include <string.h>
#include <xxhash.h>

int profile_init(struct profile *p)
{
	*p = (struct profile){ 0 };
	return strtab_init(&p->strings);
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
	vec_free(&p->samples);
	vec_free(&p->events);
	map_fini(&p->file_ids);
	map_fini(&p->function_ids);
	map_fini(&p->frame_ids);
	map_fini(&p->stack_ids);
	map_fini(&p->process_ids);
	map_fini(&p->thread_ids);
	map_fini(&p->sample_ids);
}

static size_t map_bytes(const struct map *m)
{
	return m->cap * sizeof(*m->slots);
}

#define VEC_BYTES(v) ((v)->cap * sizeof(*(v)->items))

size_t profile_bytes(const struct profile *p)
{
	const struct strtab *s = &p->strings;

	return s->bytes + VEC_BYTES(&s->strings) + map_bytes(&s->by_hash) + VEC_BYTES(&p->files) +
	       VEC_BYTES(&p->functions) + VEC_BYTES(&p->lines) + VEC_BYTES(&p->frames) +
	       VEC_BYTES(&p->stacks) + VEC_BYTES(&p->stack_frames) + VEC_BYTES(&p->processes) +
	       VEC_BYTES(&p->threads) + VEC_BYTES(&p->samples) + VEC_BYTES(&p->events) +
	       map_bytes(&p->file_ids) + map_bytes(&p->function_ids) + map_bytes(&p->frame_ids) +
	       map_bytes(&p->stack_ids) + map_bytes(&p->process_ids) + map_bytes(&p->thread_ids) +
	       map_bytes(&p->sample_ids);
}

int profile_string(struct profile *p, const char *s, uint32_t *ret)
{
	return strtab_intern(&p->strings, s, strlen(s), ret);
}

/*
 * Looks the key up that hashes to *hash: `same(item)` says whether an item has it. The item's
 * number, or -ENOENT: then *hash is where a new one goes.
 */
#define FIND(ids, vec, hash, same)                                                                 \
	({                                                                                         \
		int64_t find_r_ = -ENOENT;                                                         \
		uint64_t *find_at_;                                                                \
                                                                                                   \
		for (; (find_at_ = map_get((ids), (hash))); (hash)++) {                            \
			__auto_type item = &(vec)->items[*find_at_];                               \
                                                                                                   \
			if (same) {                                                                \
				find_r_ = (int64_t)*find_at_;                                      \
				break;                                                             \
			}                                                                          \
		}                                                                                  \
		find_r_;                                                                           \
	})

/* Appends an item under its hash. */
#define ADD(ids, vec, hash, new_item, ret)                                                         \
	({                                                                                         \
		int add_r_ = (vec)->nr >= UINT32_MAX ? -EOVERFLOW : vec_push((vec), new_item);     \
                                                                                                   \
		if (!add_r_) {                                                                     \
			add_r_ = map_put((ids), (hash), (vec)->nr - 1);                            \
			if (add_r_)                                                                \
				(vec)->nr--;                                                       \
			else                                                                       \
				*(ret) = (uint32_t)((vec)->nr - 1);                                \
		}                                                                                  \
		add_r_;                                                                            \
	})

/* --- files and functions ---------------------------------------------------------------------- */

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool same_file(const struct profile_file *a, const struct profile_file *b)
{
	return a->path == b->path && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, sizeof(a->build_id));
}

static uint64_t hash_file(const struct profile_file *file)
{
	return XXH3_64bits_withSeed(file->build_id, sizeof(file->build_id), file->path);
}

int profile_add_file(struct profile *p, const char *path, const uint8_t *build_id,
		     size_t build_id_len, uint32_t *ret)
{
	struct profile_file file = { 0 };
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
	found = FIND(&p->file_ids, &p->files, hash, same_file(item, &file));
	if (found < 0)
		return ADD(&p->file_ids, &p->files, hash, file, ret);
	*ret = (uint32_t)found;
	return 0;
}

int profile_add_function(struct profile *p, const struct profile_function *function, uint32_t *ret)
{
	uint64_t hash = XXH3_64bits(function, sizeof(*function));
	int64_t found = FIND(&p->function_ids, &p->functions, hash,
			     !memcmp(item, function, sizeof(*function)));

	if (found < 0)
		return ADD(&p->function_ids, &p->functions, hash, *function, ret);
	*ret = (uint32_t)found;
	return 0;
}

/* --- frames and stacks ------------------------------------------------------------------------ */

static int add_lines(struct profile *p, const struct profile_line *lines, size_t nr,
		     uint32_t *ret_first)
{
	int r;

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
	found = FIND(&p->frame_ids, &p->frames, hash, same_frame(p, item, frame, lines, nr));
	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	added.named_late = 0;
	added.first_line = 0;
	added.nr_lines = (uint32_t)nr;
	r = nr ? add_lines(p, lines, nr, &added.first_line) : 0;
	return r ? r : ADD(&p->frame_ids, &p->frames, hash, added, ret);
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
	int64_t found =
		FIND(&p->stack_ids, &p->stacks, hash, same_stack(p, item, frames, nr, stop));
	/* A part of a known stack may be added: then `frames` moves with what it lies in. */
	bool is_own = is_within(&p->stack_frames, frames);
	size_t at = is_own ? (size_t)(frames - p->stack_frames.items) : 0;
	struct profile_stack stack;
	int r;

	if (found >= 0) {
		*ret = (uint32_t)found;
		return 0;
	}
	if (p->stack_frames.nr + nr > UINT32_MAX)
		return -EOVERFLOW;
	r = vec_reserve(&p->stack_frames, p->stack_frames.nr + nr);
	if (r)
		return r;
	if (is_own)
		frames = p->stack_frames.items + at;
	stack = (struct profile_stack){ .first = (uint32_t)p->stack_frames.nr,
					.nr = (uint32_t)nr,
					.stop = (uint8_t)stop };
	r = ADD(&p->stack_ids, &p->stacks, hash, stack, ret);
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
	struct profile_process process = { .pid = pid, .key = key, .uid = UINT32_MAX };
	uint64_t hash = XXH3_64bits_withSeed(&pid, sizeof(pid), key);
	int64_t found =
		FIND(&p->process_ids, &p->processes, hash, item->pid == pid && item->key == key);

	if (found < 0)
		return ADD(&p->process_ids, &p->processes, hash, process, ret);
	*ret = (uint32_t)found;
	return 0;
}

/* The thread's number, or -ENOENT; *ret_hash is where it is, or a new one goes. */
static int64_t find_thread(const struct profile *p, const struct profile_thread *thread,
			   uint64_t *ret_hash)
{
	const size_t size = offsetof(struct profile_thread, carrier) + sizeof(thread->carrier);

	*ret_hash = XXH3_64bits(thread, size);
	return FIND(&p->thread_ids, &p->threads, *ret_hash, !memcmp(item, thread, size));
}

int profile_find_carried_thread(const struct profile *p, uint32_t process, int32_t tid,
				const char *name, const char *carrier, uint32_t *ret)
{
	struct profile_thread thread = { .process = process, .tid = tid };
	uint64_t hash;
	int64_t found = -ENOENT;

	if (strtab_find(&p->strings, name, strlen(name), &thread.comm) &&
	    strtab_find(&p->strings, carrier, strlen(carrier), &thread.carrier))
		found = find_thread(p, &thread, &hash);
	if (found < 0)
		return -ENOENT;
	*ret = (uint32_t)found;
	return 0;
}

int profile_find_thread(const struct profile *p, uint32_t process, int32_t tid, const char *comm,
			uint32_t *ret)
{
	return profile_find_carried_thread(p, process, tid, comm, "", ret);
}

int profile_add_carried_thread(struct profile *p, uint32_t process, int32_t tid, const char *name,
			       const char *carrier, uint32_t *ret)
{
	struct profile_thread thread = { .process = process, .tid = tid };
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
		return ADD(&p->thread_ids, &p->threads, hash, thread, ret);
	*ret = (uint32_t)found;
	return 0;
}

int profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *comm,
		       uint32_t *ret)
{
	return profile_add_carried_thread(p, process, tid, comm, "", ret);
}

int profile_add_sample(struct profile *p, uint32_t thread, uint32_t stack, uint64_t count,
		       uint32_t *ret)
{
	uint64_t key = (uint64_t)thread << 32 | stack, *found;
	uint32_t id;
	int r;

	if (stack >= p->stacks.nr || thread >= p->threads.nr)
		return -EINVAL;
	/* Two 32-bit ids fill the map's key exactly: there is nothing to hash or compare. */
	found = map_get(&p->sample_ids, key);
	if (found) {
		p->samples.items[*found].count += count;
		if (ret)
			*ret = (uint32_t)*found;
		return 0;
	}
	r = ADD(&p->sample_ids, &p->samples, key, ((struct profile_sample){ thread, stack, count }),
		&id);
	if (!r && ret)
		*ret = id;
	return r;
}

bool profile_has_sample(const struct profile *p, uint32_t thread, uint32_t stack)
{
	return map_get(&p->sample_ids, (uint64_t)thread << 32 | stack);
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
	if (sample >= p->samples.nr)
		return -EINVAL;
	return vec_push(&p->events, ((struct profile_event){ time_ns, sample, cpu }));
}

void profile_drop_events(struct profile *p)
{
	vec_free(&p->events);
	p->events_dropped = true;
}

/* The memory goes back, too: profile_bytes() is what a caller decides by when to clear. */
void profile_clear_samples(struct profile *p)
{
	vec_free(&p->samples);
	vec_free(&p->events);
	vec_free(&p->threads);
	vec_free(&p->processes);
	vec_free(&p->stacks);
	vec_free(&p->stack_frames);
	vec_free(&p->frames);
	vec_free(&p->lines);
	p->events_dropped = false;
	map_fini(&p->sample_ids);
	map_fini(&p->thread_ids);
	map_fini(&p->process_ids);
	map_fini(&p->stack_ids);
	map_fini(&p->frame_ids);
}

static int move_string(const struct strtab *from, struct strtab *to, uint32_t *id)
{
	const char *s = strtab_get(from, *id);

	return strtab_intern(to, s, strlen(s), id);
}

/* `files` are as many as the profile's. */
static int move_files(const struct profile *p, struct strtab *to, struct profile_file *files,
		      struct map *ids)
{
	for (size_t i = 0; i < p->files.nr; i++) {
		uint64_t hash;
		int r;

		files[i] = p->files.items[i];
		r = move_string(&p->strings, to, &files[i].path);
		if (!r)
			r = move_string(&p->strings, to, &files[i].name);
		if (!r)
			r = move_string(&p->strings, to, &files[i].go_build_id);
		for (hash = hash_file(&files[i]); !r && map_get(ids, hash); hash++)
			;
		if (!r)
			r = map_put(ids, hash, i);
		if (r)
			return r;
	}
	return 0;
}

static int move_all(struct profile *p, struct strtab *to, struct profile_file *files,
		    struct map *ids)
{
	struct profile_host host = p->host;
	struct profile_unit unit = p->unit;
	uint32_t *const strings[] = { &host.name, &host.id,   &host.arch,
				      &host.os,	  &unit.type, &unit.unit };
	int r = strtab_init(to);

	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings) && !r; i++)
		r = move_string(&p->strings, to, strings[i]);
	if (!r)
		r = move_files(p, to, files, ids);
	if (r)
		return r;
	p->host = host;
	p->unit = unit;
	return 0;
}

int profile_forget_names(struct profile *p)
{
	struct profile_file *files;
	struct strtab strings = { 0 };
	struct map ids = { 0 };
	int r;

	if (p->frames.nr || p->threads.nr)
		return -EINVAL;
	files = calloc(p->files.nr + 1, sizeof(*files));
	r = files ? move_all(p, &strings, files, &ids) : -ENOMEM;
	if (r) {
		strtab_fini(&strings);
		map_fini(&ids);
		free(files);
		return r;
	}
	if (p->files.nr)
		memcpy(p->files.items, files, p->files.nr * sizeof(*files));
	free(files);
	strtab_fini(&p->strings);
	p->strings = strings;
	map_fini(&p->file_ids);
	p->file_ids = ids;
	map_fini(&p->function_ids);
	vec_free(&p->functions);
	return 0;
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

	for (size_t i = 0; i < p->samples.nr; i++)
		total += p->samples.items[i].count;
	return total;
}

uint64_t profile_complete(const struct profile *p)
{
	uint64_t total = 0;

	for (size_t i = 0; i < p->samples.nr; i++)
		if (p->stacks.items[p->samples.items[i].stack].stop == STOP_COMPLETE)
			total += p->samples.items[i].count;
	return total;
}
