// SPDX-License-Identifier: Apache-2.0
/*
 * Output files that are safe to lose: see export.h. The temporary file exists only while commit
 * runs: a recording may last for hours, and a process that is killed must not leave litter. open()
 * creates one and removes it at once: that is the proof that the folder takes new files.
 */
#include "export/export.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

struct export_file {
	int fd;		      /* of a direct output; -1 for a file that is renamed */
	struct own_path path; /* of a file that is renamed */
	char *temporary;      /* beside it; NULL while there is none */
	int error;	      /* negative errno of the first write that failed */
};

DEFINE_CLEANUP(struct export_file *, export_file_free)

static void remove_temporary(struct export_file *file)
{
	if (file->temporary)
		unlinkat(file->path.dir_fd, file->temporary, 0);
	free(file->temporary);
	file->temporary = NULL;
}

void export_file_free(struct export_file *file)
{
	if (!file)
		return;
	remove_temporary(file);
	own_path_fini(&file->path);
	close_p(&file->fd);
	free(file);
}

/* ".name.1a2b3c4d.tmp" */
static int temporary_name(const char *name, char **ret)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		number = (uint32_t)getpid();
	/* A name of the full 255 bytes has no room for more. */
	if (asprintf(ret, ".%.200s.%08x.tmp", name, number) < 0)
		return -ENOMEM;
	return 0;
}

static int create_temporary(const struct own_path *path, char **ret_name)
{
	enum { TRIES = 16 };

	for (int i = 0; i < TRIES; i++) {
		_cleanup_free_ char *name = NULL;
		int fd, r;

		r = temporary_name(path->name, &name);
		if (r)
			return r;
		fd = openat(path->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			*ret_name = TAKE_PTR(name);
			return fd;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int open_stdout(struct export_file *file)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return file->fd < 0 ? -errno : 0;
}

/* What waits for nobody as it is opened waits for its reader all the same as it is written. */
static int block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) ? -errno : 0;
}

/* The file of a link in /proc/self/fd: behind what is written there already. */
static int open_again(struct export_file *file, const struct own_path *path)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path->open_fd);
	file->fd = open(link, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (file->fd < 0)
		return errno == ENXIO ? -EPIPE : -errno;
	return block(file->fd);
}

static int open_direct(struct export_file *file, const struct own_path *path)
{
	struct stat st;

	file->fd = openat(path->dir_fd, path->name,
			  O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
	if (file->fd < 0)
		return errno == ENXIO && S_ISFIFO(path->st.st_mode) ? -EAGAIN : -errno;
	if (fstat(file->fd, &st))
		return -errno;
	if (st.st_ino != path->st.st_ino || st.st_dev != path->st.st_dev)
		return -ESTALE; /* somebody put another thing there just now */
	return block(file->fd);
}

static int open_replacing(struct export_file *file, struct own_path *path, const char *text)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;

	if (text[strlen(text) - 1] == '/')
		return -EISDIR;
	/* rename() would replace a read-only file without a word. */
	if (path->exists && faccessat(path->dir_fd, path->name, W_OK, 0))
		return -errno;
	fd = create_temporary(path, &name);
	if (fd < 0)
		return fd;
	unlinkat(path->dir_fd, name, 0);
	file->path = *path;
	*path = (struct own_path){ .dir_fd = -1, .open_fd = -1 };
	return 0;
}

static int open_path(struct export_file *file, const char *text, char **why_ret)
{
	_cleanup_(own_path_fini) struct own_path path = { .dir_fd = -1, .open_fd = -1 };
	int r = own_path_find(text, &path, why_ret);

	if (r)
		return r;
	if (path.exists && S_ISDIR(path.st.st_mode))
		return -EISDIR;
	if (path.open_fd >= 0)
		return open_again(file, &path);
	if (path.exists && !S_ISREG(path.st.st_mode))
		return open_direct(file, &path);
	return open_replacing(file, &path, text);
}

int export_file_open(const char *path, struct export_file **ret, char **why_ret)
{
	_cleanup_(export_file_free_p) struct export_file *file = calloc(1, sizeof(*file));
	int r;

	*why_ret = NULL;
	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->path = (struct own_path){ .dir_fd = -1, .open_fd = -1 };
	r = strcmp(path, "-") ? open_path(file, path, why_ret) : open_stdout(file);
	if (r)
		return r;
	*ret = TAKE_PTR(file);
	return 0;
}

struct sink {
	struct export_file *file;
	int fd;
};

/* stdio forgets why a write failed; this remembers, and finishes short writes. */
static ssize_t sink_write(void *cookie, const char *buf, size_t size)
{
	struct sink *sink = cookie;
	size_t done = 0;

	while (done < size && !sink->file->error) {
		ssize_t n = write(sink->fd, buf + done, size - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			sink->file->error = -EIO;
		else if (errno != EINTR)
			sink->file->error = -errno;
	}
	return sink->file->error ? 0 : (ssize_t)size; /* 0 is stdio's "error" here */
}

static int write_all(struct export_file *file, int fd, const struct export_ops *ops,
		     const struct profile *p, const struct export_options *options)
{
	struct sink sink = { file, fd };
	FILE *out = fopencookie(&sink, "w", (cookie_io_functions_t){ .write = sink_write });
	int r;

	if (!out)
		return -ENOMEM;
	setvbuf(out, NULL, _IOFBF, 64 * 1024);
	r = ops->write(p, options, out);
	if (fclose(out) && !r && !file->error)
		r = -EIO;
	return file->error ? file->error : r;
}

/* The new file takes the old one's mode and, where that is allowed, its owner. */
static void take_attributes(int fd, const struct own_path *path)
{
	struct stat st;

	if (!own_path_keeps(path, &st))
		return;
	if (fchown(fd, st.st_uid, st.st_gid))
		log_debug("cannot keep the owner of %s: %s", path->name, strerror(errno));
	if (fchmod(fd, st.st_mode & 0777))
		log_debug("cannot keep the mode of %s: %s", path->name, strerror(errno));
}

static int write_and_rename(struct export_file *file, const struct export_ops *ops,
			    const struct profile *p, const struct export_options *options)
{
	_cleanup_close_ int fd = create_temporary(&file->path, &file->temporary);
	int r;

	if (fd < 0)
		return fd;
	take_attributes(fd, &file->path);
	r = write_all(file, fd, ops, p, options);
	if (r)
		return r;
	if (fsync(fd))
		return -errno;
	r = close(TAKE_FD(fd)); /* NFS reports a full disk here */
	if (r)
		return -errno;
	if (renameat(file->path.dir_fd, file->temporary, file->path.dir_fd, file->path.name))
		return -errno;
	free(file->temporary);
	file->temporary = NULL;
	return 0;
}

int export_file_commit(struct export_file *file, const struct export_ops *ops,
		       const struct profile *p, const struct export_options *options)
{
	const struct timespec at_once = { 0 };
	sigset_t pipe_set, old, pending;
	bool was_pending;
	int r;

	/* A write to a closed pipe shall be an error of this write, not the end of the process. */
	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	r = file->path.name ? write_and_rename(file, ops, p, options)
			    : write_all(file, file->fd, ops, p, options);
	if (r)
		remove_temporary(file);
	if (!was_pending)
		while (sigtimedwait(&pipe_set, NULL, &at_once) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}
