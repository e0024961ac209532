/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that the walker reads, kept where both walkers can: in BPF maps that are also mapped
 * here (the recorder), or in plain memory (cores, tests). Holds the arena of buckets, rows and
 * mappings, the array of files and the array of distinct rules (abi/unwind.h).
 *
 * One thread. What is freed is used again only after unwind_store_tick() has seen RETIRE_NS pass
 * (arena.h).
 */
#pragma once

#include "abi/unwind.h"
#include "unwind/arena.h"
#include "unwind/code_follow.h"
#include "unwind/rule_set.h"
#include "unwind/unwind_table.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"

#include <stdbool.h>

struct unwind_store_maps {
	int arena_fd, files_fd, rules_fd; /* BPF maps, borrowed; all -1: plain memory */
};

struct file_table {
	uint32_t file, first, nr; /* its cells */
	uint32_t nr_rows;	  /* the last ones of them */
	uint32_t nr_rules;	  /* that it wants, at most its share */
	bool is_short;		  /* there were fewer, but there may be more */
	bool is_more;		  /* room for rows that come later, */
	uint32_t used;		  /* of which there are so many */
	uint64_t since_ns;	  /* loaded */
};

/* What a file's table, refused or given up, asks for. */
struct table_wish {
	uint32_t cells, rules;
};

enum { UNWIND_USER_UNKNOWN = UINT32_MAX }; /* of a process that was gone too soon */

/* Whose processes use a file. */
struct file_user {
	uint64_t shared_until_ns; /* somebody else did lately */
	uint32_t user;		  /* the last */
	bool known;		  /* there was one */
};

struct unwind_store {
	struct unwind_store_maps maps;
	struct unwind_file *files; /* UNWIND_FILES_MAX */
	struct unwind_rule *rules; /* UNWIND_RULES_MAX */
	struct rule_set rule_set;
	struct arena arena;
	VEC(struct file_table) tables;
	uint64_t *used_ns;	   /* by file: last seen in a sample */
	struct table_wish *wanted; /* by file */
	uint32_t nr_wanted;	   /* of these that are none */
	struct file_user *users;   /* by file */
	uint32_t *heat;		   /* by file: table_heat.h */
	uint64_t cooled_ns;
	uint32_t nr_admitted; /* cells of files that were admitted again last */
	uint64_t admitted_ns;
	bool is_short; /* samples need more tables than there is room for */
	bool spills;   /* those that there is no room for can be read elsewhere */
	uint64_t enough_ns;
	uint64_t now_ns;
	uint64_t nr_evicted;	/* tables given up for room */
	uint64_t nr_rules_lost; /* rules that found no place: their rows say STOP_TABLE_EVICTED */
};

/* At most `max_bytes` of arena. 0 or negative errno. */
int unwind_store_init(struct unwind_store *s, const struct unwind_store_maps *maps,
		      size_t max_bytes);
void unwind_store_fini(struct unwind_store *s);

void unwind_store_set_state(struct unwind_store *s, uint32_t file, enum unwind_file_state state);
/* There is no room for the file's table: FILE_STATE_EVICTED or, if it can be read elsewhere,
 * FILE_STATE_SPILLED. */
void unwind_store_refuse(struct unwind_store *s, uint32_t file);
/* Can tables that there is no room for be read elsewhere now? Of those that there are, too. */
void unwind_store_set_spills(struct unwind_store *s, bool spills);
/*
 * Loads a file's table. -ENOSPC if it does not fit (unwind_store_refuse()):
 * those are given up that were unused for longest, and, if its user has no more than a share, some
 * of a user's who has more (docs/unwind-tables.md); it may come again once their room is free.
 */
int unwind_store_load(struct unwind_store *s, uint32_t file, const struct unwind_table *table);
/*
 * Writes rows of code that was followed (code_follow.h) into the file's table, where that says
 * CODE_UNFOLLOWED, while walkers read it. -ENOSPC: no room, for now; -ENOENT: it has no table.
 */
int unwind_store_add_rows(struct unwind_store *s, uint32_t file, const struct code_rows *rows);
/* The number will be another file's: no mapping that was added has it, for RETIRE_NS. */
void unwind_store_forget(struct unwind_store *s, uint32_t file);
/* The file was seen in a sample of a process of `user`, or will be: it is evicted last. */
void unwind_store_touch(struct unwind_store *s, uint32_t file, uint32_t user);

/* Room for a process's mappings, filled; the first cell. -ENOSPC, -E2BIG. */
int unwind_store_add_mappings(struct unwind_store *s, const struct unwind_mapping *mappings,
			      uint32_t nr, uint32_t *ret_cell);
void unwind_store_free_mappings(struct unwind_store *s, uint32_t cell, uint32_t nr);

/*
 * Room for what runtime `runtime` needs to know of a process (abi/unwind.h, struct runtime_record),
 * filled; `next` is the process's next record's cell, or 0. The cell. -ENOSPC, -E2BIG.
 */
int unwind_store_add_record(struct unwind_store *s, uint32_t runtime, const void *record,
			    uint32_t size, uint32_t next, uint32_t *ret_cell);
void unwind_store_free_record(struct unwind_store *s, uint32_t cell);

/* When something is freed: where kernels walk, time goes on between two ticks. */
static inline uint64_t unwind_store_now(const struct unwind_store *s)
{
	return s->maps.arena_fd >= 0 ? now_ns() : s->now_ns;
}

/* Gives back what was freed RETIRE_NS ago or earlier. Monotonic time. */
void unwind_store_tick(struct unwind_store *s, uint64_t now_ns);
/* Is there no room left for what may not be needed? */
bool unwind_store_is_half_full(const struct unwind_store *s);
/* Bytes of arena in use as segments. */
size_t unwind_store_bytes(const struct unwind_store *s);
/* Of which an arena would have to be that holds `table` beside what this one does. */
size_t unwind_store_bytes_with(const struct unwind_store *s, const struct unwind_table *table);
