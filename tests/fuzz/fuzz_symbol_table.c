// SPDX-License-Identifier: Apache-2.0
/*
 * A symbol table's image of any content: no look-up leaves it. Images that the checksum refuses are
 * given the right one, since who can write to a cache can do that, too.
 */
#include "fuzz.h"
#include "symbol/symbol_image.h"
#include "symbol/symbol_table.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static void use(const struct symbol_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (strlen(frames[i].name) + strlen(frames[i].file) > SIZE_MAX / 2 ||
		    frames[i].language >= SYMBOL_LANGUAGE_MAX_)
			abort();
}

static void look_up(const struct symbol_table *t, uint64_t base)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	uint64_t step = 1;

	for (uint64_t addr = base; addr - base <= UINT32_MAX; addr += step) {
		size_t nr = symbol_table_find(t, addr, true, frames, SYMBOL_FRAMES_MAX);

		if (nr > SYMBOL_FRAMES_MAX)
			abort();
		use(frames, nr);
		use(frames, symbol_table_find(t, addr, false, frames, 1));
		/* Closely at first, then faster and faster. */
		step += addr - base > 256 ? 1 + step / 2 : 0;
	}
}

FUZZER(data, size)
{
	struct image_header *h;
	struct symbol_table *t;
	struct symbol_table_info info;
	uint8_t *image = malloc(size + 1);

	if (!image)
		return 0;
	memcpy(image, data, size);
	h = (void *)image;
	if (size >= sizeof(*h)) {
		h->size = size;
		h->body_hash = XXH3_64bits(image + sizeof(*h), size - sizeof(*h));
		h->header_hash = XXH3_64bits(h, offsetof(struct image_header, header_hash));
	}
	if (!symbol_table_open_memory(image, size, &t)) {
		symbol_table_info(t, &info);
		if (info.size != size || symbol_table_resident(t) != size ||
		    strlen(symbol_table_complaints(t)) >= size)
			abort();
		look_up(t, h->base);
		symbol_table_free(t);
	}
	free(image);
	return 0;
}
