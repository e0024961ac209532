// SPDX-License-Identifier: Apache-2.0
#include "export/export.h"
#include "export/formats.h"
#include "util/cleanup.h"
#include "util/read_file.h"
#include "test.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64];
static char *why; /* what is there is another user's */

static int open_it(const char *path, struct export_file **ret)
{
	free(why);
	why = NULL;
	return export_file_open(path, ret, &why);
}

static const char *in_dir(const char *name)
{
	static char paths[4][PATH_MAX];
	static int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", dir, name);
	return path;
}

static void make_dir(void)
{
	snprintf(dir, sizeof(dir), "/tmp/sonde-export.XXXXXX");
	ASSERT_PTR_NONNULL(mkdtemp(dir));
}

/* The number of entries in the folder: nothing may be left beside the output. */
static int nr_entries(void)
{
	_cleanup_(closedir_p) DIR *d = opendir(dir);
	struct dirent *e;
	int nr = 0;

	while ((e = readdir(d)))
		nr += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	return nr;
}

static void remove_dir(void)
{
	_cleanup_(closedir_p) DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	rmdir(dir);
}

static void put(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
}

static void assert_content(const char *path, const char *want)
{
	_cleanup_free_ char *text = NULL;
	size_t size;

	ASSERT_OK(read_file_at(AT_FDCWD, path, 1 << 20, &text, &size));
	ASSERT_STR(text, want);
}

static int write_hello(const struct profile *p, const struct export_options *options, FILE *out)
{
	(void)options;
	(void)p;
	fputs("hello\n", out);
	return 0;
}

static int write_much(const struct profile *p, const struct export_options *options, FILE *out)
{
	(void)options;
	static char block[65536];

	(void)p;
	for (int i = 0; i < 64; i++)
		fwrite(block, 1, sizeof(block), out);
	return 0;
}

static int write_fails(const struct profile *p, const struct export_options *options, FILE *out)
{
	(void)options;
	(void)p;
	fputs("half", out);
	return -ENOMEM;
}

static const struct export_ops hello = { .name = "hello", .write = write_hello };
static const struct export_ops much = { .name = "much", .write = write_much };
static const struct export_ops fails = { .name = "fails", .write = write_fails };

static int write_to(const char *path, const struct export_ops *ops)
{
	struct export_file *file;
	int r = open_it(path, &file);

	if (r)
		return r;
	r = export_file_commit(file, ops, NULL, NULL);
	export_file_free(file);
	return r;
}

TEST(a_new_file_is_written_and_nothing_else)
{
	struct export_file *file;

	make_dir();
	ASSERT_OK(open_it(in_dir("new"), &file));
	ASSERT_EQ(nr_entries(), 0);
	ASSERT_OK(export_file_commit(file, &hello, NULL, NULL));
	export_file_free(file);
	assert_content(in_dir("new"), "hello\n");
	ASSERT_EQ(nr_entries(), 1);
	remove_dir();
}

TEST(what_is_not_committed_leaves_no_trace)
{
	struct export_file *file;

	make_dir();
	put(in_dir("old"), "old");
	ASSERT_OK(open_it(in_dir("old"), &file));
	export_file_free(file);
	export_file_free(NULL);
	assert_content(in_dir("old"), "old");
	ASSERT_EQ(nr_entries(), 1);
	remove_dir();
}

TEST(a_failed_write_keeps_the_old_file)
{
	make_dir();
	put(in_dir("old"), "old");
	ASSERT_ERR(write_to(in_dir("old"), &fails), ENOMEM);
	assert_content(in_dir("old"), "old");
	ASSERT_EQ(nr_entries(), 1);
	remove_dir();
}

TEST(a_replaced_file_keeps_its_mode_and_links)
{
	struct stat st;

	make_dir();
	put(in_dir("old"), "old");
	ASSERT_OK(chmod(in_dir("old"), 0604));
	ASSERT_OK(symlink("old", in_dir("link")));
	ASSERT_OK(write_to(in_dir("link"), &hello));
	ASSERT_OK(lstat(in_dir("link"), &st));
	ASSERT(S_ISLNK(st.st_mode));
	assert_content(in_dir("old"), "hello\n");
	ASSERT_OK(stat(in_dir("old"), &st));
	ASSERT_EQ(st.st_mode & 0777, 0604);
	ASSERT_EQ(nr_entries(), 2);
	remove_dir();
}

TEST(what_cannot_be_written_is_known_at_open)
{
	struct export_file *file = NULL;

	make_dir();
	ASSERT_ERR(open_it(dir, &file), EISDIR);
	ASSERT_ERR(open_it(in_dir("new/"), &file), EISDIR);
	ASSERT_ERR(open_it(in_dir("no/such/folder"), &file), ENOENT);
	ASSERT_ERR(open_it("", &file), ENOENT);
	ASSERT_ERR(open_it("/proc/sonde.html", &file), ENOENT);
	put(in_dir("file"), "old");
	ASSERT_ERR(open_it(in_dir("file/x"), &file), ENOTDIR);
	ASSERT_PTR_NULL(file);
	remove_dir();
}

/* As an ordinary user: root may write everywhere. */
TEST(a_folder_without_permission_is_known_at_open)
{
	struct export_file *file = NULL;
	pid_t pid;
	int status;

	make_dir();
	put(in_dir("file"), "old");
	ASSERT_OK(chmod(in_dir("file"), 0444));
	ASSERT_OK(chmod(dir, 0555));
	pid = fork();
	if (!pid) {
		bool dropped = geteuid() || (!setgid(65534) && !setuid(65534));

		_exit(dropped && open_it(in_dir("new"), &file) == -EACCES &&
				      open_it(in_dir("file"), &file) == -EACCES
			      ? 0
			      : 1);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_EQ(status, 0);
	ASSERT_OK(chmod(dir, 0755));
	remove_dir();
}

TEST(a_full_device_is_reported)
{
	struct export_file *file;

	ASSERT_OK(open_it("/dev/full", &file));
	ASSERT_ERR(export_file_commit(file, &hello, NULL, NULL), ENOSPC);
	export_file_free(file);
	ASSERT_ERR(write_to("/dev/full", &much), ENOSPC);
	ASSERT_OK(write_to("/dev/null", &much));
}

/* In a mount namespace of its own, so that nothing stays mounted whatever happens. */
static int full_disk_child(void)
{
	struct stat st;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("sonde", dir, "tmpfs", 0, "size=64k"))
		return 77;
	put(in_dir("old"), "old");
	if (write_to(in_dir("old"), &much) != -ENOSPC)
		return 1;
	assert_content(in_dir("old"), "old");
	if (nr_entries() != 1 || stat(in_dir("old"), &st))
		return 2;
	return write_to(in_dir("old"), &hello) ? 3 : 0;
}

TEST(a_full_disk_keeps_the_old_file)
{
	int status;
	pid_t pid;

	make_dir();
	pid = fork();
	if (!pid)
		_exit(full_disk_child());
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT(WIFEXITED(status));
	ASSERT(WEXITSTATUS(status) == 0 || (WEXITSTATUS(status) == 77 && geteuid()));
	remove_dir();
}

TEST(a_closed_pipe_is_an_error_not_a_signal)
{
	int fds[2], saved = dup(STDOUT_FILENO), r;
	struct export_file *file;
	sigset_t pending;

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	ASSERT_EQ(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
	close(fds[1]);
	close(fds[0]);
	r = open_it("-", &file);
	if (!r) {
		r = export_file_commit(file, &hello, NULL, NULL);
		export_file_free(file);
	}
	dup2(saved, STDOUT_FILENO);
	close(saved);
	ASSERT_ERR(r, EPIPE);
	ASSERT_OK(sigpending(&pending));
	ASSERT(!sigismember(&pending, SIGPIPE));
}

TEST(a_closed_stdout_is_known_at_open)
{
	int saved = dup(STDOUT_FILENO), r;
	struct export_file *file = NULL;

	close(STDOUT_FILENO);
	r = open_it("-", &file);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	ASSERT_ERR(r, EBADF);
}

TEST(a_fifo_is_written_directly)
{
	char buf[16] = "";
	int fd;

	make_dir();
	ASSERT_OK(mkfifo(in_dir("fifo"), 0600));
	fd = open(in_dir("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_OK(write_to(in_dir("fifo"), &hello));
	ASSERT_EQ(read(fd, buf, sizeof(buf)), 6);
	ASSERT_STR(buf, "hello\n");
	close(fd);
	remove_dir();
}

enum { NOBODY = 65534 };

/* What nobody put there, in a folder that is everybody's or nobody's, as root sees it. */
TEST(links_of_others_are_not_followed)
{
	struct export_file *file;

	if (geteuid())
		return;
	make_dir();
	put(in_dir("old"), "old");
	ASSERT_OK(symlink("old", in_dir("link")));
	ASSERT_OK(lchown(in_dir("link"), NOBODY, NOBODY));
	ASSERT_ERR(write_to(in_dir("link"), &hello), EPERM);
	ASSERT_PTR_NONNULL(strstr(why, "symbolic link 'link' belongs to"));
	ASSERT_PTR_NONNULL(strstr(why, "user 65534"));
	/* On the way, too, and behind one of ours. */
	ASSERT_OK(symlink(dir, in_dir("folder")));
	ASSERT_OK(lchown(in_dir("folder"), NOBODY, NOBODY));
	ASSERT_ERR(open_it(in_dir("folder/new"), &file), EPERM);
	ASSERT_OK(symlink("link", in_dir("ours")));
	ASSERT_ERR(open_it(in_dir("ours"), &file), EPERM);
	assert_content(in_dir("old"), "old");
	/* Who called sudo is trusted. */
	ASSERT_OK(setenv("SUDO_UID", "65534", 1));
	ASSERT_OK(write_to(in_dir("ours"), &hello));
	ASSERT_PTR_NULL(why);
	assert_content(in_dir("old"), "hello\n");
	remove_dir();
}

TEST(a_fifo_blocks_nobody)
{
	struct export_file *file;

	make_dir();
	ASSERT_OK(mkfifo(in_dir("fifo"), 0600));
	ASSERT_ERR(open_it(in_dir("fifo"), &file), EAGAIN);
	if (!geteuid()) {
		ASSERT_OK(chown(in_dir("fifo"), NOBODY, NOBODY));
		ASSERT_ERR(open_it(in_dir("fifo"), &file), EPERM);
		ASSERT_PTR_NONNULL(strstr(why, "FIFO 'fifo' belongs to"));
	}
	remove_dir();
}

TEST(files_of_others_are_theirs_where_everybody_may_put_some)
{
	struct stat st;

	if (geteuid())
		return;
	make_dir();
	put(in_dir("theirs"), "old");
	ASSERT_OK(chown(in_dir("theirs"), NOBODY, NOBODY));
	ASSERT_OK(chmod(dir, 01777));
	ASSERT_ERR(write_to(in_dir("theirs"), &hello), EPERM);
	ASSERT_PTR_NONNULL(strstr(why, "file 'theirs' belongs to"));
	ASSERT_OK(chmod(dir, 0755));
	ASSERT_OK(write_to(in_dir("theirs"), &hello));
	ASSERT_OK(stat(in_dir("theirs"), &st));
	ASSERT_EQ(st.st_uid, NOBODY);
	remove_dir();
}

/* It came after the file was opened. */
TEST(nobody_gets_the_recording_for_a_file_that_came_meanwhile)
{
	struct export_file *file;
	struct stat st;

	if (geteuid())
		return;
	make_dir();
	ASSERT_OK(chmod(dir, 01777));
	ASSERT_OK(open_it(in_dir("new"), &file));
	put(in_dir("new"), "theirs");
	ASSERT_OK(chown(in_dir("new"), NOBODY, NOBODY));
	ASSERT_OK(export_file_commit(file, &hello, NULL, NULL));
	export_file_free(file);
	ASSERT_OK(stat(in_dir("new"), &st));
	ASSERT_EQ(st.st_uid, 0);
	assert_content(in_dir("new"), "hello\n");
	remove_dir();
}

/* A link that leads nowhere yet: there it goes. */
TEST(what_a_link_leads_to_is_made)
{
	struct stat st;

	make_dir();
	ASSERT_OK(symlink("new", in_dir("link")));
	ASSERT_OK(write_to(in_dir("link"), &hello));
	ASSERT_OK(lstat(in_dir("link"), &st));
	ASSERT(S_ISLNK(st.st_mode));
	assert_content(in_dir("new"), "hello\n");
	ASSERT_OK(symlink("round", in_dir("round")));
	ASSERT_ERR(write_to(in_dir("round"), &hello), ELOOP);
	remove_dir();
}

TEST(links_of_proc_lead_to_what_is_open)
{
	int fds[2], saved = dup(STDOUT_FILENO), r, file_fd;
	char buf[16] = "";

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	ASSERT_EQ(dup2(fds[1], STDOUT_FILENO), STDOUT_FILENO);
	r = write_to("/dev/stdout", &hello);
	dup2(saved, STDOUT_FILENO);
	ASSERT_OK(r);
	ASSERT_EQ(read(fds[0], buf, sizeof(buf)), 6);
	make_dir();
	put(in_dir("file"), "first\n");
	file_fd = open(in_dir("file"), O_WRONLY | O_APPEND | O_CLOEXEC);
	ASSERT_EQ(dup2(file_fd, STDOUT_FILENO), STDOUT_FILENO);
	r = write_to("/dev/stdout", &hello);
	dup2(saved, STDOUT_FILENO);
	ASSERT_OK(r);
	assert_content(in_dir("file"), "first\nhello\n");
	close(file_fd);
	remove_dir();
}
