/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file a kernel address is of, while modules and BPF programs come and go: at an address may
 * be another one's code by now, whose frames are others.
 */
#pragma once

#include "profile/collect.h"
#include "symbol/kernel_image.h"
#include "util/map.h"
#include "util/vec.h"

/* Code of which the kernel has said that it is gone. */
struct kernel_gone {
	uint64_t start, end;
};

struct kernel_places {
	struct profile *profile; /* borrowed */
	struct kernel_image image;
	/* What the last look found to be no more: samples from before it are still to come. */
	struct kernel_image before;
	int modules_fd;		       /* folder that has one for each module; or -1 */
	uint64_t nr_modules;	       /* links of that folder when `image` was read */
	bool known;		       /* `image` was read */
	VEC(uint32_t) files;	       /* by file of `image`; UINT32_MAX: not met yet */
	uint64_t text_start, text_end; /* of the kernel's own code, which stays; 0, 0: not known */
	struct map met;		      /* addresses outside of it, by KERNEL_PLACE_SHIFT bits less */
	VEC(struct kernel_gone) gone; /* in the order of time */
	uint32_t scope;		      /* of what is in none of them: theirs come behind it */
};

enum {
	KERNEL_PLACE_SHIFT =
		6, /* BPF programs lie at multiples of 64 bytes (since 5.18; of a page) */
	KERNEL_PLACES_MAX = 1 << 16,
};

void kernel_places_init(struct kernel_places *k, struct profile *profile);
void kernel_places_fini(struct kernel_places *k);
/*
 * What is at an address now: the profile's number of the file, and what else tells it from what was
 * there before.
 */
int kernel_places_find(struct kernel_places *k, uint64_t address, uint32_t *ret_file,
		       uint32_t *ret_scope);

enum kernel_change {
	KERNEL_SAME,
	KERNEL_MORE, /* there are names that there were not before */
	KERNEL_LESS, /* stacks that are known may have been through what is gone */
};
/* Have modules come or gone? A system call. */
enum kernel_change kernel_places_look(struct kernel_places *k);
/* The kernel says that there is code of a BPF program, or that it is gone. */
enum kernel_change kernel_places_code(struct kernel_places *k, uint64_t start, uint64_t len,
				      bool is_gone);
/* The profile was collected. */
void kernel_places_collected(struct kernel_places *k, const struct profile_collected *c);
