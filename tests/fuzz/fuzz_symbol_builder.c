// SPDX-License-Identifier: Apache-2.0
/*
 * An ELF file of any content, with any debug information: the table that is built of it is a good
 * one, or there is none.
 */
#include "fuzz.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_table.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SECTIONS_MAX = 1 << 20 };

static void look_up(const struct symbol_table *t)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];

	for (uint64_t addr = 0; addr < 0x3000; addr += 5) {
		size_t nr = symbol_table_find(t, addr, true, frames, SYMBOL_FRAMES_MAX);

		/* What is inlined is in something. */
		if (nr && frames[nr - 1].inlined)
			abort();
	}
}

FUZZER(data, size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_close_ int fd = -1;
	struct symbol_builder_options options = { .search.max_bytes = SECTIONS_MAX };
	int r;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	r = symbol_table_build(elf, &options, fd, NULL);
	if (r && r != -ENOENT)
		return 0;
	r = symbol_table_open_fd(fd, &t);
	if (r && r != -ENOMEM)
		abort();
	if (t)
		look_up(t);
	return 0;
}
