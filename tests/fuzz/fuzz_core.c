// SPDX-License-Identifier: Apache-2.0
/* A core file out of any bytes: notes, segments, mappings; memory at and around what they name. */
#include "fuzz.h"
#include "elf/elf_core.h"

#include <stdlib.h>
#include <string.h>

static void look(const struct elf_core *core, const struct elf_file *elf, uint64_t addr)
{
	const struct elf_core_segment *s = elf_core_segment_at(core, addr);
	const struct elf_core_mapping *m = elf_core_mapping_at(core, addr);
	uint8_t buf[64];

	if (s && (addr < s->vaddr || addr - s->vaddr >= s->memsz))
		abort();
	if (m && (addr < m->start || addr >= m->end || !strtab_get(&core->paths, m->path)))
		abort();
	if (!elf_core_memory(core, elf, addr, buf, sizeof(buf)) && !s)
		abort();
}

static void check(const struct elf_core *core, const struct elf_file *elf)
{
	if (!core->threads.nr || strlen(core->comm) > 16 || strlen(core->args) > 80)
		abort();
	for (size_t i = 0; i < core->segments.nr; i++) {
		const struct elf_core_segment *s = &core->segments.items[i];

		if (s->filesz > s->memsz || s->memsz > UINT64_MAX - s->vaddr)
			abort();
		look(core, elf, s->vaddr);
		look(core, elf, s->vaddr + s->memsz - 1);
		look(core, elf, s->vaddr + s->filesz - 32);
	}
	for (size_t i = 0; i < core->mappings.nr; i++) {
		look(core, elf, core->mappings.items[i].start);
		look(core, elf, core->mappings.items[i].end);
	}
	for (size_t i = 0; i < core->threads.nr; i++)
		look(core, elf, core->threads.items[i].pc);
}

FUZZER(data, size)
{
	struct elf_core *core;
	struct elf_file *elf;

	if (elf_file_open_memory(data, size, &elf))
		return 0;
	if (!elf_core_read(elf, &core)) {
		check(core, elf);
		elf_core_free(core);
	}
	elf_file_free(elf);
	return 0;
}
