/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps, and why they have that many entries; what the agent sets. Defined in maps.bpf.c.
 */
#pragma once

#include "abi/off_cpu.h"
#include "abi/select.h"
#include "bpf/walk.bpf.h"

/* Per CPU: the walk's state. */
struct walks_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk);
};
extern struct walks_map walks SEC(".maps");

/* One entry a CPU (more than a per-CPU value may have; the agent sets max_entries): the record that
 * the walk fills. */
struct records_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_record);
};
extern struct records_map records SEC(".maps");

/* One entry a CPU (320 KiB each: more than a per-CPU value may have); the agent sets max_entries.
 */
struct rule_caches_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rule_cache);
};
extern struct rule_caches_map rule_caches SEC(".maps");

/* One entry a CPU; the agent sets max_entries: one in all, if nothing walks by the kernel's rows.
 */
struct kernel_caches_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kernel_cache);
};
extern struct kernel_caches_map kernel_caches SEC(".maps");

/* The kernel's code that comes and goes, one value. */
struct kernel_made_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kernel_mades);
};
extern struct kernel_made_map kernel_made SEC(".maps");

/* Preallocated as 5.10 wants of perf_event programs. A full table costs raw samples, not lost ones;
 * the agent takes those out that were unused for longest. */
struct processes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_process);
};
extern struct processes_map processes SEC(".maps");

struct anon_pages_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ANON_PAGES_MAX);
	__type(key, struct anon_page_key);
	__type(value, struct anon_page);
};
extern struct anon_pages_map anon_pages SEC(".maps");

struct files_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_FILES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_file);
};
extern struct files_map files SEC(".maps");

struct rules_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
};
extern struct rules_map rules SEC(".maps");

/* Per CPU: hashes of stacks whose full record went out, and of the names that were asked for with
 * them, direct-mapped. 32 KiB is the limit. */
struct known_stacks {
	__u64 hash[KNOWN_STACKS];
};
struct known_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct known_stacks);
};
extern struct known_map known SEC(".maps");

/* One entry a CPU (more than a per-CPU value may have; the agent sets max_entries): a raw record
 * being put together, and the budget of raw records. */
struct raw_scratch {
	__u64 tokens, refilled_ns;
	__u64 stack_end; /* ~0: not known */
	__u64 woken_ns;	 /* when the agent was woken for code that it is to follow */
	struct sample_header header;
	struct sample_raw raw;
	__u8 bytes[SAMPLE_MAX_KERNEL_FRAMES * 8 + 8 + RAW_STACK_MAX + 4096];
};
struct raw_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct raw_scratch);
};
extern struct raw_map raws SEC(".maps");

/* Per CPU, by LOST_KEY(). */
struct lost_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LOST_MAX_ *SAMPLE_SOURCES_MAX);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct lost_map lost SEC(".maps");

/* The chosen processes (-p, COMMAND), children included; only looked at if there is a choice. */
struct targets_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
};
extern struct targets_map targets SEC(".maps");

/* Which processes are sampled (bpf/select.bpf.h); only looked at if there is a selection. */
struct selection_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct select_rules);
};
extern struct selection_map selection SEC(".maps");

/* What is known of processes for that; the agent sets max_entries: one if there is no selection. */
struct facts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct select_facts);
};
extern struct facts_map facts SEC(".maps");

/* Per CPU, by source: how many samples were not taken since their processes are not selected. */
struct rejected_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SAMPLE_SOURCES_MAX);
	__type(key, __u32);
	__type(value, __u64);
};
extern struct rejected_map rejected SEC(".maps");

struct rates_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SAMPLE_SOURCES_MAX);
	__type(key, __u32);
	__type(value, struct source_rate);
};
extern struct rates_map rates SEC(".maps");

/* The samples. The agent sets its size: a fraction of a second of raw records on all CPUs. */
struct samples_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
};
extern struct samples_map samples SEC(".maps");

/* One entry a CPU (the agent maps them, and sets max_entries): hits that did not go through the
 * ring, whose lines go from CPU to CPU. */
struct hits_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_hits);
};
extern struct hits_map hits SEC(".maps");

/* Per CPU, small but for the benchmarks: how many samples took how long, in steps of
 * 1 << SAMPLE_TIMES_SHIFT ns; the last has all longer ones. */
struct sample_times {
	__u32 nr[SAMPLE_TIMES];
};
struct times_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_times);
};
extern struct times_map times SEC(".maps");

/* Since when threads sleep, and which (off_cpu.bpf.c). Allocated beforehand: to allocate under the
 * run queue's lock may wake somebody, who wants it, too (task storage did so before Linux 6.4). The
 * agent sets max_entries: one if no sleeps are taken. */
struct sleepers_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sleeper);
};
extern struct sleepers_map sleepers SEC(".maps");

/* Per CPU: see struct woken. */
struct woken_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct woken);
};
extern struct woken_map woken SEC(".maps");

/* The runtimes' programs (walkers.bpf.c), by enum runtime_id; those that the agent has loaded. */
struct walkers_map {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, RUNTIME_MAX_);
	__type(key, __u32);
	__type(value, __u32);
};
extern struct walkers_map walkers SEC(".maps");

/* Set before loading. */
extern const volatile __u32 config_max_frames;
extern const volatile __u64 config_address_mask;
extern const volatile bool config_targets_only;
/* There is a selection, or may be one day. */
extern const volatile bool config_select;
extern const volatile bool config_kernel_threads;
/*
 * It may interrupt anything, and so must put nothing into a hash: before Linux 5.11 (20b6cc34ea74,
 * "bpf: Avoid hashtab deadlock with map_locked") it would wait for ever for the bucket's lock, if
 * that is what it has interrupted.
 */
extern const volatile bool config_nmi;
extern const volatile bool config_kernel;
/* enum kernel_frames */
extern const volatile __u32 config_kernel_frames;
/* For tests: send a raw record behind each full one, so that both walks can be compared. */
extern const volatile bool config_raw_too;
/* Which source the object's programs are, and enum sample_value of its samples. */
extern const volatile __u8 config_source;
extern const volatile __u32 config_value;
/* Of this source so many samples are taken within so long; 0: all. */
extern const volatile __u64 config_rate;
extern const volatile __u64 config_rate_ns;
/* Of a source at probes. */
extern const volatile struct argument_filter config_filter;
/* They stand at the first instructions of functions of the kernel. */
extern const volatile bool config_at_entry;
/* Where __schedule() is, in which threads wait; of who wakes others, try_to_wake_up(). 0: not
 * known.
 */
extern const volatile __u64 config_schedule_start;
extern const volatile __u64 config_schedule_size;
/* An interrupt finds the thread that goes on, a moment later: it must still be in there. */
extern const volatile bool config_kicked;
/* Where the kernel's code is that interrupts begin with. */
extern const volatile __u64 config_interrupts_start;
extern const volatile __u64 config_interrupts_size;
/* For the benchmarks: tell in `times` how long samples take. */
extern const volatile bool config_measure;

/* Changed by the agent when it has forgotten its stacks: none is known any more then. */
extern __u64 known_epoch;
/* Moved by the agent with every change of the maps `processes` and `targets`: voids what CPUs
 * remember of it. */
extern __u32 process_epoch;
/* An enum raws, set by the agent: less when more raw records wait than it has room for. */
extern __u32 raws_sent;
/* Bit N: the kernel has refused the walker of runtime N. */
extern __u32 runtimes_off;
/* The parts of the kernel's code whose rows are in `kernel_segments`. */
extern struct kernel_code kernel_codes[KERNEL_CODES_MAX];
