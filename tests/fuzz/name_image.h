/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fuzzers of a runtime's names have in common: a process whose memory is the input from
 * IMAGE_AT on, and what must hold of its answers.
 */
#pragma once

#include "runtime/runtime.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGE_AT = 0x1000 };

struct name_image {
	const uint8_t *data;
	size_t size;
	unsigned int nr_reads, reads_max; /* more than that have no end */
	size_t name_max;		  /* bytes */
	uint32_t line_max;		  /* 0: any */
};

struct name_answer {
	const struct name_image *image;
	unsigned int nr;
	uint32_t line;
};

static void name_check(bool ok)
{
	if (!ok)
		abort();
}

/* The input's first bytes into `head`, the memory is behind them. False: it has not so many. */
static inline bool name_image_begin(struct name_image *m, const uint8_t *data, size_t size,
				    void *head, size_t head_size)
{
	if (size < head_size)
		return false;
	memcpy(head, data, head_size);
	m->data = data + head_size;
	m->size = size - head_size;
	return true;
}

static int name_image_read(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct name_image *m = ctx;

	name_check(size < 1 << 20 && ++m->nr_reads <= m->reads_max);
	if (addr < IMAGE_AT || addr - IMAGE_AT > m->size || size > m->size - (addr - IMAGE_AT))
		return -EFAULT;
	memcpy(to, m->data + (addr - IMAGE_AT), size);
	return 0;
}

/* The word at `addr`, as a step reads it; 0: there is none. */
static inline uint64_t name_word(const struct runtime_target *t, uint64_t addr)
{
	uint64_t ret = 0;

	return addr && !runtime_read(t, addr, &ret, sizeof(ret)) ? ret : 0;
}

/* Two bytes that lead somewhere; 0: nowhere. */
static inline uint64_t name_address(const uint8_t at[static 2])
{
	unsigned int offset = at[0] | (unsigned int)at[1] << 8;

	return offset ? IMAGE_AT + offset : 0;
}

static int name_take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct name_answer *a = ctx;

	name_check(!inline_frame->name || strlen(inline_frame->name) <= a->image->name_max);
	name_check(!inline_frame->source || strlen(inline_frame->source) <= a->image->name_max);
	name_check(!a->image->line_max || (inline_frame->line <= a->image->line_max &&
					   inline_frame->start_line <= a->image->line_max));
	a->nr++;
	a->line = inline_frame->line;
	return 0;
}

/* Asks symbolize() twice; equal words have equal answers, but for want of memory. */
static inline void name_twice(struct name_image *image,
			      int (*symbolize)(void *ctx, const uint64_t *words, size_t nr,
					       const struct runtime_sink *sink),
			      void *ctx, const uint64_t *words, size_t nr)
{
	struct name_answer answers[2] = { { .image = image }, { .image = image } };
	int r[2];

	for (int i = 0; i < 2; i++) {
		struct runtime_sink sink = { .add = name_take, .ctx = &answers[i] };

		image->nr_reads = 0;
		r[i] = symbolize(ctx, words, nr, &sink);
		name_check(!r[i] || r[i] == -ENOENT || r[i] == -EINVAL || r[i] == -ENOMEM);
		name_check(answers[i].nr == !r[i]);
	}
	if (r[0] != -ENOMEM && r[1] != -ENOMEM)
		name_check(r[0] == r[1] && answers[0].line == answers[1].line);
}
