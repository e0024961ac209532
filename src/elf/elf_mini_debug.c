// SPDX-License-Identifier: Apache-2.0
/*
 * MiniDebugInfo: the section .gnu_debugdata is a small ELF file, packed by xz, whose .symtab has
 * the functions that .dynsym lacks. Fedora, RHEL and their kin ship all programs so.
 *
 * No more is unpacked than the index at the end says: callers decide by that whether to read it.
 */
#include "elf/elf_symbols_internal.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>

enum {
	INDEX_MAX = 64 << 10, /* bytes of an index: one block has about ten, a file one block */
	INDEX_MEMORY_MAX = 4 << 20,
};

static void index_end(lzma_index *index)
{
	lzma_index_end(index, NULL);
}
DEFINE_CLEANUP(lzma_index *, index_end)

/* The sum of the blocks' sizes, out of the index before the footer. 0 or -errno. */
static int read_unpacked_size(const struct elf_file *elf, const struct elf_section *s,
			      uint64_t *ret)
{
	uint8_t footer[LZMA_STREAM_HEADER_SIZE];
	_cleanup_(index_end_p) lzma_index *index = NULL;
	_cleanup_free_ uint8_t *packed = NULL;
	uint64_t end = s->offset + s->size - sizeof(footer), memory = INDEX_MEMORY_MAX;
	lzma_stream_flags flags;
	size_t at = 0;

	if (s->flags & SHF_COMPRESSED || s->size < 2 * sizeof(footer) ||
	    elf_file_read(elf, end, footer, sizeof(footer)) ||
	    lzma_stream_footer_decode(&flags, footer) != LZMA_OK ||
	    flags.backward_size > s->size - 2 * sizeof(footer) || flags.backward_size > INDEX_MAX)
		return -EBADMSG;
	packed = malloc(flags.backward_size);
	if (!packed)
		return -ENOMEM;
	if (elf_file_read(elf, end - flags.backward_size, packed, flags.backward_size) ||
	    lzma_index_buffer_decode(&index, &memory, NULL, packed, &at, flags.backward_size) !=
		    LZMA_OK)
		return -EBADMSG;
	if (lzma_index_uncompressed_size(index) > ELF_MINI_DEBUG_MAX)
		return -EFBIG;
	*ret = lzma_index_uncompressed_size(index);
	return 0;
}

uint64_t elf_mini_debug_bytes(const struct elf_file *elf)
{
	const struct elf_section *section = elf_file_section(elf, ".gnu_debugdata");
	uint64_t size;

	if (!section || section->size > ELF_MINI_DEBUG_PACKED_MAX ||
	    read_unpacked_size(elf, section, &size))
		return 0;
	return section->size + size;
}

/* Fills `out`; -EBADMSG, too, if it is more than that. */
static int decode(lzma_stream *stream, struct elf_data *out)
{
	lzma_ret status;

	stream->next_out = out->data;
	stream->avail_out = out->size;
	do
		status = lzma_code(stream, LZMA_FINISH);
	while (status == LZMA_OK);
	if (status == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (status != LZMA_STREAM_END)
		return -EBADMSG;
	out->size -= stream->avail_out;
	return 0;
}

int elf_mini_debug_read(const struct elf_file *elf, struct elf_data *ret)
{
	const struct elf_section *section = elf_file_section(elf, ".gnu_debugdata");
	_cleanup_(lzma_end) lzma_stream stream = LZMA_STREAM_INIT;
	_cleanup_free_ uint8_t *packed = NULL, *unpacked = NULL;
	struct elf_data data = { 0 };
	uint64_t size;
	int r;

	if (!section)
		return -ENOENT;
	r = read_unpacked_size(elf, section, &size);
	if (!r)
		r = elf_file_section_data(elf, section, ELF_MINI_DEBUG_PACKED_MAX, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	packed = data.data;
	stream.next_in = data.data;
	stream.avail_in = data.size;
	data.size = size;
	data.data = malloc(data.size + 1);
	if (!data.data)
		return -ENOMEM;
	unpacked = data.data;
	if (lzma_stream_decoder(&stream, ELF_MINI_DEBUG_DECODER_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	r = decode(&stream, &data);
	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	TAKE_PTR(unpacked);
	*ret = data;
	return 0;
}
