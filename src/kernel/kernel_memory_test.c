// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's memory is read, and what its unwind tables become says at every entry, and right
 * before the next one, what that entry says.
 */
#include "kernel/kernel_memory.h"
#include "unwind/orc.h"
#include "util/cleanup.h"
#include "test.h"
#include "kernel/test_kernel_symbol.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES_MIN = 10000 };

TEST_SKIP_REASON()
{
	if (geteuid())
		return "loading BPF programs needs root";
	return test_kernel_symbol("__start_orc_unwind")
		       ? NULL
		       : "the kernel has no ORC tables, or hides them";
}

TEST(what_is_not_there_is_refused)
{
	_cleanup_(kernel_memory_free_p) struct kernel_memory *m = NULL;
	uint64_t word;

	ASSERT_OK(kernel_memory_new(&m));
	ASSERT_ERR(kernel_memory_read(m, 8, &word, sizeof(word)), EFAULT);
	ASSERT_ERR(kernel_memory_read(m, (uint64_t)(uintptr_t)&word, &word, sizeof(word)), EFAULT);
}

/* A way of its own: the last entry at or before the address, of those in the range. */
static uint32_t rule_at_entry(const struct orc_tables *t, size_t i)
{
	return orc_rule(&t->layout, (const char *)t->entries + i * ORC_ENTRY_SIZE);
}

static uint64_t address_at_entry(const struct orc_tables *t, size_t i)
{
	return t->ips_start + 4 * i + (int64_t)((const int32_t *)t->ips)[i];
}

static void check_range(const struct orc_tables *tables, const char *first, const char *last)
{
	_cleanup_(kernel_table_free_p) struct kernel_table *table = NULL;
	uint64_t start = test_kernel_symbol(first), end = test_kernel_symbol(last), at, next;
	uint64_t wrong =
		0; /* the first one: an assertion for each would take half a minute under qemu */
	size_t i, nr = 0, nr_known = 0;
	uint32_t rule;

	ASSERT(start && end);
	ASSERT_OK(kernel_table_new(tables, start, end, &table));
	for (i = 0; i < tables->nr; i++) {
		at = address_at_entry(tables, i);
		next = i + 1 < tables->nr ? address_at_entry(tables, i + 1) : end;
		if (next > end)
			next = end;
		/* Of several at one address the last one counts. */
		if (at < start || at >= end || at == next)
			continue;
		nr++;
		rule = rule_at_entry(tables, i);
		nr_known += KERNEL_RULE_KIND(rule) != KERNEL_HELPER;
		if (!wrong && (kernel_table_rule(table, at) != rule ||
			       kernel_table_rule(table, next - 1) != rule ||
			       kernel_table_rule(table, at + (next - at) / 2) != rule))
			wrong = at;
	}
	ASSERT_EQ(wrong, 0);
	ASSERT(nr > 100);
	/* Of 483,663 on one 6.18 all but 604 are known. */
	ASSERT(nr_known >= nr - nr / 50);
	printf("# %s: %zu of %zu rows have rules; %zu buckets, %zu further rows\n", first, nr_known,
	       nr, table->nr_buckets, table->nr_more);
}

TEST(every_entry_of_this_kernel)
{
	_cleanup_(kernel_memory_free_p) struct kernel_memory *m = NULL;
	uint64_t ips = test_kernel_symbol("__start_orc_unwind_ip"),
		 ips_end = test_kernel_symbol("__stop_orc_unwind_ip");
	uint64_t entries = test_kernel_symbol("__start_orc_unwind"),
		 entries_end = test_kernel_symbol("__stop_orc_unwind");
	size_t nr = (ips_end - ips) / 4;
	_cleanup_free_ void *ip = malloc(4 * nr), *entry = malloc(ORC_ENTRY_SIZE * nr);
	struct orc_tables t = { .ips = ip, .ips_start = ips, .entries = entry, .nr = nr };
	struct btf *btf = btf__load_vmlinux_btf();

	ASSERT(nr > ENTRIES_MIN);
	ASSERT_EQ((entries_end - entries) / ORC_ENTRY_SIZE, nr);
	ASSERT_PTR_NONNULL(btf);
	ASSERT_OK(orc_layout_of(btf, &t.layout));
	btf__free(btf);
	ASSERT_OK(kernel_memory_new(&m));
	ASSERT_OK(kernel_memory_read(m, ips, ip, 4 * nr));
	ASSERT_OK(kernel_memory_read(m, entries, entry, ORC_ENTRY_SIZE * nr));
	check_range(&t, "_stext", "_etext");
	check_range(&t, "_sinittext", "_einittext");
}
