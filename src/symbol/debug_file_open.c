// SPDX-License-Identifier: Apache-2.0
/*
 * Opening files below roots that may be a container's: what lies there is somebody else's choice.
 *
 * A path is resolved by openat2(RESOLVE_IN_ROOT) to an O_PATH descriptor, which opens nothing yet;
 * only a regular file is then opened for reading: no FIFO blocks, no device is touched, and no
 * link leads to a file of the host.
 */
#include "symbol/debug_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "util/cleanup.h"
#include "util/open_in_root.h"
#include "util/read_file.h"

enum {
	/* A CRC needs the whole file. Larger ones have a build-id, which is read in no time. */
	CRC_FILE_MAX = 1 << 30,
	CRC_CHUNK = 64 << 10,
};

static bool is_our_root(int root_fd)
{
	struct stat ours, root;

	return !stat("/", &ours) && !fstat(root_fd, &root) && ours.st_dev == root.st_dev &&
	       ours.st_ino == root.st_ino;
}

static int resolve(int root_fd, const char *path, int *ret)
{
	int r = open_in_root(root_fd, path, O_PATH, ret), fd;

	/* Some sandboxes don't know it. Nothing can leave our own root. */
	if (r != -ENOSYS || !is_our_root(root_fd))
		return r;
	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

static int resolve_regular(int root_fd, const char *path, int *ret, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (path[0] != '/')
		return -ENOENT;
	r = resolve(root_fd, path, &fd);
	if (r)
		return r;
	if (fstat(fd, ret_stat))
		return -errno;
	if (!S_ISREG(ret_stat->st_mode))
		return -EINVAL;
	*ret = TAKE_FD(fd);
	return 0;
}

int debug_open_below(int root_fd, const char *path, int *ret)
{
	_cleanup_close_ int path_fd = -1;
	struct stat st;
	int r = resolve_regular(root_fd, path, &path_fd, &st);

	return r ? r : open_found(path_fd, ret);
}

int debug_stat_below(int root_fd, const char *path, struct stat *ret)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = resolve_regular(root_fd, path, &fd, &st);

	if (!r)
		*ret = st;
	return r;
}

static int path_of_fd(int fd, struct debug_path *ret)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret->text, sizeof(ret->text));
	if (n <= 0 || (size_t)n >= sizeof(ret->text))
		return -ENOENT;
	ret->text[n] = '\0';
	return ret->text[0] == '/' ? 0 : -ENOENT;
}

int debug_real_path(int root_fd, int fd, struct debug_path *ret)
{
	struct debug_path root, path;
	size_t len;

	if (path_of_fd(root_fd, &root) || path_of_fd(fd, &path))
		return -ENOENT;
	/* The root of another mount namespace is "/", and paths in it are as seen from there. */
	len = strlen(root.text);
	if (len == 1)
		len = 0;
	if (strncmp(path.text, root.text, len) || path.text[len] != '/')
		return -ENOENT;
	memcpy(ret->text, path.text + len, strlen(path.text + len) + 1);
	return 0;
}

int debug_crc(int fd, uint32_t *ret)
{
	_cleanup_free_ uint8_t *buf = NULL;
	uLong crc = crc32(0, NULL, 0);
	off_t offset = 0;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size > CRC_FILE_MAX)
		return -EFBIG;
	buf = malloc(CRC_CHUNK);
	if (!buf)
		return -ENOMEM;
	while (offset < st.st_size) { /* it may grow while we read */
		ssize_t n = read_at(fd, (uint64_t)offset, buf, CRC_CHUNK);

		if (n < 0)
			return (int)n;
		if (!n)
			break;
		crc = crc32(crc, buf, (uInt)n);
		offset += n;
	}
	*ret = (uint32_t)crc;
	return 0;
}
