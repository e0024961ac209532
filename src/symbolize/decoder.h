/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what the walkers send (frame words, a generation) to stacks of the profile; and at the end
 * from addresses to names.
 */
#pragma once

#include "symbolize/jit_names.h"
#include "symbolize/kernel_places.h"
#include "symbolize/symbolizer.h"
#include "unwinder/publisher.h"
#include "profile/collect.h"
#include "util/time_shares.h"

/* Who records everybody's processes reads names of runtimes' functions for half of a CPU at most.
 */
enum { DECODER_NAME_PART = 2 };
/* Files whose tables a stack needs, as many as are told; nearly all stacks are in fewer. */
enum { DECODER_NEEDED_MAX = 6 };

/* A file that was met, whose symbols are not asked for yet. */
struct wanted_file {
	struct mapped_file *file; /* held */
	uint32_t number;	  /* the profile's */
	uint32_t pid;		  /* that maps it */
};

struct decoder {
	struct publisher *publisher;
	struct profile *profile;
	VEC(uint32_t) profile_files; /* by mapped file's index; UINT32_MAX: not met yet */
	uint32_t nr_files;	     /* that were met */
	struct symbolizer symbolizer;
	struct kernel_places kernel;
	VEC(uint32_t) scratch;
	struct jit_names jit;
	VEC(struct profile_line) inline_frames; /* of the runtime's frame that is being named */
	uint32_t named_thread; /* by the runtime, in place of that frame's inline frames; strtab */
	uint32_t thread_name;  /* of the virtual thread whose stack it is, strtab; 0: none */
	VEC(struct profile_label) labels; /* of that stack */
	size_t nr_named;		  /* frames that runtimes named, remembered */
	uint32_t epoch;			  /* moves when what runtimes named is forgotten */
	/* For reading these names, by user; its part is 0: there is no limit. */
	struct time_shares name_time;
	uint64_t nr_unnamed; /* frames that were met beyond it, or met again: they are unknown */
	bool lacks_names;    /* the stack that was added last has such frames */
	/* Of the stack that was added last: whose tables it needs, as far as there is room for
	 * them. Numbers of the unwind store. */
	uint16_t needed[DECODER_NEEDED_MAX];
	uint32_t nr_needed;
	VEC(struct wanted_file) wanted;
};

/* `options` may be NULL. Borrows publisher and profile. */
int decoder_init(struct decoder *d, struct publisher *publisher, struct profile *profile,
		 const struct symbolizer_options *options);
void decoder_fini(struct decoder *d);

struct decoder_stack {
	uint32_t pid;
	struct process *proc; /* that has that pid; NULL: the one of the table, if any */
	const struct mapping_snapshot *snapshot; /* NULL: no user frames */
	const __u64 *kernel;
	size_t nr_kernel;
	const __u64 *words;
	size_t nr_words;
	enum stop_reason stop;
};

/*
 * Adds the stack to the profile. 0 and its number, -EINVAL if the words make no sense, -ENOMEM.
 * Whose it is, if it is a virtual thread's and that is wanted, is in d->thread_name: in the
 * profile's strings, 0: the operating system's thread's. What it works for is in d->labels.
 */
int decoder_add(struct decoder *d, const struct decoder_stack *stack, uint32_t *ret);

/*
 * Asks for the symbols of the files that were met since. It takes milliseconds a file: not between
 * samples that wait, but soon, while the process that maps it lives.
 */
void decoder_want_names(struct decoder *d);
/*
 * Names all frames of the profile that have no name yet and whose symbols are there by now; those
 * of files that can't be read stay without. The second one waits for the symbols first.
 */
int decoder_name_ready(struct decoder *d);
int decoder_name_all(struct decoder *d);
/* Looks whether modules came or went: a system call. */
enum kernel_change decoder_look_at_kernel(struct decoder *d);
/*
 * What the kernel says of a BPF program's code (SIDE_CODE, SIDE_CODE_GONE). True: known stacks may
 * have been through code that is gone.
 */
bool decoder_on_kernel_code(struct decoder *d, const struct side_event *e, const char *name);
/* Moves when the kernel's frames in a stack may be others' by now. */
static inline uint32_t decoder_kernel_version(const struct decoder *d)
{
	return d->kernel.version;
}
/*
 * The stack that is at the addresses of `stack` now: the kernel's frames are of what is there. It
 * is `stack` itself if none has changed. 0, -ENOMEM, -ENOSPC: the profile is full.
 */
int decoder_look_again(struct decoder *d, uint32_t stack, uint32_t *ret);
/* Such events may be among what the kernel dropped. */
void decoder_on_lost_events(struct decoder *d);
/* The profile was collected: everything that keeps numbers of it is told. */
void decoder_collected(struct decoder *d, const struct profile_collected *c);
