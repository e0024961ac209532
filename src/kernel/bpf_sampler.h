/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF programs, their maps and the perf events that they hang on.
 *
 * open -> (choose targets) -> start -> drain ... -> stop -> free. One thread.
 */
#pragma once

#include "abi/kernel_rows.h"
#include "abi/sample.h"
#include "abi/select.h"
#include "abi/task.h"
#include "kernel/source.h"
#include "unwind/unwind_store.h"
#include "util/cpus.h"

struct bpf_sampler_options {
	uint32_t frequency_hz, max_frames;
	uint32_t ring_bytes; /* a power of two, at least a page */
	bool targets_only;   /* sample only processes chosen by bpf_sampler_add_target(), and their
				children */
	bool select;	     /* sample only processes that bpf_sampler_select() says */
	bool no_kernel, idle, no_kernel_threads;
	const uint64_t *only_cpus; /* clocks and events: bits, CPUS_MAX of them; NULL: all */
	enum kernel_frames kernel_frames;
	bool raw_too;		    /* tests: a raw record behind each full one */
	char *const *walker_loader; /* argv of a program that is walkers_child_main(); NULL: fork */
	bool measure;		    /* benchmarks: the map `times` tells how long samples take */
	const struct source_spec *sources; /* 1 and on; what they point to is borrowed */
	size_t nr_sources;		   /* below SAMPLE_SOURCES_MAX */
};

struct bpf_sampler;

/* Logging: says which step failed and what to do. */
int bpf_sampler_open(const struct bpf_sampler_options *options, struct bpf_sampler **ret);
void bpf_sampler_free(struct bpf_sampler *sampler);
static inline void bpf_sampler_free_p(struct bpf_sampler **sampler)
{
	bpf_sampler_free(*sampler);
}

/* The maps that unwind_store fills. */
struct unwind_store_maps bpf_sampler_maps(const struct bpf_sampler *sampler);
/* Begins to sample on all CPUs, and follows them; `cpus` must outlive the stop. Logging. */
int bpf_sampler_start(struct bpf_sampler *sampler, struct cpu_set *cpus);
/* While it samples: from now on so often, or as before, and the error. */
int bpf_sampler_set_frequency(struct bpf_sampler *sampler, uint32_t frequency_hz);
/* Clocks and events take no samples until it is called again; also before the start. The first
 * error: of some CPUs it is not so. */
int bpf_sampler_pause(struct bpf_sampler *sampler, bool paused);
/* No further samples; those in the ring stay. */
void bpf_sampler_stop(struct bpf_sampler *sampler);

/* Begins to load the walkers of these runtimes (bit N: runtime N), as far as that was not done.
 * Urgent: somebody has samples for them; else it takes nobody's CPU. */
void bpf_sampler_want_walkers(struct bpf_sampler *sampler, uint32_t ids, bool urgent);
/* Takes in those that have come; those of `ids` that have not, after at most `wait_ms`. */
uint32_t bpf_sampler_update_walkers(struct bpf_sampler *sampler, uint32_t ids, int wait_ms);
/* Takes in the rows of the kernel's code: 1 if they have come, 0 if not within `wait_ms`, or what
 * keeps them from coming, once. */
int bpf_sampler_update_rows(struct bpf_sampler *sampler, int wait_ms);
/* Modules or BPF programs came or went: milliseconds. Frames in those that are not listed cost more
 * time, that is all. */
void bpf_sampler_list_code(struct bpf_sampler *sampler);
/* Kernel memory of those that have come, and of the rows, as far as the kernel tells. */
size_t bpf_sampler_walker_bytes(const struct bpf_sampler *sampler);

int bpf_sampler_add_target(struct bpf_sampler *sampler, uint32_t pid);
void bpf_sampler_del_target(struct bpf_sampler *sampler, uint32_t pid);
/* Calls `each` for every target; it may delete that one. */
void bpf_sampler_each_target(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			     void *ctx);
/* Calls `each` with the address space of each thread of the targets, or of all processes if none
 * are to be chosen. */
int bpf_sampler_read_spaces(struct bpf_sampler *sampler,
			    void (*each)(void *ctx, const struct task_space *space), void *ctx);
/* From now on these rules; their `which` and `epoch` are set. Before the first time: all. */
int bpf_sampler_select(struct bpf_sampler *sampler, const struct select_rules *rules);
/* What is to be known of a process for that. -ENOENT: the kernel has not asked, or has no room. */
int bpf_sampler_get_facts(struct bpf_sampler *sampler, uint32_t pid, struct select_facts *ret);
int bpf_sampler_set_facts(struct bpf_sampler *sampler, uint32_t pid,
			  const struct select_facts *facts);
void bpf_sampler_del_facts(struct bpf_sampler *sampler, uint32_t pid);
/* Calls `each` for all of which something is known, or asked. */
void bpf_sampler_each_facts(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			    void *ctx);
/* How many samples of each source were not taken since their processes are not selected. */
void bpf_sampler_rejected(const struct bpf_sampler *sampler, uint64_t ret[SAMPLE_SOURCES_MAX]);
/* How many samples of each source were not taken since there were more than its rate. */
void bpf_sampler_limited(const struct bpf_sampler *sampler, uint64_t ret[SAMPLE_SOURCES_MAX]);
int bpf_sampler_set_process(struct bpf_sampler *sampler, uint32_t pid,
			    const struct unwind_process *process);
/* What is known of the functions in no file of that page; NULL: nothing any more. */
void bpf_sampler_set_anon_page(struct bpf_sampler *sampler, const struct anon_page_key *key,
			       const struct anon_page *page);
/* -ENOENT if the kernel does not know it. */
int bpf_sampler_get_process(struct bpf_sampler *sampler, uint32_t pid, struct unwind_process *ret);
void bpf_sampler_del_process(struct bpf_sampler *sampler, uint32_t pid);
/* Calls `each` for all that have an entry, children too which nobody heard of. */
void bpf_sampler_each_process(struct bpf_sampler *sampler, void (*each)(void *ctx, uint32_t pid),
			      void *ctx);
/*
 * The kernel does not take the stacks of these hashes for known any more: each is sent in full
 * again. What the others' hits mean stays. 0, -ENOMEM or -errno, and nothing has changed.
 */
int bpf_sampler_ask_again(struct bpf_sampler *sampler, const uint64_t *hashes, size_t nr);
/* The kernel takes no stack for known any more: each is sent in full again. */
void bpf_sampler_forget_stacks(struct bpf_sampler *sampler);

/*
 * What comes of samples that the kernel can't walk to the end: less takes less room. RAWS_NONE:
 * they come cut, with the reason.
 */
void bpf_sampler_send_raws(struct bpf_sampler *sampler, enum raws raws);
/* Readable when a raw record waits; others are fetched by the clock. */
int bpf_sampler_fd(const struct bpf_sampler *sampler);
/* Calls `each` for every record in the ring, and every hit beside it; it is valid during the call.
 */
int bpf_sampler_drain(struct bpf_sampler *sampler,
		      int (*each)(void *ctx, void *record, size_t size), void *ctx);

/* Adds up over CPUs: those that are LOST_IN_KERNEL(), and LOST_MISSED; of others none. */
void bpf_sampler_lost(const struct bpf_sampler *sampler,
		      uint64_t ret[SAMPLE_SOURCES_MAX][LOST_MAX_]);
/* What came of walks by rows, of all CPUs. */
void bpf_sampler_kernel_walks(const struct bpf_sampler *sampler, struct kernel_walk_counts *ret);
/* Nanoseconds that our programs ran since the start, and how often sample_cpu did. */
void bpf_sampler_run_time(const struct bpf_sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs);
/* Kernel memory of all maps and programs, as far as the kernel tells; the arena's segments not
 * included. */
size_t bpf_sampler_bytes(const struct bpf_sampler *sampler);
