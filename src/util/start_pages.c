// SPDX-License-Identifier: Apache-2.0
#include "util/start_pages.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

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

static int drop(struct dl_phdr_info *info, size_t size, void *ctx)
{
	uintptr_t page = *(const uintptr_t *)ctx;

	(void)size;
	if (is_relocated(info))
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_filesz;

		start = (start + page - 1) & ~(page - 1);
		end &= ~(page - 1);
		/* Where it fails they stay. */
		if (p->p_type == PT_LOAD && !(p->p_flags & (PF_W | PF_X)) && start < end)
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	return 0;
}

void start_pages_drop(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	dl_iterate_phdr(drop, &page);
}
