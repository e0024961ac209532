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

/* What tells whether modules have come or gone since, or one has taken another's place. */
struct kernel_modules_seen {
	uint64_t nr;	    /* links of their folder */
	uint64_t nr_events; /* that the kernel has told of what comes and goes, of any kind */
	uint64_t names;	    /* hash of what is in the folder */
};

/* Code of which the kernel has said that it is gone. */
struct kernel_gone {
	uint64_t start, end;
};

struct kernel_places {
	struct profile *profile; /* borrowed */
	struct kernel_image image;
	/* What the last look found to be no more: samples from before it are still to come. */
	struct kernel_image before;
	int modules_fd;			 /* folder that has one for each module; or -1 */
	int events_fd;			 /* file with the number of the last such event; or -1 */
	struct kernel_modules_seen seen; /* when `image` was read */
	bool known;			 /* `image` was read */
	VEC(uint32_t) files;		 /* by file of `image`; UINT32_MAX: not met yet */
	uint64_t text_start, text_end; /* of the kernel's own code, which stays; 0, 0: not known */
	struct map met;		      /* addresses outside of it, by KERNEL_PLACE_SHIFT bits less */
	VEC(struct kernel_gone) gone; /* in the order of time */
	uint32_t scope;		      /* of what is in none of them: theirs come behind it */
	uint32_t version;	      /* moves when what was found may be another's by now */
	bool has_changed;	      /* at the last look */
};

enum {
	KERNEL_PLACE_SHIFT =
		6, /* BPF programs lie at multiples of 64 bytes (since 5.18; of a page) */
	KERNEL_PLACES_MAX = 1 << 16,
};

/* A scope: in place of one module there is another, and who ran is not known. It has no name. */
#define KERNEL_SCOPE_UNSURE UINT32_MAX

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
	KERNEL_MORE, /* there are names that there were not before; of a module: `version` has moved
		      */
	KERNEL_LESS, /* something is gone, and who was found in it: `version` has moved */
};
/* Have modules come or gone? Two system calls, if nothing has. */
enum kernel_change kernel_places_look(struct kernel_places *k);
/* The kernel says that there is code of a BPF program, or that it is gone. */
enum kernel_change kernel_places_code(struct kernel_places *k, uint64_t start, uint64_t len,
				      bool is_gone);
/* Some of what the kernel says of BPF programs was lost: each place may be another's. */
void kernel_places_lost(struct kernel_places *k);
/* The profile was collected. */
void kernel_places_collected(struct kernel_places *k, const struct profile_collected *c);
