// SPDX-License-Identifier: Apache-2.0
/*
 * MiniDebugInfo: the section .gnu_debugdata is a small ELF file, packed by xz, whose .symtab has
 * the functions that .dynsym lacks. Fedora, RHEL and their kin ship all programs so.
 */
#include "elf/elf_symbols_internal.h"
#include "util/cleanup.h"

#include <errno.h>
#include <lzma.h>

enum {
	FIRST_SIZE = 64 << 10,
};

static int grow(struct elf_data *data)
{
	size_t size = data->size ? data->size * 2 : FIRST_SIZE;
	uint8_t *bigger;

	if (data->size >= ELF_MINI_DEBUG_MAX)
		return -EFBIG;
	if (size > ELF_MINI_DEBUG_MAX)
		size = ELF_MINI_DEBUG_MAX;
	bigger = realloc(data->data, size);
	if (!bigger)
		return -ENOMEM;
	data->data = bigger;
	data->size = size;
	return 0;
}

/* `out->data` is the caller's to free, also on failure. */
static int decode(lzma_stream *stream, struct elf_data *out)
{
	for (;;) {
		lzma_ret status;

		if (!stream->avail_out) {
			size_t used = out->size;
			int r = grow(out);

			if (r)
				return r;
			stream->next_out = out->data + used;
			stream->avail_out = out->size - used;
		}
		status = lzma_code(stream, LZMA_FINISH);
		if (status == LZMA_STREAM_END)
			break;
		if (status == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (status != LZMA_OK)
			return -EBADMSG;
	}
	out->size -= stream->avail_out;
	return 0;
}

int elf_mini_debug_read(const struct elf_file *elf, struct elf_data *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".gnu_debugdata");
	_cleanup_(lzma_end) lzma_stream stream = LZMA_STREAM_INIT;
	_cleanup_free_ uint8_t *packed = NULL;
	struct elf_data data = { 0 };
	int r;

	if (!section)
		return -ENOENT;
	r = elf_file_section_data(elf, section, ELF_MINI_DEBUG_PACKED_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	packed = data.data;
	stream.next_in = data.data;
	stream.avail_in = data.size;
	data = (struct elf_data){ 0 };
	if (lzma_stream_decoder(&stream, ELF_MINI_DEBUG_DECODER_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	r = decode(&stream, &data);
	if (r) {
		free(data.data);
		return r == -ENOMEM ? r : -ENOENT;
	}
	*ret = data;
	return 0;
}
