/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store's insides: symbol_store.c is what callers see, symbol_store_build.c how a file's table
 * comes into being.
 *
 * Each file is an entry with at most two builds, each a child process: `full` makes what can be
 * had, `quick` a table of symbols alone, when `full` takes too long for the command, or failed.
 */
#pragma once

#include "symbol/debug_file.h"
#include "symbol/symbol_cache.h"
#include "symbol/symbol_child.h"
#include "symbol/symbol_store.h"
#include "util/map.h"
#include "util/root_id.h"
#include "util/vec.h"

enum {
	SYMBOL_KEY_MAX = 2 * FILE_IDENTITY_SIZE + 1,
	SYMBOL_MESSAGE_MAX = 1024,
};

enum build_state {
	BUILD_QUEUED = 0,
	BUILD_FOREIGN = 1, /* another process builds it, for the cache */
	BUILD_RUNNING = 2,
	BUILD_DONE = 3,
};

struct build {
	enum build_state state;
	struct child child;
	int out_fd;
	bool claimed;		       /* out_fd is the cache's */
	bool stays;		       /* the child may outlive us */
	bool was_killed;	       /* a child, through no fault of the file's */
	uint64_t since;		       /* BUILD_FOREIGN or BUILD_RUNNING, by now_ms() */
	uint64_t look_at;	       /* when to look after BUILD_FOREIGN again */
	uint64_t room;		       /* of the cache, as the child was told */
	char text[SYMBOL_MESSAGE_MAX]; /* a complaint that is not whole yet */
	size_t len;
};

struct entry {
	char key[SYMBOL_KEY_MAX];
	uint64_t hash;	/* begin of the identity */
	uint32_t users; /* 0: the place is free */
	bool lasts;	/* the cache may have it */
	enum symbol_state state;
	struct symbol_table *table;
	uint64_t fingerprint; /* of its debug files */
	int elf_fd;	      /* -1 when nothing is left to build */
	uint32_t owner;	      /* of the file, counted as long as there is elf_fd */
	uint64_t held;	      /* bytes of its table that are the owner's */
	char *path;
	uint32_t root; /* 0: only our own */
	bool has_root; /* is counted among its users */
	struct build *full, *quick;
	bool hopeless; /* reading its debug information failed, and will fail again */
};

/* The `/` of a mount namespace. */
struct root {
	struct root_id id;
	bool others;	/* of another user namespace than ours: who has it need not be root */
	int fd;		/* -1: nobody needs it, the place is free */
	uint32_t users; /* entries */
};

struct symbol_store {
	struct symbol_store_options options;
	VEC(struct entry) entries;
	VEC(uint32_t) free;	/* places in `entries` */
	struct map by_key;	/* entry.hash -> entry */
	VEC(struct root) roots; /* the first is our own */
	struct map complaints;	/* by hash: said already */
	/* Files that have a descriptor and a root open until they are built. */
	struct map waiting_of_owner;
	size_t nr_waiting;
	bool said_refused;
	struct map held_of_owner; /* bytes of tables in memory */
	uint64_t held;
	bool said_held;
	int cache; /* its folder, or -1 */
	char *cache_path;
	bool cache_opened, cache_failed;
	uint64_t cache_room; /* bytes that may come before somebody has to look at all of it; 0: at
				once */
	uint64_t cache_cleaned; /* ms */
	uint32_t nr_children, max_children;
	uint32_t first; /* entries before it are settled */
	bool hurry;	/* somebody waits */
	bool only_quick;
};

void store_complain(struct symbol_store *s, const char *text);
/* store_complain() with a text that may be of a hostile file's making. */
void store_complain_of(struct symbol_store *s, const char *text, size_t len);
/* Says it once, and does without from now on. */
void store_cache_failed(struct symbol_store *s, int r);
/* Closes the entry's file, which waits no more. */
void store_close_file(struct symbol_store *s, struct entry *e);
/* Counts a table of `fd`, of memory, as the owner's. -EDQUOT: it is too much. */
int store_hold(struct symbol_store *s, struct entry *e, int fd);
/* An entry needs it no more. */
void store_release_root(struct symbol_store *s, uint32_t number);
/* What the search for a file's debug files is: `roots` has room for two. */
void store_search(const struct symbol_store *s, const struct entry *e, int *roots,
		  struct debug_search *ret);

/* The entry's table from now on, if it has none yet; `table` is taken over. */
void entry_set_table(struct entry *e, struct symbol_table *table);
/* entry_set_table() with one out of the cache: what its builder said is said again. */
void entry_take_cached(struct symbol_store *s, struct entry *e, struct symbol_table *table);
/* Ends what is being built, and gives back what that needs. */
void entry_release(struct symbol_store *s, struct entry *e);
/* Asks for a build; the entry fails if there is no memory. */
void entry_want_full(struct symbol_store *s, struct entry *e);
void entry_want_quick(struct symbol_store *s, struct entry *e);

bool build_is_running(const struct build *build);
/* With more or less of the CPU; what can't be given more may begin again. */
void build_set_idle(struct symbol_store *s, struct entry *e, struct build *build, bool idle);
/* Takes in what a child said, and its table if it has ended. */
void build_look_after(struct symbol_store *s, struct entry *e, struct build *build);
/* Starts it, if it is queued and may. */
void build_start_queued(struct symbol_store *s, struct entry *e, struct build *build);
