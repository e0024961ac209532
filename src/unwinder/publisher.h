/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes what is known of processes and files readable to the walkers: turns a process's mappings
 * into a block of the arena with a generation of its own, and files into unwind tables.
 *
 * A generation names one array of mappings for the whole run, so that an address out of a sample is
 * always resolved against the very mappings that the kernel walked with, even if they have changed
 * since. Snapshots that nobody uses any more stay for RETIRE_NS.
 *
 * A file has a number for the walkers (struct unwind_mapping, .file) as long as a snapshot has it,
 * and for a while after. Files of processes that are not sampled have none.
 */
#pragma once

#include "kernel/bpf_sampler.h"
#include "unwinder/anon_function.h"
#include "unwinder/loader.h"
#include "unwinder/runtimes.h"
#include "process/process.h"
#include "unwind/table_spill.h"
#include "unwind/unwind_store.h"
#include "util/time_shares.h"

/* A process's mappings at some time, as they lie in the arena: a block of it. */
struct mapping_snapshot {
	uint32_t generation;
	uint32_t cell, nr;
	uint32_t refs; /* published processes */
	uint32_t user; /* whose process it was made for; root's, if there is no kernel to tell */
	uint64_t retired_ns;
	uint32_t records[RUNTIMES_OF_PROCESS_MAX]; /* cells of its runtimes' records */
	uint32_t nr_records;
	bool is_short;	   /* of files that there was no number for */
	bool expects_code; /* PROCESS_CODE_EXPECTED */
};

/* Whose share it is of, what is done for a process with that snapshot. */
static inline uint32_t snapshot_user(const struct mapping_snapshot *b)
{
	return b ? b->user : UNWIND_USER_UNKNOWN;
}

/* What the agent keeps of a process: process.user. */
struct published_process {
	struct mapping_snapshot *snapshot;
	uint32_t version; /* of the process's mappings that the snapshot shows */
	uint64_t mm;	  /* 0: not in the kernel's table */
	uint64_t used_ns; /* when it was last sampled, or a child that never was: forked */
	bool sampled;	  /* or was shown for that */
	bool taken_out;	  /* not in the kernel's table until a sample comes raw: others needed the
			     place */
	uint64_t asks_held_until_ns; /* the kernel does not ask for it (PROCESS_ASKS_HELD); 0: it
					may */
	uint32_t nr_anon, nr_anon_silent; /* frames in code of no file that was followed, and where
					     that told nothing */
	bool final; /* these mappings are all there are: PROCESS_MAPPINGS_FINAL */
	struct process_runtimes *runtimes; /* NULL: none, or not looked for */
	bool look; /* a forked child's that its parent has: not looked for yet */
};

/* A file that walkers know by a number. */
struct shown_file {
	struct mapped_file *file; /* NULL: the number is free */
	uint32_t owner;		  /* whose share it is of */
	uint32_t refs;		  /* mappings of snapshots */
	uint64_t unused_ns;	  /* since when there are none */
	bool unreadable;	  /* when it was shown last */
};

struct publisher {
	struct process_table *processes;
	struct unwind_store *store;
	struct bpf_sampler *sampler; /* NULL: nothing is told to the kernel */
	struct runtimes runtimes;
	uint64_t runtimes_due_ns;     /* when some process's runtimes want to be looked at again */
	struct map with_runtimes;     /* the processes that have some, by pid */
	size_t runtimes_at;	      /* the next one's turn: map_next() */
	struct time_shares look_time; /* each user's, for looking at runtimes */
	uint64_t no_room_until_ns;    /* the arena is full: nothing more is shown until then */
	struct map snapshots;	      /* generation -> struct mapping_snapshot * */
	VEC(struct mapping_snapshot *) retired;
	uint32_t last_generation;
	VEC(struct shown_file) files; /* by number */
	VEC(uint32_t) free_numbers;
	struct map nr_of_owner; /* numbers, by owner */
	bool files_full;	/* one was refused, since numbers were taken back */
	uint64_t mend_short_ns; /* when snapshots that are short of files are looked for again */
	uint32_t nr_told; /* entries in the kernel's table of processes, since they were counted */
	uint64_t no_place_until_ns; /* it was full: places are not looked for again until then */
	/* Called when a file's index in the table of files will be another's. */
	void (*forget_file)(void *ctx, uint32_t index);
	void *ctx;
	uint32_t begun_last;  /* by publisher_begin_table() */
	struct loader loader; /* its program and what it does meanwhile are the recorder's to set */
	size_t fixed_bytes;   /* budget_share()'s, for advice; 0: there is no limit to raise */
	void (*drain)(void *ctx); /* keeps the ring of samples from running over; may be NULL */
	/* A folder on a disk, for tables that there is no room for; -1: none. May be NULL. It is
	 * asked when there is no room. */
	int (*spill_folder)(void *ctx);
	void *drain_ctx; /* of both */
	struct table_spill spill;
	uint64_t spill_from_ns;	       /* that failed: not before then */
	struct time_shares spill_time; /* each user's, for walks that read such tables */
	struct map complained;	/* files of which it was said that they do not fit, by index */
	uint32_t nr_complaints; /* that were made, in all */
	uint64_t nr_refused;	/* mappings shown without a file, for it was one too many */
	uint64_t nr_too_big;	/* files whose tables nobody could build */
	uint64_t nr_followed;	/* functions, for walks that asked */
	struct time_shares follow_time; /* each user's, for following code */
	/* Of the last host_walk(): frames in code of no file that was followed, and how many of
	 * them it told nothing of. */
	uint32_t nr_anon, nr_anon_silent;
	struct anon_rule *anon_rules; /* a cache: anon_code.c; NULL: none yet */
	struct anon_functions anon_functions;
	struct jit_codes *jit_codes; /* jit_code.c; NULL: none yet */
	struct map follow_failed;    /* user -> until when no code is followed for him */
	uint64_t asks_held_until_ns; /* the first of all processes'; 0: none's */
};
/* Following code takes a fifth of a CPU at most, and so do walks that read tables from the disk. */
enum { FOLLOW_PART = 5, SPILL_PART_OF_CPU = 5 };
/* What a raw sample costs beside its walk: the copy of the stack, and its way here. */
enum { RAW_SAMPLE_NS = 50000 };

/* Borrows all three; takes over process_table's callbacks. */
void publisher_init(struct publisher *p, struct process_table *processes,
		    struct unwind_store *store, struct bpf_sampler *sampler);
void publisher_fini(struct publisher *p);

/*
 * Shows the process's present mappings to the walkers, under address space `mm` (0: as before).
 * Opens the files behind them. Does nothing if they are shown already.
 */
int publisher_show(struct publisher *p, struct process *proc, uint64_t mm);
/* Does the process map a file that is a runtime? Opens its files. */
bool publisher_has_runtime(struct publisher *p, const struct process *proc);
/* An address outside the mappings was looked for and not found: the kernel need not ask again. */
void publisher_set_final(struct publisher *p, struct process *proc);
/* A sample of a process that is shown: it is among the last whose place others get. */
static inline void publisher_sampled(const struct publisher *p, const struct process *proc)
{
	struct published_process *v = proc->user;

	if (!v)
		return;
	v->used_ns = p->store->now_ns;
	v->sampled = true;
}

/* The kernel forgets the process; what was published of it goes. */
void publisher_hide(struct publisher *p, struct process *proc);

/* The runtimes of a process that is shown, looked for if that has not been done; NULL: none. */
struct process_runtimes *publisher_runtimes(struct publisher *p, struct process *proc);
/* A walk met one that was not ready, or not as it was known: it is due soon. */
void publisher_runtime_missed(struct publisher *p, struct process *proc);
/* Looks at what is due (runtimes_due_ns), and shows processes anew whose runtimes have come or
 * moved. */
void publisher_update_runtimes(struct publisher *p);

/*
 * Builds and loads a file's unwind table, for a process with that snapshot (NULL: one that is not
 * known), if that has not been done. The state it is in then: FILE_STATE_PENDING if that takes
 * longer.
 */
enum unwind_file_state publisher_load(struct publisher *p, const struct mapping_snapshot *b,
				      uint32_t number);
/* While another file's table is waited for, one came that needs this one's: it is begun, if it is
 * one of those that take long. */
void publisher_begin_table(struct publisher *p, uint32_t number);
/*
 * The file's table as publisher_load() does it, or at least where walks on the host can read it: is
 * it there now, and was not before?
 */
bool publisher_get_table(struct publisher *p, const struct mapping_snapshot *b, uint32_t number);
/* Is there no room for the file's table, but walks on the host get through? */
static inline bool publisher_has_spilled(const struct publisher *p, uint32_t number)
{
	return number < p->files.nr && p->store->files[number].state == FILE_STATE_SPILLED;
}
/* May a walk of a process with that snapshot read such tables? It did, and took so long of a CPU.
 */
bool publisher_may_read_spilled(const struct publisher *p, const struct mapping_snapshot *b);
void publisher_read_spilled(struct publisher *p, const struct mapping_snapshot *b,
			    uint64_t took_ns);
/* The file that walkers know by that number; of a snapshot, or of a walk by one. Never NULL. */
struct mapped_file *publisher_file(const struct publisher *p, uint32_t number);
/*
 * Follows the code at `addr` of a file's own address space (a caller's: its return address - 1), of
 * which its table says CODE_UNFOLLOWED, for a process with that snapshot: 0 if that says more now.
 * -EAGAIN: not now, since its user has had his share of the time; -ENOENT: nor soon, as it failed.
 */
int publisher_follow(struct publisher *p, const struct mapping_snapshot *b, uint32_t number,
		     uint64_t addr, bool is_caller);
/* Code of no file was followed: `result` is 0 if it told where the caller is. */
void publisher_followed_anon(struct publisher *p, int result);
/* Code was followed for a process with that snapshot, or read, and that took so long of a CPU. */
void publisher_took(struct publisher *p, const struct mapping_snapshot *b, uint64_t took_ns);
/*
 * Code as the file has it that is mapped at `addr` there: 0, or negative errno. Who has its process
 * need not ask the file. -EAGAIN: as publisher_follow().
 */
int publisher_read_code(struct publisher *p, const struct mapping_snapshot *b, uint64_t addr,
			void *to, size_t size);
/* Would code be followed now for a process with that snapshot? */
bool publisher_may_follow(const struct publisher *p, const struct mapping_snapshot *b);
/*
 * A walk of the process asked: if that is for nothing, the kernel does not ask for a while; nor
 * ever of code in no file that mostly tells nothing.
 */
void publisher_hold_asks(struct publisher *p, struct process *proc);
/* Loads what stacks of a process with runtimes are likely to need, before it is sampled: walked
 * late, those have no frames of the runtime, and until their large files' tables are there, nor
 * native ones. */
void publisher_load_ahead(struct publisher *p, const struct process *proc);
/* A snapshot's mappings, snapshot->nr of them, sorted. */
const struct unwind_mapping *publisher_mappings(const struct publisher *p,
						const struct mapping_snapshot *b);
/* The snapshot of that generation, or NULL; and the mapping of it that covers `addr`, or NULL. */
const struct mapping_snapshot *publisher_snapshot(const struct publisher *p, uint32_t generation);
const struct unwind_mapping *publisher_mapping(const struct publisher *p,
					       const struct mapping_snapshot *b, uint64_t addr);
/* What the walkers are told of a process with that snapshot. */
struct unwind_process publisher_entry(const struct mapping_snapshot *b, uint64_t mm);
/*
 * Frees snapshots that were retired long enough ago; loads tables that were built meanwhile.
 * Samples that are older than `seen_ns` have been taken in: a later one may still be of a snapshot
 * that was retired since, however long that is ago.
 */
void publisher_tick(struct publisher *p, uint64_t now_ns, uint64_t seen_ns);
