// SPDX-License-Identifier: Apache-2.0
/*
 * What files tell: small made-up ones (the fuzzer's), also with more to look at than is looked at.
 */
#include "runtime/ruby/ruby_file.h"

#include "test.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The made file in memory, with `more` zeroed bytes behind it; free it. */
static uint8_t *read_made(const char *name, size_t more, size_t *ret_size)
{
	char path[PATH_MAX];
	uint8_t *data = calloc(1, (64 << 10) + more);
	FILE *file;

	ASSERT(data);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/ruby_file/%s", test_source_root(), name);
	file = fopen(path, "re");
	ASSERT(file);
	*ret_size = fread(data, 1, 64 << 10, file);
	ASSERT(*ret_size && *ret_size < 64 << 10);
	fclose(file);
	return data;
}

/* What was told of the file that was read last. */
static char told[16];
static const char *why;

static int read_memory(const uint8_t *data, size_t size, struct ruby_dso **ret)
{
	struct elf_file *elf;
	int r;

	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	r = ruby_file_read(elf, told, ret, &why);
	elf_file_free(elf);
	return r;
}

static void check_made(const char *name, unsigned int version, enum ruby_ec how)
{
	struct ruby_dso *dso;
	size_t size;
	uint8_t *data = read_made(name, 0, &size);

	ASSERT_OK(read_memory(data, size, &dso));
	ASSERT_EQ(dso->layout->version, version);
	ASSERT_EQ(dso->how, how);
	ASSERT(dso->ec_slot);
	ASSERT(dso->dso.interpreter_functions.nr && dso->dso.hidden.nr);
	ruby_file_free(dso);
	free(data);
}

TEST(versions_and_where_a_thread_has_what_it_runs)
{
	check_made("27", 207, RUBY_EC_KEY);
	check_made("31", 301, RUBY_EC_DTV);
	check_made("33", 303, RUBY_EC_DTV);
}

enum { EC_VALUE = 0x30 };

/* Where a program has ruby_current_ec, from the thread pointer. Frees `data`. */
static int read_offset(uint8_t *data, size_t size, int64_t *ret)
{
	struct ruby_dso *dso = NULL;
	int r = read_memory(data, size, &dso);

	if (!r) {
		ASSERT_EQ(dso->how, RUBY_EC_TLS);
		ASSERT(!dso->ec_slot);
		*ret = dso->ec_offset;
	}
	ruby_file_free(dso);
	free(data);
	return r;
}

/* The made file as a program that has Ruby in itself: no relocation leads to its variables. */
static int read_program(uint16_t type, uint32_t interp, const Elf64_Phdr *tls, int64_t *ret_offset)
{
	size_t size;
	uint8_t *data = read_made("31", 0, &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(data + header->e_shoff);
	Elf64_Phdr *segments = (Elf64_Phdr *)(data + header->e_phoff);

	header->e_type = type;
	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_TLS)
			segments[i] = *tls;
		else if (segments[i].p_type != PT_LOAD && segments[i].p_type != PT_DYNAMIC)
			segments[i].p_type = interp;
	}
	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(data + sections[i].sh_offset);

		if (sections[i].sh_type == SHT_RELA)
			sections[i].sh_type = SHT_PROGBITS;
		for (size_t k = 0; sections[i].sh_type == SHT_SYMTAB &&
				   k < sections[i].sh_size / sizeof(*symbols);
		     k++)
			if (ELF64_ST_TYPE(symbols[k].st_info) == STT_TLS)
				symbols[k].st_value = EC_VALUE;
	}
	return read_offset(data, size, ret_offset);
}

/* The linker puts the end of a program's thread-local variables at the thread pointer, at a
 * multiple of their alignment. */
TEST(programs_that_have_ruby_in_themselves)
{
	static const Elf64_Phdr
		small = { .p_type = PT_TLS, .p_vaddr = 0x2560, .p_memsz = 0x50, .p_align = 0x20 },
		large = { .p_type = PT_TLS, .p_vaddr = 0x2500, .p_memsz = 0x50, .p_align = 0x100 },
		odd = { .p_type = PT_TLS, .p_vaddr = 0x2568, .p_memsz = 0x50, .p_align = 0x20 },
		none = { .p_type = PT_TLS, .p_vaddr = 0x2560, .p_memsz = 0x50 };
	int64_t offset;

	ASSERT_OK(read_program(ET_EXEC, PT_NULL, &small, &offset));
	ASSERT_EQ(offset, -0x60 + EC_VALUE);
	ASSERT_OK(read_program(ET_EXEC, PT_NULL, &large, &offset));
	ASSERT_EQ(offset, -0x100 + EC_VALUE);
	ASSERT_OK(read_program(ET_EXEC, PT_NULL, &odd, &offset));
	ASSERT_EQ(offset, -0x58 + EC_VALUE);
	ASSERT_OK(read_program(ET_EXEC, PT_NULL, &none, &offset));
	ASSERT_EQ(offset, -0x50 + EC_VALUE);
	/* Position-independent; a library's are elsewhere in each process. */
	ASSERT_OK(read_program(ET_DYN, PT_INTERP, &small, &offset));
	ASSERT_EQ(offset, -0x60 + EC_VALUE);
	ASSERT_ERR(read_program(ET_DYN, PT_NULL, &small, &offset), ENOTSUP);
}

/* The file "33", which says by a relocation that has no name where ruby_current_ec is, as such a
 * program of that version: the code of its rb_errinfo() is this. */
static int read_stripped(const char *version, const uint8_t *code, size_t code_size,
			 uint32_t interp, int64_t *ret_offset)
{
	size_t size;
	uint8_t *data = read_made("33", 0, &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(data + header->e_shoff);
	Elf64_Phdr *segments = (Elf64_Phdr *)(data + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type != PT_LOAD && segments[i].p_type != PT_DYNAMIC)
			segments[i].p_type = interp;
	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(data + sections[i].sh_offset);
		const char *names = (char *)data + sections[sections[i].sh_link].sh_offset;

		if (sections[i].sh_type == SHT_RELA)
			sections[i].sh_type = SHT_PROGBITS;
		for (size_t k = 0; sections[i].sh_type == SHT_DYNSYM &&
				   k < sections[i].sh_size / sizeof(*symbols);
		     k++)
			if (!strcmp(names + symbols[k].st_name, "rb_errinfo"))
				memcpy(data + symbols[k].st_value, code, code_size);
			else if (!strcmp(names + symbols[k].st_name, "ruby_version"))
				memcpy(data + symbols[k].st_value, version, strlen(version));
	}
	return read_offset(data, size, ret_offset);
}

TEST(stripped_programs_that_have_ruby_in_themselves)
{
	static const uint8_t constant[] = { 0x48, 0xc7, 0xc0, 0xf8, 0xff, 0xff, 0xff, 0x64,
					    0x48, 0x8b, 0x00, 0x48, 0x8b, 0x40, 0x78, 0xc3 },
			     direct[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0xff,
					  0xff, 0xff, 0x48, 0x8b, 0x40, 0x78, 0xc3 },
			     other[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0xff,
					 0xff, 0xff, 0x48, 0x8b, 0x40, 0x70, 0xc3 };
	static const uint8_t far[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0xe8, 0xff, 0xff, 0xff,
				       0x48, 0x8b, 0x80, 0x80, 0x00, 0x00, 0x00, 0xc3 };
	int64_t offset;

	ASSERT_OK(read_stripped("3.3", constant, sizeof(constant), PT_INTERP, &offset));
	ASSERT_EQ(offset, -8);
	ASSERT_OK(read_stripped("3.3", direct, sizeof(direct), PT_INTERP, &offset));
	ASSERT_EQ(offset, -24);
	ASSERT_OK(read_stripped("4.0", far, sizeof(far), PT_INTERP, &offset));
	ASSERT_EQ(offset, -24);
	/* It reads another field than the layout has; it is a library's. */
	ASSERT_ERR(read_stripped("3.3", other, sizeof(other), PT_INTERP, &offset), ENOTSUP);
	ASSERT_ERR(read_stripped("3.3", direct, sizeof(direct), PT_NULL, &offset), ENOTSUP);
}

/* What is read of these functions, at such addresses of a file. */
enum { DURING_GC = 0x1210, GC_COUNT = 0x1260 };

static bool find_gc(const void *during, size_t during_size, const void *count, size_t count_size,
		    struct ruby_gc *ret)
{
	size_t size;
	uint8_t *data = read_made("33", 0, &size);
	struct elf_file *elf;
	bool found;

	memset(data + DURING_GC, 0x90, GC_COUNT + 0x40 - DURING_GC);
	memcpy(data + DURING_GC, during, during_size);
	memcpy(data + GC_COUNT, count, count_size);
	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	found = ruby_find_gc(elf, DURING_GC, GC_COUNT, ret);
	elf_file_free(elf);
	free(data);
	return found;
}

#define FIND_GC(during, count, ret) find_gc(during, sizeof(during), count, sizeof(count), ret)

/* endbr64; mov, lea N(%rip), %rax; mov (%rax), %rax; what leaves if that is 0 */
#define ENDBR	0xf3, 0x0f, 0x1e, 0xfa
#define MOV_RIP 0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00
#define LEA_RIP 0x48, 0x8d, 0x05, 0x00, 0x10, 0x00, 0x00
#define FOLLOW	0x48, 0x8b, 0x00
#define IF_ZERO 0x48, 0x85, 0xc0, 0x74, 0x15
#define LOAD(n) 0x48, 0x8b, 0x80, (n)&0xff, (n) >> 8, 0x00, 0x00
#define BIT(n)	0x0f, 0xb6, 0x40, n, 0xc0, 0xe8, 0x05, 0x83, 0xe0, 0x01, 0xc3

TEST(where_collections_are_counted)
{
	/* Debian's 3.1 and 3.4, and a program that has 3.3 in itself. */
	static const uint8_t
		during_31[] = { MOV_RIP, FOLLOW, LOAD(0x450), BIT(0x10) },
		count_31[] = { MOV_RIP, FOLLOW, LOAD(0x450), LOAD(0x1b8), 0xc3 },
		during_34[] = { ENDBR, LEA_RIP, FOLLOW, IF_ZERO, LOAD(0x510), BIT(0x14) },
		count_34[] = { ENDBR, 0x48, 0x83,	 0xec, 0x08, 0xe8, 0x73, 0x10,
			       0xf3,  0xff, LOAD(0x3f0), 0x48, 0x83, 0xc4, 0x08, 0xc3 },
		during_static[] = { MOV_RIP, IF_ZERO, LOAD(0x518), BIT(0x10) },
		count_static[] = { MOV_RIP, LOAD(0x518), LOAD(0x570), 0xc3 };
	struct ruby_gc gc;

	ASSERT(FIND_GC(during_31, count_31, &gc));
	ASSERT_EQ(gc.vm, DURING_GC + 7 + 0x1000);
	ASSERT(gc.slot);
	ASSERT_EQ(gc.objspace, 0x450);
	ASSERT_EQ(gc.flags, 0x10);
	ASSERT_EQ(gc.count, 0x1b8);
	ASSERT(FIND_GC(during_34, count_34, &gc));
	ASSERT_EQ(gc.vm, DURING_GC + 4 + 7 + 0x1000);
	ASSERT(!gc.slot);
	ASSERT_EQ(gc.objspace, 0x510);
	ASSERT_EQ(gc.flags, 0x14);
	ASSERT_EQ(gc.count, 0x3f0);
	ASSERT(FIND_GC(during_static, count_static, &gc));
	ASSERT_EQ(gc.vm, DURING_GC + 7 + 0x1000);
	ASSERT(!gc.slot);
	ASSERT_EQ(gc.count, 0x570);
	/* The two do not speak of the same thing. */
	ASSERT(!FIND_GC(during_31, count_static, &gc));
	ASSERT(!FIND_GC(count_31, count_31, &gc));
}

/* A collector of somebody else's is asked by a pointer to its function; and flags elsewhere. */
TEST(collections_that_are_counted_elsewhere)
{
	static const uint8_t during[] = { MOV_RIP, FOLLOW, LOAD(0x450), BIT(0x10) },
			     pointer[] = { 0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00, 0xff, 0xe0 },
			     odd[] = { MOV_RIP, FOLLOW, LOAD(0x450), BIT(0x11) },
			     count[] = { MOV_RIP, FOLLOW, LOAD(0x450), LOAD(0x1b8), 0xc3 };
	struct ruby_gc gc;

	ASSERT(FIND_GC(during, count, &gc));
	ASSERT(!FIND_GC(during, pointer, &gc));
	ASSERT(!FIND_GC(pointer, count, &gc));
	ASSERT(!FIND_GC(odd, count, &gc));
}

enum { MEGABYTE = 1 << 20 };

/* The made file with `nr` more tables of relocations, a megabyte each and all of them the same one,
 * before its own. */
static int read_with_tables(const char *name, size_t nr)
{
	size_t size, items, nr_items, used;
	uint8_t *data = read_made(name, MEGABYTE + (nr + 64) * sizeof(Elf64_Shdr), &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)data;
	struct ruby_dso *dso = NULL;
	Elf64_Shdr *to;
	int r;

	items = size = (size + 63) & ~(size_t)63;
	size += MEGABYTE;
	to = (Elf64_Shdr *)(data + size);
	nr_items = used = header->e_shnum;
	memcpy(to, data + header->e_shoff, nr_items * sizeof(*to));
	for (size_t i = 0; i < nr; i++)
		to[used++] = (Elf64_Shdr){ .sh_type = SHT_RELA,
					   .sh_offset = items,
					   .sh_size = MEGABYTE };
	for (size_t i = 0; i < nr_items; i++) {
		if (to[i].sh_type != SHT_RELA)
			continue;
		to[used++] = to[i];
		to[i].sh_type = SHT_PROGBITS;
	}
	header->e_shoff = size;
	header->e_shnum = (uint16_t)used;
	r = read_memory(data, size + used * sizeof(*to), &dso);
	ruby_file_free(dso);
	free(data);
	return r;
}

/* A file may have a quarter of a million tables, all of them in the same place. */
TEST(tables_are_not_looked_through_for_ever)
{
	ASSERT_OK(read_with_tables("31", 2));
	ASSERT_ERR(read_with_tables("31", 100), ENOTSUP);
}

TEST(one_that_exports_nothing_is_told_by_its_texts)
{
	struct ruby_dso *dso;
	size_t size;
	uint8_t *data = read_made("static", 0, &size);

	/* It may lie anywhere: its table of symbols has one, which is none. */
	ASSERT_ERR(read_memory(data, size, &dso), ENOTSUP);
	ASSERT_STR(told, "3.1.2");
	ASSERT_STR(why,
		   "it is linked statically, and exports nothing that is looked for by its name");
	free(data);
	/* Only its copyright. */
	data = read_made("static", 0, &size);
	memset(memmem(data, size, "ruby 3.1.2", 10), 'x', 10);
	ASSERT_ERR(read_memory(data, size, &dso), ENOENT);
	free(data);
}
