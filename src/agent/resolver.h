/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the walkers send (frame words, a generation) to stacks of the profile; and at the end
 * from addresses to names.
 */
#pragma once

#include "agent/naming.h"
#include "agent/publisher.h"
#include "profile/profile.h"
#include "symbol/kernel_image.h"

/* Code in anonymous memory: its name stands in a file that the process may take with it. */
struct anonymous_frame {
	uint32_t pid, frame;
};

/* A file that was met, whose symbols are not asked for yet. */
struct wanted_file {
	uint32_t file, number; /* the mapped file's index; the profile's */
	uint32_t pid;	       /* that maps it */
};

enum { ANONYMOUS_FRAMES_MAX = 65536 }; /* those that wait for a name; further ones stay without */

struct resolver {
	struct publisher *publisher;
	struct profile *profile;
	VEC(uint32_t) profile_files; /* by mapped file's index; UINT32_MAX: not met yet */
	struct naming naming;
	struct kernel_image kernel;
	bool kernel_known;	    /* `kernel` was read */
	VEC(uint32_t) kernel_files; /* by file of `kernel`; UINT32_MAX: not met yet */
	VEC(uint32_t) scratch;
	VEC(struct anonymous_frame) anonymous; /* without a name so far */
	VEC(struct profile_line) levels;       /* of the runtime's frame that is being named */
	uint32_t named_thread; /* by the runtime, in place of that frame's levels; strtab */
	uint32_t thread_name;  /* of the virtual thread whose stack it is, strtab; 0: none */
	size_t nr_named;       /* frames that runtimes named, remembered */
	uint32_t epoch;	       /* moves when the profile forgets its frames */
	VEC(struct wanted_file) wanted;
	uint64_t anonymous_at_ns; /* CLOCK_MONOTONIC: when to look for their names again */
};

/* `options` may be NULL. Borrows publisher and profile. */
int resolver_init(struct resolver *r, struct publisher *publisher, struct profile *profile,
		  const struct naming_options *options);
void resolver_fini(struct resolver *r);

struct resolver_stack {
	uint32_t pid;
	struct process *proc;	   /* that has that pid; NULL: the one of the table, if any */
	const struct block *block; /* NULL: no user frames */
	const __u64 *kernel;
	size_t nr_kernel;
	const __u64 *words;
	size_t nr_words;
	enum stop_reason stop;
};

/*
 * Adds the stack to the profile. 0 and its number, -EINVAL if the words make no sense, -ENOMEM.
 * Whose it is, if it is a virtual thread's and that is wanted, is in r->thread_name: in the
 * profile's strings, 0: the operating system's thread's.
 */
int resolver_add(struct resolver *r, const struct resolver_stack *stack, uint32_t *ret);

/*
 * Asks for the symbols of the files that were met since. It takes milliseconds a file: not between
 * samples that wait, but soon, while the process that maps it lives.
 */
void resolver_want_names(struct resolver *r);
/*
 * Names what has a name by now of code that JITs made (perf maps): call it often, while they live.
 * It looks seldom enough not to spend more than a twentieth of the time on big maps.
 */
void resolver_name_anonymous(struct resolver *r);
/*
 * Names all frames of the profile that have no name yet and whose symbols are there by now; those
 * of files that can't be read stay without. The second one waits for the symbols first.
 */
int resolver_name_ready(struct resolver *r);
int resolver_name_all(struct resolver *r);
/* The profile was cleared (profile_clear_samples): nothing waits for a name any more. */
void resolver_forget(struct resolver *r);
