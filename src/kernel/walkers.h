/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes' walkers: programs of their own, to which the sampling program changes by a tail
 * call (bpf/walkers.bpf.c). The verifier takes a tenth of a second and more for each: they are
 * loaded by child processes, beside the recording: a walker works from the moment on at which its
 * child has put it into the map `walkers`. Samples that want it before come raw
 * (STOP_WALKER_PENDING).
 */
#pragma once

#include "abi/sample.h"
#include "util/child.h"

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

/* What came of loading one. */
struct walker_report {
	int32_t error;	   /* 0 or negative errno */
	uint32_t verified; /* instructions; 0: the kernel does not tell */
	uint64_t bytes;	   /* kernel memory of the program, as far as the kernel tells */
	char reason[4096]; /* if it was refused: the end of what libbpf and the verifier said */
};

enum walker_state { WALKER_NOT_WANTED, WALKER_WAITS, WALKER_LOADS, WALKER_LOADED, WALKER_REFUSED };

struct walker {
	enum walker_state state;
	bool urgent; /* somebody has samples for it: as other processes; else when a CPU is idle */
	unsigned nr_again; /* how often its child was told to end, and another one began */
	struct child child;
	int report_fd;
	struct walker_report report;
};

struct walkers {
	const struct bpf_object *sampler; /* whose maps they share */
	enum bpf_prog_type type;	  /* the sampler's: no other can change to them */
	char *const *loader;		  /* argv of walkers_child_main(); NULL: fork */
	uint32_t wanted[2];		  /* bits so far, and those of them that were urgent */
	uint32_t *told; /* bits whose refusal was logged, of all who share it; NULL: of nobody */
	struct walker of[RUNTIME_MAX_]; /* by enum runtime_id */
};

/* Can this kernel run programs that have tail calls and functions? 1, 0, or a negative errno. */
int walkers_can_be_called(void);
/* The runtime's name; NULL: none of that number has a walker. */
const char *walkers_name(uint32_t id);

/* `sampler`, whose program is of that type, is loaded, and borrowed; NULL: it needs no walkers, and
 * none is ever loaded. */
void walkers_init(struct walkers *w, const struct bpf_object *sampler, enum bpf_prog_type type,
		  char *const *loader);
void walkers_fini(struct walkers *w);
/* Loads those of `ids` (bit N: runtime N) that are not yet. Those that are not urgent take nobody's
 * CPU. */
void walkers_want(struct walkers *w, uint32_t ids, bool urgent);
/* Takes in what has come, at most `wait_ms` from now on. Logs a refusal, once for all who share
 * `told`. */
void walkers_update(struct walkers *w, int wait_ms);
/* Those of `ids` that are on their way. */
uint32_t walkers_pending(const struct walkers *w, uint32_t ids);
/* Those that the kernel has refused. */
uint32_t walkers_refused(const struct walkers *w);
size_t walkers_bytes(const struct walkers *w);

#define WALKER_PREFIX "walker_"
/* Loads a program of the sampler's object here, with maps of its own, and drops it again: whether
 * that works, for `doctor`. */
void walkers_try(const char *program, struct walker_report *ret);
/* Kernel memory of a map. */
size_t walkers_fd_bytes(int fd);
/* Kernel memory of a program, as far as the kernel tells; *verified: instructions, 0: not told. */
size_t walkers_program_bytes(int fd, uint32_t *verified);
/* How often the kernel did not run a program since the CPU was in one already, as far as the kernel
 * tells. */
uint64_t walkers_program_misses(int fd);
/* Nanoseconds that it ran; 0: the kernel does not count. */
uint64_t walkers_program_run_ns(int fd);

/* The child's main(); with KERNEL_ROWS_ARGUMENT, of another child (kernel_rows.h). */
int walkers_child_main(int argc, char **argv);
