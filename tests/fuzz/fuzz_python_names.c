// SPDX-License-Identifier: Apache-2.0
/*
 * Naming with arbitrary memory as the process: a byte that chooses the version, two that say where
 * the code object lies, then the memory from IMAGE_AT on. Whatever is there, a name is whole UTF-8
 * of bounded length or an error, and nothing else is read than what is said to be readable. Equal
 * words have equal answers.
 */
#include "fuzz.h"
#include "name_image.h"
#include "runtime/python/python_names.h"
#include "runtime/python/python_offsets.h"

#include "util/cleanup.h"

enum { TYPE = IMAGE_AT, READS = 256 };

struct input {
	uint8_t version, code[2];
};

static int symbolize(void *ctx, const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	return python_names_symbolize(ctx, words, nr, sink);
}

FUZZER(data, size)
{
	struct name_image image = { .reads_max = READS,
				    .name_max = PYTHON_NAME_MAX,
				    .line_max = INT32_MAX };
	struct runtime_keeper keeper = { 0 };
	struct runtime_target target = { .memory = { name_image_read, &image }, .keeper = &keeper };
	_cleanup_(python_names_free_p) struct python_names *n = NULL;
	struct python_record record = { 0 };
	struct python_layout layout = { 0 };
	uint32_t cookie = 1;
	unsigned int minor;
	uint64_t words[2];
	struct input in;

	if (!name_image_begin(&image, data, size, &in, sizeof(in)))
		return 0;
	minor = 6 + in.version % 10;
	name_check(!python_offsets_of(minor < 12 ? minor : 12, &record, &layout));
	record.minor = layout.minor = (uint8_t)minor;
	record.code_type = TYPE;
	layout.free_threaded = in.version >> 7;
	words[0] = FRAME(RUNTIME_PYTHON, 1, IMAGE_AT + (in.code[0] | in.code[1] << 8));
	(void)python_read_cookie(&target, &record, FRAME_DATA(words[0]), &cookie);
	if (python_names_new(&target, &record, &layout, &n))
		return 0;
	for (uint32_t lasti = 0; lasti < 8; lasti += 2) {
		words[1] = PYTHON_WORD1(cookie, lasti);
		name_twice(&image, symbolize, n, words, 2);
	}
	words[1] = PYTHON_WORD1(cookie + 1, 0);
	name_twice(&image, symbolize, n, words, 2);
	return 0;
}
