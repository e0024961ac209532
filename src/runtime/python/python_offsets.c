// SPDX-License-Identifier: Apache-2.0
#include "runtime/python/python_offsets.h"

#include <errno.h>
#include <string.h>

static uint64_t word_at(const void *data, size_t at)
{
	uint64_t word;

	memcpy(&word, (const char *)data + at, sizeof(word));
	return word;
}

static uint32_t half_at(const void *data, size_t at)
{
	uint32_t half;

	memcpy(&half, (const char *)data + at, sizeof(half));
	return half;
}

/* Reads `size` bytes, or what of them lies in the first page. */
static int read_str(const struct runtime_target *target, uint64_t addr, uint8_t *to, size_t size)
{
	size_t first = 4096 - (addr & 4095);
	int r = runtime_read(target, addr, to, size);

	return r && first < size ? runtime_read(target, addr, to, first) : r;
}

static int text_of(const struct runtime_target *target, const struct python_record *r,
		   uint64_t addr, __u64 *ret)
{
	uint8_t str[PYTHON_STR_SIZE + 8 * PYTHON_TEXT_WORDS];
	__u64 length, words[PYTHON_TEXT_WORDS];
	uint32_t flags, at;
	int error;

	memset(str, 0, sizeof(str));
	error = read_str(target, addr, str, PYTHON_STR_SIZE);
	if (error)
		return error;
	length = word_at(str, r->str_length);
	flags = half_at(str, r->str_state) >> r->str_shift;
	at = flags & PYTHON_STR_ASCII ? r->str_ascii : r->str_compact;
	memcpy(words, str + at, sizeof(words));
	*ret = python_text(length, words, python_text_size(length, flags, at));
	return 0;
}

int python_read_cookie(const struct runtime_target *target, const struct python_record *r,
		       uint64_t code, uint32_t *ret)
{
	uint8_t co[PYTHON_CODE_SIZE_MAX];
	struct python_identity id;
	int error;

	if (!r->co_size || r->co_size > sizeof(co))
		return -EINVAL;
	error = runtime_read(target, code, co, r->co_size);
	if (error)
		return error;
	if (word_at(co, r->co_type) != r->code_type)
		return -EINVAL;
	id = (struct python_identity){
		.filename = word_at(co, r->co_filename),
		.name = word_at(co, r->co_name),
		.linetable = word_at(co, r->co_linetable),
		.firstlineno = half_at(co, r->co_firstlineno),
		.version = r->co_version ? half_at(co, r->co_version) : 0,
	};
	if (!id.version) {
		error = text_of(target, r, id.name, &id.name_text);
		if (!error)
			error = text_of(target, r, id.filename, &id.filename_text);
		if (error)
			return error;
	}
	*ret = python_cookie(&id);
	return 0;
}
