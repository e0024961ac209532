/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF programs, their maps and the perf events that they hang on.
 *
 * open -> (choose targets) -> start -> drain ... -> stop -> free. One thread.
 */
#pragma once

#include "abi/sample.h"
#include "abi/task.h"
#include "unwind/unwind_store.h"
#include "util/cpus.h"

struct kernel_side_options {
	uint32_t frequency_hz, max_frames;
	uint32_t ring_bytes; /* a power of two, at least a page */
	bool targets_only;   /* sample only processes chosen by kernel_side_add_target(), and their
				children */
	bool no_kernel, idle;
	bool raw_too;		    /* tests: a raw record behind each full one */
	char *const *walker_loader; /* argv of a program that is walkers_child_main(); NULL: fork */
	bool measure;		    /* benchmarks: the map `times` tells how long samples take */
	const char *also_at; /* tests: tasks that pass this raw tracepoint are samples, too */
};

struct kernel_side;

/* Logging: says which step failed and what to do. */
int kernel_side_open(const struct kernel_side_options *options, struct kernel_side **ret);
void kernel_side_free(struct kernel_side *ks);
static inline void kernel_side_free_p(struct kernel_side **ks)
{
	kernel_side_free(*ks);
}

/* The maps that unwind_store fills. */
struct unwind_store_maps kernel_side_maps(const struct kernel_side *ks);
/* Begins to sample on all CPUs, and follows them; `cpus` must outlive the stop. Logging. */
int kernel_side_start(struct kernel_side *ks, struct cpu_set *cpus);
/* No further samples; those in the ring stay. */
void kernel_side_stop(struct kernel_side *ks);

/* Begins to load the walkers of these runtimes (bit N: runtime N), as far as that was not done.
 * Urgent: somebody has samples for them; else it takes nobody's CPU. */
void kernel_side_want_walkers(struct kernel_side *ks, uint32_t ids, bool urgent);
/* Takes in those that have come; those of `ids` that have not, after at most `wait_ms`. */
uint32_t kernel_side_update_walkers(struct kernel_side *ks, uint32_t ids, int wait_ms);
/* Kernel memory of those that have come, as far as the kernel tells. */
size_t kernel_side_walker_bytes(const struct kernel_side *ks);

int kernel_side_add_target(struct kernel_side *ks, uint32_t pid);
void kernel_side_del_target(struct kernel_side *ks, uint32_t pid);
/* Calls `each` for every target; it may delete that one. */
void kernel_side_each_target(struct kernel_side *ks, void (*each)(void *ctx, uint32_t pid),
			     void *ctx);
/* Calls `each` with the address space of each thread of the targets, or of all processes if none
 * are to be chosen. */
int kernel_side_read_spaces(struct kernel_side *ks,
			    void (*each)(void *ctx, const struct task_space *space), void *ctx);
int kernel_side_set_process(struct kernel_side *ks, uint32_t pid,
			    const struct unwind_process *process);
/* -ENOENT if the kernel does not know it. */
int kernel_side_get_process(struct kernel_side *ks, uint32_t pid, struct unwind_process *ret);
void kernel_side_del_process(struct kernel_side *ks, uint32_t pid);
/* Calls `each` for all that have an entry, children too which nobody heard of. */
void kernel_side_each_process(struct kernel_side *ks, void (*each)(void *ctx, uint32_t pid),
			      void *ctx);
/* The kernel takes no stack for known any more: each is sent in full again. */
void kernel_side_forget_stacks(struct kernel_side *ks);

/*
 * While held, samples that the kernel can't walk to the end come cut, with the reason, and not raw:
 * they take little room.
 */
void kernel_side_hold_raws(struct kernel_side *ks, bool hold);
/* While held, code that was not followed is walked with a note (STOP_CODE_PENDING). */
void kernel_side_hold_asks(struct kernel_side *ks, bool hold);
/* Readable when a raw record waits; others are fetched by the clock. */
int kernel_side_fd(const struct kernel_side *ks);
/* Calls `each` for every record in the ring; it is valid during the call. */
int kernel_side_drain(struct kernel_side *ks, int (*each)(void *ctx, void *record, size_t size),
		      void *ctx);

/* Adds up over CPUs: lost[0 .. LOST_KERNEL_MAX_). */
void kernel_side_lost(const struct kernel_side *ks, uint64_t *lost);
/* Nanoseconds that sample_cpu ran since the start, and how often. */
void kernel_side_run_time(const struct kernel_side *ks, uint64_t *ret_ns, uint64_t *ret_runs);
/* Kernel memory of all maps and programs, as far as the kernel tells; the arena's segments not
 * included. */
size_t kernel_side_bytes(const struct kernel_side *ks);
