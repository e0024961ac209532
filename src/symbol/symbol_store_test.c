// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_store.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_writer.h"
#include "util/cleanup.h"

/* --- files and stores ------------------------------------------------------------------------- */

/* An ELF file with a build-id of bytes `id` and one function of that name. */
static int make_file(uint8_t id, const char *function)
{
	static const char code[0x100];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       0x1000, code, sizeof(code));
	_cleanup_free_ void *image = NULL;
	uint8_t build_id[20];
	size_t size;

	memset(build_id, id, sizeof(build_id));
	elf_writer_build_id(w, build_id, sizeof(build_id));
	if (function)
		elf_writer_symbol(w, SHT_SYMTAB, function, STB_GLOBAL, STT_FUNC, text, 0x1000, 16);
	image = elf_writer_finish(w, &size);
	return elf_image_fd(image, size);
}

static uint32_t want_fd(struct symbol_store *s, int fd, const char *path)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct symbol_file file = { .fd = fd, .path = path };
	uint32_t id = UINT32_MAX;

	ASSERT_OK(elf_file_open_fd(dup(fd), &elf));
	file.elf = elf;
	ASSERT_OK(symbol_store_want(s, &file, &id));
	return id;
}

/* Asks for a made file, which is gone when this returns. */
static uint32_t want(struct symbol_store *s, uint8_t id, const char *function)
{
	_cleanup_close_ int fd = make_file(id, function);

	return want_fd(s, fd, "/made/up");
}

struct complaints {
	int nr;
	char last[1024];
};

static void take_complaint(void *ctx, const char *text)
{
	struct complaints *c = ctx;

	c->nr++;
	snprintf(c->last, sizeof(c->last), "%s", text);
}

static struct symbol_store *open_store(struct symbol_store_options options)
{
	struct symbol_store *s = NULL;

	ASSERT_OK(symbol_store_new(&options, &s));
	return s;
}

static const char *name_at(const struct symbol_store *s, uint32_t id, uint64_t addr)
{
	const struct symbol_table *t = symbol_store_table(s, id);
	struct symbol_frame frame;

	if (!t)
		return "(no table)";
	return symbol_table_find(t, addr, true, &frame, 1) ? frame.name : "(nothing)";
}

static char *program(void)
{
	const char *root = getenv("SONDE_BUILD_ROOT");
	char *path = NULL;

	ASSERT(asprintf(&path, "%s/src/symbol/build_symbols", root ? root : ".") > 0);
	return path;
}

/* --- building --------------------------------------------------------------------------------- */

static void check_some(struct symbol_store *s)
{
	uint32_t a = want(s, 1, "a"), b = want(s, 2, "b"), none = want(s, 3, NULL);

	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_EQ(symbol_store_state(s, a), SYMBOL_STATE_READY);
	ASSERT_STR(name_at(s, a, 0x1000), "a");
	ASSERT_STR(name_at(s, a, 0x1010), "(nothing)");
	ASSERT_STR(name_at(s, b, 0x100f), "b");
	ASSERT_EQ(symbol_store_state(s, none), SYMBOL_STATE_NONE);
	ASSERT_PTR_NULL(symbol_store_table(s, none));
	ASSERT_EQ(want(s, 2, "b"), b);
	ASSERT_EQ(want(s, 3, NULL), none);
	ASSERT(symbol_store_bytes(s) > 4096);
	ASSERT_EQ(symbol_store_wait(s, 1, NULL, NULL), 0);
}

TEST(by_forks)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = "" });

	check_some(s);
}

TEST(by_programs)
{
	_cleanup_free_ char *path = program();
	char *argv[] = { path, NULL };
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = "", .builder = argv });

	check_some(s);
}

TEST(a_program_that_is_not_there)
{
	static char path[] = "/does/not/exist";
	char *argv[] = { path, NULL };
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){
			.cache_dir = "", .builder = argv, .complain = take_complaint, .ctx = &c });
	uint32_t id = want(s, 1, "a");

	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_FAILED);
	ASSERT_EQ(c.nr, 1);
}

TEST(images_in_memory)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = "" });
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = make_file(9, "in_memory");
	struct symbol_file file = { .fd = -1, .path = "[vdso]" };
	struct stat st;
	uint32_t id;

	ASSERT_OK(fstat(fd, &st));
	file.size = (size_t)st.st_size;
	file.image = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT(file.image != MAP_FAILED);
	ASSERT_OK(elf_file_open_memory(file.image, file.size, &elf));
	file.elf = elf;
	ASSERT_OK(symbol_store_want(s, &file, &id));
	munmap((void *)(uintptr_t)file.image, file.size);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, id, 0x1000), "in_memory");
}

TEST(freed_while_building)
{
	for (int i = 0; i < 20; i++) {
		_cleanup_(symbol_store_free_p) struct symbol_store *s =
			open_store((struct symbol_store_options){ .cache_dir = "" });

		for (uint8_t id = 0; id < 10; id++)
			want(s, id, "f");
		symbol_store_tick(s);
	}
}
