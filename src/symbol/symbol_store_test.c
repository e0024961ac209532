// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_store.h"
#include "symbol/symbol_image.h"
#include "symbol/test_complaints.h"
#include "symbol/test_store.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <dirent.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "elf_writer.h"
#include "util/cleanup.h"

/* --- files and stores ------------------------------------------------------------------------- */

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
	ASSERT_EQ(c.nr, 2);
	ASSERT_STR(c.last, "/made/up: its symbols could not be read");
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
	ASSERT_OK(file_identity_of_memory(file.image, file.size, &file.identity));
	ASSERT(!symbol_store_is_busy(s));
	ASSERT_OK(symbol_store_want(s, &file, &id));
	ASSERT(symbol_store_is_busy(s));
	munmap((void *)(uintptr_t)file.image, file.size);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	symbol_store_tick(s);
	ASSERT(!symbol_store_is_busy(s));
	ASSERT_STR(name_at(s, id, 0x1000), "in_memory");
}

TEST(tables_that_nobody_needs_go)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = "" });
	uint32_t a = want(s, 1, "a"), b = want(s, 2, "b"), c;

	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	/* Two asked for it. */
	ASSERT_EQ(want(s, 1, "a"), a);
	symbol_store_drop(s, a);
	ASSERT_STR(name_at(s, a, 0x1000), "a");
	symbol_store_drop(s, a);
	ASSERT_PTR_NULL(symbol_store_table(s, a));
	ASSERT_EQ(symbol_store_state(s, a), SYMBOL_STATE_NONE);
	symbol_store_drop(s, a);
	symbol_store_drop(s, 1000);
	/* Its number is another one's, and it comes again under a third. */
	c = want(s, 3, "c");
	ASSERT_EQ(c, a);
	a = want(s, 1, "a");
	ASSERT(a != b && a != c);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, a, 0x1000), "a");
	ASSERT_STR(name_at(s, b, 0x1000), "b");
	ASSERT_STR(name_at(s, c, 0x1000), "c");
	/* Also while it is built. */
	symbol_store_drop(s, c);
	c = want(s, 4, "d");
	symbol_store_drop(s, c);
	symbol_store_tick(s);
	ASSERT(!symbol_store_is_busy(s));
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
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

/* --- the cache -------------------------------------------------------------------------------- */

/* A file on disk, made once, with what the kernel says of it. */
static uint32_t want_real(struct symbol_store *s, const char *name, uint8_t id,
			  const char *function)
{
	_cleanup_close_ int made = make_file(id, function), fd = -1;
	struct symbol_file file = { .path = "/made/up" };
	struct stat st;

	ASSERT_OK(fstat(made, &st));
	fd = open(in_folder(name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (!lseek(fd, 0, SEEK_END))
		ASSERT(sendfile(fd, made, &(off_t){ 0 }, (size_t)st.st_size) == st.st_size);
	file.fd = fd;
	ASSERT_OK(file_identity_of_fd(fd, 0, &file.identity));
	return want_file(s, file);
}

TEST(what_was_built_is_found_again)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	uint32_t id;

	make_folder();
	build_into_cache(0xab, "cached");
	build_into_cache(0xcd, NULL);
	ASSERT_EQ(count_files(".tmp", NULL), 0);
	ASSERT_EQ(count_files(".sym", NULL), 2);
	s = open_cached();
	id = want(s, 0xab, "cached");
	ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_READY);
	ASSERT_STR(name_at(s, id, 0x1000), "cached");
	ASSERT_EQ(symbol_store_state(s, want(s, 0xcd, NULL)), SYMBOL_STATE_NONE);
	/* Another file of that build-id (stripped, say) is another one. */
	ASSERT_EQ(symbol_store_state(s, want(s, 0xab, "cached_and_longer")), SYMBOL_STATE_BUILDING);
}

/* Files of one build-id, size and path, but with inodes of their own. */
TEST(a_forged_build_id_gives_and_takes_nothing)
{
	make_folder();
	/* In memory, then out of the cache. */
	for (int round = 0; round < 2; round++) {
		_cleanup_(symbol_store_free_p) struct symbol_store *s =
			open_store((struct symbol_store_options){ .cache_dir = folder });
		uint32_t forged = want_real(s, "forged", 7, "evil"),
			 nameless = want_real(s, "nameless", 7, NULL),
			 real = want_real(s, "real", 7, "good");

		ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
		ASSERT_STR(name_at(s, forged, 0x1000), "evil");
		ASSERT_STR(name_at(s, nameless, 0x1000), "(no table)");
		ASSERT_STR(name_at(s, real, 0x1000), "good");
	}
}

/* A file system in memory, or a FUSE, may have another one's numbers one day. */
TEST(files_that_do_not_last_are_not_cached)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	_cleanup_close_ int fd = make_file(8, "f");
	struct symbol_file file = { .fd = fd, .path = "x" };
	uint32_t id;

	make_folder();
	s = open_store((struct symbol_store_options){ .cache_dir = folder });
	ASSERT_OK(file_identity_of_fd(fd, 0, &file.identity));
	id = want_file(s, file);
	ASSERT_EQ(want_file(s, file), id);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	ASSERT_EQ(count_files("", NULL), 0);
}

/* As a crash may leave it: cut at any length, zeros, another file's content, nothing. */
TEST(damaged_tables_are_built_again)
{
	const int cuts[] = { 0, 1, 7, 8, 100, 199, 200, 201, 300, 500, 700, -100, -1 };
	char name[256], path[400];
	struct stat st;

	make_folder();
	build_into_cache(1, "first");
	ASSERT_EQ(count_files(".sym", name), 1);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ASSERT_OK(stat(path, &st));
	for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(cuts[0]); i++) {
		off_t cut = cuts[i / 2] < 0 ? st.st_size + cuts[i / 2] : cuts[i / 2];
		_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
		struct stat after;
		uint32_t id;

		ASSERT(cut < st.st_size);
		ASSERT_OK(truncate(path, cut));
		if (i % 2)
			ASSERT_OK(truncate(path, st.st_size));
		s = open_cached();
		id = want(s, 1, "first");
		/* Zeros instead of the padding's zeros are no damage. */
		if (i % 2 && cut >= st.st_size - IMAGE_PAD) {
			ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_READY);
			continue;
		}
		ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_BUILDING);
		symbol_store_free(TAKE_PTR(s));
		build_into_cache(1, "first");
		ASSERT_OK(stat(path, &after));
		ASSERT_EQ(after.st_size, st.st_size);
	}
}

TEST(what_is_no_table_is_replaced)
{
	char name[256], path[400], target[400];

	make_folder();
	build_into_cache(1, "first");
	ASSERT_EQ(count_files(".sym", name), 1);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(target, sizeof(target), "%s/target", folder);
	/* A link, also to a good table, is not followed; a FIFO does not block. */
	ASSERT_OK(rename(path, target));
	ASSERT_OK(symlink(target, path));
	build_into_cache(1, "first");
	ASSERT_OK(unlink(path));
	ASSERT_OK(mkfifo(path, 0600));
	build_into_cache(1, "first");
	ASSERT_EQ(count_files(".sym", NULL), 1);
}

/* A debug file that comes, changes or goes makes another table. */
TEST(changed_debug_files_are_noticed)
{
	static const char code[0x100];
	static const uint8_t link[] = "x.debug\0\0\0\0"; /* the CRC does not count: build-ids */
	char path[128], debug_path[128];
	uint8_t build_id[20] = { 5 };

	make_folder();
	ASSERT_OK(mkdir(in_folder("bin"), 0700));
	snprintf(path, sizeof(path), "%s/bin/x", folder);
	snprintf(debug_path, sizeof(debug_path), "%s/bin/x.debug", folder);
	for (int round = 0; round < 4; round++) {
		static const char *const expected[] = { "(nothing)", "one", "two", "(nothing)" };
		_cleanup_(symbol_store_free_p) struct symbol_store *s =
			open_store((struct symbol_store_options){ .cache_dir = folder });
		_cleanup_free_ void *image = NULL, *debug = NULL;
		_cleanup_close_ int fd = -1, debug_fd = -1;
		struct elf_writer *w = elf_writer_new(ET_DYN, EM_X86_64);
		unsigned int text;
		size_t size;
		uint32_t id;

		elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000,
				   code, sizeof(code));
		elf_writer_section(w, ".gnu_debuglink", SHT_PROGBITS, 0, 0, link, 12);
		elf_writer_build_id(w, build_id, sizeof(build_id));
		image = elf_writer_finish(w, &size);
		fd = elf_image_fd(image, size);

		w = elf_writer_new(ET_DYN, EM_X86_64);
		text = elf_writer_section(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
					  0x1000, code, sizeof(code));
		elf_writer_build_id(w, build_id, sizeof(build_id));
		elf_writer_symbol(w, SHT_SYMTAB, expected[round], STB_GLOBAL, STT_FUNC, text,
				  0x1000, 16);
		debug = elf_writer_finish(w, &size);
		unlink(debug_path);
		if (round == 1 || round == 2) {
			debug_fd = open(debug_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
			ASSERT_EQ(write(debug_fd, debug, size), (ssize_t)size);
			/* Not so fast that two have the same time. */
			ASSERT_OK(futimens(debug_fd,
					   (struct timespec[]){ { round, 0 }, { round, 0 } }));
		}
		id = want_fd(s, fd, path);
		ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
		if (round == 0 || round == 3)
			ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_NONE);
		else
			ASSERT_STR(name_at(s, id, 0x1000), expected[round]);
		ASSERT_EQ(count_files(".sym", NULL), 1);
	}
}

/* --- folders that can't be used --------------------------------------------------------------- */

static void expect_works_without(const char *path, const char *why)
{
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){
			.cache_dir = path, .complain = take_complaint, .ctx = &c });

	check_some(s);
	ck_assert_msg(c.nr == 1 && strstr(c.last, why), "%d complaints: %s", c.nr, c.last);
}

TEST(folders_that_others_can_write_to)
{
	char inner[128];

	make_folder();
	snprintf(inner, sizeof(inner), "%s/a", folder);
	ASSERT_OK(mkdir(inner, 0700));
	ASSERT_OK(chmod(inner, 0777));
	expect_works_without(inner, "others may write to it");
	ASSERT_OK(chmod(inner, 01777));
	expect_works_without(inner, "others may write to it");
	ASSERT_OK(chmod(inner, 0700));
	ASSERT_OK(chmod(folder, 0777));
	expect_works_without(inner, "others may write to it");
	ASSERT_OK(chmod(folder, 0700));
	if (!geteuid()) {
		ASSERT_OK(chown(inner, 12345, 12345));
		expect_works_without(inner, "others may write to it");
	}
}

TEST(folders_that_are_none)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	struct complaints c = { 0 };
	char path[128];

	make_folder();
	snprintf(path, sizeof(path), "%s/file", folder);
	ASSERT_OK(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
	expect_works_without(path, "Not a directory");
	snprintf(path, sizeof(path), "%s/file/below", folder);
	expect_works_without(path, "Not a directory");
	expect_works_without("relative/path", "Invalid argument");
	expect_works_without("/proc/sonde/symbols", "No such file");
	/* Made if it is not there. */
	snprintf(path, sizeof(path), "%s/new/folder/here", folder);
	s = open_store((struct symbol_store_options){ .cache_dir = path });
	want(s, 1, "f");
	ASSERT_OK(access(path, F_OK));
	/* And only when there is something to look up: else there is nothing to say about it. */
	symbol_store_free(s);
	s = open_store((struct symbol_store_options){
		.cache_dir = "relative/path", .complain = take_complaint, .ctx = &c });
	symbol_store_tick(s);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_EQ(c.nr, 0);
	want(s, 1, "f");
	ASSERT_EQ(c.nr, 1);
}

/* A mount namespace of our own, with a small file system at the folder; false: we may not. */
static bool mount_small(const char *options)
{
	make_folder();
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return !mount("tmpfs", folder, "tmpfs", 0, options);
}

TEST(a_full_disk)
{
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s = NULL;
	static char filler[4096];
	int fd;

	if (!mount_small("size=64k,mode=700"))
		return;
	fd = open(in_folder("filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	close(fd);
	s = open_store((struct symbol_store_options){
		.cache_dir = folder, .complain = take_complaint, .ctx = &c });
	check_some(s);
	ck_assert_msg(c.nr == 1 && strstr(c.last, "No space left"), "%d complaints: %s", c.nr,
		      c.last);
	ASSERT_EQ(count_files(".sym", NULL), 0);
	ASSERT_EQ(count_files(".tmp", NULL), 0);
	umount2(folder, MNT_DETACH);
}

TEST(a_read_only_disk)
{
	if (!mount_small("size=64k,mode=700"))
		return;
	build_into_cache(1, "f");
	build_into_cache(2, "b");
	if (!mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL))
		expect_works_without(folder, "Read-only");
	umount2(folder, MNT_DETACH);
}

/* --- several processes ------------------------------------------------------------------------ */

TEST(many_stores_at_once)
{
	enum { PROCESSES = 6, FILES = 12 };

	make_folder();
	for (int i = 0; i < PROCESSES; i++) {
		struct symbol_store *s;
		bool good = true;
		pid_t pid = fork();

		ASSERT(pid >= 0);
		if (pid)
			continue;
		s = open_store((struct symbol_store_options){ .cache_dir = folder });
		for (int j = 0; j < FILES; j++)
			want(s, (uint8_t)((i * 5 + j) % FILES), "f");
		good = good && !symbol_store_wait(s, 0, NULL, NULL);
		for (uint32_t j = 0; j < FILES; j++)
			good = good && !strcmp(name_at(s, j, 0x1000), "f");
		symbol_store_free(s);
		_exit(good ? 0 : 1);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		ASSERT_OK(wait(&status));
		ASSERT_EQ(status, 0);
	}
	ASSERT_EQ(count_files(".sym", NULL), FILES);
	ASSERT_EQ(count_files(".tmp", NULL), 0);
}

TEST(two_stores_in_one_process)
{
	struct symbol_store_options options = { .cache_dir = make_folder() };
	_cleanup_(symbol_store_free_p) struct symbol_store *a = open_store(options);
	_cleanup_(symbol_store_free_p) struct symbol_store *b = open_store(options);

	for (uint8_t id = 0; id < 20; id++) {
		want(a, id, "f");
		want(b, id, "f");
	}
	/* What a has not taken in yet, its children have finished all the same. */
	ASSERT_EQ(symbol_store_wait(b, 0, NULL, NULL), 0);
	ASSERT_EQ(symbol_store_wait(a, 0, NULL, NULL), 0);
	for (uint32_t id = 0; id < 20; id++) {
		ASSERT_STR(name_at(a, id, 0x1000), "f");
		ASSERT_STR(name_at(b, id, 0x1000), "f");
	}
}

/* --- slow and dying builders ------------------------------------------------------------------ */

/*
 * A builder that never ends, with all of its descriptors, when it is to read debug information,
 * and a good one else.
 */
static char **slow_builder(void)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	static char *argv[5] = { shell, option };

	if (!argv[2]) {
		_cleanup_free_ char *path = program();

		ASSERT(asprintf(&argv[2],
				"case \"$*\" in *debug-info=1*) exec sleep 100 ;; esac; exec %s "
				"\"$@\"",
				path) > 0);
		argv[3] = shell;
	}
	return argv;
}

/* The child of ours that sleeps: waits until there is one, and leaves the CPU to it, which has the
 * lowest priority. */
static pid_t find_sleeper(void)
{
	for (;;) {
		char path[64], text[512] = "", comm[64] = "";
		_cleanup_fclose_ FILE *f = NULL, *name = NULL;
		int pid;

		snprintf(path, sizeof(path), "/proc/self/task/%d/children", gettid());
		f = fopen(path, "re");
		ASSERT_PTR_NONNULL(f);
		if (fgets(text, sizeof(text), f) && sscanf(text, "%d", &pid) == 1) {
			snprintf(path, sizeof(path), "/proc/%d/comm", pid);
			name = fopen(path, "re");
			if (name && fgets(comm, sizeof(comm), name) && !strcmp(comm, "sleep\n"))
				return pid;
		}
		usleep(1000);
	}
}

static bool is_alive(pid_t pid)
{
	char path[64], text[256] = "";
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	return f && fgets(text, sizeof(text), f) && !strstr(text, ") Z") && !strstr(text, ") X");
}

/* On a busy machine one that was killed is dead when it gets a CPU, and it is idle. */
static void wait_until_dead(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		ASSERT_EQ(poll(&ended, 1, -1), 1);
	ASSERT(!is_alive(pid));
}

/* It is dead when this returns: else one that may not raise its priority would start it again. */
static void kill_sleeper(int signal)
{
	pid_t pid = find_sleeper();

	ASSERT_OK(kill(pid, signal));
	wait_until_dead(pid);
}

static bool stop_at_once(void *ctx, const struct symbol_progress *progress)
{
	struct symbol_progress *last = ctx;

	*last = *progress;
	return false;
}

/* Once is somebody's mistake: it begins again. */
TEST(a_builder_is_killed)
{
	struct complaints c = { 0 };
	_cleanup_(symbol_store_free_p) struct symbol_store *s =
		open_store((struct symbol_store_options){ .cache_dir = make_folder(),
							  .builder = slow_builder(),
							  .complain = take_complaint,
							  .ctx = &c });
	uint32_t id = want(s, 1, "f");
	struct symbol_progress last;

	kill_sleeper(SIGKILL);
	ASSERT_EQ(symbol_store_wait(s, 0, stop_at_once, &last), 1);
	ASSERT_EQ(c.nr, 0);
	kill_sleeper(SIGKILL);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	/* Symbols alone, and nothing of that in the cache: it was not the file's fault. */
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	ASSERT_EQ(c.nr, 1);
	ASSERT_STR(c.last, "/made/up: who read its debug information was killed; symbols only");
	ASSERT_EQ(count_files("", NULL), 0);
}

static void *want_in_thread(void *store)
{
	want(store, 1, "f");
	find_sleeper();
	return NULL;
}

/* `sonde stack` asks for tables in a thread that does not live long. */
TEST(builders_outlive_the_thread_that_started_them)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(
		(struct symbol_store_options){ .cache_dir = "", .builder = slow_builder() });
	siginfo_t info = { 0 };
	pthread_t thread;
	pid_t sleeper;

	ASSERT_OK(pthread_create(&thread, NULL, want_in_thread, s));
	ASSERT_OK(pthread_join(thread, NULL));
	/* Now it is this thread's child: whatever the other one's end sends was sent. */
	sleeper = find_sleeper();
	ASSERT_OK(kill(sleeper, SIGTERM));
	ASSERT_OK(waitid(P_PID, (id_t)sleeper, &info, WEXITED | WNOWAIT));
	ASSERT_EQ(info.si_status, SIGTERM);
}

TEST(a_file_that_crashes_its_builder_is_remembered)
{
	struct symbol_store *s = open_store((struct symbol_store_options){
		.cache_dir = make_folder(), .builder = slow_builder() });
	uint32_t id = want(s, 1, "f");
	struct symbol_table_info info;

	kill_sleeper(SIGSEGV);
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	symbol_store_free(s);
	s = open_cached();
	id = want(s, 1, "f");
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	symbol_table_info(symbol_store_table(s, id), &info);
	ASSERT(info.is_partial);
	symbol_store_free(s);
}

TEST(waiting_can_be_stopped)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(
		(struct symbol_store_options){ .cache_dir = "", .builder = slow_builder() });
	struct symbol_progress last = { 0 };
	pid_t sleeper;

	want(s, 1, "f");
	ASSERT_EQ(symbol_store_wait(s, 0, stop_at_once, &last), 1);
	ASSERT_EQ(last.total, 1);
	ASSERT_EQ(last.done, 0);
	ASSERT_STR(last.path, "/made/up");
	sleeper = find_sleeper();
	symbol_store_free(TAKE_PTR(s));
	wait_until_dead(sleeper);
}

TEST(patience_ends)
{
	struct symbol_store *s = open_store((struct symbol_store_options){
		.cache_dir = make_folder(), .builder = slow_builder() });
	uint32_t id = want(s, 1, "f"), other = want(s, 2, "g"), third = want(s, 3, "h");
	struct symbol_table_info info;
	pid_t sleeper;

	find_sleeper();
	ASSERT_EQ(symbol_store_wait(s, 30, NULL, NULL), 0);
	sleeper = find_sleeper();
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	ASSERT_STR(name_at(s, other, 0x1000), "g");
	ASSERT_STR(name_at(s, third, 0x1000), "h");
	symbol_table_info(symbol_store_table(s, id), &info);
	ASSERT(info.is_partial);
	/* It goes on without us, and keeps others from doing the same work. */
	symbol_store_free(s);
	ASSERT(is_alive(sleeper));
	ASSERT(count_files(".tmp", NULL) >= 1);
	s = open_store((struct symbol_store_options){ .cache_dir = folder });
	id = want(s, 1, "f");
	ASSERT_EQ(symbol_store_state(s, id), SYMBOL_STATE_BUILDING);
	/* But not for ever. */
	ASSERT_EQ(symbol_store_wait(s, 0, NULL, NULL), 0);
	ASSERT_STR(name_at(s, id, 0x1000), "f");
	symbol_store_free(s);
	for (; kill(find_sleeper(), SIGKILL) == 0 && wait(NULL) > 0 &&
	       waitpid(-1, NULL, WNOHANG) == 0;)
		;
	/* What they left behind is taken over. */
	build_into_cache(1, "f");
	ASSERT_EQ(count_files(".tmp", NULL), 0);
	ASSERT(is_cached(1, "f"));
}

/* A sonde that is killed takes its builders along, and what they held. */
TEST(builders_end_with_their_store)
{
	int fds[2], status;
	pid_t pid, sleeper;

	make_folder();
	ASSERT_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	pid = fork();
	ASSERT(pid >= 0);
	if (!pid) {
		struct symbol_store *s = open_store((struct symbol_store_options){
			.cache_dir = folder, .builder = slow_builder() });

		want(s, 1, "f");
		sleeper = find_sleeper();
		if (write(fds[1], &sleeper, sizeof(sleeper)) < 0)
			_exit(1);
		pause();
	}
	close(fds[1]);
	ASSERT_EQ(read(fds[0], &sleeper, sizeof(sleeper)), sizeof(sleeper));
	ASSERT_OK(kill(pid, SIGKILL));
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(waitpid(sleeper, &status, 0), sleeper);
	ASSERT(WIFSIGNALED(status));
	close(fds[0]);
	ASSERT_EQ(count_files(".tmp", NULL), 1);
	build_into_cache(1, "f");
	ASSERT_EQ(count_files(".tmp", NULL), 0);
	ASSERT_EQ(count_files(".sym", NULL), 1);
}

/* Children run with the lowest priority until somebody waits. */
TEST(priorities)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *s = open_store(
		(struct symbol_store_options){ .cache_dir = "", .builder = slow_builder() });
	struct symbol_progress last;
	pid_t sleeper;

	want(s, 1, "f");
	sleeper = find_sleeper();
	ASSERT_EQ(sched_getscheduler(sleeper), SCHED_IDLE);
	if (geteuid())
		return;
	symbol_store_wait(s, 0, stop_at_once, &last);
	ASSERT_EQ(sched_getscheduler(sleeper), SCHED_IDLE); /* again */
}
