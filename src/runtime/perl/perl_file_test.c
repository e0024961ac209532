// SPDX-License-Identifier: Apache-2.0
/*
 * What files tell: small made-up ones (the fuzzer's), and with other code in them.
 */
#include "runtime/perl/perl_file.h"

#include "abi/unwind.h"
#include "elf/elf_dynamic.h"
#include "test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MADE_MAX = 64 << 10 };

/* As compilers make it, of two instructions: the argument goes to rbx, what an op returns there. */
static const uint8_t held_loop[] = { 0x48, 0x89, 0xfb, 0x48, 0x89, 0x43, 0x08 };
/* That loop with its argument in rbp. */
static const uint8_t other_loop[] = { 0x48, 0x89, 0xfd, 0x48, 0x89, 0x45, 0x08 };

/* The made file in memory; free it. */
static uint8_t *read_made(const char *name, size_t *ret_size)
{
	char path[PATH_MAX];
	uint8_t *data = calloc(1, MADE_MAX);
	FILE *file;

	ASSERT(data);
	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/perl_file/%s", test_source_root(), name);
	file = fopen(path, "re");
	ASSERT(file);
	*ret_size = fread(data, 1, MADE_MAX, file);
	ASSERT(*ret_size && *ret_size < MADE_MAX);
	fclose(file);
	return data;
}

static unsigned int said_version; /* by the file that was read last */

/* Of a made file, with that code (its loop's 7 bytes) in place of its loop's, or NULL. */
static int read_with(const char *name, const uint8_t *code, struct perl_dso **ret)
{
	struct elf_dynamic dynamic;
	struct elf_file *elf;
	uint64_t loop;
	size_t size;
	uint8_t *data = read_made(name, &size);
	int r;

	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	ASSERT_OK(elf_dynamic_read(elf, &dynamic));
	ASSERT_OK(elf_dynamic_find(&dynamic, "Perl_runops_standard", &loop));
	elf_file_free(elf);
	/* Their code lies at its address. */
	if (code) {
		ASSERT(loop + sizeof(held_loop) <= size);
		memcpy(data + loop, code, sizeof(held_loop));
	}
	ASSERT_OK(elf_file_open_memory(data, size, &elf));
	r = perl_file_read(elf, &said_version, ret);
	elf_file_free(elf);
	free(data);
	return r;
}

static void check_made(const char *name, unsigned int version, bool threaded)
{
	struct perl_dso *dso;

	ASSERT_OK(read_with(name, NULL, &dso));
	ASSERT_EQ(dso->version, version);
	ASSERT_EQ(dso->threaded, threaded);
	ASSERT(dso->catcher.start && dso->run.start && dso->entersub && dso->block_type);
	ASSERT_EQ(dso->thr_key != 0, threaded);
	ASSERT_EQ(dso->curcop != 0, !threaded);
	perl_file_free(dso);
}

TEST(versions_and_whether_there_are_threads)
{
	check_made("528", 28, false);
	check_made("536", 36, true);
	check_made("540", 40, true);
	check_made("540-aarch64", 40, true);
}

TEST(a_version_that_is_not_known_is_refused)
{
	struct perl_dso *dso = NULL;

	ASSERT_EQ(read_with("99", NULL, &dso), -ENOTSUP);
	ASSERT(!dso);
	ASSERT_EQ(said_version, 99);
}

TEST(where_a_loop_keeps_the_interpreter_is_told_by_its_code)
{
	struct perl_dso *dso;

	ASSERT_OK(read_with("536", held_loop, &dso));
	ASSERT(dso->held[0].start && dso->held[0].end - dso->held[0].start == sizeof(held_loop));
	ASSERT(!dso->held[1].start);
	ASSERT_EQ(dso->base.follow, 1u << X86_SLOT_RBX);
	perl_file_free(dso);
	ASSERT_OK(read_with("536", other_loop, &dso));
	ASSERT(!dso->held[0].start);
	ASSERT_EQ(dso->base.follow, 0u);
	perl_file_free(dso);
	/* aarch64's x19 */
	ASSERT_OK(read_with("540-aarch64", NULL, &dso));
	ASSERT(dso->held[0].start);
	ASSERT_EQ(dso->base.follow, 1u << X86_SLOT_RBX);
	perl_file_free(dso);
	/* Without threads there is one interpreter. */
	ASSERT_OK(read_with("528", held_loop, &dso));
	ASSERT(!dso->held[0].start);
	perl_file_free(dso);
}

TEST(who_starts_loops_for_defer_blocks_is_found_behind_pushdefer)
{
	struct perl_dso *dso;

	/* Two functions whose addresses it takes, and one that both jump to. */
	ASSERT_OK(read_with("540", NULL, &dso));
	for (size_t i = 0; i < 3; i++) {
		ASSERT(dso->defers[i].start && dso->defers[i].end > dso->defers[i].start);
		for (size_t k = 0; k < i; k++)
			ASSERT(dso->defers[i].start != dso->defers[k].start);
	}
	ASSERT(!dso->defers[3].start);
	perl_file_free(dso);
	/* Two instructions make an address on aarch64; in a program at a fixed one it is a number.
	 */
	ASSERT_OK(read_with("540-aarch64", NULL, &dso));
	ASSERT(dso->defers[2].start && !dso->defers[3].start);
	perl_file_free(dso);
	ASSERT_OK(read_with("540-fixed", NULL, &dso));
	ASSERT(dso->defers[2].start && !dso->defers[3].start);
	perl_file_free(dso);
	/* Before 5.36 there are no such blocks. */
	ASSERT_OK(read_with("528", NULL, &dso));
	ASSERT(!dso->defers[0].start);
	perl_file_free(dso);
}
