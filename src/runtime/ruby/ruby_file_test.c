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

static int read_memory(const uint8_t *data, size_t size, struct ruby_dso **ret)
{
	struct elf_file *elf;
	char version[16];
	int r;

	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	r = ruby_file_read(elf, version, ret);
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
