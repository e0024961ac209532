/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds unwind tables without letting the ring of samples overflow, nor memory or time run away:
 * what is small is built here, the rest by a child process (util/child.h), whose memory is not ours
 * and whose end is its own. A child is waited for while `meanwhile` runs every few milliseconds,
 * but not for ever, nor all the time: one that takes longer goes on in the background.
 */
#pragma once

#include "unwind/unwind_table.h"
#include "util/child.h"
#include "util/patience.h"

enum {
	/* Children that are not waited for; more files wait for these. One is for root's files, and
	 * the files of any other owner have one at most. */
	LOADER_BACKGROUND_MAX = 3,
};

struct runtime_dso;

struct loader_wait {
	/*
	 * Called again and again while a child is waited for; false: no longer, since what waits
	 * for us takes too much room. NULL: a child is waited for until it ends.
	 */
	bool (*meanwhile)(void *ctx);
	void *ctx;
};

struct loader_job {
	uint32_t file;	/* names it to the caller */
	uint32_t owner; /* of the file: a user's number */
	const struct elf_file *elf;
	unsigned int follow; /* unwind_table_build() */
	const struct code_range *marked;
	size_t nr_marked;
	uint32_t runtime;		    /* of `marked`; unwind_table_mark() */
	const struct code_range *functions; /* unwind_table_follow() */
	size_t nr_functions;
};

struct loader_build {
	struct child child; /* pid 0: none */
	uint32_t file, owner;
	uint32_t runtime;
	int out_fd;
	uint64_t give_up_ns;
	bool ahead; /* loader_begin(), and nobody has waited for it */
};

struct loader {
	char *const *builder; /* argv of a program that is loader_child_main(); NULL: fork */
	struct loader_wait wait;
	struct loader_build background[LOADER_BACKGROUND_MAX];
	uint32_t waited_file; /* that loader_build() builds now; 0: none */
	struct patience patience;
};

/* What a runtime wants of its file's table, which borrows that. */
void loader_job_of_runtime(struct loader_job *job, const struct runtime_dso *dso);

void loader_init(struct loader *l);
void loader_fini(struct loader *l);

/*
 * The file's table, followed and marked. 0; -EINPROGRESS: loader_tick() will tell; -EAGAIN: too
 * many are built already, come again; -EFBIG: it takes more memory or time than any file's should;
 * else as unwind_table_build(). job->elf is used by nobody else meanwhile.
 */
int loader_build(struct loader *l, const struct loader_job *job, struct unwind_table **ret);
/*
 * While another file's table is waited for, something came that needs this one: a child begins with
 * it, for which loader_build() will wait as if it had begun then. 0; -EAGAIN: there is no place,
 * and one must stay free for what is waited for; -ENOTSUP: it needs no child, or is not trusted.
 */
int loader_begin(struct loader *l, const struct loader_job *job);
/* Is it being built, in the background or in loader_build()? And has nobody waited for it yet? */
bool loader_is_building(const struct loader *l, uint32_t file);
bool loader_is_ahead(const struct loader *l, uint32_t file);
/* Is anything? Then loader_tick() is to be called. */
bool loader_is_busy(const struct loader *l);
/* Calls `done` for what has been built in the background; `table` is its own, NULL with an error.
 */
void loader_tick(struct loader *l,
		 void (*done)(void *ctx, uint32_t file, int result, struct unwind_table *table),
		 void *ctx);

/* What the child does; argv of util/child.h. */
int loader_child_main(int argc, char **argv);
