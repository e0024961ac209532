/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of images (jit_image.h) in a process's memory that begins at its __jit_debug_descriptor,
 * as it was read last: an address is looked for in those that say that they have it, and these are
 * read again each time. Nothing tells when they change.
 */
#pragma once

#include "unwind/jit_image.h"
#include "util/vec.h"

enum {
	JIT_ENTRIES_MAX = 512,	    /* of a list */
	JIT_IMAGE_MAX = 1 << 20,    /* bytes of one */
	JIT_IMAGES_BYTES = 4 << 20, /* of all images, and of all their sections, that are read
				       of a list at once */
};

/* As GDB's documentation has them, "JIT Interface: Declarations". */
struct jit_descriptor {
	uint32_t version, action;
	uint64_t relevant, first;
};

struct jit_entry {
	uint64_t next, prev, image, size;
};

struct jit_memory {
	int (*read)(void *ctx, __u64 addr, void *to, __u32 size); /* all, or negative errno */
	void *ctx;
};

struct jit_known {
	uint64_t at;
	struct jit_entry entry;
	uint64_t start, end;
};

/* Zeroes, but for where it is, at first. */
struct jit_list {
	uint64_t addr; /* of the descriptor */
	bool read;
	struct jit_descriptor descriptor;
	VEC(struct jit_known) known;
};

/*
 * What is said of `pc`: 0; -ENOENT: nothing, or there is none such list; -EAGAIN: it changed
 * meanwhile; -ENOMEM.
 */
int jit_list_find(struct jit_list *list, const struct jit_memory *memory, uint16_t machine,
		  uint64_t pc, struct jit_code *ret);
/* Likewise the name of what is there. */
int jit_list_name(struct jit_list *list, const struct jit_memory *memory, uint16_t machine,
		  uint64_t pc, char ret[static JIT_NAME_MAX]);
void jit_list_fini(struct jit_list *list);
