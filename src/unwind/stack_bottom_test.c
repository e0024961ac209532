// SPDX-License-Identifier: Apache-2.0
/* This very program exports what greenlet's module exports: a function that begins a greenlet, and
 * others. */
#include "unwind/stack_bottom.h"

#include <errno.h>

#include "abi/unwind.h"
#include "test.h"
#include "unwind/unwind_table.h"
#include "util/cleanup.h"

#define EXPORTED(name, symbol)                                                                     \
	__attribute__((visibility("default"), used, noinline)) int name(int (*run)(void)) __asm__( \
		symbol)

EXPORTED(module_begins, "PyInit__greenlet");
EXPORTED(begins, "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object");
EXPORTED(begins_cold, "_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object.cold");
EXPORTED(starts, "_ZN8greenlet12UserGreenlet13g_initialstubEPv");

int begins_cold(int (*run)(void))
{
	return run() * 2;
}

int begins(int (*run)(void))
{
	return run() + 1;
}

int starts(int (*run)(void))
{
	return begins(run) + 2;
}

int module_begins(int (*run)(void))
{
	return starts(run) + 3;
}

static int of_file(const char *path, uint64_t *ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;

	ASSERT_OK(elf_file_open(path, &elf));
	return stack_bottom_find(elf, ret);
}

/* The file's address of what is here in memory. */
static uint64_t file_address(const void *function)
{
	extern const char __executable_start;

	return (uint64_t)((const char *)function - &__executable_start);
}

TEST(a_greenlets_first_function_is_found)
{
	uint64_t addr;

	ASSERT_OK(of_file("/proc/self/exe", &addr));
	ASSERT_EQ(addr, file_address((const void *)begins));
	ASSERT_EQ(of_file("/bin/sh", &addr), -ENOENT);
}

TEST(nobody_called_it)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(unwind_table_free_p) struct unwind_table *table = NULL;
	uint64_t at = file_address((const void *)begins);

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	ASSERT_OK(unwind_table_build(elf, 0, &table));
	for (uint64_t i = 0; i < 8; i++)
		ASSERT_EQ(unwind_table_find(table, at + i)->cfa, CFA_END);
	ASSERT_EQ(unwind_table_find(table, at - 1)->cfa == CFA_END, 0);
	ASSERT_EQ(unwind_table_find(table, file_address((const void *)starts))->cfa, CFA_REG);
}
