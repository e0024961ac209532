/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports that wait, as files in a folder of ours: what an agent that was killed had not delivered
 * is there for the next one. docs/formats/spool.md.
 *
 * The folder does not decide what goes when it is full: who calls does, as some of what is there
 * may be on its way. One process has a spool at a time. Not to be used by two threads at once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct spool;

/* One file. */
struct spool_file {
	uint64_t number; /* from 1 on; later ones have higher ones */
	uint64_t bytes;	 /* that it takes on the disk */
	uint64_t samples;
};

/* Files that are not told of. */
struct spool_problems {
	uint64_t corrupt; /* their beginning is none of ours, or the disk has lost it: removed */
	uint64_t unread;  /* they cannot be read now: left there */
};

/* Of a file that is there already, in the order of their numbers. 0, or what spool_open() returns.
 */
typedef int spool_found_fn(void *ctx, const struct spool_file *file);

/*
 * Creates the folder if it is missing, removes what a killed predecessor did not finish, and tells
 * of the rest, but for *problems_ret. `path` is borrowed. Logging.
 */
int spool_open(const char *path, spool_found_fn *found, void *ctx,
	       struct spool_problems *problems_ret, struct spool **ret);
void spool_free(struct spool *s);
static inline void spool_free_p(struct spool **s)
{
	spool_free(*s);
}
/* What a file with so much in it will take on the disk. */
uint64_t spool_bytes(size_t size);
/* One more file, not synced. Negative errno, and nothing is left of it. */
int spool_put(struct spool *s, const void *data, size_t size, uint64_t samples,
	      struct spool_file *ret);
/*
 * What was put into it; *ret is the caller's. -EBADMSG: it is not what was put, or not there; other
 * errors may go away.
 */
int spool_get(const struct spool *s, uint64_t number, char **ret, size_t *ret_size);
/* 0: it is not there any more. */
int spool_remove(struct spool *s, uint64_t number);
