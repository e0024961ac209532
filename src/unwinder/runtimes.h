/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the runtimes of processes (runtime/runtime.h), keeps what is known of them, and shows it to
 * the walkers: which file is which runtime, what attach() found in a process, where its code lies.
 *
 * The publisher asks when it shows a process; the decoder asks for names.
 */
#pragma once

#include "process/process.h"
#include "runtime/runtime.h"
#include "unwind/unwind_store.h"
#include "util/map.h"
#include "util/time_shares.h"

/* A runtime in a process. */
struct runtime_instance {
	struct runtime_proc *proc; /* NULL: it was not ready yet, or can't be read now */
	struct runtime_target target;
	int32_t pid;
	uint32_t file;		  /* the mapped file that is this runtime */
	struct mapped_file *held; /* the same */
	const struct runtime_dso *dso;
	uint64_t again_ns;    /* when to ask again; UINT64_MAX: never */
	uint64_t done_ns;     /* when that was done last */
	uint64_t nonsense_ns; /* since when what it has makes no sense; 0: it does */
	uint32_t nr_tries;    /* to attach; to look again soon, since it was or something changed */
	int error;	      /* what attach() said last */
	struct runtime_about about;
	struct map frames; /* hash of a frame's words -> the profile's frame; of `epoch` */
	uint32_t epoch;
	uint64_t record[RUNTIME_RECORD_MAX / 8];
};

/* Those of one process. */
struct process_runtimes {
	struct runtime_instance *items[RUNTIMES_OF_PROCESS_MAX];
	uint32_t nr;
	bool used;	  /* by a stack, since they were looked at */
	bool unshown;	  /* walkers must be shown something that came: a record, or code */
	uint64_t look_ns; /* when a file of it that was put off is looked at; 0: there is none */
};

struct runtimes {
	struct process_table *processes; /* borrowed */
	struct runtime_options options;
	struct runtime_keeper keeper; /* of what is kept of processes; those go before this */
	/* A core's: its machine, how to read its memory. Without: this one, live processes. */
	uint16_t machine;
	struct runtime_memory memory;
	VEC(struct runtime_dso *) dsos; /* by mapped file; NULL: not looked at, or no runtime */
	VEC(uint8_t) looked_at;		/* by mapped file: enum looked_at, private */
	/* Of each owner of files, for looking at these, if he is not trusted: anybody can make
	 * thousands that cost much. Of a part that is 0 there are no bounds. */
	struct time_shares file_time;
	/* Of each such owner, what is kept of his files; UINT32_MAX: all of it. */
	struct map dso_bytes;
	uint32_t met; /* bit N: some file is of runtime N */
	/* Of each runtime: files of a version or a build that is not known. */
	uint64_t nr_unknown[RUNTIME_MAX_];
	/* What was said of files, by what they are: files come and go, and have copies. */
	struct map said;
	/* Is told of such a file in place of the log, and how `about` goes on. NULL: it is. */
	void (*tell)(void *ctx, const struct mapped_file *file, const struct runtime_ops *ops,
		     const struct runtime_about *about);
	void *tell_ctx;
};

void runtimes_init(struct runtimes *r, struct process_table *processes);
void runtimes_fini(struct runtimes *r);

/*
 * Which runtimes is the program at `path` about to run (bit N: runtime N)? It is one, or a library
 * that it needs leads to one. A guess, from which nothing follows but what is got ready first: a
 * program may start any other.
 */
uint32_t runtimes_of_program(const char *path);
/* Whose programs are called so ("/usr/bin/python3.11")? Likewise. */
uint32_t runtimes_of_name(const char *name);
/* That mapped file's index will be another's; no process has an instance of it. */
void runtimes_forget_file(struct runtimes *r, uint32_t index);

/* The runtime that a mapped file is, or NULL. */
const struct runtime_dso *runtimes_dso(const struct runtimes *r, uint32_t file);
/* Is the file one? It must have been opened. False: it was put off, since its owner has had his
 * share of the time for that; what marks its table is not known yet. */
bool runtimes_look_at(struct runtimes *r, uint32_t file);
/* Is it one, of a version that is not known, perhaps? It must have been looked at. */
bool runtimes_is_one(const struct runtimes *r, uint32_t file);
/* Does the process map one, of whatever version? Looks at what no process mapped yet. Files must
 * have been opened. */
bool runtimes_any(struct runtimes *r, const struct process *proc);
/*
 * Looks for runtimes in what the process maps, attaches to those that are due, and looks at those
 * that are attached: (*list)->unshown. Files must have been opened.
 */
void runtimes_update(struct runtimes *r, const struct process *proc, struct process_runtimes **list,
		     uint64_t now_ns);
/* When runtimes_update() has something to do without new mappings; UINT64_MAX: never. */
uint64_t runtimes_due(const struct process_runtimes *list);
/* The process's mappings have changed: those that are attached are due. */
void runtimes_want_refresh(struct process_runtimes *list);
/* A walk met one that was not ready, or not as it was known: they are due soon. When. */
uint64_t runtimes_missed(struct process_runtimes *list);
void process_runtimes_free(struct process_runtimes *list);

/* Whose code lies at `at` (enum runtime_id), or 0; `end` is lowered to where that changes. */
uint32_t runtimes_of_code(const struct process_runtimes *list, bool anonymous, uint64_t at,
			  uint64_t *end);
/* The process's runtime of that id, attached, or NULL. */
struct runtime_instance *runtimes_find(const struct process_runtimes *list, uint32_t id);
/* Marks the functions of a file that run script frames. */
int runtimes_mark(const struct runtimes *r, uint32_t file, struct unwind_table *table);
/* Is the function at `addr` (in the file's address space) one that only implements script frames?
 */
bool runtimes_hides(const struct process_runtimes *list, uint32_t file, uint64_t addr);
