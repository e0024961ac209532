/* SPDX-License-Identifier: Apache-2.0 */
/* Made files, stores of their tables, and a folder as these have one: symbol_store_test,
 * symbol_room_test. */
#pragma once

#include "symbol/symbol_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

/* An ELF file with a build-id of bytes `id` and one function of that name. */
static inline int make_file(uint8_t id, const char *function)
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

static inline uint32_t want_file(struct symbol_store *s, struct symbol_file file)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	uint32_t id = UINT32_MAX;

	ASSERT_OK(elf_file_open_fd(dup(file.fd), &elf));
	file.elf = elf;
	ASSERT_OK(symbol_store_want(s, &file, &id));
	return id;
}

/*
 * Files of the same contents are the same one, as if they had not been made anew. What they are
 * known by begins with two bytes of the build-id.
 */
static inline uint32_t want_fd(struct symbol_store *s, int fd, const char *path)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	struct symbol_file file = { .fd = fd, .path = path };
	uint8_t image[16384], build_id[ELF_BUILD_ID_MAX];
	ssize_t size = pread(fd, image, sizeof(image), 0);

	ASSERT(size > 0 && size < (ssize_t)sizeof(image));
	ASSERT_OK(file_identity_of_memory(image, (size_t)size, &file.identity));
	ASSERT_OK(elf_file_open_memory(image, (size_t)size, &elf));
	if (elf_file_build_id(elf, build_id) >= 2)
		memcpy(file.identity.hash, build_id, 2);
	return want_file(s, file);
}

/* Asks for a made file, which is gone when this returns. */
static inline uint32_t want(struct symbol_store *s, uint8_t id, const char *function)
{
	_cleanup_close_ int fd = make_file(id, function);

	return want_fd(s, fd, "/made/up");
}

static inline struct symbol_store *open_store(struct symbol_store_options options)
{
	struct symbol_store *s = NULL;

	ASSERT_OK(symbol_store_new(&options, &s));
	return s;
}

static inline const char *name_at(const struct symbol_store *s, uint32_t id, uint64_t addr)
{
	const struct symbol_table *t = symbol_store_table(s, id);
	struct symbol_frame frame;

	if (!t)
		return "(no table)";
	return symbol_table_find(t, addr, true, &frame, 1) ? frame.name : "(nothing)";
}

static char folder[64];

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void remove_folder(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-store-XXXXXX");
	ASSERT_PTR_NONNULL(mkdtemp(folder));
	atexit(remove_folder);
	return folder;
}

static inline const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* How many names of the folder end so; the last one in `ret` (256 bytes), if wanted. */
static inline int count_files(const char *ending, char *ret)
{
	_cleanup_(closedir_p) DIR *dir = opendir(folder);
	const struct dirent *entry;
	int nr = 0;

	ASSERT_PTR_NONNULL(dir);
	while ((entry = readdir(dir))) {
		size_t len = strlen(entry->d_name), end = strlen(ending);

		if (len < end || strcmp(entry->d_name + len - end, ending) ||
		    entry->d_name[0] == '.')
			continue;
		nr++;
		if (ret)
			snprintf(ret, 256, "%s", entry->d_name);
	}
	return nr;
}

static char no_program[] = "/does/not/exist";
static char *no_builder[] = { no_program, NULL };

/* One that has to find everything in the cache. */
static inline struct symbol_store *open_cached(void)
{
	return open_store(
		(struct symbol_store_options){ .cache_dir = folder, .builder = no_builder });
}

static inline void build_into_cache(uint8_t id, const char *function)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = folder });
	uint32_t number = want(s, id, function);

	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	if (function)
		ASSERT_STR(name_at(s, number, 0x1000), function);
}

static inline bool is_cached(uint8_t id, const char *function)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_cached();

	return symbol_store_state(s, want(s, id, function)) == SYMBOL_STATE_READY;
}
