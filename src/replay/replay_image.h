/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a runtime, as far as its runtime needs it to know a process and to name frames: some
 * kilobytes of headers and symbols, so that a replay case can carry it. Made by trying out which
 * parts can be zeroes.
 */
#pragma once

#include "replay/replay_memory.h"
#include "runtime/runtime.h"

#include <linux/types.h>

enum {
	REPLAY_IMAGE_MAX = 256 << 20, /* bytes of the file */
	REPLAY_IMAGE_KEPT = 4 << 20,  /* of those, the ones that are kept */
};

enum { REPLAY_IMAGE_TIERS = 1, REPLAY_IMAGE_ASYNC = 2, REPLAY_IMAGE_VIRTUAL_THREADS = 4 };

struct replay_image {
	uint32_t runtime;	   /* enum runtime_id */
	uint32_t options;	   /* bits of REPLAY_IMAGE_*: it was attached to with these */
	uint64_t bias;		   /* address in memory - address in the file's own address space */
	uint64_t size;		   /* of the file */
	struct replay_memory kept; /* by offset, merged; all else is zeroes */
};

uint32_t replay_image_options(const struct runtime_options *options);
void replay_image_fini(struct replay_image *i);

/* A runtime that was attached to out of an image; proc is NULL if that failed. */
struct replay_attached {
	uint8_t *data;
	struct elf_file *elf;
	struct runtime_dso *dso;
	struct runtime_target target;
	struct runtime_keeper keeper;
	struct runtime_proc *proc;
	uint64_t record[RUNTIME_RECORD_MAX / 8];
};

/* `memory` (borrowed, merged) is the process's. 0, or what went wrong; replay_attached_fini() in
 * any case. */
int replay_image_attach(const struct replay_image *image, uint16_t machine,
			const struct replay_memory *memory, struct replay_attached *ret);
void replay_attached_fini(struct replay_attached *a);

/* What an image must still give. */
struct replay_image_wanted {
	uint16_t machine;
	const struct replay_memory *memory; /* merged */
	const void *record;		    /* RUNTIME_RECORD_MAX bytes */
	const __u64 *words;
	uint32_t nr_words;
};

/*
 * The names (replay/replay_names.h) that the runtimes of all images give to wanted->words; *ret is
 * the caller's. -ENOENT: there is no image. Other errors: it can't be attached to.
 */
int replay_images_name(const struct replay_image *images, uint32_t nr,
		       const struct replay_image_wanted *wanted, char **ret);

/* Makes the image of `elf`, `image` having the runtime and its bias. 0, or: -ENOENT, not even the
 * whole file gives what it must; -EFBIG. */
int replay_image_make(const struct elf_file *elf, const struct replay_image_wanted *wanted,
		      struct replay_image *image);
