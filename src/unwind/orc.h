/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's own unwind tables (ORC, x86-64), as they lie in its memory, turned into what a
 * walker looks up (abi/kernel_rows.h). docs/kernel-stacks.md says why and how far that is.
 *
 * Two arrays, sorted by address: where each entry begins to hold, as a distance from the place
 * where that distance is, and the entries of 6 bytes. How an entry is made up changed with the
 * kernel's versions: its BTF tells.
 */
#pragma once

#include "abi/kernel_rows.h"
#include "bpf/orc_entry.h"

#include <stddef.h>
#include <stdint.h>

struct btf;

/* By struct orc_entry of the kernel's BTF; -ENOENT: it has none, -ENOTSUP: an unknown one. */
int orc_layout_of(const struct btf *btf, struct orc_layout *ret);

struct orc_tables {
	const void *ips;     /* `nr` distances of 4 bytes */
	uint64_t ips_start;  /* where the first of them is in the kernel */
	const void *entries; /* `nr` of ORC_ENTRY_SIZE bytes */
	size_t nr;
	struct orc_layout layout;
};

struct kernel_table {
	uint64_t start, end; /* of the code */
	struct kernel_bucket *buckets;
	size_t nr_buckets;
	uint32_t *more; /* rows of buckets that have too many */
	size_t nr_more;
	size_t nr_entries; /* that lie in this code */
	size_t nr_helper;  /* of these: KERNEL_HELPER */
};

/*
 * The table of the code in [start, end), which `tables` may have more than. Where no entry holds
 * the rule is KERNEL_HELPER. -EBADMSG: the entries are not sorted. -E2BIG, -ENOMEM.
 */
int kernel_table_new(const struct orc_tables *tables, uint64_t start, uint64_t end,
		     struct kernel_table **ret);
/* Makes the rule of one address KERNEL_HELPER, if the table has that. -ENOMEM, -E2BIG. */
int kernel_table_leave_out(struct kernel_table *t, uint64_t address);
void kernel_table_free(struct kernel_table *t);
static inline void kernel_table_free_p(struct kernel_table **t)
{
	kernel_table_free(*t);
}

/* KERNEL_RULE() of an address; KERNEL_HELPER where the table has none. */
uint32_t kernel_table_rule(const struct kernel_table *t, uint64_t address);

/* The rule that one entry is, by its 6 bytes. */
uint32_t orc_rule(const struct orc_layout *layout, const void *entry);
