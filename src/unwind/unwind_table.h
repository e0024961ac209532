/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind table of one ELF file, in the shape that the walker reads (abi/unwind.h): buckets,
 * rows and distinct rules. Built once from .eh_frame, .debug_frame and, for code that they leave
 * out, by reading the code's prologues; immutable.
 */
#pragma once

#include <stdbool.h>

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "util/code_range.h"

struct unwind_table {
	uint64_t start;	     /* 256-aligned */
	uint32_t nr_buckets; /* BUCKET() values */
	uint32_t nr_rows;    /* ROW() values; rule numbers index `rules` below */
	uint32_t nr_rules;
	uint32_t *buckets;
	uint32_t *rows;
	struct unwind_rule *rules; /* rules[0] is { CFA_STOP, STOP_NO_RULE } */
	int image; /* the file that has buckets and rows, which are NULL then (table_image.h); 0 */
	/* What could not be used: each costs its own range only. */
	uint32_t nr_bad_fdes;
	uint32_t nr_bad_cies;
	uint32_t nr_unsupported_expressions;
	uint32_t nr_rows_before_merging; /* for statistics: how much was interpreted */
};

/* Nobody has looked at that code yet: code_follow.h may tell more. */
static inline bool unwind_rule_is_unfollowed(const struct unwind_rule *rule)
{
	return rule->cfa == CFA_FRAME_POINTER && rule->cfa_off == CODE_UNFOLLOWED;
}

/*
 * Builds the table of `elf`. `follow`: bit n: of the callee-saved registers, which the walker has
 * in slots (abi/unwind.h), follow that of slot n, too; those that CFAs hang on always are, and each
 * costs rows and rules. 0, -ENOTSUP (machine), -EFBIG (more rows or code than the format can
 * hold), -ENOMEM. A file without any unwind information is 0: its table says CFA_FRAME_POINTER for
 * all executable code.
 */
int unwind_table_build(const struct elf_file *elf, unsigned int follow, struct unwind_table **ret);
/* About how many bytes of `elf` that reads, and how many it fills for its code alone. */
uint64_t unwind_table_cost(const struct elf_file *elf);
void unwind_table_free(struct unwind_table *table);
static inline void unwind_table_free_p(struct unwind_table **table)
{
	unwind_table_free(*table);
}
/*
 * Marks the functions that run frames of runtime `runtime` (RULE_RUNTIME): `ranges` are sorted and
 * do not overlap. 0, -EFBIG, -ENOMEM; `table` is as it was then.
 */
int unwind_table_mark(struct unwind_table *table, const struct code_range *ranges, size_t nr,
		      uint32_t runtime);
/* Marks where a new thread is beside the one that made it (RULE_NEW_THREAD); likewise. */
int unwind_table_mark_new_threads(struct unwind_table *table, const struct code_range *ranges,
				  size_t nr);
/*
 * Follows the code of functions that no CFI covers, which keep a frame pointer (code_follow.h): of
 * what the table says is CODE_UNFOLLOWED. `functions` are sorted and do not overlap. 0, -EFBIG,
 * -ENOMEM; `table` is as it was then.
 */
int unwind_table_follow(struct unwind_table *table, const struct elf_file *elf,
			const struct code_range *functions, size_t nr);
/* Memory that the table holds. */
size_t unwind_table_bytes(const struct unwind_table *table);
/* What the walker would find at `addr`; never NULL. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t addr);
