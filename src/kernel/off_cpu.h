/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off-CPU profiling: which sleeps are taken, and the program that tells so at each switch
 * (bpf/off_cpu.bpf.c). Part of a source (kernel/source.h), whose program takes them:
 * docs/off-cpu.md.
 */
#pragma once

#include "abi/off_cpu.h"

#include <bpf/libbpf.h>
#include <stddef.h>

struct off_cpu_options {
	double chance; /* of each sleep to be taken, 0 to 1; 0: there is no off-CPU profiling */
	uint64_t weight_ns; /* if not 0: one sample for so much sleep; chance is 1 then */
	uint64_t least_ns;  /* shorter ones are not taken */
	bool targets_only;  /* sleeps of the sampler's targets alone */
	bool select;	    /* of selected processes */
	uint8_t source;	    /* that takes them */
	bool waker;	    /* tell who has woken the thread, too */
	bool kick;	    /* the place is an interrupt: off_cpu_place(); for tests: in any case */
};

enum { OFF_CPU_WEIGHT_MAX_NS = 1000000000 };

struct off_cpu_bpf;

struct off_cpu {
	struct off_cpu_bpf *bpf; /* NULL: not open */
	struct bpf_link *link;
	struct ring_buffer *kicks; /* NULL: none are needed */
	size_t kick_bytes;
	uint64_t sweep_ns;  /* when the next part of the table is due */
	uint32_t sweep_at;  /* the kernel's word for where it begins */
	bool sweep_goes_on; /* not at the table's begin */
};

/*
 * Of 2^32 sleeps, so many are taken; UINT32_MAX: all. For how many times its time each of them
 * stands, so that sums are what was slept: the exact inverse of that chance.
 */
uint32_t off_cpu_chance(const struct off_cpu_options *options);
double off_cpu_scale(const struct off_cpu_options *options);
/* "interruptible"; NULL of OFF_CPU_NONE. */
const char *off_cpu_state_name(enum off_cpu_state state);
/* Code of the kernel. */
struct off_cpu_code {
	uint64_t start, size;
};

/*
 * Where __schedule() is, try_to_wake_up(), and what interrupts begin with, by /proc/kallsyms.
 * -ENOENT: it doesn't say.
 */
int off_cpu_find_schedule(struct off_cpu_code *ret);
int off_cpu_find_waking(struct off_cpu_code *ret);
int off_cpu_find_interrupts(struct off_cpu_code *ret);
/* How many threads may sleep at once, as far as is known of them: entries of the map `sleepers`. */
uint32_t off_cpu_nr_sleepers(void);
/*
 * The raw tracepoint at which a thread goes on. Since Linux 6.16 there is one in __schedule(); else
 * (or if `kick`, which it sets) that of an interrupt which the program sends its own CPU.
 */
const char *off_cpu_place(bool *kick);
/* Loads the program, over what it shares with `sampler`, which is loaded. */
int off_cpu_open(struct off_cpu *o, const struct off_cpu_options *options,
		 const struct bpf_object *sampler);
int off_cpu_attach(struct off_cpu *o);
void off_cpu_detach(struct off_cpu *o);
void off_cpu_close(struct off_cpu *o);
/* Makes room for further kicks, and sweeps now and then. */
void off_cpu_drain(struct off_cpu *o);
/*
 * Takes out threads that are gone, of the next part of the table: one that executes something in
 * place of its process's first thread goes on under that one's number, and mostly does not exit
 * under its own.
 */
void off_cpu_sweep(struct off_cpu *o);
/* Of program and maps. */
size_t off_cpu_bytes(const struct off_cpu *o);
/* Nanoseconds that the program ran; 0: not known. */
uint64_t off_cpu_run_ns(const struct off_cpu *o);
