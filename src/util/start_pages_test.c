// SPDX-License-Identifier: Apache-2.0
#include "util/start_pages.h"
#include "test.h"

#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Of the mapping that they are in: the process's counts are of what each CPU has told so far. */
static size_t resident_kb_at(const void *place)
{
	unsigned long start, end, at = (unsigned long)place;
	bool is_it = false;
	char line[512];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/smaps", "re");

	ASSERT_PTR_NONNULL(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_it = at >= start && at < end;
		else if (is_it && sscanf(line, "Rss: %zu kB", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

static size_t resident_kb(void)
{
	return resident_kb_at(large);
}

static size_t count_zeroes_at(const volatile char *p)
{
	size_t nr = 0;

	for (size_t i = 0; i < SIZE; i++)
		nr += !p[i];
	return nr;
}

static size_t count_zeroes(void)
{
	return count_zeroes_at(large);
}

TEST(constants_are_not_resident_and_come_back)
{
	size_t zeroes;

	/* A machine that is short of memory may take them away by itself. */
	do
		zeroes = count_zeroes();
	while (resident_kb() <= SIZE / 1024 / 2);
	start_pages_drop();
	if (dl_iterate_phdr(find, NULL) == 1)
		ASSERT(resident_kb() < SIZE / 1024 / 2);
	ASSERT_STR(large, "constant");
	ASSERT_EQ(count_zeroes(), zeroes);
}

/* Of the program's code, as long as SIZE; 65536: the largest page. */
extern const char code[];
__asm__(".pushsection .text\n\t.balign 65536\ncode:\t.fill 2097152, 1, 0\n\t.popsection");

static bool can_be_written(void)
{
	return !mprotect((void *)(code + SIZE / 2), (size_t)sysconf(_SC_PAGESIZE),
			 PROT_READ | PROT_WRITE | PROT_EXEC);
}

TEST(code_comes_back_but_what_was_written_into_it_stays)
{
	volatile char *breakpoint = (volatile char *)code + SIZE / 2;

	if (!can_be_written())
		return;
	*breakpoint = 1;
	ASSERT_OK(
		mprotect((void *)breakpoint, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC));
	do
		ASSERT_EQ(count_zeroes_at(code), SIZE - 1);
	while (resident_kb_at(code) + resident_kb_at(code + SIZE - 1) <= SIZE / 1024 / 2);
	start_pages_drop();
	/* What runs has come back, with what is around it. */
	ASSERT(resident_kb_at(code) + resident_kb_at(code + SIZE - 1) < SIZE / 1024 / 2);
	ASSERT_EQ(*breakpoint, 1);
	ASSERT_EQ(count_zeroes_at(code), SIZE - 1);
}
