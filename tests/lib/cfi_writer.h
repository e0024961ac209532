/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembles call frame information in memory, for tests of what reads it.
 *
 *	struct cfi_writer w = { .eh_frame = true, .addr = 0x2000 };
 *	size_t cie = cfi_writer_cie(&w, CFI_BYTES(0x0c, 7, 8, 0x90, 1)); // CFA = rsp + 8, ra at CFA
 *- 8 cfi_writer_fde(&w, cie, 0x1000, 0x100, CFI_BYTES(0x41, 0x0e, 16));
 *
 * What a CIE looks like is told by the writer's fields; zero is what compilers write.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CFI_BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

struct cfi_writer {
	uint8_t data[16384];
	size_t size;
	bool eh_frame;
	uint64_t addr; /* of data[0] */
	/* of the CIEs (and their FDEs) that are written from now on */
	bool dwarf64;
	uint8_t version;	  /* 0: 1 */
	const char *augmentation; /* NULL: "zR" in .eh_frame, none in .debug_frame */
	uint8_t encoding;	  /* 0: 0x1b, pcrel | sdata4 */
	uint8_t ra;		  /* 0: 16 */
	uint8_t code_align;	  /* 0: 1 */
	int8_t data_align;	  /* 0: -8 */
};

void cfi_writer_bytes(struct cfi_writer *w, const void *data, size_t size);
void cfi_writer_uleb(struct cfi_writer *w, uint64_t value);
/* Both return the entry's offset. */
size_t cfi_writer_cie(struct cfi_writer *w, const uint8_t *program, size_t size);
size_t cfi_writer_fde(struct cfi_writer *w, size_t cie, uint64_t start, uint64_t len,
		      const uint8_t *program, size_t size);
/* The empty entry that ends .eh_frame. */
void cfi_writer_end(struct cfi_writer *w);
