/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all files that a command needs, out of the cache on disk or built in the
 * background.
 *
 * Building is done by child processes (this very program with a hidden command, or, in tests, a
 * fork), one a CPU at most, with the lowest priority, and limits on memory and time: a hostile or
 * huge file can take neither us nor the host down, and what it took is given back. Who waits raises
 * their priority. They end with our process, unless told to stay
 * (symbol_store_wait()); the owner sees SIGCHLD of them, and must leave waiting for them to us.
 *
 * The cache: $XDG_CACHE_HOME/sonde/symbols, for root without it /var/cache/sonde/symbols, else
 * ~/.cache/sonde/symbols; a file a file_identity, written aside and renamed, so that several
 * processes and kill -9 do no harm. A folder that others can write to, or replace, is
 * not used. Those unused for longest go when it exceeds its cap. It is never needed: without it
 * tables live in memfds. docs/symbols.md says more.
 *
 * One thread owns a store. Non-logging, but for `complain`.
 */
#pragma once

#include "elf/elf_file.h"
#include "elf/file_id.h"
#include "symbol/symbol_table.h"

struct symbol_store;

#define SYMBOL_CACHE_SIZE_DEFAULT (UINT64_C(2) << 30)

struct symbol_store_options {
	const char *cache_dir; /* absolute; NULL: the default; "": none */
	uint64_t cache_size;   /* 0: SYMBOL_CACHE_SIZE_DEFAULT */
	/*
	 * argv of a program that builds: an absolute path and what leads to
	 * symbol_store_builder_main(), to which the store's own arguments go on. NULL: fork.
	 * Borrowed as long as the store lives.
	 */
	char *const *builder;
	/*
	 * A folder that has the files of another machine (a sysroot), with their debug files: tried
	 * before our own "/". NULL: none. -ENOENT of symbol_store_new() if it is not there.
	 */
	const char *root;
	/*
	 * Files that wait for their tables, each with up to two descriptors open. 0: as many as
	 * there are. Else no owner but root and us gets more than its share (util/owners.h): what
	 * is beyond that has no table.
	 */
	size_t max_waiting;
	uint64_t builder_memory; /* bytes one may take; 0: 2 GiB */
	/*
	 * Bytes of memory for tables that are not in the cache, of files of owners other than root
	 * and us: each has its share (util/owners.h). 0: an eighth of the machine's.
	 */
	uint64_t table_memory;
	/* How long symbol_store_wait() goes on for symbol tables alone; 0: a minute. */
	uint32_t quick_patience_ms;
	/* A cache that can't be used, debug files that differ, a build that failed: once each. The
	 * text lives until it returns. */
	void (*complain)(void *ctx, const char *text);
	void *ctx;
};

/* A file whose code is to be named. All borrowed during the call only. */
struct symbol_file {
	const struct elf_file *elf; /* of a descriptor or in memory (vDSO) */
	int fd;			    /* behind it; -1: in memory, then image and size */
	const void *image;
	size_t size;
	const uint32_t *owner; /* of a copy: whose the file is; NULL: whose the descriptor is */
	struct file_identity identity; /* what its table is known by */
	const char *path;	       /* as its process sees it */
	int root_pid; /* a process in whose mount namespace `path` is; 0: our own */
};

int symbol_store_new(const struct symbol_store_options *options, struct symbol_store **ret);
/* Ends what still builds. */
void symbol_store_free(struct symbol_store *s);
static inline void symbol_store_free_p(struct symbol_store **s)
{
	symbol_store_free(*s);
}
/*
 * Asks for a file's table: opens it if the cache has it and it is up to date, else starts (or
 * queues) building it. Equal identities have one number. 0 or negative errno.
 */
int symbol_store_want(struct symbol_store *s, const struct symbol_file *file, uint32_t *ret_id);
/*
 * Who asked for a table needs it no more. When all have said so it goes, with what was still to be
 * built, and its number may be another one's.
 */
void symbol_store_drop(struct symbol_store *s, uint32_t id);
/*
 * The table, or NULL: it is not there yet, or there is none (symbol_store_state() tells). A table
 * of symbols alone may be followed by a better one at symbol_store_tick() or _wait(); both then
 * live until it is dropped.
 */
const struct symbol_table *symbol_store_table(const struct symbol_store *s, uint32_t id);

enum symbol_state {
	SYMBOL_STATE_BUILDING = 0, /* queued, or in work */
	SYMBOL_STATE_READY = 1,
	SYMBOL_STATE_NONE = 2, /* the file has no symbols */
	SYMBOL_STATE_FAILED = 3,
};
enum symbol_state symbol_store_state(const struct symbol_store *s, uint32_t id);
/* Takes in what was finished, starts what was queued. Call it now and then; cheap. */
void symbol_store_tick(struct symbol_store *s);
/* Is it to be called? False: all tables that were wanted are there, or will never be. */
bool symbol_store_is_busy(const struct symbol_store *s);

struct symbol_progress {
	uint32_t done, total; /* files */
	const char *path;     /* one that is in work; "" if none */
};
/*
 * Waits until everything wanted is there, with normal priority, calling `progress` about four times
 * a second, and at once after a signal; it returns false to stop waiting (and may be NULL). A file
 * whose full table is not there after `patience_ms` (0: no limit) gets one of its symbol tables
 * alone for now; if its full one is in work, that goes on for the cache by the child, which
 * outlives us. Who reads those does not get for ever either (`quick_patience_ms`). How many files
 * are without any table.
 */
size_t symbol_store_wait(struct symbol_store *s, uint32_t patience_ms,
			 bool (*progress)(void *ctx, const struct symbol_progress *progress),
			 void *ctx);
/* The folder of the cache, for what else wants to be on a disk; -1: there is none. The store's. */
int symbol_store_folder(struct symbol_store *s);
/* Bytes that tables and the store itself take (mapped files count as far as they are resident). */
size_t symbol_store_bytes(const struct symbol_store *s);

/*
 * What the builder program does: `argv` is what the store gave it, with or without a name before.
 * An exit status.
 */
int symbol_store_builder_main(int argc, char **argv);
