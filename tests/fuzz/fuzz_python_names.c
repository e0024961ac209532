// SPDX-License-Identifier: Apache-2.0
/*
 * Naming with arbitrary memory as the process: a byte that chooses the version, two that say where
 * the code object lies, then the memory from BASE on. Whatever is there, a name is whole UTF-8 of
 * bounded length or an error, and nothing else is read than what is said to be readable. Equal
 * words have equal answers.
 */
#include "fuzz.h"
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"

#include "util/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = 0x1000, TYPE = BASE, HEADER = 3 };

struct image {
	const uint8_t *data;
	size_t size;
};

struct answer {
	unsigned int nr;
	uint32_t line;
};

static void check(bool ok)
{
	if (!ok)
		abort();
}

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	const struct image *m = ctx;

	check(size < 1 << 20);
	if (addr < BASE || addr - BASE > m->size || size > m->size - (addr - BASE))
		return -EFAULT;
	memcpy(to, m->data + (addr - BASE), size);
	return 0;
}

static int take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct answer *a = ctx;

	check(!inline_frame->name || strlen(inline_frame->name) <= PYTHON_NAME_MAX);
	check(!inline_frame->source || strlen(inline_frame->source) <= PYTHON_NAME_MAX);
	check(inline_frame->line <= INT32_MAX && inline_frame->start_line <= INT32_MAX);
	a->nr++;
	a->line = inline_frame->line;
	return 0;
}

static void name_twice(struct python_names *n, const uint64_t *words)
{
	struct answer a = { 0 }, b = { 0 };
	struct runtime_sink to_a = { .add = take, .ctx = &a }, to_b = { .add = take, .ctx = &b };
	int r = python_names_symbolize(n, words, 2, &to_a);
	int s = python_names_symbolize(n, words, 2, &to_b);

	/* Without memory for it, the second time may be another story. */
	if (r == -ENOMEM || s == -ENOMEM)
		return;
	check(r == s && a.nr == b.nr && a.line == b.line && a.nr == !r);
	check(!r || r == -ENOENT || r == -EINVAL);
}

FUZZER(data, size)
{
	struct image image = { .data = data + HEADER, .size = size - HEADER };
	struct runtime_keeper keeper = { 0 };
	struct runtime_target target = { .memory = { .read = read_image, .ctx = &image },
					 .keeper = &keeper };
	_cleanup_(python_names_free_p) struct python_names *n = NULL;
	struct python_record record = { 0 };
	struct python_layout layout = { 0 };
	uint32_t cookie = 1;
	unsigned int minor;
	uint64_t words[2];

	if (size < HEADER)
		return 0;
	minor = 6 + data[0] % 10;
	if (python_offsets_of(minor < 12 ? minor : 12, &record, &layout))
		abort();
	record.minor = layout.minor = (uint8_t)minor;
	record.code_type = TYPE;
	layout.free_threaded = data[0] >> 7;
	words[0] = FRAME(RUNTIME_PYTHON, 1, BASE + (data[1] | data[2] << 8));
	(void)python_read_cookie(&target, &record, FRAME_DATA(words[0]), &cookie);
	if (python_names_new(&target, &record, &layout, &n))
		return 0;
	for (uint32_t lasti = 0; lasti < 8; lasti += 2) {
		words[1] = PYTHON_WORD1(cookie, lasti);
		name_twice(n, words);
	}
	words[1] = PYTHON_WORD1(cookie + 1, 0);
	name_twice(n, words);
	return 0;
}
