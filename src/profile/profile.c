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
	vec_free(&p->frames);
	vec_free(&p->stacks);
	vec_free(&p->stack_frames);
	vec_free(&p->samples);
	map_fini(&p->file_ids);
	map_fini(&p->frame_ids);
	map_fini(&p->stack_ids);
	map_fini(&p->sample_ids);
}

static size_t map_bytes(const struct map *m)
{
	return m->cap * sizeof(*m->slots);
}

size_t profile_bytes(const struct profile *p)
{
	const struct strtab *s = &p->strings;

	return s->bytes + s->strings.cap * sizeof(*s->strings.items) + map_bytes(&s->by_hash) +
	       p->files.cap * sizeof(*p->files.items) + p->frames.cap * sizeof(*p->frames.items) +
	       p->stacks.cap * sizeof(*p->stacks.items) +
	       p->stack_frames.cap * sizeof(*p->stack_frames.items) +
	       p->samples.cap * sizeof(*p->samples.items) + map_bytes(&p->file_ids) +
	       map_bytes(&p->frame_ids) + map_bytes(&p->stack_ids) + map_bytes(&p->sample_ids);
}

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

int profile_add_file(struct profile *p, const char *path, const uint8_t *build_id,
		     size_t build_id_len, uint32_t *ret)
{
	struct profile_file file = { 0 };
	const char *name = last_component(path);
	uint64_t hash, *found;
	int r;

	if (build_id_len > sizeof(file.build_id))
		return -EINVAL;
	r = strtab_intern(&p->strings, path, strlen(path), &file.path);
	if (r)
		return r;
	r = strtab_intern(&p->strings, name, strlen(name), &file.name);
	if (r)
		return r;
	if (build_id_len)
		memcpy(file.build_id, build_id, build_id_len);
	file.build_id_len = (uint8_t)build_id_len;

	hash = XXH3_64bits_withSeed(file.build_id, sizeof(file.build_id), file.path);
	for (; (found = map_get(&p->file_ids, hash)); hash++) {
		if (same_file(&p->files.items[*found], &file)) {
			*ret = (uint32_t)*found;
			return 0;
		}
	}
	r = vec_push(&p->files, file);
	if (r)
		return r;
	r = map_put(&p->file_ids, hash, p->files.nr - 1);
	if (r) {
		p->files.nr--;
		return r;
	}
	*ret = (uint32_t)(p->files.nr - 1);
	return 0;
}

static bool same_frame(const struct profile_frame *known, const struct profile_frame *f)
{
	return known->address == f->address && known->file == f->file && known->kind == f->kind &&
	       known->scope == f->scope && (known->named_late ? 0 : known->name) == f->name;
}

int profile_add_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret)
{
	const uint64_t key[3] = { frame->address, (uint64_t)frame->file << 32 | frame->scope,
				  (uint64_t)frame->name << 32 | frame->kind };
	uint64_t hash = XXH3_64bits(key, sizeof(key)), *found;
	int r;

	for (; (found = map_get(&p->frame_ids, hash)); hash++) {
		if (same_frame(&p->frames.items[*found], frame)) {
			*ret = (uint32_t)*found;
			return 0;
		}
	}
	if (p->frames.nr >= UINT32_MAX)
		return -EOVERFLOW;
	r = vec_push(&p->frames, *frame);
	if (r)
		return r;
	p->frames.items[p->frames.nr - 1].named_late = 0;
	r = map_put(&p->frame_ids, hash, p->frames.nr - 1);
	if (r) {
		p->frames.nr--;
		return r;
	}
	*ret = (uint32_t)(p->frames.nr - 1);
	return 0;
}

static bool same_stack(const struct profile *p, const struct profile_stack *known,
		       const uint32_t *frames, size_t nr, enum stop_reason stop)
{
	return known->nr == nr && known->stop == stop &&
	       (!nr || !memcmp(p->stack_frames.items + known->first, frames, nr * sizeof(*frames)));
}

int profile_add_stack(struct profile *p, const uint32_t *frames, size_t nr, enum stop_reason stop,
		      uint32_t *ret)
{
	uint64_t hash = XXH3_64bits_withSeed(frames, nr * sizeof(*frames), stop), *found;
	struct profile_stack stack;
	int r;

	for (; (found = map_get(&p->stack_ids, hash)); hash++) {
		if (same_stack(p, &p->stacks.items[*found], frames, nr, stop)) {
			*ret = (uint32_t)*found;
			return 0;
		}
	}
	if (p->stack_frames.nr + nr > UINT32_MAX || p->stacks.nr >= UINT32_MAX)
		return -EOVERFLOW;
	r = vec_reserve(&p->stack_frames, p->stack_frames.nr + nr);
	if (r)
		return r;
	stack = (struct profile_stack){ .first = (uint32_t)p->stack_frames.nr,
					.nr = (uint32_t)nr,
					.stop = (uint8_t)stop };
	r = vec_push(&p->stacks, stack);
	if (r)
		return r;
	r = map_put(&p->stack_ids, hash, p->stacks.nr - 1);
	if (r) {
		p->stacks.nr--;
		return r;
	}
	if (nr)
		memcpy(p->stack_frames.items + stack.first, frames, nr * sizeof(*frames));
	p->stack_frames.nr += nr;
	*ret = (uint32_t)(p->stacks.nr - 1);
	return 0;
}

int profile_add_sample(struct profile *p, const char *comm, uint32_t stack, uint64_t count)
{
	uint32_t comm_id;
	uint64_t key, *found;
	int r;

	if (stack >= p->stacks.nr)
		return -EINVAL;
	r = strtab_intern(&p->strings, comm, strlen(comm), &comm_id);
	if (r)
		return r;
	/* Two 32-bit ids fill the map's key exactly: there is nothing to hash or compare. */
	key = (uint64_t)comm_id << 32 | stack;
	found = map_get(&p->sample_ids, key);
	if (found) {
		p->samples.items[*found].count += count;
		return 0;
	}
	r = vec_push(&p->samples, ((struct profile_sample){ comm_id, stack, count }));
	if (r)
		return r;
	r = map_put(&p->sample_ids, key, p->samples.nr - 1);
	if (r)
		p->samples.nr--;
	return r;
}

int profile_name_frame(struct profile *p, uint32_t frame, const char *name)
{
	struct profile_frame *f;
	uint32_t id;
	int r;

	if (frame >= p->frames.nr)
		return -EINVAL;
	f = &p->frames.items[frame];
	if (f->name && !f->named_late)
		return -EEXIST;
	r = strtab_intern(&p->strings, name, strlen(name), &id);
	if (r)
		return r;
	f->name = id;
	f->named_late = 1;
	return 0;
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
