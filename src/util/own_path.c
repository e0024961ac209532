// SPDX-License-Identifier: Apache-2.0
#include "util/own_path.h"
#include "util/cleanup.h"
#include "util/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <string.h>
#include <sys/vfs.h>

enum {
	LINKS_MAX = 40, /* as the kernel */
};

void own_path_fini(struct own_path *p)
{
	close_p(&p->dir_fd);
	close_p(&p->open_fd);
	free(p->name);
	*p = (struct own_path){ .dir_fd = -1, .open_fd = -1 };
}

/* Who called sudo is root already. The variable is root's own: nobody else starts us as root with
 * it. */
static bool called_sudo(uid_t uid)
{
	const char *text = geteuid() ? NULL : getenv("SUDO_UID");
	char *end = NULL;
	unsigned long number = text ? strtoul(text, &end, 10) : 0;

	return text && *text && !*end && number == uid;
}

static bool is_trusted(uid_t uid)
{
	return owner_is_trusted(uid) || called_sudo(uid);
}

/* "mallory (user 1001)", by /etc/passwd alone: to ask further may mean to ask the network. */
static char *user_name(uid_t uid)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry;
	char *name = NULL;

	while (file && (entry = fgetpwent(file)))
		if (entry->pw_uid == uid)
			return asprintf(&name, "%s (user %u)", entry->pw_name, uid) < 0 ? NULL
											: name;
	return asprintf(&name, "user %u", uid) < 0 ? NULL : name;
}

static int refuse(const char *kind, const char *name, uid_t uid, char **why_ret)
{
	_cleanup_free_ char *user = user_name(uid);

	if (asprintf(why_ret, "the %s '%s' belongs to %s", kind, name, user ? user : "another") < 0)
		*why_ret = NULL;
	return -EPERM;
}

static bool is_in_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Whether everybody may put files into the folder, and rename but their own. */
static bool is_for_everybody(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) || ((st.st_mode & S_ISVTX) && (st.st_mode & S_IWOTH));
}

static bool is_others(const struct own_path *p, const struct stat *st)
{
	if (is_trusted(st->st_uid))
		return false;
	return S_ISFIFO(st->st_mode) || (S_ISREG(st->st_mode) && is_for_everybody(p->dir_fd));
}

bool own_path_keeps(const struct own_path *p, struct stat *ret)
{
	return !fstatat(p->dir_fd, p->name, ret, AT_SYMLINK_NOFOLLOW) && S_ISREG(ret->st_mode) &&
	       !is_others(p, ret);
}

/* --- the walk --------------------------------------------------------------------------------- */

struct walk {
	int dir_fd;
	char *rest;
	unsigned int nr_links;
	char **why_ret;
};

static void walk_fini(struct walk *w)
{
	close_p(&w->dir_fd);
	free(w->rest);
}

/* Begins at "/" again if the path does. */
static int enter_root(struct walk *w)
{
	int fd = w->rest[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (w->rest[0] != '/')
		return 0;
	if (fd < 0)
		return -errno;
	close_p(&w->dir_fd);
	w->dir_fd = fd;
	return 0;
}

/* Puts what the link says before the rest. */
static int follow(struct walk *w, int link_fd, const char *rest)
{
	char target[PATH_MAX], *joined;
	ssize_t len = readlinkat(link_fd, "", target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	if (++w->nr_links > LINKS_MAX)
		return -ELOOP;
	if (asprintf(&joined, "%.*s%s%s", (int)len, target, *rest ? "/" : "", rest) < 0)
		return -ENOMEM;
	free(w->rest);
	w->rest = joined;
	return enter_root(w);
}

static int enter(struct walk *w, int fd, const char *rest)
{
	close_p(&w->dir_fd);
	w->dir_fd = fd;
	memmove(w->rest, rest, strlen(rest) + 1);
	return 0;
}

static int finish(struct walk *w, const char *name, int fd, const struct stat *st,
		  struct own_path *ret)
{
	struct own_path p = { .dir_fd = w->dir_fd, .open_fd = -1, .exists = fd >= 0 };

	if (fd >= 0)
		p.st = *st;
	if (fd >= 0 && is_others(&p, st))
		return refuse(S_ISFIFO(st->st_mode) ? "FIFO" : "file", name, st->st_uid,
			      w->why_ret);
	p.name = strdup(name);
	if (!p.name)
		return -ENOMEM;
	w->dir_fd = -1;
	*ret = p;
	return 1;
}

/* The links of /proc lead to what is open, whatever they say: the kernel follows them. */
static int follow_proc(struct walk *w, const char *name, const char *rest, struct own_path *ret)
{
	_cleanup_close_ int fd = openat(w->dir_fd, name, O_PATH | O_CLOEXEC);
	struct own_path p = { .dir_fd = -1, .exists = true };

	if (fd < 0)
		return -errno;
	if (*rest)
		return enter(w, TAKE_FD(fd), rest);
	if (fstat(fd, &p.st))
		return -errno;
	p.open_fd = TAKE_FD(fd);
	*ret = p;
	return 1;
}

/* One component: 1 at the end, 0 if there is more. */
static int step(struct walk *w, struct own_path *ret)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *name = NULL;
	const char *begin = w->rest + strspn(w->rest, "/"), *rest;
	size_t len = strcspn(begin, "/");
	struct stat st = { 0 };

	rest = begin + len + strspn(begin + len, "/");
	name = len ? strndup(begin, len) : strdup(".");
	if (!name)
		return -ENOMEM;
	fd = openat(w->dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno != ENOENT || *rest))
		return -errno;
	if (fd >= 0 && fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		if (!is_trusted(st.st_uid))
			return refuse("symbolic link", name, st.st_uid, w->why_ret);
		return is_in_proc(w->dir_fd) ? follow_proc(w, name, rest, ret)
					     : follow(w, fd, rest);
	}
	if (!*rest)
		return finish(w, name, fd, &st, ret);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return enter(w, TAKE_FD(fd), rest);
}

int own_path_find(const char *path, struct own_path *ret, char **why_ret)
{
	_cleanup_(walk_fini) struct walk w = { .dir_fd = -1, .why_ret = why_ret };
	int r = 0;

	*why_ret = NULL;
	if (!*path)
		return -ENOENT;
	w.rest = strdup(path);
	if (!w.rest)
		return -ENOMEM;
	w.dir_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w.dir_fd < 0)
		return -errno;
	r = enter_root(&w);
	while (!r)
		r = step(&w, ret);
	return r < 0 ? r : 0;
}
