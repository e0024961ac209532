// SPDX-License-Identifier: Apache-2.0
/*
 * What is read of V8's heap, with arbitrary memory as the process: which of the layouts, a
 * function, an offset in its source, an address in code; then what lies at a base address. Whatever
 * it is, there is an end, and what is found is a text, a line and places that can be shown.
 */
#include "fuzz.h"
#include "runtime/v8/v8_code.h"
#include "runtime/v8/v8_lines.h"

#include "runtime/v8/test_v8_layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BASE = 0x10000,
	PAGE = 4096,
	TAG = 1,
	/* Steps of all that is asked for: code is looked for in a page, each begin of which may be
	 * one; strings are read part by part. */
	READS_MAX = 200000,
};

struct image {
	uint8_t page[PAGE]; /* zero behind the input */
	unsigned int nr_reads;
};

struct input {
	uint8_t layout;	  /* enum test_v8_kind */
	uint8_t function; /* address / 16 */
	uint8_t offset[2], pc[2];
};

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct image *i = ctx;

	if (++i->nr_reads > READS_MAX)
		abort();
	if (addr < BASE || addr - BASE > PAGE || size > PAGE - (addr - BASE))
		return -EFAULT;
	memcpy(to, i->page + (addr - BASE), size);
	return 0;
}

FUZZER(data, size)
{
	struct v8_bytecode_sizes sizes = { .nr = 200 };
	struct image image = { 0 };
	struct runtime_keeper keeper = { 0 };
	struct runtime_target target = { .memory = { read_image, &image }, .keeper = &keeper };
	struct v8_work work = { .reads = READS_MAX, .bytes = 64 << 20, .operations = 100000 };
	struct v8_place places[V8_INLINED_MAX];
	struct v8_codes codes = { 0 };
	struct v8_lines lines = { 0 };
	struct v8_function f;
	struct v8_object code;
	struct v8_layout layout;
	struct v8_heap heap = { &target, &layout, &work };
	struct input input;
	uint64_t pc;
	int32_t offset;
	int nr;

	if (size < sizeof(input) || size > sizeof(input) + PAGE)
		return 0;
	memcpy(&input, data, sizeof(input));
	memcpy(image.page, data + sizeof(input), size - sizeof(input));
	memset(sizes.sizes, 2, sizeof(sizes.sizes));
	layout = test_v8_layout(input.layout);
	offset = input.offset[0] | input.offset[1] << 8;
	pc = BASE + (uint64_t)(input.pc[0] | input.pc[1] << 8) % PAGE;
	if (!v8_function_read(&heap, BASE + input.function * 16ull + TAG, &f)) {
		if (!f.name[0] || strnlen(f.name, sizeof(f.name)) == sizeof(f.name) ||
		    strnlen(f.source, sizeof(f.source)) == sizeof(f.source))
			abort();
		(void)v8_line(&heap, &lines, &f, offset);
		(void)v8_line(&heap, &lines, &f, f.start);
		if (v8_bytecode_place(&heap, &f.shared, (uint32_t)offset) < -1)
			abort();
		if (!v8_code_find(&heap, &codes, pc, &code)) {
			nr = v8_code_places(&heap, &code, &f.shared, &sizes, pc, places);
			if (nr > V8_INLINED_MAX || !nr || (nr > 0 && places[nr - 1].shared))
				abort();
			/* The second time, it is known already. */
			if (v8_code_find(&heap, &codes, pc, &code) == -EFAULT)
				abort();
		}
	}
	v8_codes_fini(&codes);
	v8_lines_fini(&heap, &lines);
	return 0;
}
