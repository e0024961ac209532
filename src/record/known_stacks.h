/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks that the kernel takes for known: what a hit of a hash means. When the kernel is told
 * to forget them, hits that are on their way still find theirs: what was known stays for a while.
 */
#pragma once

#include "profile/collect.h"
#include "symbolize/decoder.h"

struct known_stack {
	uint32_t stack; /* of the profile */
	uint32_t pid;	/* whose it is */
	uint32_t generation;
	uint32_t thread_name; /* of the virtual thread whose it is: strtab; 0: of none */
	/* Whose tables it needs, numbers of the unwind store; perhaps not all. */
	uint16_t files[DECODER_NEEDED_MAX];
	uint16_t nr_files;
	bool lacks_names;	 /* some were put off */
	uint32_t kernel_version; /* decoder_kernel_version() when its frames were looked up */
	/* private */
	uint32_t first_label, nr_labels;
};

struct known_set {
	struct map by_hash; /* -> index */
	VEC(struct known_stack) items;
	VEC(struct profile_label) labels;
};

/* Zeroes are an empty one. */
struct known_stacks {
	struct known_set now, before;
	uint64_t before_until_ns; /* how long `before` is kept */
};

enum {
	KNOWN_STACKS_MAX = 1 << 17,
	KNOWN_LABELS_MAX = 1 << 18,
	/* No hit is on its way for so long. */
	KNOWN_STACKS_STAY_NS = 1000000000,
};

void known_stacks_fini(struct known_stacks *k);
/* NULL: nobody knows of it. Valid until the next call, as are its labels: (*labels)[0] and on. */
struct known_stack *known_stacks_find(const struct known_stacks *k, uint64_t hash,
				      const struct profile_label **labels);
/* NULL also if it is not a stack of process `pid`: another's may have that hash, by chance or on
 * purpose, and is not what a hit means. */
struct known_stack *known_stacks_find_of(const struct known_stacks *k, uint64_t hash, uint32_t pid,
					 const struct profile_label **labels);
/* Likewise of a waker's, whose hash says which process's it is. */
struct known_stack *known_stacks_find_waker(const struct known_stacks *k, uint64_t waker,
					    const struct profile_label **labels);
/* 0 or -ENOMEM; -ENOSPC: there are too many, the kernel must forget. */
int known_stacks_put(struct known_stacks *k, uint64_t hash, const struct known_stack *stack,
		     const struct profile_label *labels, size_t nr);
/* Those that lack names: calls `each` with their hashes. */
void known_stacks_each_unnamed(const struct known_stacks *k, void (*each)(void *ctx, uint64_t hash),
			       void *ctx);
/* The kernel was told to forget all of them. */
void known_stacks_forget(struct known_stacks *k, uint64_t now_ns);
/* Drops what no hit can come for any more. */
void known_stacks_tick(struct known_stacks *k, uint64_t now_ns);
/* The profile was collected. */
void known_stacks_collected(struct known_stacks *k, const struct profile_collected *c);
