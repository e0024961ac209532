// SPDX-License-Identifier: Apache-2.0
#include "cfi_writer.h"

#include <stdlib.h>
#include <string.h>

void cfi_writer_bytes(struct cfi_writer *w, const void *data, size_t size)
{
	if (size > sizeof(w->data) - w->size)
		abort();
	if (size)
		memcpy(w->data + w->size, data, size);
	w->size += size;
}

static void put(struct cfi_writer *w, uint64_t value, size_t size)
{
	cfi_writer_bytes(w, &value, size);
}

void cfi_writer_uleb(struct cfi_writer *w, uint64_t value)
{
	do {
		put(w, (value & 0x7f) | (value > 0x7f ? 0x80 : 0), 1);
		value >>= 7;
	} while (value);
}

/* The length comes when the entry is complete. */
static size_t begin(struct cfi_writer *w)
{
	size_t at = w->size;

	if (w->dwarf64)
		put(w, 0xffffffff, 4);
	put(w, 0, w->dwarf64 ? 8 : 4);
	return at;
}

static void end(struct cfi_writer *w, size_t at)
{
	size_t field = w->dwarf64 ? at + 4 : at, size = w->dwarf64 ? 8 : 4;
	uint64_t len;

	while (w->size % 8)
		put(w, 0, 1);
	len = w->size - field - size;
	memcpy(w->data + field, &len, size);
}

static size_t id_size(const struct cfi_writer *w)
{
	return w->dwarf64 && !w->eh_frame ? 8 : 4;
}

static const char *augmentation_of(const struct cfi_writer *w)
{
	return w->augmentation ? w->augmentation : w->eh_frame ? "zR" : "";
}

static uint8_t encoding_of(const struct cfi_writer *w)
{
	return w->encoding ? w->encoding : 0x1b;
}

static void put_augmentation(struct cfi_writer *w, const char *letters)
{
	struct cfi_writer data = { 0 };

	if (letters[0] != 'z')
		return;
	for (letters++; *letters; letters++) {
		if (*letters == 'R')
			put(&data, encoding_of(w), 1);
		else if (*letters == 'L')
			put(&data, 0x1b, 1);
		else if (*letters == 'P') {
			put(&data, 0x9b, 1); /* indirect, as it nearly always is */
			put(&data, 0x12345678, 4);
		}
	}
	cfi_writer_uleb(w, data.size);
	cfi_writer_bytes(w, data.data, data.size);
}

size_t cfi_writer_cie(struct cfi_writer *w, const uint8_t *program, size_t size)
{
	const char *letters = augmentation_of(w);
	uint8_t version = w->version ? w->version : 1;
	size_t at = begin(w);

	put(w, w->eh_frame ? 0 : UINT64_MAX, id_size(w));
	put(w, version, 1);
	cfi_writer_bytes(w, letters, strlen(letters) + 1);
	if (version == 4)
		put(w, 0x0008, 2); /* address size, segment size */
	if (!strcmp(letters, "eh"))
		put(w, 0x1122334455667788, 8);
	put(w, w->code_align ? w->code_align : 1, 1);
	put(w, (uint64_t)(w->data_align ? w->data_align : -8) & 0x7f, 1);
	put(w, w->ra ? w->ra : 16, 1);
	put_augmentation(w, letters);
	cfi_writer_bytes(w, program, size);
	end(w, at);
	return at;
}

static size_t encoded_size(uint8_t encoding)
{
	switch (encoding & 7) {
	case 2:
		return 2;
	case 3:
		return 4;
	default:
		return 8;
	}
}

static void put_encoded(struct cfi_writer *w, uint64_t value)
{
	uint8_t encoding = encoding_of(w);

	if ((encoding & 0x70) == 0x10)
		value -= w->addr + w->size;
	if ((encoding & 0x0f) == 1)
		cfi_writer_uleb(w, value);
	else
		put(w, value, encoded_size(encoding));
}

size_t cfi_writer_fde(struct cfi_writer *w, size_t cie, uint64_t start, uint64_t len,
		      const uint8_t *program, size_t size)
{
	size_t at = begin(w);

	put(w, w->eh_frame ? w->size - cie : cie, id_size(w));
	if (w->eh_frame) {
		put_encoded(w, start);
		if ((encoding_of(w) & 0x0f) == 1)
			cfi_writer_uleb(w, len);
		else
			put(w, len, encoded_size(encoding_of(w)));
	} else {
		put(w, start, 8);
		put(w, len, 8);
	}
	if (augmentation_of(w)[0] == 'z')
		cfi_writer_uleb(w, 0);
	cfi_writer_bytes(w, program, size);
	end(w, at);
	return at;
}

void cfi_writer_end(struct cfi_writer *w)
{
	put(w, 0, 4);
}
