// SPDX-License-Identifier: Apache-2.0
#include "util/start_pages.h"

#include "util/cleanup.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

enum { PAGES_AT_ONCE = 64 };

struct dropping {
	uintptr_t page;
	int pagemap; /* -1: code stays */
};

/* Does relocation write into what is mapped for reading? Nobody builds that on purpose. */
static bool is_relocated(const struct dl_phdr_info *info)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const ElfW(Dyn) * d;

		if (p->p_type != PT_DYNAMIC)
			continue;
		d = (const ElfW(Dyn) *)(info->dlpi_addr + p->p_vaddr);
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == DT_TEXTREL ||
			    (d->d_tag == DT_FLAGS && d->d_un.d_val & DF_TEXTREL))
				return true;
	}
	return false;
}

static bool is_as_in_file(uint64_t entry)
{
	return entry & PAGE_PRESENT && entry & PAGE_OF_FILE;
}

/* A page that somebody has written into is a copy, and no file's. */
static void drop_unwritten(const struct dropping *d, uintptr_t start, uintptr_t end)
{
	uint64_t pages[PAGES_AT_ONCE];
	size_t nr = (end - start) / d->page, i, first;

	nr = nr < PAGES_AT_ONCE ? nr : PAGES_AT_ONCE;
	if (pread(d->pagemap, pages, nr * sizeof(*pages),
		  (off_t)(start / d->page * sizeof(*pages))) != (ssize_t)(nr * sizeof(*pages)))
		return;
	for (i = 0; i < nr; i++) {
		for (first = i; i < nr && is_as_in_file(pages[i]);)
			i++;
		if (i > first)
			(void)madvise((void *)(start + first * d->page), (i - first) * d->page,
				      MADV_DONTNEED);
	}
}

/* Where it fails they stay. */
static void drop_range(const struct dropping *d, uintptr_t start, uintptr_t end, bool is_code)
{
	if (!is_code)
		(void)madvise((void *)start, end - start, MADV_DONTNEED);
	for (; is_code && start < end; start += PAGES_AT_ONCE * d->page)
		drop_unwritten(d, start, end);
}

static int drop(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const struct dropping *d = ctx;

	(void)size;
	if (is_relocated(info))
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_filesz;
		bool is_code = p->p_flags & PF_X;

		start = (start + d->page - 1) & ~(d->page - 1);
		end &= ~(d->page - 1);
		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W) && start < end &&
		    (!is_code || d->pagemap >= 0))
			drop_range(d, start, end, is_code);
	}
	return 0;
}

void start_pages_drop(void)
{
	_cleanup_close_ int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct dropping d = { (uintptr_t)sysconf(_SC_PAGESIZE), pagemap };

	dl_iterate_phdr(drop, &d);
}
