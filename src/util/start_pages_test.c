// SPDX-License-Identifier: Apache-2.0
#include "util/start_pages.h"
#include "test.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 2 << 20 };

/* Of the program's constants. */
static const char large[SIZE] = "constant";

/* Is it in a segment of nothing but constants? Some linkers put them beside the code. */
static int find(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uintptr_t at = (uintptr_t)large;

	(void)size;
	(void)ctx;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at >= info->dlpi_addr + p->p_vaddr &&
		    at < info->dlpi_addr + p->p_vaddr + p->p_filesz)
			return p->p_flags & (PF_W | PF_X) ? 2 : 1;
	}
	return 0;
}

static size_t resident_kb(void)
{
	char line[256];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	ASSERT_PTR_NONNULL(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssFile: %zu kB", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

static size_t count_zeroes(void)
{
	const volatile char *p = large;
	size_t nr = 0;

	for (size_t i = 0; i < SIZE; i++)
		nr += !p[i];
	return nr;
}

TEST(constants_are_not_resident_and_come_back)
{
	size_t zeroes = count_zeroes(), before = resident_kb(), after;

	start_pages_drop();
	after = resident_kb();
	if (dl_iterate_phdr(find, NULL) == 1)
		ASSERT(after + SIZE / 1024 / 2 < before);
	ASSERT_STR(large, "constant");
	ASSERT_EQ(count_zeroes(), zeroes);
}
