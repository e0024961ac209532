// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_cache.h"
#include "util/cleanup.h"
#include "util/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/*
	 * Goes up with IMAGE_VERSION, and with each source that tables are made of beside those of
	 * before (3: Go's own table; 4: that of Go 1.16 and 1.17 rather than their debug
	 * information; 5: V8's builtins without .symtab; 6: and in a file that exports nothing of
	 * V8's; 7: and up to V8 8.4): what is in the cache lacks it.
	 */
	CACHE_VERSION = 7,
	CLAIM_TRIES = 16,
	ANCESTORS_MAX = 64,
	/* A table used again so soon keeps its time: a hit need not write to the disk. */
	TOUCH_S = 60,
};

static void table_name(const char *key, const char *ending, char ret[static SYMBOL_CACHE_NAME_MAX])
{
	snprintf(ret, SYMBOL_CACHE_NAME_MAX, "%s.%d.%s", key, CACHE_VERSION, ending);
}

/* --- the folder ------------------------------------------------------------------------------- */

static char *default_path(void)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path = NULL;

	if (base && base[0] == '/') {
		if (asprintf(&path, "%s/sonde/symbols", base) < 0)
			return NULL;
	} else if (!geteuid()) {
		return strdup("/var/cache/sonde/symbols");
	} else if (asprintf(&path, "%s/.cache/sonde/symbols", home ? home : "") < 0) {
		return NULL;
	}
	return path;
}

/* Makes the folders of a path that are not there, for us alone. */
static int make_folders(char *path)
{
	for (char *p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST) {
			int r = -errno;

			*p = c;
			/* Of a read-only or unreadable place the folder may be there all the same.
			 */
			if (access(path, F_OK))
				return r;
		}
		*p = c;
		if (!c)
			return 0;
	}
}

/* Could anybody but us and root put something else in its place? */
static bool is_ours(const struct stat *st, bool is_folder_itself)
{
	if (st->st_uid != geteuid() && (st->st_uid || is_folder_itself))
		return false;
	/* /tmp: what is ours there stays ours. A group of our own is no others, either. */
	if (is_folder_itself || !(st->st_mode & S_ISVTX))
		return !(st->st_mode & 002) && (!(st->st_mode & 020) || st->st_gid == getegid());
	return true;
}

static int check_owners(int dir)
{
	_cleanup_close_ int fd = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	struct stat st, last = { 0 };

	for (int i = 0; i < ANCESTORS_MAX; i++) {
		int up;

		if (fd < 0 || fstat(fd, &st))
			return -errno;
		if (i && st.st_ino == last.st_ino && st.st_dev == last.st_dev)
			return 0; /* the root */
		if (!is_ours(&st, i == 0))
			return -EPERM;
		last = st;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = up;
	}
	return -ELOOP;
}

int symbol_cache_open(const char *path, int *ret_dir, char **ret_path)
{
	_cleanup_free_ char *copy = path ? strdup(path) : default_path();
	_cleanup_close_ int dir = -1;
	int r;

	*ret_path = NULL;
	if (!copy)
		return -ENOMEM;
	r = copy[0] == '/' ? make_folders(copy) : -EINVAL;
	if (!r) {
		dir = open(copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = dir < 0 ? -errno : check_owners(dir);
	}
	if (!r && faccessat(dir, ".", W_OK, AT_EACCESS))
		r = -errno;
	*ret_path = TAKE_PTR(copy);
	if (!r)
		*ret_dir = TAKE_FD(dir);
	return r;
}

/* --- tables ----------------------------------------------------------------------------------- */

static void touch(int fd)
{
	struct stat st;

	if (!fstat(fd, &st) && time(NULL) - st.st_mtime > TOUCH_S)
		futimens(fd, NULL);
}

int symbol_cache_get(int dir, const char *key, uint64_t fingerprint, struct symbol_table **ret)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	char name[SYMBOL_CACHE_NAME_MAX];
	struct symbol_table_info info;
	_cleanup_close_ int fd = -1;
	int r;

	table_name(key, "sym", name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = symbol_table_open_fd(fd, &t);
	if (r)
		return r;
	symbol_table_info(t, &info);
	if (info.fingerprint != fingerprint)
		return -ESTALE;
	touch(fd);
	*ret = TAKE_PTR(t);
	return 0;
}

/* Is the name still that of the file that we have the lock of? */
static bool is_still(int dir, const char *name, int fd)
{
	struct stat a, b;

	return !fstat(fd, &a) && !fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

int symbol_cache_claim(int dir, const char *key, int *ret_fd)
{
	char name[SYMBOL_CACHE_NAME_MAX];

	table_name(key, "tmp", name);
	for (int i = 0; i < CLAIM_TRIES; i++) {
		_cleanup_close_ int fd = openat(
			dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB))
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		/* Its owner may have finished, or a cleaner removed it, before we had the lock. */
		if (!is_still(dir, name, fd))
			continue;
		if (ftruncate(fd, 0))
			return -errno;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	return -EAGAIN;
}

int symbol_cache_commit(int dir, const char *key, int fd)
{
	char from[SYMBOL_CACHE_NAME_MAX], to[SYMBOL_CACHE_NAME_MAX];

	table_name(key, "tmp", from);
	table_name(key, "sym", to);
	if (!is_still(dir, from, fd))
		return -ESTALE;
	return renameat(dir, from, dir, to) ? -errno : 0;
}

void symbol_cache_abandon(int dir, const char *key, int fd)
{
	char name[SYMBOL_CACHE_NAME_MAX];

	table_name(key, "tmp", name);
	if (is_still(dir, name, fd))
		unlinkat(dir, name, 0);
}

/* --- cleaning --------------------------------------------------------------------------------- */

struct cached {
	struct timespec used;
	uint64_t size;
	char name[SYMBOL_CACHE_NAME_MAX];
};

struct cached_files {
	VEC(struct cached) items;
	uint64_t sum;
};

static void remove_if_dead(int dir, const char *name)
{
	_cleanup_close_ int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || !is_still(dir, name, fd))
		return;
	unlinkat(dir, name, 0);
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);

	return len > end_len && !strcmp(name + len - end_len, end);
}

static int look_at(int dir, const char *name, struct cached_files *files)
{
	struct cached file;
	struct stat st;

	if (ends_with(name, ".tmp"))
		remove_if_dead(dir, name);
	if (!ends_with(name, ".sym") || strlen(name) >= sizeof(file.name) ||
	    files->items.nr >= SYMBOL_CACHE_FILES_MAX ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0;
	file.used = st.st_mtim;
	file.size = symbol_cache_bytes(&st);
	memcpy(file.name, name, strlen(name) + 1);
	files->sum += file.size;
	return vec_push(&files->items, file);
}

static int compare_use(const void *a_, const void *b_)
{
	const struct cached *a = a_, *b = b_;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

int symbol_cache_clean(int dir, uint64_t max)
{
	/* Its own position: `dir` may be shared with other processes. */
	_cleanup_close_ int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closedir_p) DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	uint64_t most = max - symbol_cache_room(max);
	struct cached_files files = { 0 };
	const struct dirent *entry;
	int r = 0;

	if (!stream)
		return -errno;
	fd = -1;
	while (!r && (entry = readdir(stream)))
		r = look_at(dir, entry->d_name, &files);
	if (!r && files.sum > most)
		qsort(files.items.items, files.items.nr, sizeof(*files.items.items), compare_use);
	for (size_t i = 0; i < files.items.nr && !r && files.sum > most; i++)
		if (!unlinkat(dir, files.items.items[i].name, 0))
			files.sum -= files.items.items[i].size;
	vec_free(&files.items);
	return r;
}
