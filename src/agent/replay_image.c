// SPDX-License-Identifier: Apache-2.0
#include "agent/replay_image.h"
#include "agent/replay_names.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <string.h>

enum {
	FIRST_PIECE = 1 << 20,
	LAST_PIECE = 64, /* bytes that are kept or not together */
};

void replay_image_fini(struct replay_image *i)
{
	replay_memory_fini(&i->kept);
}

/* --- attaching ------------------------------------------------------------------------------- */

static int read_kept(void *ctx, uint64_t addr, void *to, size_t size)
{
	return replay_memory_read(ctx, addr, to, size);
}

/* `data` are `size` bytes of a file, taken over. */
static int attach(uint32_t runtime, uint8_t *data, size_t size, uint64_t bias, uint16_t machine,
		  const struct replay_memory *memory, struct replay_attached *a)
{
	const struct runtime_ops *ops = runtime < RUNTIME_MAX_ ? runtimes[runtime] : NULL;
	int r;

	*a = (struct replay_attached){
		.data = data,
		.target = { .machine = machine,
			    .memory = { read_kept, (void *)(uintptr_t)memory },
			    .bias = bias },
	};
	if (!ops || !ops->probe || !ops->attach || !ops->symbolize ||
	    ops->record_size > sizeof(a->record))
		return -EINVAL;
	r = elf_file_open_memory(data, size, &a->elf);
	if (!r)
		r = ops->probe(a->elf, "a replay case", &a->dso);
	if (r)
		return r;
	a->dso->ops = ops;
	r = ops->attach(a->dso, &a->target, a->record, &a->proc);
	if (!r) {
		a->proc->ops = ops;
		a->proc->dso = a->dso;
		a->proc->target = &a->target;
	}
	return r;
}

void replay_attached_fini(struct replay_attached *a)
{
	if (a->proc)
		a->proc->ops->detach(a->proc);
	if (a->dso)
		a->dso->ops->dso_free(a->dso);
	elf_file_free(a->elf);
	free(a->data);
	*a = (struct replay_attached){ 0 };
}

int replay_image_attach(const struct replay_image *image, uint16_t machine,
			const struct replay_memory *memory, struct replay_attached *ret)
{
	uint8_t *data = image->size <= REPLAY_IMAGE_MAX ? calloc(1, image->size + 1) : NULL;

	*ret = (struct replay_attached){ 0 };
	if (!data)
		return -ENOMEM;
	for (size_t i = 0; i < image->kept.reads.nr; i++) {
		const struct replay_read *piece = &image->kept.reads.items[i];

		if (piece->addr >= image->size || piece->size > image->size - piece->addr) {
			free(data);
			return -EINVAL;
		}
		memcpy(data + piece->addr, image->kept.bytes.items + piece->at, piece->size);
	}
	return attach(image->runtime, data, image->size, image->bias, machine, memory, ret);
}

/* --- making ---------------------------------------------------------------------------------- */

struct making {
	const struct replay_image_wanted *wanted;
	struct replay_image *image;
	const char *names; /* what it must give to wanted->words */
	uint8_t *data;
	size_t size;
	size_t nr_tries;
};

/* What the present data give: the names are the caller's. */
static int try_data(struct making *m, char **ret)
{
	struct runtime_proc *procs[RUNTIME_MAX_] = { 0 };
	struct replay_attached a;
	int r;

	m->nr_tries++;
	r = attach(m->image->runtime, m->data, m->size, m->image->bias, m->wanted->machine,
		   m->wanted->memory, &a);
	if (!r && memcmp(a.record, m->wanted->record, sizeof(a.record)))
		r = -ENOENT;
	procs[m->image->runtime] = a.proc;
	if (!r)
		r = replay_names(procs, m->wanted->words, m->wanted->nr_words, ret);
	a.data = NULL; /* ours */
	replay_attached_fini(&a);
	return r;
}

static bool is_enough(struct making *m)
{
	_cleanup_free_ char *names = NULL;

	return !try_data(m, &names) && !strcmp(names, m->names);
}

static bool is_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && !memcmp(data, data + 1, size - 1));
}

/* Zeroes what can be of [start, end). */
static int thin(struct making *m, size_t start, size_t end)
{
	uint8_t *saved;
	size_t middle = start + (end - start) / 2;

	if (is_zero(m->data + start, end - start))
		return 0;
	saved = malloc(end - start);
	if (!saved)
		return -ENOMEM;
	memcpy(saved, m->data + start, end - start);
	memset(m->data + start, 0, end - start);
	if (is_enough(m)) {
		free(saved);
		return 0;
	}
	memcpy(m->data + start, saved, end - start);
	free(saved);
	if (end - start <= LAST_PIECE)
		return 0;
	return thin(m, start, middle) || thin(m, middle, end) ? -ENOMEM : 0;
}

static int thin_all(struct making *m)
{
	int r = 0;

	for (size_t at = 0; at < m->size && !r; at += FIRST_PIECE)
		r = thin(m, at, m->size - at < FIRST_PIECE ? m->size : at + FIRST_PIECE);
	for (size_t at = 0; at < m->size && !r; at += LAST_PIECE) {
		size_t n = m->size - at < LAST_PIECE ? m->size - at : LAST_PIECE;

		if (!is_zero(m->data + at, n))
			replay_memory_add(&m->image->kept, at, m->data + at, n);
	}
	if (!r)
		r = replay_memory_merge(&m->image->kept);
	if (!r && (m->image->kept.full || m->image->kept.bytes.nr > REPLAY_IMAGE_KEPT))
		r = -EFBIG;
	return r;
}

int replay_image_make(const struct elf_file *elf, const struct replay_image_wanted *wanted,
		      struct replay_image *image)
{
	struct making m = { .wanted = wanted, .image = image, .size = elf->size };
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_free_ char *names = NULL;
	enum log_level level = log_get_level();
	int r;

	if (elf->size > REPLAY_IMAGE_MAX)
		return -EFBIG;
	data = m.data = malloc(elf->size + 1);
	if (!data)
		return -ENOMEM;
	r = elf_file_read(elf, 0, data, elf->size);
	if (!r)
		r = try_data(&m, &names);
	if (r)
		return r;
	m.names = names;
	image->size = elf->size;
	/* Files with holes are complained about. */
	log_set_level(LOG_LEVEL_ERROR);
	r = thin_all(&m);
	log_set_level(level);
	log_debug("replay: %zu of %zu bytes of a file of %s are kept, after %zu tries",
		  image->kept.bytes.nr, m.size, runtimes[image->runtime]->name, m.nr_tries);
	return r;
}
