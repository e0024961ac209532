// SPDX-License-Identifier: Apache-2.0
#include "symbol/packed_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "util/cleanup.h"
#include "util/vec.h"

enum {
	BLOCK = 128, /* names; larger ones save little */
	LEVEL = 1,   /* of compression: others take longer for a tenth less */
	NO_BLOCK = -1,
};

struct block {
	uint32_t at; /* in `packed` */
	uint32_t size, unpacked_size;
};

struct packed_symbols {
	size_t nr;
	uint64_t base;
	uint32_t *offsets; /* from `base` */
	VEC(struct block) blocks;
	VEC(uint8_t) packed;
	/* The names of one block. */
	VEC(char) names;
	ssize_t unpacked;
	ZSTD_DCtx *unpacker;
};

/* A block of names on its way. */
struct packing {
	VEC(char) names;
	ZSTD_CCtx *packer;
};

static void packing_fini(struct packing *w)
{
	vec_free(&w->names);
	ZSTD_freeCCtx(w->packer);
}

static int add_name(struct packing *w, const char *name)
{
	size_t size = strlen(name) + 1;

	if (vec_reserve(&w->names, w->names.nr + size))
		return -ENOMEM;
	memcpy(w->names.items + w->names.nr, name, size);
	w->names.nr += size;
	return 0;
}

static int end_block(struct packed_symbols *p, struct packing *w)
{
	const size_t bound = ZSTD_compressBound(w->names.nr);
	struct block block = { .at = (uint32_t)p->packed.nr,
			       .unpacked_size = (uint32_t)w->names.nr };
	size_t size;

	if (p->packed.nr + bound > UINT32_MAX)
		return -ERANGE;
	if (vec_reserve(&p->packed, p->packed.nr + bound))
		return -ENOMEM;
	size = ZSTD_compressCCtx(w->packer, p->packed.items + p->packed.nr, bound, w->names.items,
				 w->names.nr, LEVEL);
	if (ZSTD_isError(size))
		return -ENOMEM;
	block.size = (uint32_t)size;
	p->packed.nr += size;
	w->names.nr = 0;
	return vec_push(&p->blocks, block);
}

static int pack(struct packed_symbols *p, struct packing *w,
		uint64_t (*addr)(const void *ctx, size_t i),
		const char *(*name)(const void *ctx, size_t i), const void *ctx)
{
	uint64_t last = p->base, at;
	int r = 0;

	for (size_t i = 0; i < p->nr && !r; i++, last = at) {
		at = addr(ctx, i);
		if (at < last || at - p->base > UINT32_MAX)
			return -ERANGE;
		p->offsets[i] = (uint32_t)(at - p->base);
		r = add_name(w, name(ctx, i));
		if (!r && (i % BLOCK == BLOCK - 1 || i == p->nr - 1))
			r = end_block(p, w);
	}
	return r;
}

int packed_symbols_new(size_t nr, uint64_t (*addr)(const void *ctx, size_t i),
		       const char *(*name)(const void *ctx, size_t i), const void *ctx,
		       struct packed_symbols **ret)
{
	_cleanup_(packed_symbols_free_p) struct packed_symbols *p = calloc(1, sizeof(*p));
	struct packing w = { .packer = ZSTD_createCCtx() };
	int r = -ENOMEM;

	if (p)
		p->offsets = calloc(nr, sizeof(*p->offsets));
	if (p && p->offsets && w.packer) {
		p->nr = nr;
		p->base = addr(ctx, 0);
		p->unpacked = NO_BLOCK;
		r = pack(p, &w, addr, name, ctx);
	}
	packing_fini(&w);
	if (r)
		return r;
	vec_shrink(&p->packed);
	vec_shrink(&p->blocks);
	*ret = TAKE_PTR(p);
	return 0;
}

void packed_symbols_free(struct packed_symbols *p)
{
	if (!p)
		return;
	packed_symbols_rest(p);
	free(p->offsets);
	vec_free(&p->blocks);
	vec_free(&p->packed);
	free(p);
}

size_t packed_symbols_nr(const struct packed_symbols *p)
{
	return p->nr;
}

uint64_t packed_symbols_addr(const struct packed_symbols *p, size_t i)
{
	return p->base + p->offsets[i];
}

static int unpack(struct packed_symbols *p, size_t number)
{
	const struct block *block = &p->blocks.items[number];
	size_t size;

	p->unpacked = NO_BLOCK;
	if (!p->unpacker)
		p->unpacker = ZSTD_createDCtx();
	if (!p->unpacker || vec_reserve(&p->names, block->unpacked_size))
		return -ENOMEM;
	size = ZSTD_decompressDCtx(p->unpacker, p->names.items, block->unpacked_size,
				   p->packed.items + block->at, block->size);
	if (size != block->unpacked_size)
		return -ENOMEM;
	p->unpacked = (ssize_t)number;
	return 0;
}

const char *packed_symbols_name(struct packed_symbols *p, size_t i)
{
	const char *name;

	if (p->unpacked != (ssize_t)(i / BLOCK) && unpack(p, i / BLOCK))
		return NULL;
	name = p->names.items;
	for (size_t n = i % BLOCK; n; n--)
		name += strlen(name) + 1;
	return name;
}

void packed_symbols_rest(struct packed_symbols *p)
{
	vec_free(&p->names);
	ZSTD_freeDCtx(p->unpacker);
	p->unpacker = NULL;
	p->unpacked = NO_BLOCK;
}
