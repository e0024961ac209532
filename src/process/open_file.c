// SPDX-License-Identifier: Apache-2.0
/*
 * Finding the file behind a mapping again, from outside, perhaps after the process's end.
 *
 * A candidate is opened O_PATH first and believed only if its inode is right. In what order, and
 * why: docs/processes.md.
 */
#include "process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "process/memory.h"
#include "process/proc_identity.h"
#include "util/cleanup.h"
#include "util/open_in_root.h"

enum {
	OTHERS_MAX = 8,		     /* other processes that are tried */
	VDSO_SIZE_MAX = 1024 * 1024, /* it is two pages today */
	BCACHEFS_MAGIC = (int)0xca451a4e,
};

bool has_own_devices(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       ((int)fs.f_type == (int)OVERLAYFS_SUPER_MAGIC ||
		(int)fs.f_type == (int)BTRFS_SUPER_MAGIC || (int)fs.f_type == BCACHEFS_MAGIC);
}

/* What is known of it without asking the server. */
static int look(int fd, struct statx *ret)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO | STATX_MNT_ID,
		  ret))
		return -errno;
	return S_ISREG(ret->stx_mode) ? 0 : -ESTALE;
}

static bool is_keyed(const struct file_key *key, uint32_t dev_major, uint32_t dev_minor,
		     uint64_t inode)
{
	return key->inode == inode && key->dev_major == dev_major && key->dev_minor == dev_minor;
}

static bool is_known_to_hang(struct mounts *m, const struct statx *st)
{
	return m && mounts_look(m, st->stx_dev_major, st->stx_dev_minor) == MOUNTS_MAY_HANG;
}

/*
 * May has_own_devices() ask? Files of overlays have numbers of their own: the mount tells what they
 * are of, since Linux 5.8. One of no namespace that is known is asked as long as there may not be
 * one that is not.
 */
static bool may_ask(const struct servers *servers, const struct statx *st)
{
	enum mounts_answer own = MOUNTS_UNKNOWN, others = MOUNTS_UNKNOWN;

	if (!servers)
		return true;
	if (st->stx_mask & STATX_MNT_ID)
		own = mounts_look_at(servers->own, st->stx_mnt_id);
	if (own == MOUNTS_UNKNOWN && st->stx_mask & STATX_MNT_ID && servers->others)
		others = mounts_look_at(servers->others, st->stx_mnt_id);
	if (own == MOUNTS_UNKNOWN && others == MOUNTS_UNKNOWN)
		return !servers->unknown && !is_known_to_hang(servers->own, st) &&
		       !is_known_to_hang(servers->others, st);
	return own == MOUNTS_ANSWERS || others == MOUNTS_ANSWERS;
}

bool process_may_ask(const struct process_table *t, int32_t pid, int path_fd)
{
	struct servers servers = servers_of(t, pid ? mount_ns_of(t, pid) : 0);
	struct mounts not_held = { .fd = -1 };
	struct statx st;
	char proc_dir[32];
	bool may;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st))
		return false;
	if (servers.unknown) {
		snprintf(proc_dir, sizeof(proc_dir), "/proc/%d", pid);
		servers.unknown = mounts_open(&not_held, proc_dir);
		servers.others = &not_held;
	}
	may = may_ask(&servers, &st);
	mounts_close(&not_held);
	return may;
}

struct own_mapping {
	uint64_t start;
	const struct file_key *key;
};

static int compare_own(void *ctx, const struct maps_entry *e)
{
	const struct own_mapping *own = ctx;

	if (own->start < e->start || own->start >= e->end)
		return 0;
	return is_keyed(own->key, e->dev_major, e->dev_minor, e->inode) ? 1 : -ESTALE;
}

/* Have mappings of the file that device and inode? Whatever stat() says. */
static bool is_mapped_as(int fd, const struct file_key *key)
{
	void *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, fd, 0);
	struct own_mapping own = { (uintptr_t)page, key };
	int r;

	if (page == MAP_FAILED)
		return false;
	r = proc_maps_read(getpid(), compare_own, &own);
	munmap(page, 1);
	return r == 1;
}

/* Opens what was found for reading, if that is the file. */
static int open_right(const struct servers *servers, int path_fd, const struct file_key *key,
		      int *ret)
{
	_cleanup_close_ int fd = -1;
	struct statx st;
	bool equal;
	int r = look(path_fd, &st);

	if (r)
		return r;
	equal = is_keyed(key, st.stx_dev_major, st.stx_dev_minor, st.stx_ino);
	if (!equal && (!may_ask(servers, &st) || !has_own_devices(path_fd)))
		return -ESTALE;
	r = open_found(path_fd, &fd);
	if (r)
		return r;
	if (!equal && !is_mapped_as(fd, key))
		return -ESTALE;
	*ret = TAKE_FD(fd);
	return 0;
}

/* A way that leads through what may hang can be gone as far as the kernel knows it by heart. */
static int open_path(const struct servers *servers, int root_fd, const char *path, int *ret)
{
	int r;

	if (servers && (servers->unknown || mounts_any_may_hang(servers->own) ||
			(servers->others && mounts_any_may_hang(servers->others)))) {
		r = open_in_root_cached(root_fd, path, O_PATH, ret);
		if (r != -EINVAL)
			return r;
	}
	return open_in_root(root_fd, path, O_PATH, ret);
}

int open_below(const struct servers *servers, int root_fd, const char *path,
	       const struct file_key *key, int *ret)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (path[0] != '/')
		return -ENOENT;
	r = open_path(servers, root_fd, path, &fd);
	if (r && r != -ENOSYS)
		return r;
	/* Links may then lead out of the root, but not to another inode. */
	if (r)
		fd = openat(root_fd, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return open_right(servers, fd, key, ret);
}

/* Below a root; also in case that " (deleted)" was part of the name. */
static int open_named(const struct servers *servers, int root_fd, const struct mapped_file *file,
		      int *ret)
{
	_cleanup_free_ char *literal = NULL;
	int r = open_below(servers, root_fd, file->path, &file->key, ret);

	if (!r || asprintf(&literal, "%s (deleted)", file->path) < 0)
		return r;
	return open_below(servers, root_fd, literal, &file->key, ret) ? r : 0;
}

/* --- a process that maps it ------------------------------------------------------------------- */

struct map_files {
	const struct servers *servers;
	int32_t tid;
	const struct mapped_file *file;
	int *ret;
};

static int open_map_file(const struct map_files *search, uint64_t start, uint64_t end)
{
	_cleanup_close_ int fd = -1;
	int r = process_open_map_file(search->tid, start, end, &fd);

	if (r)
		return r;
	return open_right(search->servers, fd, &search->file->key, search->ret);
}

static int try_entry(void *ctx, const struct maps_entry *e)
{
	const struct map_files *search = ctx;

	/* Any mapping of the file does, executable or not. */
	if (!is_keyed(&search->file->key, e->dev_major, e->dev_minor, e->inode))
		return 0;
	return open_map_file(search, e->start, e->end) ? 0 : -EEXIST;
}

/*
 * Our mapping may be several of the kernel's, joined, or a part of one. A process may have 65,000,
 * and as many files that are gone: each user has his share of the time for that. 0: it was found.
 */
static int search_maps(struct process_table_private *p, int32_t pid, struct map_files *search)
{
	uint64_t begin;
	uint32_t owner;
	int r;

	if (!p)
		return proc_maps_read(pid, try_entry, search) == -EEXIST ? 0 : -ENOENT;
	owner = proc_user(pid, FILE_OWNER_NONE);
	if (!time_shares_begin(&p->search_time, owner, &begin))
		return -EAGAIN;
	r = proc_maps_read(pid, try_entry, search);
	time_shares_end(&p->search_time, owner, begin);
	return r == -EEXIST ? 0 : -ENOENT;
}

/* `p`: whose share of the time it takes; NULL: it may take as long as it likes. */
static int open_in_process(struct process_table_private *p, const struct servers *servers,
			   int32_t pid, const struct mapping *m, const struct mapped_file *file,
			   int *ret)
{
	struct map_files search = { servers, proc_living_thread(pid), file, ret };
	_cleanup_close_ int root_fd = -1;
	char path[64];

	if (!open_map_file(&search, m->start, m->end) || !search_maps(p, pid, &search))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/root", search.tid);
	root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return open_named(servers, root_fd, file, ret);
}

const struct mapping *process_mapping_of(const struct process *proc, uint32_t file)
{
	for (size_t i = 0; i < proc->mappings.nr; i++)
		if (proc->mappings.items[i].file == file)
			return &proc->mappings.items[i];
	return NULL;
}

static int open_in_others(const struct process_table *t, const struct servers *servers,
			  const struct process *except, const struct mapped_file *file, int *ret)
{
	unsigned int tried = 0;
	struct map_slot *slot;
	size_t i = 0;

	while (tried < OTHERS_MAX && (slot = map_next(&t->by_pid, &i))) {
		const struct process *other = (const struct process *)(uintptr_t)slot->value;
		const struct mapping *m;

		if (other == except || other->exited)
			continue;
		m = process_mapping_of(other, file->index);
		if (!m)
			continue;
		if (!open_in_process(t->private, servers, other->pid, m, file, ret))
			return 0;
		tried++;
	}
	return -ENOENT;
}

static int open_in_roots(const struct process_table *t, const struct servers *servers,
			 uint64_t mount_ns, const struct mapped_file *file, int *ret)
{
	size_t i = t->private->roots.nr;
	const struct foreign_root *root;

	/* The newest first: a container's first programs may have run before its pivot_root. */
	while ((root = mount_ns_root(t, mount_ns, &i)))
		if (!open_named(servers, root->root_fd, file, ret))
			return 0;
	return -ENOENT;
}

static int open_anywhere(const struct process_table *t, const struct servers *servers,
			 const struct process *proc, const struct mapping *m,
			 const struct mapped_file *file, int *ret)
{
	_cleanup_close_ int root_fd = -1;
	int r = -ESRCH;

	if (!proc->exited)
		r = open_in_process(t->private, servers, proc->pid, m, file, ret);
	if (!r || !open_in_roots(t, servers, proc->mount_ns, file, ret) ||
	    !open_in_others(t, servers, proc, file, ret))
		return 0;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd >= 0 && !open_named(servers, root_fd, file, ret))
		return 0;
	return r;
}

int open_file_patiently(int32_t pid, const struct mapping *m, const struct mapped_file *file,
			const int *roots, size_t nr_roots, int *ret)
{
	int r = open_in_process(NULL, NULL, pid, m, file, ret);

	for (size_t i = 0; r && i < nr_roots; i++)
		if (!open_named(NULL, roots[i], file, ret))
			return 0;
	return r;
}

/* --- the vDSO --------------------------------------------------------------------------------- */

static int find_own_vdso(void *ctx, const struct maps_entry *e)
{
	struct mapping *m = ctx;

	if (strcmp(e->path, "[vdso]"))
		return 0;
	m->start = e->start;
	m->end = e->end;
	return 1;
}

/*
 * The vDSO of all 64-bit processes is the kernel's, and so is ours. Never read theirs: a process
 * may write to its own, and this image is everybody's.
 */
static int open_vdso(struct mapped_file *file)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_free_ uint8_t *image = NULL;
	struct mapping own;
	size_t size;
	int r = proc_maps_read(getpid(), find_own_vdso, &own);

	if (r != 1)
		return files_fail(file, r < 0 ? r : -ENOENT);
	size = own.end - own.start;
	image = size > VDSO_SIZE_MAX ? NULL : malloc(size);
	if (!image)
		return files_fail(file, size > VDSO_SIZE_MAX ? -EFBIG : -ENOMEM);
	memcpy(image, (const void *)(uintptr_t)own.start, size);
	r = elf_file_open_memory(image, size, &elf);
	if (!r)
		r = files_identify_image(file, elf);
	if (r)
		return files_fail(file, r);
	file->image = TAKE_PTR(image);
	file->size = size;
	return 0;
}

int process_open_file(struct process_table *t, const struct process *proc, const struct mapping *m,
		      struct mapped_file *file)
{
	struct servers servers;
	int fd, r;

	if (file->state != FILE_NEW)
		return file->state == FILE_OPEN ? 0 : file->error;
	if (!file->key.inode)
		return open_vdso(file);
	servers = servers_of(t, proc->mount_ns);
	if (is_slow(t, &servers, file->key.dev_major, file->key.dev_minor))
		return slow_file_open(t, proc, m, file);
	r = open_anywhere(t, &servers, proc, m, file, &fd);
	if (r)
		return files_fail(file, r);
	return files_identify(t, file, fd);
}
