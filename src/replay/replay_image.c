// SPDX-License-Identifier: Apache-2.0
#include "replay/replay_image.h"
#include "replay/replay_names.h"
#include "replay/replay_thin.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <elf.h>
#include <string.h>

enum {
	FIRST_PIECE = 1 << 20,
	LAST_PIECE = 64, /* bytes that are kept or not together */
};

uint32_t replay_image_options(const struct runtime_options *options)
{
	return (options->tiers ? REPLAY_IMAGE_TIERS : 0u) |
	       (options->async ? REPLAY_IMAGE_ASYNC : 0u) |
	       (options->virtual_threads ? REPLAY_IMAGE_VIRTUAL_THREADS : 0u);
}

void replay_image_fini(struct replay_image *i)
{
	replay_memory_fini(&i->kept);
}

/* --- attaching ------------------------------------------------------------------------------- */

static int read_kept(void *ctx, uint64_t addr, void *to, size_t size)
{
	return replay_memory_read(ctx, addr, to, size);
}

/* `data` are `size` bytes of the image's file, taken over. */
static int attach(const struct replay_image *image, uint8_t *data, size_t size, uint16_t machine,
		  const struct replay_memory *memory, struct replay_attached *a)
{
	const struct runtime_ops *ops =
		image->runtime < RUNTIME_MAX_ ? runtimes[image->runtime] : NULL;
	int r;

	*a = (struct replay_attached){
		.data = data,
		.target = { .machine = machine,
			    .memory = { read_kept, (void *)(uintptr_t)memory },
			    .bias = image->bias,
			    .keeper = &a->keeper,
			    .options = { .tiers = image->options & REPLAY_IMAGE_TIERS,
					 .async = image->options & REPLAY_IMAGE_ASYNC,
					 .virtual_threads =
						 image->options & REPLAY_IMAGE_VIRTUAL_THREADS } },
	};
	if (!ops || !ops->probe || !ops->attach || !ops->symbolize ||
	    ops->record_size > sizeof(a->record))
		return -EINVAL;
	r = elf_file_open_memory(data, size, &a->elf);
	if (!r)
		r = ops->probe(a->elf, NULL, &a->dso);
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
	return attach(image, data, image->size, machine, memory, ret);
}

int replay_images_name(const struct replay_image *images, uint32_t nr,
		       const struct replay_image_wanted *wanted, char **ret)
{
	struct replay_attached attached[RUNTIMES_OF_PROCESS_MAX] = { 0 };
	struct runtime_proc *procs[RUNTIME_MAX_] = { 0 };
	int r = nr && nr <= RUNTIMES_OF_PROCESS_MAX ? 0 : -ENOENT;

	for (uint32_t i = 0; i < nr && !r; i++) {
		r = replay_image_attach(&images[i], wanted->machine, wanted->memory, &attached[i]);
		if (!r)
			procs[images[i].runtime] = attached[i].proc;
	}
	if (!r)
		r = replay_names(procs, wanted->words, wanted->nr_words, ret);
	for (uint32_t i = 0; i < RUNTIMES_OF_PROCESS_MAX; i++)
		replay_attached_fini(&attached[i]);
	return r;
}

/* --- making ---------------------------------------------------------------------------------- */

struct making {
	const struct replay_image_wanted *wanted;
	struct replay_image *image;
	const char *names; /* what it must give to wanted->words */
	uint8_t *data;
	size_t size;
};

/* What the present data give: the names are the caller's. */
static int try_data(const struct making *m, char **ret)
{
	struct runtime_proc *procs[RUNTIME_MAX_] = { 0 };
	struct replay_attached a;
	int r;

	r = attach(m->image, m->data, m->size, m->wanted->machine, m->wanted->memory, &a);
	if (!r && memcmp(a.record, m->wanted->record, sizeof(a.record)))
		r = -ENOENT;
	procs[m->image->runtime] = a.proc;
	if (!r)
		r = replay_names(procs, m->wanted->words, m->wanted->nr_words, ret);
	a.data = NULL; /* ours */
	replay_attached_fini(&a);
	return r;
}

static bool is_enough(void *ctx)
{
	const struct making *m = ctx;
	_cleanup_free_ char *names = NULL;

	return !try_data(m, &names) && !strcmp(names, m->names);
}

/*
 * The table of sections stays: of a file without sections V8's builtins are found in another way,
 * which needs more of it.
 */
static void keep_sections(const struct making *m, struct replay_thin *t)
{
	Elf64_Ehdr header;

	if (m->size < sizeof(header))
		return;
	memcpy(&header, m->data, sizeof(header));
	t->keep_start = header.e_shoff;
	t->keep_size = (size_t)header.e_shnum * header.e_shentsize;
}

static int thin(struct making *m)
{
	struct replay_thin t = {
		.data = m->data,
		.first_piece = FIRST_PIECE,
		.last_piece = LAST_PIECE,
		.is_enough = is_enough,
		.ctx = m,
	};
	int r;

	keep_sections(m, &t);
	r = replay_thin(&t, m->size);
	log_debug("replay: %zu tries for a file of %s", t.nr_tries,
		  runtimes[m->image->runtime]->name);
	return r;
}

static int keep_rest(struct making *m)
{
	static const uint8_t zeroes[LAST_PIECE];
	struct replay_memory *kept = &m->image->kept;
	int r;

	for (size_t at = 0; at < m->size; at += LAST_PIECE) {
		size_t n = m->size - at < LAST_PIECE ? m->size - at : LAST_PIECE;

		if (memcmp(m->data + at, zeroes, n))
			replay_memory_add(kept, at, m->data + at, n);
	}
	r = replay_memory_merge(kept);
	return r ? r : kept->full || kept->bytes.nr > REPLAY_IMAGE_KEPT ? -EFBIG : 0;
}

int replay_image_make(const struct elf_file *elf, const struct replay_image_wanted *wanted,
		      struct replay_image *image)
{
	struct making m = { .wanted = wanted, .image = image, .size = elf->size };
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_free_ char *names = NULL;
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
	r = thin(&m);
	return r ? r : keep_rest(&m);
}
