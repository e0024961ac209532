// SPDX-License-Identifier: Apache-2.0
/* All that can be asked of an ELF file, of any bytes. */
#include "fuzz.h"
#include "elf/elf_dynamic.h"
#include "elf/elf_file.h"
#include "elf/file_id.h"
#include "elf/usdt_notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_MAX = 1 << 20, SECTIONS_MAX = 64 };

static void ask_sections(const struct elf_file *elf)
{
	for (size_t i = 0; i < elf->nr_sections && i < SECTIONS_MAX; i++) {
		struct elf_data contents = { 0 };

		/* Names are strings, and the first of each name is found by it. */
		if (elf_file_section(elf, elf->sections[i].name) > &elf->sections[i] &&
		    strncmp(elf->sections[i].name, ".debug_", 7))
			abort();
		if (elf_file_section_data(elf, &elf->sections[i], DATA_MAX, &contents)) {
			if (contents.data)
				abort();
			continue;
		}
		if (contents.size > DATA_MAX || contents.data[contents.size])
			abort();
		free(contents.data);
	}
}

static void ask_addresses(const struct elf_file *elf)
{
	uint8_t buf[16];
	uint64_t bias;

	for (size_t i = 0; i < elf->nr_segments; i++) {
		const struct elf_segment *s = &elf->segments[i];

		(void)elf_file_read_vaddr(elf, s->vaddr, buf, sizeof(buf));
		(void)elf_file_read_vaddr(elf, s->vaddr + s->filesz - 8, buf, sizeof(buf));
		(void)elf_file_bias(elf, 0x7f0000000000, s->offset & ~4095ULL, &bias);
		if (elf_file_segment(elf, s->type) > s)
			abort();
	}
}

static void ask_dynamic(const struct elf_file *elf)
{
	struct elf_dynamic dynamic;
	uint64_t addr;

	if (elf_dynamic_read(elf, &dynamic))
		return;
	(void)elf_dynamic_find(&dynamic, "main", &addr);
	dynamic.gnu_hash = 0;
	(void)elf_dynamic_find(&dynamic, "main", &addr);
}

static void ask_usdt(const struct elf_file *elf)
{
	struct usdt_notes notes;

	if (usdt_notes_read(elf, &notes))
		return;
	for (size_t i = 0; i < notes.nr; i++)
		if (strlen(notes.items[i].provider) + strlen(notes.items[i].name) +
			    strlen(notes.items[i].arguments) >
		    USDT_SECTION_MAX)
			abort();
	usdt_notes_fini(&notes);
}

FUZZER(data, size)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	char go_id[GO_BUILD_ID_MAX];
	struct elf_file *elf;
	int r = elf_file_open_memory(data, size, &elf);

	if (r) {
		if (r != -ENOEXEC && r != -ENOTSUP && r != -ENOMEM)
			abort();
		return 0;
	}
	if (elf->nr_sections > size / 64 || elf->nr_segments > size / 56)
		abort();
	ask_sections(elf);
	ask_addresses(elf);
	ask_dynamic(elf);
	ask_usdt(elf);
	r = elf_file_build_id(elf, id);
	if (r > ELF_BUILD_ID_MAX || !r)
		abort();
	if (!elf_file_go_build_id(elf, go_id) && !memchr(go_id, 0, sizeof(go_id)))
		abort();
	elf_file_free(elf);
	return 0;
}
