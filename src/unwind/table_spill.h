/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables that the arena has no room for, as files on a disk: one rule at a time is read from
 * there, so that a walk on the host gets through where memory is short. The files have no name, and
 * end with this process. Bounded: those unused for longest go, and an owner who is not trusted
 * (owners.h) has a quarter.
 *
 * One thread.
 */
#pragma once

#include "unwind/unwind_table.h"
#include "util/map.h"

enum {
	SPILL_BYTES_MAX = 256 << 20,
	SPILL_FILES_MAX = 512, /* a descriptor each */
	SPILL_PART = 4,	       /* of that is what an owner who is not trusted may have */
};

struct spilled_rule;

struct table_spill {
	int folder;	   /* where they are made: borrowed; -1: nothing is kept */
	struct map tables; /* file number -> struct spilled * */
	uint64_t bytes;
	uint64_t clock;		     /* counts uses */
	struct spilled_rule *recent; /* a cache of what was found; NULL: none yet */
};

void table_spill_init(struct table_spill *s);
void table_spill_fini(struct table_spill *s);
/*
 * From now on tables can be kept in that folder: 0. -ENOTSUP: it is not on a disk but in memory,
 * which is what is short.
 */
int table_spill_use(struct table_spill *s, int folder);
/* Keeps a copy. 0, -E2BIG (it is more than all that its owner may have), what the system said. */
int table_spill_put(struct table_spill *s, uint32_t file, uint32_t owner,
		    const struct unwind_table *table);
bool table_spill_has(const struct table_spill *s, uint32_t file);
/* The rule at `addr`; -ENOENT: there is no such table; what the system said. */
int table_spill_find(struct table_spill *s, uint32_t file, uint64_t addr, struct unwind_rule *ret);
/* The table, to be loaded: the caller's. -ENOENT, -ENOMEM, ... */
int table_spill_open(struct table_spill *s, uint32_t file, struct unwind_table **ret);
/* The number will be another file's, or its table is another one. */
void table_spill_drop(struct table_spill *s, uint32_t file);
