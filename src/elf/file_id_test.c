// SPDX-License-Identifier: Apache-2.0
/* File ids: the vectors of the specification's peers, and real Go programs. */
#include "elf/file_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_writer.h"
#include "test.h"
#include "util/cleanup.h"

static void check_hash(const uint8_t *data, size_t size, const char *want)
{
	char hex[2 * FILE_ID_SIZE + 1];
	uint8_t of_memory[FILE_ID_SIZE], of_fd[FILE_ID_SIZE];
	int fd = elf_image_fd(data, size);

	ASSERT_OK(file_id_of_memory(data, size, of_memory));
	ASSERT_OK(file_id_of_fd(fd, of_fd));
	close(fd);
	ASSERT(!memcmp(of_memory, of_fd, FILE_ID_SIZE));
	for (size_t i = 0; i < FILE_ID_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", of_fd[i]);
	ASSERT_STR(hex, want);
}

TEST(hashes_are_those_of_other_implementations)
{
	uint8_t data[16384];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)i;
	check_hash(data, 0, "af5570f5a1810b7af78caf4bc70a660f");
	check_hash((const uint8_t *)"AAAAAAAAAA", 10, "96176397ec4f190d39d4846d4377c09a");
	check_hash(data, 5120, "762532b20b3cd43b170127d7b414ec78"); /* the parts overlap */
	check_hash(data, 16384, "e537555f3e1b9f9c2995d96153c0413e");
}

static int make(const char *path, const char *text)
{
	/* A date, so that only the kernel's own time differs. */
	const struct timespec times[2] = { { 1000, 0 }, { 1000, 0 } };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ASSERT_EQ(write(fd, text, 4), 4);
	ASSERT_OK(futimens(fd, times));
	return fd;
}

static bool same(const struct file_identity *a, const struct file_identity *b)
{
	return !memcmp(a->hash, b->hash, sizeof(a->hash));
}

TEST(a_file_is_no_copy_of_it)
{
	char folder[] = "/tmp/sonde-file-id-XXXXXX", path[64], link_path[64];
	struct file_identity a, b, c, d;
	int fd, copy, again;

	ASSERT_PTR_NONNULL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a", folder);
	snprintf(link_path, sizeof(link_path), "%s/b", folder);
	fd = make(path, "abcd");
	ASSERT_OK(file_identity_of_fd(fd, 0, &a));
	again = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_OK(file_identity_of_fd(again, 0, &b));
	copy = make(link_path, "abcd");
	ASSERT_OK(file_identity_of_fd(copy, 0, &c));
	ASSERT(same(&a, &b) && !same(&a, &c));
	/* Size and mtime as before, but ctime is not, once the kernel's clock has ticked. */
	do {
		ASSERT_EQ(pwrite(fd, "efgh", 4, 0), 4);
		ASSERT_OK(futimens(fd, (struct timespec[]){ { 1000, 0 }, { 1000, 0 } }));
		ASSERT_OK(file_identity_of_fd(fd, 0, &d));
	} while (same(&a, &d));
	ASSERT_OK(unlink(path));
	ASSERT_OK(unlink(link_path));
	ASSERT_OK(rmdir(folder));
	close(fd);
	close(copy);
	close(again);
}

TEST(what_is_in_memory_is_its_bytes)
{
	struct file_identity a, b, c, d;
	int fd = elf_image_fd("abcd", 4);

	ASSERT_OK(file_identity_of_memory("abcd", 4, &a));
	ASSERT_OK(file_identity_of_memory("abcd", 4, &b));
	ASSERT_OK(file_identity_of_memory("abce", 4, &c));
	ASSERT_OK(file_identity_of_fd(fd, 0, &d));
	ASSERT(same(&a, &b) && !same(&a, &c) && !same(&a, &d));
	ASSERT(a.lasts && !d.lasts);
	ASSERT_ERR(file_identity_of_fd(-1, 0, &d), EBADF);
	close(fd);
}

TEST(what_is_no_file_has_no_id)
{
	uint8_t id[FILE_ID_SIZE] = { 42 };
	int fds[2];
	int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	ASSERT_ERR(file_id_of_fd(fds[0], id), EINVAL);
	ASSERT_ERR(file_id_of_fd(fd, id), EINVAL);
	close(fd);
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_ERR(file_id_of_fd(fd, id), EINVAL);
	close(fd);
	fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	ASSERT_ERR(file_id_of_fd(fd, id), EBADF);
	close(fd);
	ASSERT_ERR(file_id_of_fd(-1, id), EBADF);
	ASSERT_EQ(id[0], 42);
	/* /proc says 0 bytes and has some: the id is that of an empty file. */
	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ASSERT_OK(file_id_of_fd(fd, id));
	ASSERT_EQ(id[0], 0xaf);
	close(fd);
}

static int go_id_of(const char *path, char ret[static GO_BUILD_ID_MAX])
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;

	ASSERT_OK(elf_file_open(path, &elf));
	return elf_file_go_build_id(elf, ret);
}

static char dir[] = "/tmp/sonde-file-id-test-XXXXXX";

static void run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	ck_assert_msg(system(command) == 0, "%s", command);
}

/* As "go tool buildid" prints it. */
static void wanted_id(const char *path, char *ret, size_t size)
{
	char command[256];
	FILE *f;

	snprintf(command, sizeof(command), "go tool buildid %s", path);
	f = popen(command, "r");
	ASSERT_PTR_NONNULL(f);
	ASSERT_PTR_NONNULL(fgets(ret, (int)size, f));
	ASSERT_EQ(pclose(f), 0);
	ret[strcspn(ret, "\n")] = '\0';
}

TEST(a_go_program_stripped_and_without_section_headers)
{
	char want[GO_BUILD_ID_MAX], got[GO_BUILD_ID_MAX], path[128];
	static const char *const files[] = { "prog", "stripped", "bare" };

	if (system("command -v go >/dev/null") != 0)
		return;
	ASSERT_PTR_NONNULL(mkdtemp(dir));
	run("cd %s && echo 'package main\n\nfunc main() {}' >main.go && "
	    "HOME=${HOME:-/root} GO111MODULE=off go build -o prog main.go",
	    dir);
	run("cd %s && strip -o stripped prog && cp stripped bare", dir);
	/* e_shoff, e_shnum, e_shstrndx */
	run("cd %s && for at in 40 41 42 43 44 45 46 47 60 61 62 63; do "
	    "printf '\\0' | dd of=bare bs=1 seek=$at conv=notrunc status=none; done",
	    dir);
	snprintf(path, sizeof(path), "%s/prog", dir);
	wanted_id(path, want, sizeof(want));
	ASSERT(strlen(want) > 40);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		ASSERT_OK(go_id_of(path, got));
		ASSERT_STR(got, want);
	}
	run("rm -r %s", dir);
}

TEST(a_program_in_c_has_none)
{
	char got[GO_BUILD_ID_MAX] = "x";

	ASSERT_ERR(go_id_of("/proc/self/exe", got), ENOENT);
	ASSERT_STR(got, "x");
}

/* A file whose text begins with `text`, and that has a note, if any. */
static int made_id(const char *text, size_t text_size, const char *owner, uint32_t type,
		   const char *desc, size_t size, char ret[static GO_BUILD_ID_MAX])
{
	struct elf_writer *w = elf_writer_new(ET_EXEC, EM_X86_64);
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ uint8_t *image = NULL;
	unsigned int section = elf_writer_section(
		w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000, text, text_size);
	size_t image_size;

	elf_writer_segment(w, PT_LOAD, PF_R | PF_X, section, section);
	if (owner)
		elf_writer_note(w, ".note.go.buildid", owner, type, desc, size);
	image = elf_writer_finish(w, &image_size);
	ASSERT_OK(elf_file_open_memory(image, image_size, &elf));
	return elf_file_go_build_id(elf, ret);
}

TEST(without_a_note_the_text_tells)
{
	static const char text[] = "\xff Go build ID: \"abc/def-_1\"\n \xff\xcc\xcc";
	char got[GO_BUILD_ID_MAX] = "", text_long[600] = "\xff Go build ID: \"";

	ASSERT_OK(made_id(text, sizeof(text), NULL, 0, NULL, 0, got));
	ASSERT_STR(got, "abc/def-_1");
	ASSERT_OK(made_id(text, sizeof(text), "Go", 4, "note/id", 7, got));
	ASSERT_STR(got, "note/id");
	/* Another note of Go's, and one of somebody else's. */
	ASSERT_OK(made_id(text, sizeof(text), "Go", 3, "note/id", 7, got));
	ASSERT_STR(got, "abc/def-_1");
	ASSERT_OK(made_id(text, sizeof(text), "GNU", 4, "note/id", 7, got));
	ASSERT_STR(got, "abc/def-_1");
	/* Bytes that are no id, an empty one, one without an end, one too long. */
	ASSERT_ERR(made_id("x", 1, "Go", 4, "a\nb", 3, got), ENOENT);
	ASSERT_ERR(made_id("x", 1, "Go", 4, "a\0b", 3, got), ENOENT);
	ASSERT_ERR(made_id("x", 1, "Go", 4, "", 0, got), ENOENT);
	ASSERT_ERR(made_id(text, 20, NULL, 0, NULL, 0, got), ENOENT);
	memset(text_long + 16, 'a', 400);
	memcpy(text_long + 416, "\"\n \xff", 4);
	ASSERT_ERR(made_id(text_long, sizeof(text_long), NULL, 0, NULL, 0, got), ENOENT);
	ASSERT_STR(got, "abc/def-_1");
}
