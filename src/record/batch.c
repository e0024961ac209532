// SPDX-License-Identifier: Apache-2.0
#include "record/batch.h"
#include "unwinder/host_walk.h"

#include <stdbool.h>
#include <string.h>

enum {
	KEPT = 256 << 10, /* bytes that are kept for the next turn, whatever this one had */
	USED_PART = 16,	  /* more are if it had one part in so many of them */
};

/* What a burst needed is given back when it is over. */
#define EMPTY(v)                                                                                   \
	do {                                                                                       \
		if ((v)->cap * sizeof(*(v)->items) > KEPT && (v)->nr < (v)->cap / USED_PART)       \
			vec_free(v);                                                               \
		(v)->nr = 0;                                                                       \
	} while (0)

void batch_fini(struct batch *b)
{
	vec_free(&b->pending);
	vec_free(&b->bytes);
	vec_free(&b->pages);
	vec_free(&b->whole);
}

void batch_clear(struct batch *b)
{
	EMPTY(&b->pending);
	EMPTY(&b->bytes);
	/* What `places` has is compared before it is believed. */
	EMPTY(&b->pages);
}

size_t batch_bytes(const struct batch *b)
{
	return b->bytes.nr + b->pages.nr + b->pending.nr * sizeof(*b->pending.items);
}

/* The pages of a raw record, which stand behind its first `*ret_fixed` bytes. */
static bool pages_of(const void *record, size_t size, struct stack_copy *ret, size_t *ret_fixed)
{
	const struct sample_header *h = record;
	const struct sample_raw *raw = (const struct sample_raw *)(h + 1);

	*ret_fixed = sizeof(*h) + sizeof(*raw);
	if (h->type != SAMPLE_RAW || size < *ret_fixed || !raw->nr_pages)
		return false;
	*ret_fixed += 8 * (size_t)raw->nr_kernel;
	return size == *ret_fixed + raw->stack_size &&
	       stack_copy_of_raw(raw, (const uint8_t *)record + *ret_fixed, ret);
}

/* Where the batch has this page, or now has it. */
static int place_of(struct batch *b, uint32_t tid, const struct stack_chunk *page, size_t room,
		    uint32_t *ret)
{
	uint64_t key = (uint64_t)tid << 44 ^ (page->addr & -(uint64_t)RAW_PAGE);
	struct batch_place *p =
		&b->places[(key / RAW_PAGE * 0x9e3779b97f4a7c15ull >> 32) % BATCH_PLACES];

	if (p->key != key || p->size != page->size || p->at + (size_t)p->size > b->pages.nr ||
	    memcmp(b->pages.items + p->at, page->bytes, page->size)) {
		if (page->size > room || vec_reserve(&b->pages, b->pages.nr + page->size))
			return -ENOMEM;
		*p = (struct batch_place){ key, (uint32_t)b->pages.nr, page->size };
		memcpy(b->pages.items + b->pages.nr, page->bytes, page->size);
		b->pages.nr += page->size;
	}
	*ret = p->at;
	return 0;
}

static int add_record(struct batch *b, const struct pending *p, const void *record, size_t fixed,
		      const uint32_t *places)
{
	size_t size = fixed + p->nr_pages * sizeof(*places);

	if (vec_reserve(&b->bytes, b->bytes.nr + size + 8) || vec_push(&b->pending, *p))
		return -ENOMEM;
	memcpy(b->bytes.items + p->at, record, fixed);
	if (p->nr_pages)
		memcpy(b->bytes.items + p->at + fixed, places, p->nr_pages * sizeof(*places));
	b->bytes.nr += (size + 7) & ~7ull;
	return 0;
}

int batch_add(struct batch *b, const void *record, size_t size, size_t max)
{
	const struct sample_header *h = record;
	size_t fixed, before = b->pages.nr, used = batch_bytes(b);
	struct pending p = { .at = (uint32_t)b->bytes.nr, .size = (uint32_t)size };
	uint32_t places[RAW_PAGES_MAX];
	struct stack_chunk page;
	struct stack_copy copy;
	int r = 0;

	if (size < sizeof(*h))
		return -EINVAL;
	p.time_ns = h->time_ns;
	if (pages_of(record, size, &copy, &fixed))
		p.nr_pages = copy.nr_pages;
	else
		fixed = size;
	used += sizeof(p) + fixed + p.nr_pages * sizeof(*places) + 8;
	if (used > max)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.nr_pages && !r; i++) {
		stack_copy_chunk(&copy, i, &page);
		r = place_of(b, h->tid, &page, max - used - (b->pages.nr - before), &places[i]);
	}
	if (!r)
		r = add_record(b, &p, record, fixed, places);
	if (r)
		b->pages.nr = before;
	return r;
}

int batch_add_without_stack(struct batch *b, const void *record, size_t size, size_t max)
{
	struct pending p = { .at = (uint32_t)b->bytes.nr };
	struct stack_copy copy;
	struct sample_raw *raw;
	size_t fixed;
	int r;

	if (size < sizeof(struct sample_header) || !pages_of(record, size, &copy, &fixed))
		return -EINVAL;
	if (batch_bytes(b) + sizeof(p) + fixed + 8 > max)
		return -ENOMEM;
	p.time_ns = ((const struct sample_header *)record)->time_ns;
	p.size = (uint32_t)fixed;
	r = add_record(b, &p, record, fixed, NULL);
	if (r)
		return r;
	raw = (struct sample_raw *)(b->bytes.items + p.at + sizeof(struct sample_header));
	raw->nr_pages = 0;
	raw->is_short = 1;
	raw->stack_size = 0;
	return 0;
}

int batch_get(struct batch *b, const struct pending *p, const uint8_t **ret, size_t *ret_size)
{
	const uint8_t *record = b->bytes.items + p->at;
	const struct sample_raw *raw =
		(const struct sample_raw *)(record + sizeof(struct sample_header));
	struct stack_chunk page;
	struct stack_copy copy;
	const uint32_t *places;
	size_t fixed;

	*ret_size = p->size;
	*ret = record;
	if (!p->nr_pages)
		return 0;
	if (vec_reserve(&b->whole, p->size + 8))
		return -ENOMEM;
	fixed = p->size - raw->stack_size;
	memcpy(b->whole.items, record, fixed);
	places = (const uint32_t *)(record + fixed);
	stack_copy_of_raw(raw, b->whole.items + fixed, &copy);
	for (uint32_t i = 0; stack_copy_chunk(&copy, i, &page); i++)
		memcpy(b->whole.items + (page.bytes - b->whole.items), b->pages.items + places[i],
		       page.size);
	*ret = b->whole.items;
	return 0;
}
