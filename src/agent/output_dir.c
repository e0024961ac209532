// SPDX-License-Identifier: Apache-2.0
#include "agent/output_dir.h"

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/owners.h"
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

enum {
	BLOCK = 4096,	    /* what the smallest file takes */
	FILES_MAX = 100000, /* folders with more are slow, and each is 32 bytes here */
	NAME_SIZE = 64,
};

#define NUMBER_MAX UINT64_C(999999999999)

struct report_file {
	uint64_t number;
	uint64_t bytes; /* that it takes on the disk */
	time_t time;
	enum report_format format;
};

struct output_dir {
	const char *path;
	enum report_format format; /* of new ones */
	uint64_t max_bytes;
	int fd;
	/* By number; those before `first` are gone. */
	VEC(struct report_file) files;
	size_t first;
	uint64_t bytes;
	uint64_t last_number;
	uint64_t removed;
};

/* --- names ------------------------------------------------------------------------------------ */

static const char *const suffixes[REPORT_FORMATS_] = {
	[REPORT_OTLP] = ".otlp.gz",
	[REPORT_PPROF] = ".pb.gz",
};

static void format_name(const struct report_file *file, char buf[NAME_SIZE])
{
	struct tm tm = { 0 };
	size_t len;

	gmtime_r(&file->time, &tm);
	len = (size_t)snprintf(buf, NAME_SIZE, "%012" PRIu64 "-", file->number);
	len += strftime(buf + len, NAME_SIZE - len, "%Y%m%dT%H%M%SZ", &tm);
	snprintf(buf + len, NAME_SIZE - len, "%s", suffixes[file->format]);
}

/* While it is written. */
static void format_temporary(const char *name, char buf[NAME_SIZE + 8])
{
	snprintf(buf, NAME_SIZE + 8, ".%s.tmp", name);
}

/* Only what format_name() makes of it is the name of a file of ours. */
static bool parse_name(const char *name, struct report_file *ret)
{
	struct report_file file = { 0 };
	char again[NAME_SIZE];
	struct tm tm = { 0 };
	char *end;

	if (!isdigit((unsigned char)*name) || strlen(name) >= NAME_SIZE)
		return false;
	file.number = strtoull(name, &end, 10);
	if (*end != '-' || !(end = strptime(end + 1, "%Y%m%dT%H%M%SZ", &tm)))
		return false;
	file.time = timegm(&tm);
	file.format = strcmp(end, suffixes[REPORT_PPROF]) ? REPORT_OTLP : REPORT_PPROF;
	format_name(&file, again);
	if (strcmp(name, again) || file.number > NUMBER_MAX)
		return false;
	*ret = file;
	return true;
}

static bool is_temporary(const char *name)
{
	struct report_file file;
	char inner[NAME_SIZE];
	size_t len = strlen(name);

	if (*name != '.' || len < 5 || len - 5 >= sizeof(inner) || strcmp(name + len - 4, ".tmp"))
		return false;
	memcpy(inner, name + 1, len - 5);
	inner[len - 5] = '\0';
	return parse_name(inner, &file);
}

/* --- what is there ---------------------------------------------------------------------------- */

static uint64_t on_disk(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK * BLOCK;
}

static int compare_numbers(const void *a, const void *b)
{
	const struct report_file *fa = a, *fb = b;

	return fa->number < fb->number ? -1 : fa->number > fb->number;
}

/* Of others who may write there, a file is none of ours whatever it is called: the last number that
 * there is would leave none for the next report, a large hole no room. */
static int take_in(struct output_dir *d, uid_t owner, const char *name)
{
	struct report_file file;
	struct stat st;

	if (is_temporary(name)) {
		unlinkat(d->fd, name, 0);
		return 0;
	}
	if (!parse_name(name, &file) || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode) || (st.st_uid != owner && !owner_is_trusted(st.st_uid)))
		return 0;
	file.bytes = on_disk((uint64_t)st.st_size);
	d->bytes += file.bytes;
	if (file.number > d->last_number)
		d->last_number = file.number;
	return vec_push(&d->files, file);
}

static int read_folder(struct output_dir *d)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	_cleanup_(closedir_p) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		r = -errno;
		close_p(&fd);
		return r;
	}
	if (fstat(d->fd, &st))
		return -errno;
	while (!r && (errno = 0, entry = readdir(dir)))
		r = take_in(d, st.st_uid, entry->d_name);
	if (!r && errno)
		r = -errno;
	if (d->files.nr)
		qsort(d->files.items, d->files.nr, sizeof(*d->files.items), compare_numbers);
	return r;
}

static void close_folder(struct output_dir *d)
{
	close_p(&d->fd);
	d->fd = -1;
	d->files.nr = d->first = 0;
	d->bytes = 0;
}

/* Also when somebody has removed it meanwhile. If it fails there is none, until the next time. */
static int open_folder(struct output_dir *d)
{
	int r = 0;

	close_folder(d);
	d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0 && errno == ENOENT && !mkdir(d->path, 0777))
		d->fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0 || flock(d->fd, LOCK_EX | LOCK_NB))
		r = -errno;
	if (!r)
		r = read_folder(d);
	if (r)
		close_folder(d);
	return r;
}

int output_dir_open(const char *path, enum report_format format, uint64_t max_bytes,
		    struct output_dir **ret)
{
	_cleanup_(output_dir_free_p) struct output_dir *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return log_err(-ENOMEM, "cannot open '%s'", path);
	d->path = path;
	d->format = format;
	d->max_bytes = max_bytes;
	d->fd = -1;
	r = open_folder(d);
	if (r == -EWOULDBLOCK) {
		log_error("another agent writes into '%s'; choose another folder", path);
		return r;
	}
	if (!r && faccessat(d->fd, ".", W_OK, AT_EACCESS))
		r = -errno;
	if (r)
		return log_err(r, "cannot write into '%s', choose another folder", path);
	*ret = TAKE_PTR(d);
	return 0;
}

void output_dir_free(struct output_dir *d)
{
	if (!d)
		return;
	close_p(&d->fd);
	vec_free(&d->files);
	free(d);
}

struct output_dir_stats output_dir_stats(const struct output_dir *d)
{
	return (struct output_dir_stats){
		.files = d->files.nr - d->first,
		.bytes = d->bytes,
		.removed = d->removed,
	};
}

/* --- one more --------------------------------------------------------------------------------- */

static int remove_oldest(struct output_dir *d)
{
	const struct report_file *file = &d->files.items[d->first];
	char name[NAME_SIZE];

	format_name(file, name);
	if (!unlinkat(d->fd, name, 0))
		d->removed++;
	else if (errno != ENOENT)
		return -errno;
	d->bytes -= file->bytes;
	d->first++;
	return 0;
}

static int make_room(struct output_dir *d, uint64_t bytes)
{
	int r = 0;

	if (bytes > d->max_bytes)
		return -EFBIG;
	while (!r && d->first < d->files.nr &&
	       (d->bytes + bytes > d->max_bytes || d->files.nr - d->first >= FILES_MAX))
		r = remove_oldest(d);
	if (d->first > d->files.nr / 2) {
		d->files.nr -= d->first;
		memmove(d->files.items, d->files.items + d->first,
			d->files.nr * sizeof(*d->files.items));
		d->first = 0;
	}
	return r ? r : vec_reserve(&d->files, d->files.nr + 1);
}

static int write_file(const struct output_dir *d, const char *name, const void *data, size_t size)
{
	char temporary[NAME_SIZE + 8];
	int fd, r;

	format_temporary(name, temporary);
	fd = openat(d->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	r = write_all(fd, data, size);
	if (close(fd) && !r)
		r = -errno;
	if (!r && renameat(d->fd, temporary, d->fd, name))
		r = -errno;
	if (r)
		unlinkat(d->fd, temporary, 0);
	return r;
}

static int put(struct output_dir *d, const void *data, size_t size)
{
	struct report_file file = {
		.number = d->last_number + 1,
		.bytes = on_disk(size),
		.format = d->format,
		.time = (time_t)(clock_ns(CLOCK_REALTIME) / 1000000000),
	};
	char name[NAME_SIZE];
	int r;

	if (file.number > NUMBER_MAX)
		return -EOVERFLOW;
	r = make_room(d, file.bytes);
	if (r)
		return r;
	format_name(&file, name);
	r = write_file(d, name, data, size);
	if (r)
		return r;
	d->last_number = file.number;
	d->bytes += file.bytes;
	d->files.items[d->files.nr++] = file;
	return 0;
}

int output_dir_put(struct output_dir *d, const void *data, size_t size)
{
	int r = d->fd < 0 ? -ENOENT : put(d, data, size);

	if (r != -ENOENT)
		return r;
	r = open_folder(d);
	return r ? r : put(d, data, size);
}
