// SPDX-License-Identifier: Apache-2.0
/*
 * Naming PHP's functions with arbitrary memory as the process: which version, what kind of frame,
 * which instruction, where the frame's words lead to, then the memory. The frame is what the step
 * would have made of that.
 */
#include "fuzz.h"
#include "name_image.h"
#include "runtime/php/php_file.h"
#include "runtime/php/php_names.h"

enum { CODES = 16, NO_OP = 255, NAME_SIZE = 2 * 1024, READS = 64 };

struct input {
	uint8_t version, code, op, lines[2];
	uint8_t place[2], name[2], class_name[2], file[2];
};

struct names {
	const struct runtime_target *target;
	struct php_layout layout;
};

static int symbolize(void *ctx, const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	const struct names *n = ctx;

	return php_names_symbolize(n->target, &n->layout, words, nr, sink);
}

static uint64_t hash_at(const struct runtime_target *t, uint64_t string)
{
	return string ? name_word(t, string + PHP_STRING_HASH) : 0;
}

/* As php.bpf.c reads a function. */
static uint32_t function_identity(const struct names *n, uint64_t addr)
{
	const struct runtime_target *t = n->target;
	const struct php_layout *l = &n->layout;
	uint64_t name = name_word(t, addr + PHP_FUNCTION_NAME);
	uint64_t scope = name_word(t, addr + PHP_FUNCTION_SCOPE);

	if ((uint8_t)name_word(t, addr) == PHP_INTERNAL_FUNCTION)
		return php_identity(name, scope, 0, 0, hash_at(t, name), 0);
	return php_identity(name, scope, name_word(t, addr + l->opcodes),
			    name_word(t, addr + l->lines), hash_at(t, name),
			    hash_at(t, name_word(t, addr + l->filename)));
}

FUZZER(data, size)
{
	static const uint8_t versions[][2] = { { 7, 3 }, { 7, 4 }, { 8, 0 }, { 8, 1 },
					       { 8, 2 }, { 8, 3 }, { 8, 4 }, { 8, 5 } };
	struct name_image image = { .reads_max = READS, .name_max = NAME_SIZE };
	struct runtime_target target = { .memory = { name_image_read, &image } };
	struct names names = { .target = &target };
	uint64_t words[PHP_COPY_WORDS] = { 0 }, place;
	const uint8_t *version;
	uint32_t current, identity;
	unsigned int code;
	struct input in;
	size_t nr;

	if (!name_image_begin(&image, data, size, &in, sizeof(in)))
		return 0;
	version = versions[in.version % (sizeof(versions) / sizeof(*versions))];
	name_check(php_layout_of(version[0], version[1], &names.layout, &current));
	code = in.code % CODES;
	place = name_address(in.place);
	if (code == PHP_CODE_COPY || code & PHP_CODE_KEPT) {
		nr = PHP_COPY_WORDS;
		words[PHP_WORD_NAME] = name_address(in.name);
		words[PHP_WORD_CLASS] = name_address(in.class_name);
		words[PHP_WORD_FILE] = name_address(in.file);
		words[PHP_WORD_LINES] = in.lines[0] | (uint64_t)in.lines[1] << 32;
		identity = php_copy_identity(hash_at(&target, words[PHP_WORD_NAME]),
					     hash_at(&target, words[PHP_WORD_CLASS]),
					     hash_at(&target, words[PHP_WORD_FILE]));
	} else {
		nr = PHP_FRAME_WORDS;
		identity = function_identity(&names, place);
	}
	words[PHP_WORD_HEADER] =
		FRAME(RUNTIME_PHP, nr - 1, place | (uint64_t)code << PHP_CODE_SHIFT);
	words[PHP_WORD_PLACE] = (uint64_t)identity << 32 | (in.op == NO_OP ? PHP_NO_OP : in.op);
	name_twice(&image, symbolize, &names, words, nr);
	return 0;
}
