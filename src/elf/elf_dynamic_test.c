// SPDX-License-Identifier: Apache-2.0
/* Single symbols by the hash tables: those of this process's libc, compared with what ld.so finds.
 */
#include "elf/elf_dynamic.h"
#include "util/cleanup.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "elf_writer.h"
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

TEST(what_others_must_have_is_told)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct elf_dynamic dynamic;

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	ASSERT_OK(elf_dynamic_read(elf, &dynamic));
	ASSERT(dynamic.gnu_hash);
	ASSERT(elf_dynamic_needs(&dynamic, "dladdr"));
	ASSERT(!elf_dynamic_needs(&dynamic, "dladd"));
	ASSERT(!elf_dynamic_needs(&dynamic, "dladdr1"));
	ASSERT(!elf_dynamic_needs(&dynamic, ""));
	ASSERT(!elf_dynamic_needs(&dynamic, "main"));
	dynamic.symbols = UINT64_MAX - 64;
	ASSERT(!elf_dynamic_needs(&dynamic, "dladdr"));
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

/* Is a symbol found behind `nr` others of its bucket? */
static bool is_found_behind(uint32_t nr)
{
	enum { ADDR = 0x1000, STRINGS = 16 };
	const size_t symbols = 5 * sizeof(Elf64_Dyn), hash = symbols + (nr + 2) * sizeof(Elf64_Sym),
		     strings = hash + 4 * (2 + 1 + (size_t)nr + 2), size = strings + STRINGS;
	const Elf64_Dyn dynamic[5] = { { DT_SYMTAB, { ADDR + symbols } },
				       { DT_HASH, { ADDR + hash } },
				       { DT_STRTAB, { ADDR + strings } },
				       { DT_STRSZ, { STRINGS } } };
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	_cleanup_free_ uint8_t *data = calloc(1, size);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL;
	struct elf_dynamic read;
	unsigned int section;
	size_t image_size;
	uint64_t addr = 0;

	ASSERT(data);
	memcpy(data, dynamic, sizeof(dynamic));
	memcpy(data + strings, "\0other\0name", 11);
	for (uint32_t i = 1; i < nr + 2; i++) {
		const Elf64_Sym sym = { .st_name = i <= nr ? 1 : 7, .st_shndx = 1, .st_value = i };
		const uint32_t next = i <= nr ? i + 1 : 0;

		memcpy(data + symbols + i * sizeof(sym), &sym, sizeof(sym));
		memcpy(data + hash + 4 * (3 + (size_t)i), &next, sizeof(next));
	}
	memcpy(data + hash, (const uint32_t[]){ 1, nr + 2, 1 }, 12);
	section = elf_writer_section(w, ".dynamic", SHT_PROGBITS, SHF_ALLOC, ADDR, data, size);
	elf_writer_segment(w, PT_LOAD, PF_R, section, section);
	elf_writer_segment(w, PT_DYNAMIC, PF_R, section, section);
	image = elf_writer_finish(w, &image_size);
	ASSERT_OK(elf_file_open_memory(image, image_size, &elf));
	ASSERT_OK(elf_dynamic_read(elf, &read));
	if (elf_dynamic_find(&read, "name", &addr))
		return false;
	ASSERT_EQ(addr, nr + 1);
	return true;
}

/* The longest of real files' have a dozen; each that is gone through is read. */
TEST(a_bucket_is_not_gone_through_for_ever)
{
	ASSERT(is_found_behind(0));
	ASSERT(is_found_behind(200));
	ASSERT(!is_found_behind(300));
}
