// SPDX-License-Identifier: Apache-2.0
#include "agent/spool.h"

#include "util/cleanup.h"
#include "util/log.h"
#include "util/read_file.h"
#include "util/vec.h"
#include "util/write_all.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <xxhash.h>

enum {
	BLOCK = 4096, /* what the smallest file takes */
	NAME_SIZE = 32,
	REPORT_MAX = 1 << 30,
};

#define NUMBER_MAX UINT64_C(999999999999)

/* In front of each report; little-endian as the machine is. */
struct header {
	char magic[8];
	uint64_t samples;
	uint64_t size;	      /* of what follows */
	uint64_t hash;	      /* of it */
	uint64_t header_hash; /* of all above, with `number` behind it */
};
_Static_assert(sizeof(struct header) == 40, "docs/formats/spool.md");

static const char magic[8] = "sondeSP1";

struct spool {
	const char *path;
	int fd;
	uint64_t last_number;
};

struct opening {
	VEC(struct spool_file) files;
	struct spool_problems problems;
};

/* --- names ------------------------------------------------------------------------------------ */

static void format_name(uint64_t number, char buf[NAME_SIZE])
{
	snprintf(buf, NAME_SIZE, "%012" PRIu64 ".spool", number);
}

static void format_temporary(uint64_t number, char buf[NAME_SIZE])
{
	snprintf(buf, NAME_SIZE, ".%012" PRIu64 ".tmp", number);
}

/* Only what format() makes of it is the name of a file of ours. */
static bool parse_name(const char *name, void (*format)(uint64_t, char[NAME_SIZE]), uint64_t *ret)
{
	char again[NAME_SIZE];
	uint64_t number;

	if (*name == '.')
		number = strtoull(name + 1, NULL, 10);
	else
		number = strtoull(name, NULL, 10);
	if (!number || number > NUMBER_MAX)
		return false;
	format(number, again);
	if (strcmp(name, again))
		return false;
	*ret = number;
	return true;
}

/* --- what is in a file ------------------------------------------------------------------------ */

/* A file that was renamed is not the one that it says to be. */
static uint64_t hash_of(const struct header *h, uint64_t number)
{
	return XXH3_64bits_withSeed(h, offsetof(struct header, header_hash), number);
}

/* 0, -EBADMSG, or another negative errno. */
static int open_file(const struct spool *s, uint64_t number, struct header *ret, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char name[NAME_SIZE];
	struct stat st;
	int r;

	format_name(number, name);
	fd = openat(s->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	r = read_all_at(fd, 0, ret, sizeof(*ret));
	if (r)
		return r == -ENODATA ? -EBADMSG : r;
	if (memcmp(ret->magic, magic, sizeof(magic)) || ret->header_hash != hash_of(ret, number) ||
	    ret->size > REPORT_MAX || (uint64_t)st.st_size != sizeof(*ret) + ret->size)
		return -EBADMSG;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int spool_get(const struct spool *s, uint64_t number, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_close_ int fd = -1;
	struct header h;
	int r = open_file(s, number, &h, &fd);

	if (r)
		return r;
	data = malloc(h.size + 1);
	if (!data)
		return -ENOMEM;
	r = read_all_at(fd, sizeof(h), data, h.size);
	if (r)
		return r == -ENODATA ? -EBADMSG : r;
	if (XXH3_64bits(data, h.size) != h.hash)
		return -EBADMSG;
	*ret = TAKE_PTR(data);
	*ret_size = h.size;
	return 0;
}

/* --- what is there ---------------------------------------------------------------------------- */

uint64_t spool_bytes(size_t size)
{
	return (size + sizeof(struct header) + BLOCK - 1) / BLOCK * BLOCK;
}

static int compare_files(const void *a, const void *b)
{
	const struct spool_file *fa = a, *fb = b;

	return fa->number < fb->number ? -1 : fa->number > fb->number;
}

static int take_in(struct spool *s, struct opening *o, const char *name)
{
	_cleanup_close_ int fd = -1;
	struct spool_file file;
	struct header h;
	int r;

	if (parse_name(name, format_temporary, &file.number)) {
		unlinkat(s->fd, name, 0);
		return 0;
	}
	if (!parse_name(name, format_name, &file.number))
		return 0;
	if (file.number > s->last_number)
		s->last_number = file.number;
	r = open_file(s, file.number, &h, &fd);
	/* What one file is like keeps nobody from sending the others. */
	if (r == -EBADMSG || r == -EIO) {
		o->problems.corrupt++;
		spool_remove(s, file.number);
		return 0;
	}
	if (r) {
		o->problems.unread++;
		log_debug("cannot read '%s' in the spool: %s", name, strerror(-r));
		return 0;
	}
	file.samples = h.samples;
	file.bytes = spool_bytes(h.size);
	return vec_push(&o->files, file);
}

static int read_folder(struct spool *s, struct opening *o)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	_cleanup_(closedir_p) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		r = -errno;
		close_p(&fd);
		return r;
	}
	while (!r && (errno = 0, entry = readdir(dir)))
		r = take_in(s, o, entry->d_name);
	if (!r && errno)
		r = -errno;
	if (o->files.nr)
		qsort(o->files.items, o->files.nr, sizeof(*o->files.items), compare_files);
	return r;
}

/* Who may put files there would have us send what he likes. Logging. */
static int open_folder(struct spool *s)
{
	struct stat st;

	if (mkdir(s->path, 0700) && errno != EEXIST)
		return log_err(-errno, "cannot make the spool '%s'", s->path);
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st))
		return log_err(-errno, "cannot open the spool '%s'", s->path);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH))) {
		log_error("the spool '%s' must be a folder of ours that nobody else may write into",
			  s->path);
		return -EPERM;
	}
	if (flock(s->fd, LOCK_EX | LOCK_NB)) {
		log_error("another agent has the spool '%s'; choose another folder", s->path);
		return -EBUSY;
	}
	if (faccessat(s->fd, ".", W_OK, AT_EACCESS))
		return log_err(-errno, "cannot write into the spool '%s'", s->path);
	return 0;
}

int spool_open(const char *path, spool_found_fn *found, void *ctx,
	       struct spool_problems *problems_ret, struct spool **ret)
{
	_cleanup_(spool_free_p) struct spool *s = calloc(1, sizeof(*s));
	struct opening o = { 0 };
	int r;

	if (!s)
		return log_err(-ENOMEM, "cannot open the spool '%s'", path);
	s->path = path;
	s->fd = -1;
	r = open_folder(s);
	if (r)
		return r;
	r = read_folder(s, &o);
	for (size_t i = 0; !r && i < o.files.nr; i++)
		r = found(ctx, &o.files.items[i]);
	vec_free(&o.files);
	if (r)
		return log_err(r, "cannot read the spool '%s'", path);
	*problems_ret = o.problems;
	*ret = TAKE_PTR(s);
	return 0;
}

void spool_free(struct spool *s)
{
	if (!s)
		return;
	close_p(&s->fd);
	free(s);
}

/* --- one more, one less ----------------------------------------------------------------------- */

/* What a failed attempt could not remove either is in nobody's way. */
static int create_temporary(const struct spool *s, const char *name)
{
	for (int tries = 0; tries < 2; tries++) {
		int fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (fd >= 0)
			return fd;
		if (errno != EEXIST || unlinkat(s->fd, name, 0))
			return -errno;
	}
	return -EEXIST;
}

static int write_file(const struct spool *s, const struct header *h, const void *data,
		      uint64_t number)
{
	char temporary[NAME_SIZE], name[NAME_SIZE];
	int fd, r;

	format_temporary(number, temporary);
	format_name(number, name);
	fd = create_temporary(s, temporary);
	if (fd < 0)
		return fd;
	r = write_all(fd, h, sizeof(*h));
	if (!r)
		r = write_all(fd, data, h->size);
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(s->fd, temporary, s->fd, name))
		r = -errno;
	if (r)
		unlinkat(s->fd, temporary, 0);
	return r;
}

int spool_put(struct spool *s, const void *data, size_t size, uint64_t samples,
	      struct spool_file *ret)
{
	struct spool_file file = { .number = s->last_number + 1,
				   .bytes = spool_bytes(size),
				   .samples = samples };
	struct header h = { .samples = samples, .size = size, .hash = XXH3_64bits(data, size) };
	int r;

	if (size > REPORT_MAX)
		return -EFBIG;
	if (file.number > NUMBER_MAX)
		return -EOVERFLOW;
	memcpy(h.magic, magic, sizeof(magic));
	h.header_hash = hash_of(&h, file.number);
	r = write_file(s, &h, data, file.number);
	if (r)
		return r;
	s->last_number = file.number;
	*ret = file;
	return 0;
}

int spool_remove(struct spool *s, uint64_t number)
{
	char name[NAME_SIZE];

	format_name(number, name);
	return unlinkat(s->fd, name, 0) && errno != ENOENT ? -errno : 0;
}
