// SPDX-License-Identifier: Apache-2.0
/* What is wrong with debug files: said when a table is built, and again whenever it is used. */
#include "symbol/symbol_builder.h"
#include "symbol/symbol_store.h"
#include "symbol/test_complaints.h"
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "elf_writer.h"
#include "util/cleanup.h"

static char folder[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_folder(void)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/sonde-complaints-XXXXXX");
	ASSERT_PTR_NONNULL(mkdtemp(folder));
	atexit(remove_folder);
}

/* --- damaged debug information ---------------------------------------------------------------- */

/* This very program. NULL: it is built without -g. */
static uint8_t *read_self(size_t *ret_size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	uint8_t *image;

	ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
	if (!elf_file_section(elf, ".debug_info"))
		return NULL;
	image = malloc(elf->size);
	ASSERT_PTR_NONNULL(image);
	ASSERT_OK(elf_file_read(elf, 0, image, elf->size));
	*ret_size = elf->size;
	return image;
}

enum damage { UNHARMED, ALL_ONES, RANDOM };

static void damage(uint8_t *image, size_t size, const char *section, enum damage how)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct elf_section *s;
	uint32_t random = 1;

	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	s = elf_file_section(elf, section);
	ASSERT_PTR_NONNULL(s);
	for (uint64_t i = 0; i < s->size && how; i++) {
		random = random * 1664525 + 1013904223;
		image[s->offset + i] = how == ALL_ONES ? 0xff : (uint8_t)(random >> 24);
	}
}

static struct complaints complaints_of(const char *section, enum damage how)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);
	struct complaints c = { 0 };
	struct symbol_builder_options options = { .search.max_bytes = SIZE_MAX,
						  .search.path = "/made/up",
						  .search.complain = take_complaint,
						  .search.ctx = &c };
	_cleanup_free_ uint8_t *image = NULL;
	char expected[1100] = "";
	size_t size;

	image = read_self(&size);
	if (!image) {
		c.nr = -1;
		return c;
	}
	damage(image, size, section, how);
	ASSERT_OK(elf_file_open_memory(image, size, &elf));
	ASSERT_OK(symbol_table_build(elf, &options, fd, NULL));
	ASSERT_OK(symbol_table_open_fd(fd, &t));
	if (c.nr)
		snprintf(expected, sizeof(expected), "%s\n", c.last);
	ASSERT_STR(symbol_table_complaints(t), expected);
	return c;
}

TEST(damaged_debug_information_is_said)
{
	static const char *const sections[] = { ".debug_info", ".debug_abbrev" };

	for (size_t i = 0; i < 2; i++) {
		for (int how = UNHARMED; how <= RANDOM; how++) {
			struct complaints c = complaints_of(sections[i], (enum damage)how);

			if (c.nr < 0)
				return;
			ck_assert_msg(c.nr == (how != UNHARMED), "%s, %d: %d complaints",
				      sections[i], how, c.nr);
			if (c.nr)
				ASSERT_STR(c.last, "/made/up: its debug information is damaged, "
						   "used as far as it goes");
		}
	}
}

/* --- through the store ------------------------------------------------------------------------ */

/* A file that links to x.debug beside it. */
static int make_linking_file(void)
{
	static const uint8_t link[] = "x.debug\0\0\0\0", id[20] = { 5 };
	static const char code[0x100];
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	unsigned int text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					       0x1000, code, sizeof(code));
	_cleanup_free_ void *image = NULL;
	size_t size;

	elf_writer_section(w, ".gnu_debuglink", SHT_PROGBITS, 0, 0, link, 12);
	elf_writer_build_id(w, id, sizeof(id));
	elf_writer_symbol(w, SHT_DYNSYM, "f", STB_GLOBAL, STT_FUNC, text, 0x1000, 16);
	image = elf_writer_finish(w, &size);
	return elf_image_fd(image, size);
}

/* Names a function of that file, with a new store over the same cache. */
static struct complaints look_up(char *const *builder)
{
	struct complaints c = { 0 };
	const struct symbol_store_options options = {
		.cache_dir = folder, .builder = builder, .complain = take_complaint, .ctx = &c
	};
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = make_linking_file();
	/* It is made anew each time, and is to be the same one. */
	struct symbol_file file = { .fd = fd, .identity = { .hash = "x", .lasts = true } };
	struct symbol_frame frame;
	char path[128];
	uint32_t id;

	snprintf(path, sizeof(path), "%s/x", folder);
	file.path = path;
	ASSERT_OK(elf_file_open_fd(dup(fd), &elf));
	file.elf = elf;
	ASSERT_OK(symbol_store_new(&options, &s));
	ASSERT_OK(symbol_store_want(s, &file, &id));
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_READY);
	ASSERT_EQ(symbol_table_find(symbol_store_table(s, id), 0x1000, true, &frame, 1), 1);
	ASSERT_STR(frame.name, "f");
	return c;
}

/* When the table is built, and when it comes out of the cache. */
static void expect_said_twice(const char *what)
{
	static char no_program[] = "/does/not/exist";
	char *no_builder[] = { no_program, NULL };
	char expected[256];

	snprintf(expected, sizeof(expected), "%s/x.debug: %s", folder, what);
	for (int i = 0; i < 2; i++) {
		struct complaints c = look_up(i ? no_builder : NULL);

		ck_assert_msg(c.nr == 1, "%d: %d complaints, %s", i, c.nr, c.last);
		ASSERT_STR(c.last, expected);
	}
}

static void write_debug_file(const void *data, size_t size)
{
	_cleanup_close_ int fd = -1;
	char path[128];

	snprintf(path, sizeof(path), "%s/x.debug", folder);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ASSERT_EQ(write(fd, data, size), (ssize_t)size);
}

TEST(debug_files_that_differ_are_said_every_time)
{
	_cleanup_free_ void *image = NULL;
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	static const uint8_t id[20] = { 6 }, info[16];
	size_t size;

	make_folder();
	elf_writer_section(w, ".debug_info", SHT_PROGBITS, 0, 0, info, sizeof(info));
	elf_writer_build_id(w, id, sizeof(id));
	image = elf_writer_finish(w, &size);
	write_debug_file(image, size);
	expect_said_twice("build-id differs, not used");
}

TEST(debug_files_that_are_cut_off_are_said)
{
	const size_t sizes[] = { 100, 500, 3000 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
		uint8_t data[3000];

		make_folder();
		ASSERT_OK(elf_file_open("/proc/self/exe", &elf));
		ASSERT_OK(elf_file_read(elf, 0, data, sizes[i]));
		write_debug_file(data, sizes[i]);
		expect_said_twice("damaged or cut off, not used");
		remove_folder();
	}
}

/* --- whose they are --------------------------------------------------------------------------- */

/* A process whose root is the folder, in such new namespaces. */
static pid_t start_in_folder(int namespaces)
{
	int fds[2];
	pid_t pid;
	char c;

	ASSERT_OK(pipe(fds));
	pid = fork();
	ASSERT(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(namespaces) || chroot(folder) || write(fds[1], "x", 1) < 0)
			_exit(1);
		pause();
	}
	close(fds[1]);
	ASSERT_EQ(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static size_t nr_open_files(void)
{
	_cleanup_(closedir_p) DIR *files = opendir("/proc/self/fd");
	size_t nr = 0;

	ASSERT_PTR_NONNULL(files);
	while (readdir(files))
		nr++;
	return nr;
}

/* Debug files are looked for in the mount namespace (here: below the root) of the process. */
static void look_in_another_root_for(uid_t owner, const uint32_t *owner_of_copy,
				     uid_t owner_of_debug, int namespaces, const char *expected)
{
	static const char code[0x100];
	static const uint8_t link[] = "x.debug\0\0\0\0", id[20] = { 6 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ void *image = NULL, *debug = NULL;
	_cleanup_close_ int debug_fd = -1, fd = -1;
	struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
	struct symbol_file file = { .fd = -1, .path = "/bin/x", .owner = owner_of_copy };
	struct complaints c = { 0 };
	const struct symbol_store_options options = { .cache_dir = "",
						      .complain = take_complaint,
						      .ctx = &c };
	const struct symbol_table *table;
	struct symbol_frame frame;
	char path[128];
	unsigned int text;
	size_t size, nr_open;
	uint32_t number;
	pid_t pid;

	elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
			   sizeof(code));
	elf_writer_section(w, ".gnu_debuglink", SHT_PROGBITS, 0, 0, link, 12);
	elf_writer_build_id(w, id, sizeof(id));
	image = elf_writer_finish(w, &size);
	fd = elf_image_fd(image, size);
	ASSERT_OK(fchown(fd, owner, owner));
	file.fd = fd;
	w = elf_writer_new(ET_DYN, EM_X86_64);
	text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
				  sizeof(code));
	elf_writer_build_id(w, id, sizeof(id));
	elf_writer_symbol(w, SHT_SYMTAB, "in_its_root", STB_GLOBAL, STT_FUNC, text, 0x1000, 16);
	debug = elf_writer_finish(w, &size);
	make_folder();
	snprintf(path, sizeof(path), "%s/bin", folder);
	ASSERT_OK(mkdir(path, 0700));
	snprintf(path, sizeof(path), "%s/bin/x.debug", folder);
	debug_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ASSERT_EQ(write(debug_fd, debug, size), (ssize_t)size);
	ASSERT_OK(fchown(debug_fd, owner_of_debug, owner_of_debug));

	pid = start_in_folder(namespaces);
	ASSERT_OK(symbol_store_new(&options, &s));
	ASSERT_OK(elf_file_open_fd(dup(fd), &elf));
	file.elf = elf;
	file.root_pid = pid;
	nr_open = nr_open_files();
	ASSERT_OK(symbol_store_want(s, &file, &number));
	/* It is looked for there even if the process has ended since. */
	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, NULL, 0), pid);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	/* And nothing of it stays open. */
	ASSERT_EQ(nr_open_files(), nr_open);
	table = symbol_store_table(s, number);
	if (!expected) {
		ASSERT_PTR_NULL(table);
		ASSERT_EQ(c.nr, 1);
		ASSERT(strstr(c.last, namespaces ? "not the program's owner's"
						 : "neither root's nor the program's owner's"));
	} else {
		ASSERT_EQ(symbol_table_find(table, 0x1000, true, &frame, 1), 1);
		ASSERT_STR(frame.name, expected);
		ASSERT_EQ(c.nr, 0);
	}
}

static void look_in_another_root(uid_t owner, uid_t owner_of_debug, int namespaces,
				 const char *expected)
{
	look_in_another_root_for(owner, NULL, owner_of_debug, namespaces, expected);
}

TEST(debug_files_of_another_root)
{
	if (!geteuid()) /* chroot() is root's */
		look_in_another_root(0, 0, 0, "in_its_root");
}

/* A program may make a root of its own, and put a debug file there for what is not its own. */
TEST(debug_files_of_another_user)
{
	if (!geteuid())
		look_in_another_root(0, 12345, 0, NULL);
}

/* Whose root it is has not become root: the file may be of a disk image that a user has mounted. */
TEST(roots_debug_files_below_a_users_root)
{
	if (!geteuid())
		look_in_another_root(0, 0, CLONE_NEWUSER, NULL);
}

TEST(a_users_debug_files_below_a_users_root)
{
	if (!geteuid())
		look_in_another_root(12345, 12345, CLONE_NEWUSER, "in_its_root");
}

/* Its descriptor, a memfd, is ours, whoever's the file is. */
TEST(a_copy_is_its_files_owners)
{
	const uint32_t owner = 12345, another = 12346;

	if (geteuid())
		return;
	look_in_another_root_for(0, &owner, owner, CLONE_NEWUSER, "in_its_root");
	look_in_another_root_for(owner, &another, owner, 0, NULL);
}
