// SPDX-License-Identifier: Apache-2.0
#include "unwind/jit_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

enum {
	VERSION = 1,
	TRIED_MAX = 4, /* images that have an address between theirs */
};

static int read_at(const struct jit_memory *m, uint64_t addr, void *to, uint32_t size)
{
	return addr && !m->read(m->ctx, addr, to, size) ? 0 : -ENOENT;
}

/* The entry's image: its bytes are the caller's to free. */
static int read_image(const struct jit_memory *m, const struct jit_entry *entry, size_t *left,
		      struct jit_image *ret)
{
	_cleanup_free_ uint8_t *bytes = NULL;

	if (!entry->size || entry->size > JIT_IMAGE_MAX)
		return -ENOENT;
	bytes = malloc(entry->size);
	if (!bytes)
		return -ENOMEM;
	if (read_at(m, entry->image, bytes, (uint32_t)entry->size))
		return -ENOENT;
	*ret = (struct jit_image){ TAKE_PTR(bytes), entry->size, m->read, m->ctx, left };
	return 0;
}

static int add_entry(struct jit_list *l, const struct jit_memory *m, uint16_t machine,
		     struct jit_known *known, size_t *left)
{
	struct jit_image image;
	int r = read_image(m, &known->entry, left, &image);

	if (!r) {
		r = jit_image_range(&image, machine, &known->start, &known->end);
		free((void *)image.bytes);
	}
	if (!r)
		r = vec_push(&l->known, *known);
	return r == -ENOENT ? 0 : r;
}

/* A list that loops, or whose links do not fit, ends there. */
static int read_list(struct jit_list *l, const struct jit_memory *m, uint16_t machine)
{
	struct jit_known known = { .at = l->descriptor.first };
	size_t bytes = 0, left = JIT_IMAGES_BYTES;
	int r = 0;

	l->known.nr = 0;
	l->read = false;
	for (uint64_t prev = 0, nr = 0; known.at && nr < JIT_ENTRIES_MAX; nr++) {
		if (read_at(m, known.at, &known.entry, sizeof(known.entry)) ||
		    known.entry.prev != prev)
			break;
		bytes += known.entry.size < JIT_IMAGE_MAX ? known.entry.size : 0;
		if (bytes > JIT_IMAGES_BYTES)
			break;
		r = add_entry(l, m, machine, &known, &left);
		if (r)
			return r;
		prev = known.at;
		known.at = known.entry.next;
	}
	l->read = true;
	return 0;
}

/* What is looked for at an address. */
struct question {
	uint16_t machine;
	uint64_t pc;
	struct jit_code *code; /* NULL: its name */
	char *name;
};

/* Is the entry still as it was, and in the list? */
static bool is_linked(const struct jit_list *l, const struct jit_memory *m,
		      const struct jit_known *known)
{
	struct jit_entry now, prev;

	if (read_at(m, known->at, &now, sizeof(now)) || memcmp(&now, &known->entry, sizeof(now)))
		return false;
	if (!now.prev)
		return l->descriptor.first == known->at;
	return !read_at(m, now.prev, &prev, sizeof(prev)) && prev.next == known->at;
}

static int find_in(const struct jit_memory *m, const struct jit_known *known,
		   const struct question *q)
{
	size_t left = JIT_IMAGES_BYTES;
	struct jit_image image;
	int r = read_image(m, &known->entry, &left, &image);

	if (r)
		return r;
	if (q->code)
		r = jit_image_find(&image, q->machine, q->pc, q->code);
	else
		r = jit_image_name(&image, q->machine, q->pc, q->name);
	free((void *)image.bytes);
	return r;
}

/* -ESTALE: the list is another one by now. */
static int find_known(const struct jit_list *l, const struct jit_memory *m,
		      const struct question *q)
{
	int r = -ENOENT, tried = 0;

	for (size_t i = 0; i < l->known.nr && r == -ENOENT; i++) {
		const struct jit_known *known = &l->known.items[i];

		if (q->pc < known->start || q->pc >= known->end)
			continue;
		if (tried++ == TRIED_MAX)
			break;
		r = is_linked(l, m, known) ? find_in(m, known, q) : -ESTALE;
	}
	return r;
}

static int ask(struct jit_list *l, const struct jit_memory *m, const struct question *q)
{
	struct jit_descriptor now;
	int r = read_at(m, l->addr, &now, sizeof(now));

	if (r || now.version != VERSION || !now.first)
		return -ENOENT;
	if (l->read && !memcmp(&now, &l->descriptor, sizeof(now)))
		r = find_known(l, m, q);
	else
		r = -ESTALE;
	if (r == -ESTALE) {
		l->descriptor = now;
		r = read_list(l, m, q->machine);
		if (!r)
			r = find_known(l, m, q);
	}
	if (r != -ESTALE && !read_at(m, l->addr, &now, sizeof(now)) &&
	    !memcmp(&now, &l->descriptor, sizeof(now)))
		return r;
	l->read = false;
	return -EAGAIN;
}

int jit_list_find(struct jit_list *l, const struct jit_memory *m, uint16_t machine, uint64_t pc,
		  struct jit_code *ret)
{
	struct jit_code code;
	const struct question q = { machine, pc, .code = &code };
	int r = ask(l, m, &q);

	if (!r)
		*ret = code;
	return r;
}

int jit_list_name(struct jit_list *l, const struct jit_memory *m, uint16_t machine, uint64_t pc,
		  char ret[static JIT_NAME_MAX])
{
	char name[JIT_NAME_MAX];
	const struct question q = { machine, pc, .name = name };
	int r = ask(l, m, &q);

	if (!r)
		memcpy(ret, name, sizeof(name));
	return r;
}

void jit_list_fini(struct jit_list *l)
{
	vec_free(&l->known);
}
