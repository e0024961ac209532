// SPDX-License-Identifier: Apache-2.0
/*
 * What a core says of its files, out of any bytes: mappings, the dynamic linker's list, ELF headers
 * in memory. Files are looked for below a root that is not there, but for the executable: this one.
 */
#include "fuzz.h"
#include "coredump/core_files.h"
#include "util/log.h"

#include <stdlib.h>

static void check(const struct core_files *files)
{
	uint64_t behind = 0;
	uint8_t buf[64];

	for (size_t i = 0; i < files->mappings.nr; i++) {
		const struct core_mapping *m = &files->mappings.items[i];

		if (m->start < behind || m->end <= m->start || m->file >= files->items.nr ||
		    core_files_mapping(files, m->start) != m ||
		    core_files_mapping(files, m->end - 1) != m)
			abort();
		behind = m->end;
		(void)core_files_memory(files, m->start, buf, sizeof(buf));
		(void)core_files_memory(files, m->end - 32, buf, sizeof(buf));
	}
	for (size_t i = 0; i < files->items.nr; i++)
		if (files->items.items[i].state >= CORE_FILE_STATES_MAX_ ||
		    !files->items.items[i].path)
			abort();
}

/* With a build-id, they would be looked for below our own root too. */
static void break_paths(struct elf_core *core)
{
	for (size_t i = 0; i < core->paths.strings.nr; i++) {
		char *path = (char *)(uintptr_t)core->paths.strings.items[i];

		if (path[0] == '/' && path[1])
			path[1] = '\1';
	}
}

FUZZER(data, size)
{
	const struct core_search search = { .exe = "/proc/self/exe", .sysroot = "/nowhere" };
	struct core_files files;
	struct elf_core *core;
	struct elf_file *elf;

	log_set_level(LOG_LEVEL_ERROR);
	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!elf_core_read(elf, &core)) {
		break_paths(core);
		if (!core_files_find(&files, core, elf, &search)) {
			check(&files);
			core_files_fini(&files);
		}
		elf_core_free(core);
	}
	elf_file_free(elf);
	return 0;
}
