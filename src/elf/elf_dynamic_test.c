// SPDX-License-Identifier: Apache-2.0
/* Single symbols by the hash tables: those of this process's libc, compared with what ld.so finds.
 */
#include "elf/elf_dynamic.h"
#include "util/cleanup.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "test.h"

static void check(const struct elf_dynamic *dynamic, uint64_t base)
{
	static const char *const names[] = { "malloc", "environ", "qsort",
					     "stdout", "_exit",	  "gnu_get_libc_version" };
	static const char *const absent[] = { "", "malloc1", "mallo", "gHotSpotVMStructs",
					      "_PyRuntime" };
	uint64_t addr = 1;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *have = dlsym(RTLD_DEFAULT, names[i]);
		Dl_info info;

		ASSERT_PTR_NONNULL(have);
		ASSERT_OK(elf_dynamic_find(dynamic, names[i], &addr));
		/* Not what another object (a sanitizer, a copy relocation) has put before it. */
		if (dladdr(have, &info) && (uint64_t)info.dli_fbase == base)
			ASSERT_EQ(base + addr, have);
	}
	addr = 1;
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		ASSERT_ERR(elf_dynamic_find(dynamic, absent[i], &addr), ENOENT);
	ASSERT_EQ(addr, 1);
}

TEST(symbols_of_libc_are_found_by_both_tables)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_dynamic dynamic;
	Dl_info info;

	ASSERT(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info));
	ASSERT_OK(elf_file_open(info.dli_fname, &elf));
	ASSERT_OK(elf_dynamic_read(elf, &dynamic));
	ASSERT(dynamic.gnu_hash);
	check(&dynamic, (uint64_t)info.dli_fbase);
	if (!dynamic.hash)
		return; /* not every libc has the older one too */
	dynamic.gnu_hash = 0;
	check(&dynamic, (uint64_t)info.dli_fbase);
}

TEST(a_file_without_a_dynamic_segment_has_none)
{
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					   ELFDATA2LSB, EV_CURRENT },
			      .e_type = ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_ehsize = sizeof(header) };
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_dynamic dynamic;

	ASSERT_OK(elf_file_open_memory(&header, sizeof(header), &elf));
	ASSERT_ERR(elf_dynamic_read(elf, &dynamic), ENOENT);
}
