// SPDX-License-Identifier: Apache-2.0
/*
 * What files tell: small made-up ones (the fuzzer's), and every Python on this machine.
 */
#include "runtime/python/python_file.h"
#include "runtime/python/python_code.h"
#include "runtime/python/test_pythons.h"

#include "test.h"

#include <elf.h>
#include <errno.h>

static int read_made(const char *name, struct python_dso **ret)
{
	char path[PATH_MAX];
	struct elf_file *elf;
	int r;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/python_file/%s", test_source_root(),
		 name);
	ASSERT_OK(elf_file_open(path, &elf));
	r = python_file_read(elf, NULL, ret);
	elf_file_free(elf);
	return r;
}

static void check_made(const char *name, unsigned int minor, size_t nr_gaps)
{
	struct python_dso *dso;

	ASSERT_OK(read_made(name, &dso));
	ASSERT_EQ(dso->minor, minor);
	/* The function, and its cold part: named, or found by its jumps. */
	ASSERT_EQ(dso->dso.interpreter_functions.nr, 2);
	ASSERT_EQ(dso->nr_gaps, nr_gaps);
	ASSERT(dso->code_type);
	ASSERT_EQ(!dso->runtime, minor == 6);
	ASSERT_EQ(!dso->interpreters, minor != 6);
	python_file_free(dso);
}

TEST(versions_loops_and_gaps)
{
	/* 3.6's f_executing is elsewhere than where this code clears it. */
	check_made("python36", 6, 2);
	check_made("python38", 8, 3);
	check_made("stripped", 8, 3);
	check_made("python312", 12, 1);
	check_made("static312", 12, 1);
}

/* The made file with what begins with `old` overwritten by `new`; `entry`: where it begins. */
static int read_changed(const char *name, const char *old, const void *new, size_t size,
			uint64_t entry)
{
	char path[PATH_MAX];
	uint8_t data[8192], *at;
	struct python_dso *dso = NULL;
	struct elf_file *elf;
	FILE *file;
	size_t len;
	int r;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/python_file/%s", test_source_root(),
		 name);
	file = fopen(path, "re");
	ASSERT(file);
	len = fread(data, 1, sizeof(data), file);
	ASSERT(len < sizeof(data));
	fclose(file);
	at = memmem(data, len, old, strlen(old));
	ASSERT(at);
	memcpy(at, new, size);
	memcpy(data + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof(entry));
	ASSERT_OK(elf_file_open_memory(data, len, &elf));
	r = python_file_read(elf, NULL, &dso);
	elf_file_free(elf);
	python_file_free(dso);
	return r;
}

/* A program exports nothing of its interpreter: it is known by .symtab, in a library it is not. */
TEST(static_and_position_independent)
{
	static const char exported[] = "PyEval_EvalFrameDefault";
	static const char hidden[] = "xyEval_EvalFrameDefault\0x"; /* and PyEval_EvalFrameEx */

	ASSERT_ERR(read_changed("python38", exported, hidden, sizeof(hidden) - 1, 0), ENOENT);
	ASSERT_OK(read_changed("python38", exported, hidden, sizeof(hidden) - 1, 0x1000));
}

TEST(static_and_stripped)
{
	ASSERT_ERR(
		read_changed("static312", ".symtab", ".PyRuntime", sizeof(".PyRuntime"), 0x4000b0),
		ENOTSUP);
}

TEST(the_address_that_code_stores)
{
	/* lea 0x10(%rip), %r9; movq $0x5cda30, 0x88(%rax) */
	static const uint8_t number[] = { 0x4c, 0x8d, 0x0d, 0x10, 0, 0,	   0,	 0x48, 0xc7,
					  0x80, 0x88, 0,    0,	  0, 0x30, 0xda, 0x5c, 0 };
	/* lea 0x10(%rip), %r9; lea 0x20(%rip), %rcx; mov %r9, 0x88(%rbx) */
	static const uint8_t loaded[] = { 0x4c, 0x8d, 0x0d, 0x10, 0, 0, 0,
					  0x48, 0x8d, 0x0d, 0x20, 0, 0, 0,
					  0x4c, 0x89, 0x8b, 0x88, 0, 0, 0 };

	ASSERT_EQ(python_stored_address(number, sizeof(number), 0x1000, 0x88), 0x5cda30);
	ASSERT_EQ(python_stored_address(number, sizeof(number) - 1, 0x1000, 0x88), 0);
	ASSERT_EQ(python_stored_address(number, sizeof(number), 0x1000, 0x80), 0);
	ASSERT_EQ(python_stored_address(loaded, sizeof(loaded), 0x1000, 0x88), 0x1017);
	ASSERT_EQ(python_stored_address(loaded + 7, sizeof(loaded) - 7, 0x1000, 0x88), 0);
}

/* What gcc makes of 3.13's init_code(): mov 0x4268(%r14), %eax; mov %eax, 0x5c(%rbx); test; je;
 * add $1, %eax; mov %eax, 0x4268(%r14). */
#define COUNT_INTERP                                                                               \
	0x41, 0x8b, 0x86, 0x68, 0x42, 0, 0, 0x89, 0x43, 0x5c, 0x85, 0xc0, 0x74, 0x0a, 0x83, 0xc0,  \
		0x01, 0x41, 0x89, 0x86, 0x68, 0x42, 0, 0
/* clang: incl */
#define COUNT_OTHER                                                                                \
	0x41, 0x8b, 0x86, 0x78, 0x42, 0, 0, 0x89, 0x43, 0x5c, 0x85, 0xc0, 0x74, 0x09, 0xff, 0xc0,  \
		0x41, 0x89, 0x86, 0x78, 0x42, 0, 0

TEST(where_code_objects_are_counted)
{
	static const uint8_t interp[] = { COUNT_INTERP }, two[] = { COUNT_INTERP, COUNT_OTHER },
			     other[] = { COUNT_OTHER };
	/* Of 3.12: lea 0x406717(%rip), %rdx; mov (%rdx), %eax; movups %xmm0, 0x48(%rbx), whose end
	 * looks like a prefix; mov %eax, 0x5c(%rbx); test; je; lea 1(%rax), %ecx; mov %ecx, (%rdx)
	 */
	static const uint8_t global[] = { 0x48, 0x8d, 0x15, 0x17, 0x67, 0x40, 0,    0x8b, 0x02,
					  0x0f, 0x11, 0x43, 0x48, 0x89, 0x43, 0x5c, 0x85, 0xc0,
					  0x74, 0x05, 0x8d, 0x48, 0x01, 0x89, 0x0a };
	/* Stored elsewhere than it was loaded from; counted by two. */
	static const uint8_t elsewhere[] = { 0x8b, 0x05, 0x10, 0,    0,	   0,	 0x89, 0x43, 0x5c,
					     0x83, 0xc0, 0x01, 0x89, 0x05, 0x10, 0,    0,    0 };
	uint8_t by_two[sizeof(interp)];

	ASSERT_EQ(python_codes_in(interp, sizeof(interp), 0x1000, true), 0x4268);
	ASSERT_EQ(python_codes_in(interp, sizeof(interp), 0x1000, false), 0);
	ASSERT_EQ(python_codes_in(interp, sizeof(interp) - 1, 0x1000, true), 0);
	ASSERT_EQ(python_codes_in(other, sizeof(other), 0x1000, true), 0x4278);
	ASSERT_EQ(python_codes_in(two, sizeof(two), 0x1000, true), 0);
	ASSERT_EQ(python_codes_in(global, sizeof(global), 0x1760e2, false), 0x57c800);
	ASSERT_EQ(python_codes_in(global, sizeof(global), 0x1760e2, true), 0);
	ASSERT_EQ(python_codes_in(elsewhere, sizeof(elsewhere), 0x1000, false), 0);
	memcpy(by_two, interp, sizeof(interp));
	by_two[16] = 2;
	ASSERT_EQ(python_codes_in(by_two, sizeof(by_two), 0x1000, true), 0);
}

/* Each store like that is looked at from all sides: a file that is made of them takes minutes. */
TEST(code_that_looks_as_if_it_counted_is_not_looked_at_for_ever)
{
	enum { FEW = 500, MANY = 3000 };
	static const uint8_t interp[] = { COUNT_INTERP };
	static uint8_t code[3 * MANY + sizeof(interp)];

	for (size_t i = 0; i < MANY; i++)
		memcpy(code + 3 * i, "\x89\x43\x5c", 3);
	memcpy(code + 3 * MANY, interp, sizeof(interp));
	ASSERT_EQ(python_codes_in(code + 3 * (MANY - FEW), 3 * FEW + sizeof(interp), 0x1000, true),
		  0x4268);
	ASSERT_EQ(python_codes_in(code, sizeof(code), 0x1000, true), 0);
}

static int read_path(const char *path, struct python_dso **ret)
{
	struct elf_file *elf;
	int r = elf_file_open(path, &elf);

	if (r)
		return r;
	r = python_file_read(elf, NULL, ret);
	elf_file_free(elf);
	return r;
}

TEST(other_programs_are_not_recognised)
{
	struct python_dso *dso;

	ASSERT_ERR(read_path("/proc/self/exe", &dso), ENOENT);
	ASSERT_ERR(read_path("/bin/sh", &dso), ENOENT);
}

/* The executable is one, or it is linked to a library that is. */
static void check_python(const char *path, unsigned int minor)
{
	struct python_dso *dso = NULL;
	glob_t found;
	char pattern[PATH_MAX];
	int r = read_path(path, &dso);

	if (r) {
		ASSERT_EQ(r, -ENOENT);
		snprintf(pattern, sizeof(pattern), "%.*s/../lib/libpython3.%u*.so.1.0",
			 (int)(strrchr(path, '/') - path), path, minor);
		ASSERT_EQ(glob(pattern, 0, NULL, &found), 0);
		ASSERT_OK(read_path(found.gl_pathv[0], &dso));
		globfree(&found);
	}
	ASSERT_EQ(dso->minor, minor);
	ASSERT(dso->dso.interpreter_functions.nr >= 1 &&
	       dso->dso.hidden.nr > dso->dso.interpreter_functions.nr);
	ASSERT(minor <= 9 ? dso->nr_gaps >= 3 : dso->nr_gaps == (minor == 10 || minor == 12));
	ASSERT_EQ(!!dso->trampoline, minor >= 12);
	ASSERT_EQ(!!dso->codes, minor == 12 || minor == 13);
	python_file_free(dso);
}

TEST(each_python_of_this_machine)
{
	ASSERT(test_pythons(check_python));
}
