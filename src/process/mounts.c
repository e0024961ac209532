// SPDX-License-Identifier: Apache-2.0
/*
 * A line of mountinfo (proc(5)): ID PARENT MAJOR:MINOR ROOT MOUNT_POINT OPTIONS [TAG...] - TYPE
 * SOURCE SUPER_OPTIONS.
 */
#include "process/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/read_file.h"

enum {
	/* Of dense container hosts it has a megabyte. */
	MOUNTINFO_MAX = 16 << 20,
	/* Of a namespace where anybody may mount, some ten thousand times. */
	ANYBODYS_MAX = 1 << 20,
	/* Who changes it all the time has it read for a part of the time, if that takes so long:
	 * half of it, where few may mount. */
	READ_TAKES_NS = 2000000,
	READ_SHARE = 2,
	READ_SHARE_ANYBODYS = 10,
	/* Mount points that are looked at for layers of overlays: a thousand with twenty layers
	 * each beside a hundred that have a server. */
	LAYERS_WORK_MAX = 4 << 20,
	TEXT_SIZE = 16 << 10,
	FIELDS_BEFORE_TAGS = 6,
};

/* In front of a dot, too ("fuse.sshfs"). What is behind a block device of ours answers, with an
 * error at the worst; fuseblk has one, and a server in front of it. */
static const char *const may_hang[] = {
	"fuse",	    "fuseblk", "virtiofs", "nfs",     "nfs4",	 "cifs",  "smb3",   "smbfs",
	"ceph",	    "9p",      "afs",	   "autofs",  "lustre",	 "gpfs",  "beegfs", "glusterfs",
	"orangefs", "pvfs2",   "coda",	   "gfs2",    "ocfs2",	 "panfs", "vboxsf", "vmhgfs",
	"ncpfs",    "sshfs",   "davfs",	   "moosefs", "quobyte", "weka",  "wekafs",
};

struct line {
	uint64_t id;
	uint32_t dev_major, dev_minor;
	const char *point, *type, *options;
};

static bool type_may_hang(const char *type)
{
	size_t len = strcspn(type, ".");

	for (size_t i = 0; i < sizeof(may_hang) / sizeof(may_hang[0]); i++)
		if (strlen(may_hang[i]) == len && !memcmp(type, may_hang[i], len))
			return true;
	return false;
}

/* Is the mount namespace of a user namespace other than ours? True also if that cannot be told. */
static bool is_of_others(const char *proc_dir)
{
	_cleanup_close_ int ns_fd = -1, user_fd = -1;
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "%s/ns/mnt", proc_dir);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd >= 0)
		user_fd = ioctl(ns_fd, NS_GET_USERNS);
	return user_fd < 0 || fstat(user_fd, &theirs) || stat("/proc/self/ns/user", &ours) ||
	       theirs.st_ino != ours.st_ino;
}

int mounts_open(struct mounts *m, const char *proc_dir)
{
	char path[64];

	*m = (struct mounts){ .fd = -1, .anybodys = is_of_others(proc_dir) };
	snprintf(path, sizeof(path), "%s/mountinfo", proc_dir);
	m->fd = open(path, O_RDONLY | O_CLOEXEC);
	return m->fd < 0 ? -errno : 0;
}

void mounts_close(struct mounts *m)
{
	if (m->fd >= 0)
		close(m->fd);
	vec_free(&m->devices);
	vec_free(&m->numbers);
	*m = (struct mounts){ .fd = -1 };
}

/* --- parsing ---------------------------------------------------------------------------------- */

/* The next field of a line, which ends there; NULL: there is none. */
static char *field(char **at)
{
	char *begin = *at ? *at + strspn(*at, " ") : NULL;
	size_t len = begin ? strcspn(begin, " ") : 0;

	if (!len)
		return NULL;
	*at = begin[len] ? begin + len + 1 : NULL;
	begin[len] = '\0';
	return begin;
}

static bool parse_line(char *text, struct line *ret)
{
	char *fields[FIELDS_BEFORE_TAGS], *tag;

	for (int i = 0; i < FIELDS_BEFORE_TAGS; i++)
		if (!(fields[i] = field(&text)))
			return false;
	do
		tag = field(&text);
	while (tag && strcmp(tag, "-"));
	ret->point = fields[4];
	ret->type = field(&text);
	field(&text);
	ret->options = field(&text);
	ret->id = strtoull(fields[0], NULL, 10);
	return ret->type && sscanf(fields[2], "%u:%u", &ret->dev_major, &ret->dev_minor) == 2;
}

static int compare(const void *a_, const void *b_)
{
	const struct mount_device *a = a_, *b = b_;

	if (a->dev_major != b->dev_major)
		return a->dev_major < b->dev_major ? -1 : 1;
	if (a->dev_minor != b->dev_minor)
		return a->dev_minor < b->dev_minor ? -1 : 1;
	return a->answer < b->answer ? 1 : a->answer > b->answer ? -1 : 0;
}

static int compare_numbers(const void *a_, const void *b_)
{
	const struct mount_number *a = a_, *b = b_;

	return a->id < b->id ? -1 : a->id > b->id;
}

/* The mount points of a namespace, and how many were looked at for layers. */
struct points {
	const struct line *lines;
	size_t nr, work;
	VEC(const char *) hanging; /* of what may hang */
};

/* How long the mount point is, if the path lies below it; -1: it does not. */
static ssize_t below(const char *point, const char *path, size_t len)
{
	size_t n = strcmp(point, "/") ? strlen(point) : 0;

	return n > len || memcmp(point, path, n) || (n < len && path[n] != '/') ? -1 : (ssize_t)n;
}

/* Is the mount point that `path` (up to `len`) lies below, the longest one, of what may hang? */
static bool path_may_hang(struct points *p, const char *path, size_t len)
{
	ssize_t best = 0, n = -1;
	bool hangs = false;

	p->work += p->hanging.nr;
	for (size_t i = 0; i < p->hanging.nr && n < 0; i++)
		n = below(p->hanging.items[i], path, len);
	if (n < 0)
		return false;
	p->work += p->nr;
	for (size_t i = 0; i < p->nr; i++) {
		n = below(p->lines[i].point, path, len);
		/* The last mount at a point lies above the others. */
		if (n < best)
			continue;
		best = n;
		hangs = type_may_hang(p->lines[i].type);
	}
	return hangs;
}

/*
 * Does a layer of an overlay lie in what may hang? Its options have the paths that it was mounted
 * with: of relative ones, and others that nobody can tell, one that may hang is enough. When too
 * much was looked at, it may.
 */
static bool layers_may_hang(struct points *p, const char *options)
{
	static const char *const names[] = { "lowerdir", "upperdir", "datadir" };
	size_t len;

	for (const char *o = options; o && *o; o += len + (o[len] == ',')) {
		const char *value = NULL;
		size_t n;

		len = strcspn(o, ",");
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			n = strlen(names[i]);
			/* "lowerdir=" or, of newer kernels, "lowerdir+=" */
			if (n < len && !strncmp(o, names[i], n) && (o[n] == '=' || o[n] == '+'))
				value = o + n + strspn(o + n, "+=");
		}
		while (value && value < o + len) {
			n = strcspn(value, ":,");
			if (n && (*value != '/' || p->work > LAYERS_WORK_MAX ||
				  path_may_hang(p, value, n)))
				return true;
			value += n + 1;
		}
	}
	return false;
}

static bool is_overlay(const struct line *line)
{
	return !strcmp(line->type, "overlay");
}

static enum mounts_answer judge(const struct mounts *m, struct points *p, const struct line *line)
{
	if (type_may_hang(line->type))
		return MOUNTS_MAY_HANG;
	if (!is_overlay(line))
		return MOUNTS_ANSWERS;
	/* Options have links, and what was unmounted or mounted over since. */
	if (m->anybodys)
		return MOUNTS_ANYBODYS;
	return p->hanging.nr && layers_may_hang(p, line->options) ? MOUNTS_MAY_HANG
								  : MOUNTS_ANSWERS;
}

static int judge_all(struct mounts *m, struct points *p)
{
	for (size_t i = 0; i < p->nr; i++)
		if (type_may_hang(p->lines[i].type) && vec_push(&p->hanging, p->lines[i].point))
			return -ENOMEM;
	for (size_t i = 0; i < p->nr; i++) {
		const struct line *line = &p->lines[i];
		enum mounts_answer answer = judge(m, p, line);
		struct mount_device d = { line->dev_major, line->dev_minor, answer };
		struct mount_number n = { line->id, answer };

		m->any_may_hang |= answer != MOUNTS_ANSWERS;
		if (vec_push(&m->devices, d) || vec_push(&m->numbers, n))
			return -ENOMEM;
	}
	return 0;
}

static int keep(struct mounts *m, const struct line *lines, size_t nr)
{
	struct points points = { .lines = lines, .nr = nr };
	size_t kept = 0;
	int r = judge_all(m, &points);

	vec_free(&points.hanging);
	if (r || !nr)
		return r;
	qsort(m->numbers.items, m->numbers.nr, sizeof(*m->numbers.items), compare_numbers);
	qsort(m->devices.items, m->devices.nr, sizeof(*m->devices.items), compare);
	/* Of one that is listed twice the first is the worst. */
	for (size_t i = 0; i < m->devices.nr; i++) {
		const struct mount_device *d = &m->devices.items[i];

		if (!kept || d->dev_major != m->devices.items[kept - 1].dev_major ||
		    d->dev_minor != m->devices.items[kept - 1].dev_minor)
			m->devices.items[kept++] = *d;
	}
	m->devices.nr = kept;
	return 0;
}

int mounts_parse(struct mounts *m, char *text)
{
	VEC(struct line) lines = { 0 };
	char *line, *save = NULL;
	int r = 0;

	m->devices.nr = m->numbers.nr = 0;
	m->any_may_hang = false;
	for (line = strtok_r(text, "\n", &save); line && !r; line = strtok_r(NULL, "\n", &save)) {
		struct line l;

		if (parse_line(line, &l))
			r = vec_push(&lines, l);
	}
	if (!r)
		r = keep(m, lines.items, lines.nr);
	vec_free(&lines);
	return r;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* The descriptor goes on telling of its namespace when the process has ended. */
static int read_text(int fd, size_t max, char **ret)
{
	for (size_t size = TEXT_SIZE; size <= max; size *= 4) {
		_cleanup_free_ char *text = malloc(size);
		ssize_t n = text ? read_at(fd, 0, text, size) : -ENOMEM;

		if (n < 0)
			return (int)n;
		if ((size_t)n == size)
			continue;
		text[n] = '\0';
		*ret = TAKE_PTR(text);
		return 0;
	}
	return -EFBIG;
}

static void read_again(struct mounts *m)
{
	size_t max = m->anybodys ? ANYBODYS_MAX : MOUNTINFO_MAX;
	_cleanup_free_ char *text = NULL;
	uint64_t begin = now_ns(), took;

	m->was_read = !read_text(m->fd, max, &text) && !mounts_parse(m, text);
	m->version++;
	took = now_ns() - begin;
	m->next_ns = begin + (m->anybodys ? READ_SHARE_ANYBODYS : READ_SHARE) * took;
	if (took <= READ_TAKES_NS)
		m->next_ns = 0;
}

/* What is known is what is so: false if nothing is. */
static bool look_again(struct mounts *m)
{
	struct pollfd p = { .fd = m->fd, .events = POLLPRI };

	if (m->fd < 0)
		return false;
	/* A change after this is told by the next poll(), and once. */
	if (poll(&p, 1, 0) > 0 && p.revents)
		m->was_read = false;
	if (!m->was_read && (!m->next_ns || now_ns() >= m->next_ns))
		read_again(m);
	return m->was_read;
}

static enum mounts_answer find(const struct mounts *m, uint32_t dev_major, uint32_t dev_minor)
{
	struct mount_device key = { .dev_major = dev_major, .dev_minor = dev_minor };
	size_t lo = 0, n = m->devices.nr;

	while (n) {
		const struct mount_device *d = &m->devices.items[lo + n / 2];

		if (d->dev_major == dev_major && d->dev_minor == dev_minor)
			return d->answer;
		if (compare(d, &key) < 0) {
			lo += n / 2 + 1;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return MOUNTS_UNKNOWN;
}

enum mounts_answer mounts_look(struct mounts *m, uint32_t dev_major, uint32_t dev_minor)
{
	/* A block device's number is its own; others are given to the next file system at once. */
	enum mounts_answer answer = dev_major ? find(m, dev_major, dev_minor) : MOUNTS_UNKNOWN;

	if (answer == MOUNTS_ANSWERS)
		return answer;
	return look_again(m) ? find(m, dev_major, dev_minor) : answer;
}

enum mounts_answer mounts_look_at(struct mounts *m, uint64_t mount_id)
{
	const struct mount_number key = { .id = mount_id }, *found = NULL;

	if (look_again(m) && m->numbers.nr)
		found = bsearch(&key, m->numbers.items, m->numbers.nr, sizeof(*m->numbers.items),
				compare_numbers);
	return found ? found->answer : MOUNTS_UNKNOWN;
}

uint32_t mounts_version(struct mounts *m)
{
	return look_again(m) ? m->version : 0;
}

bool mounts_any_may_hang(struct mounts *m)
{
	return !look_again(m) || m->any_may_hang;
}
