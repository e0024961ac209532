// SPDX-License-Identifier: Apache-2.0
/*
 * Compressed sections of ELF files: SHF_COMPRESSED with zlib or zstd, and the older .zdebug_*.
 *
 * The size that the header promises is checked against the caller's limit before anything is
 * allocated, and the stream must give exactly that: a decompression bomb gets no further than an
 * honest file does.
 */
#include "elf/elf_file_internal.h"
#include "util/cleanup.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD /* glibc 2.37 */
#define ELFCOMPRESS_ZSTD 2
#endif

enum {
	LEGACY_HEADER_SIZE = 12,
	/* What deflate can expand to at the very most, so that a lie costs no memory. */
	DEFLATE_RATIO_MAX = 1032,
	STREAM_SLACK = 4096,
};

static int inflate_zlib(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
	uLong in_used = in_size;
	uLongf out_used = out_size;
	int r = uncompress2(out, &out_used, in, &in_used);

	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	return r == Z_OK && out_used == out_size ? 0 : -EBADMSG;
}

DEFINE_CLEANUP(ZSTD_DCtx *, ZSTD_freeDCtx)

static int inflate_zstd(const uint8_t *in, size_t in_size, uint8_t *out, size_t out_size)
{
	_cleanup_(ZSTD_freeDCtx_p) ZSTD_DCtx *ctx = ZSTD_createDCtx();

	if (!ctx)
		return -ENOMEM;
	return ZSTD_decompressDCtx(ctx, out, out_size, in, in_size) == out_size ? 0 : -EBADMSG;
}

static int decompress(const struct elf_file *elf, uint64_t offset, uint64_t in_size, uint32_t type,
		      uint64_t out_size, size_t max, struct elf_data *ret)
{
	_cleanup_free_ uint8_t *in = NULL, *out = NULL;
	int r;

	if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
		return -ENOTSUP;
	/* An incompressible section grows a little; one that grows more is not worth its memory. */
	if (out_size > max || in_size > out_size + out_size / 8 + STREAM_SLACK)
		return -EFBIG;
	if (type == ELFCOMPRESS_ZLIB && out_size / DEFLATE_RATIO_MAX > in_size)
		return -EBADMSG;
	in = malloc(in_size + 1);
	out = malloc(out_size + 1);
	if (!in || !out)
		return -ENOMEM;
	r = elf_file_read(elf, offset, in, in_size);
	if (r)
		return r;
	r = type == ELFCOMPRESS_ZLIB ? inflate_zlib(in, in_size, out, out_size)
				     : inflate_zstd(in, in_size, out, out_size);
	if (r)
		return r;
	out[out_size] = 0;
	ret->data = TAKE_PTR(out);
	ret->size = out_size;
	return 0;
}

/* What stands before the stream. */
struct promise {
	uint32_t type;
	uint64_t size; /* decompressed */
	size_t header_size;
};

static int read_chdr(const struct elf_file *elf, const struct elf_section *section,
		     struct promise *ret)
{
	Elf64_Chdr header;
	int r;

	if (section->size < sizeof(header))
		return -EBADMSG;
	r = elf_file_read(elf, section->offset, &header, sizeof(header));
	if (r)
		return r;
	*ret = (struct promise){ header.ch_type, header.ch_size, sizeof(header) };
	return 0;
}

static int read_legacy(const struct elf_file *elf, const struct elf_section *section,
		       struct promise *ret)
{
	uint8_t header[LEGACY_HEADER_SIZE];
	uint64_t size;
	int r;

	if (section->size < sizeof(header))
		return -EBADMSG;
	r = elf_file_read(elf, section->offset, header, sizeof(header));
	if (r)
		return r;
	if (memcmp(header, "ZLIB", 4))
		return -EBADMSG;
	memcpy(&size, header + 4, sizeof(size));
	*ret = (struct promise){ ELFCOMPRESS_ZLIB, be64toh(size), sizeof(header) };
	return 0;
}

static int read_promise(const struct elf_file *elf, const struct elf_section *section,
			struct promise *ret)
{
	return section->flags & SHF_COMPRESSED ? read_chdr(elf, section, ret)
					       : read_legacy(elf, section, ret);
}

uint64_t elf_decompressed_size(const struct elf_file *elf, const struct elf_section *section)
{
	struct promise promise;

	return read_promise(elf, section, &promise) ? 0 : promise.size;
}

int elf_decompress(const struct elf_file *elf, const struct elf_section *section, size_t max,
		   struct elf_data *ret)
{
	struct promise promise;
	int r = read_promise(elf, section, &promise);

	if (r)
		return r;
	return decompress(elf, section->offset + promise.header_size,
			  section->size - promise.header_size, promise.type, promise.size, max,
			  ret);
}
