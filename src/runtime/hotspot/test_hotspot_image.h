/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made JVM for tests: memory from IMAGE_BASE on, with exported tables, a code heap, an
 * interpreter and a few structures in it. The fuzzer takes the same kind of image: the exported
 * symbols stand in its first words, in the order of HOTSPOT_SYMBOLS.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#define IMAGE_BASE 0x10000ULL
enum {
	IMAGE_SIZE_MAX = 1 << 16,
	IMAGE_SYMBOLS = 32, /* words that are kept for them */
};

struct image {
	uint8_t data[IMAGE_SIZE_MAX];
	size_t size; /* the rest of the last page is zero */
	struct hotspot_symbols symbols;
};

static inline int image_read(void *ctx, uint64_t addr, void *to, size_t size)
{
	const struct image *image = ctx;
	size_t end = (image->size + 4095) & ~(size_t)4095; /* memory is in pages */

	if (addr < IMAGE_BASE || addr - IMAGE_BASE > end || size > end - (addr - IMAGE_BASE))
		return -EFAULT;
	memcpy(to, image->data + (addr - IMAGE_BASE), size);
	return 0;
}

static inline struct runtime_target image_target(struct image *image)
{
	return (struct runtime_target){ .pid = 1,
					.machine = EM_X86_64,
					.memory = { image_read, image } };
}

static inline void image_init(struct image *image)
{
	uint64_t at = IMAGE_BASE;

	memset(image, 0, sizeof(*image));
	image->size = 8 * IMAGE_SYMBOLS;
#define X(name, symbol) image->symbols.name = at, at += 8;
	HOTSPOT_SYMBOLS(X)
#undef X
}
