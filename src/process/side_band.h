/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own news of processes: fork, exec, comm, exit and executable mappings, by dummy perf
 * events on each CPU (mmap2, comm, comm_exec, task, ksymbol, sample_id_all, CLOCK_MONOTONIC).
 *
 * The reader follows CPU hotplug: it must be the first listener of its cpu_set. One thread.
 */
#pragma once

#include "util/cpus.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum side_event_type {
	SIDE_FORK,	  /* pid: the child; parent_pid */
	SIDE_THREAD,	  /* pid has one more thread; a drain does not report it */
	SIDE_EXEC,	  /* pid has a new image; its SIDE_MMAPs follow */
	SIDE_COMM,	  /* tid is called comm from now on (also at exec, after SIDE_EXEC) */
	SIDE_EXIT,	  /* the process is gone: its last thread has ended */
	SIDE_MMAP,	  /* an executable mapping was made (or mprotected so) */
	SIDE_THREAD_EXIT, /* tid, which is not the leader, has ended */
	SIDE_CODE,	  /* of a BPF program is in the kernel, in [start, start + len) */
	SIDE_CODE_GONE,	  /* it is no more */
	SIDE_LOST,	  /* the kernel dropped `lost` records (0: perhaps some, of a CPU that
			     came): rescan */
};

struct side_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	enum side_event_type type;
	int32_t pid, tid;
	int32_t parent_pid;
	uint64_t start, len, offset; /* SIDE_MMAP; of SIDE_CODE the first two */
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	uint64_t lost;
	uint32_t text; /* offset of the path, comm, BPF code's name or "" in side_events.text;
			  NUL-terminated */
};

/* A batch; reused from drain to drain. */
struct side_events {
	VEC(struct side_event) events;
	VEC(struct side_event) merged; /* where they are put in order */
	VEC(char) text;
	/* As far as one can know nothing is missing: what did not fit is told by a later drain. */
	bool is_whole;
};

struct side_band;

/*
 * `pages` of ring for each CPU, a power of two. Negative errno if perf refuses. With each
 * cpu_set_sync() rings are opened on CPUs that came, and closed on those that left; `cpus` must
 * outlive the side band.
 */
int side_band_open(struct cpu_set *cpus, uint32_t pages, struct side_band **ret);
void side_band_free(struct side_band *sb);
/* An epoll fd that becomes readable with each event that is written. */
int side_band_fd(const struct side_band *sb);
/*
 * All that was written before the call, sorted by time; replaces the batch's contents. No event is
 * in it without the events that led to it. On error, what is in the batch is true but not all.
 */
int side_band_drain(struct side_band *sb, struct side_events *batch);
/* Only what is not younger than `until_ns`; the rest stays in the rings. */
int side_band_drain_until(struct side_band *sb, uint64_t until_ns, struct side_events *batch);
void side_events_fini(struct side_events *batch);
/*
 * Parses one CPU's raw perf records; for tests and fuzzing. Each end of a leader is a SIDE_EXIT
 * here: whether it was the process's is found out by side_band_drain(). -EBADMSG, -ENOMEM.
 */
int side_band_parse(const void *data, size_t size, struct side_events *batch);
size_t side_band_bytes(const struct side_band *sb);
