// SPDX-License-Identifier: Apache-2.0
#include "util/open_in_root.h"
#include "util/cleanup.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/sonde-open-in-root-XXXXXX";

/* root/{file,fifo}, root/out -> /secret, root/up -> ../secret, root/in -> /file; secret beside it
 */
static int make_root(void)
{
	int root_fd, fd;

	ASSERT(mkdtemp(folder));
	ASSERT(!chdir(folder));
	ASSERT(!mkdir("root", 0755));
	ASSERT(!close(open("secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644)));
	fd = open("root/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ASSERT_EQ(write(fd, "inside", 6), 6);
	close(fd);
	ASSERT(!mkfifo("root/fifo", 0644));
	ASSERT(!symlink("/secret", "root/out"));
	ASSERT(!symlink("../secret", "root/up"));
	ASSERT(!symlink("/file", "root/in"));
	root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ASSERT(root_fd >= 0);
	return root_fd;
}

static void remove_root(int root_fd)
{
	static const char *const names[] = { "file", "fifo", "out", "up", "in" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ASSERT(!unlinkat(root_fd, names[i], 0));
	close(root_fd);
	ASSERT(!unlink("secret"));
	ASSERT(!rmdir("root"));
	ASSERT(!rmdir(folder));
}

TEST(nothing_leads_out)
{
	int root_fd = make_root(), fd = -1;

	ASSERT_ERR(open_in_root(root_fd, "/out", O_PATH, &fd), ENOENT);
	ASSERT_ERR(open_in_root(root_fd, "up", O_PATH, &fd), ENOENT);
	ASSERT_ERR(open_in_root(root_fd, "/../secret", O_PATH, &fd), ENOENT);
	ASSERT_ERR(open_in_root(root_fd, "/in", O_RDONLY | O_NOFOLLOW, &fd), ELOOP);
	ASSERT_EQ(fd, -1);
	remove_root(root_fd);
}

TEST(what_is_inside_is_read)
{
	static const char *const paths[] = { "file", "/file", "/in", "../../file" };
	int root_fd = make_root();

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		_cleanup_close_ int path_fd = -1, fd = -1;
		char text[8] = "";

		ASSERT_OK(open_in_root(root_fd, paths[i], O_PATH, &path_fd));
		ASSERT(fcntl(path_fd, F_GETFD) & FD_CLOEXEC);
		ASSERT_ERR((int)read(path_fd, text, 7) < 0 ? -errno : 0, EBADF);
		ASSERT_OK(open_found(path_fd, &fd));
		ASSERT_EQ(read(fd, text, 7), 6);
		ASSERT_STR(text, "inside");
	}
	remove_root(root_fd);
}

TEST(a_fifo_blocks_nobody)
{
	int root_fd = make_root(), path_fd = -1, fd = -1;

	ASSERT_OK(open_in_root(root_fd, "/fifo", O_PATH, &path_fd));
	ASSERT_OK(open_found(path_fd, &fd));
	close(fd);
	close(path_fd);
	fd = -1;
	ASSERT_ERR(open_found(root_fd + 100, &fd), ENOENT);
	ASSERT_EQ(fd, -1);
	remove_root(root_fd);
}
