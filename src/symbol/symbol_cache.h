/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of tables on disk, shared by all sonde processes of a user. Private to src/symbol.
 *
 * KEY.VERSION.sym is a table, KEY.VERSION.tmp one that is being written, by whom holds a flock() on
 * it: the lock goes with its owner, however that ends, and what it leaves behind is overwritten or
 * removed by the next one. Nothing is synced: a table that a crash of the host cut off or zeroed is
 * found by its checksum when it is opened.
 */
#pragma once

#include "symbol/symbol_table.h"

#include <sys/stat.h>

enum {
	SYMBOL_CACHE_NAME_MAX = 256,
	/* Files of a folder that are looked at. */
	SYMBOL_CACHE_FILES_MAX = 1 << 20,
};

/*
 * Opens (makes) the folder; `path` NULL is the default one. -EPERM: others could write to it or
 * replace it; else what the system said. ret_path is its name in any case, the caller's.
 */
int symbol_cache_open(const char *path, int *ret_dir, char **ret_path);
/*
 * The table of that key if it is there and whole, and of that fingerprint: 0. -ENOENT, -ESTALE
 * (another fingerprint), -EBADMSG, ... It counts as used now.
 */
int symbol_cache_get(int dir, const char *key, uint64_t fingerprint, struct symbol_table **ret);
/*
 * The right to write that key's table, as an empty locked file; it ends when all copies of the
 * descriptor are closed. -EAGAIN: somebody else has it.
 */
int symbol_cache_claim(int dir, const char *key, int *ret_fd);
/* The claimed file is complete: everybody sees it. -ESTALE: the claim was lost. */
int symbol_cache_commit(int dir, const char *key, int fd);
/* The claim was in vain; `fd` stays the caller's. */
void symbol_cache_abandon(int dir, const char *key, int fd);
/* What is free below `max` bytes when a folder has been cleaned, at least. */
static inline uint64_t symbol_cache_room(uint64_t max)
{
	return max / 16;
}
/* What the file takes of the disk. */
static inline uint64_t symbol_cache_bytes(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}
/*
 * Removes what dead builders left, and tables unused for longest, until symbol_cache_room() of
 * `max` bytes is free: a folder that is full would otherwise be so again with the next table. It
 * looks at each file: 20 to 80 ms for ten thousand.
 */
int symbol_cache_clean(int dir, uint64_t max);
