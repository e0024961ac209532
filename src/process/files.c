// SPDX-License-Identifier: Apache-2.0
/*
 * The files behind mappings: which mapping has which, and what their ELF headers say.
 *
 * A file that has been read keeps one descriptor, which also keeps its inode from being used again:
 * it is then known by device and inode alone. Until then an inode number proves little (ext4 gives
 * it to the next file at once), and the path is part of the identity. When descriptors run short,
 * those go that can be had again by their path below our own root; it is looked at again before
 * use.
 */
#include "process/process_internal.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "util/cleanup.h"

enum {
	/* A file that could not be had is tried again for the next processes that map it. */
	FAILURES_MAX = 8,
	/* Files looked at for one to close. */
	EVICT_TRIES = 64,
	NR_FDS_MIN = 16,
	SEGMENTS_MAX = 64, /* executable ones of a file; linkers make one or two */
};

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static bool is_anonymous(const struct file_key *key, const char *path)
{
	return !key->inode || path[0] == '[' || !path[0] || starts_with(path, "//anon") ||
	       starts_with(path, "/SYSV") || starts_with(path, "/dev/zero") ||
	       starts_with(path, "/anon_hugepage") || starts_with(path, "anon_inode:");
}

static uint64_t hash_key(const struct file_key *key, const char *path, size_t len)
{
	uint64_t seed = ((uint64_t)key->dev_major << 32 | key->dev_minor) * 0x9e3779b97f4a7c15ull;

	return XXH3_64bits_withSeed(path, len, seed ^ key->inode * 0xff51afd7ed558ccdull);
}

static bool key_equal(const struct file_key *a, const struct file_key *b)
{
	return a->dev_major == b->dev_major && a->dev_minor == b->dev_minor && a->inode == b->inode;
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

static bool is_same_content(int fd, const struct mapped_file *file)
{
	struct stat st;

	return !fstat(fd, &st) && (uint64_t)st.st_size == file->size &&
	       mtime_ns(&st) == file->mtime_ns;
}

/* Again by its path, below our root; the very contents that were read, or -ESTALE. */
static int reopen(const struct mapped_file *file, int *ret)
{
	_cleanup_close_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int r;

	if (root_fd < 0)
		return -errno;
	r = open_below(root_fd, file->path, &file->key, &fd);
	if (r)
		return r;
	if (!is_same_content(fd, file))
		return -ESTALE;
	*ret = TAKE_FD(fd);
	return 0;
}

/* `path` of `len` bytes is copied. */
static int file_new(struct process_table *t, const struct file_key *key, const char *path,
		    size_t len, struct mapped_file **ret)
{
	struct mapped_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->key = *key;
	file->index = (uint32_t)t->files.nr;
	file->path = strndup(path, len);
	if (!file->path || vec_push(&t->files, file)) {
		free(file->path);
		free(file);
		return -ENOMEM;
	}
	*ret = file;
	return 0;
}

int files_init(struct process_table *t)
{
	struct file_key none = { 0 };
	struct mapped_file *anon;
	struct rlimit limit;
	int r = file_new(t, &none, "[anon]", strlen("[anon]"), &anon);

	if (r)
		return r;
	anon->state = FILE_OPEN;
	/* The other half is for sockets, rings, maps, and workers' descriptors. */
	t->private->max_fds = NR_FDS_MIN;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 2 > NR_FDS_MIN)
		t->private->max_fds = limit.rlim_cur / 2;
	return 0;
}

void files_fini(struct process_table *t)
{
	for (size_t i = 0; i < t->files.nr; i++) {
		struct mapped_file *file = t->files.items[i];

		if (file->fd >= 0)
			close(file->fd);
		vec_free(&file->segments);
		free(file->image);
		free(file->path);
		free(file->place);
		free(file);
	}
	vec_free(&t->files);
	map_fini(&t->file_by_key);
	map_fini(&t->private->file_by_inode);
}

size_t files_bytes(const struct process_table *t)
{
	size_t bytes = t->files.cap * sizeof(*t->files.items) +
		       (t->file_by_key.cap + t->private->file_by_inode.cap) *
			       sizeof(*t->file_by_key.slots);

	for (size_t i = 0; i < t->files.nr; i++) {
		const struct mapped_file *file = t->files.items[i];

		bytes += sizeof(*file) + strlen(file->path) + 1 +
			 file->segments.cap * sizeof(*file->segments.items) +
			 (file->image ? file->size : 0);
	}
	return bytes;
}

static void close_file(struct process_table *t, struct mapped_file *file)
{
	close(file->fd);
	file->fd = -1;
	t->private->nr_fds--;
	map_del(&t->private->file_by_inode, hash_key(&file->key, "", 0));
}

/* A file whose inode we hold: the same one under whatever path, if nobody has written to it since.
 */
static struct mapped_file *find_held(struct process_table *t, const struct file_key *key)
{
	uint64_t *index = map_get(&t->private->file_by_inode, hash_key(key, "", 0));
	struct mapped_file *file = index ? t->files.items[*index] : NULL;

	if (!file || !key_equal(&file->key, key))
		return NULL;
	if (is_same_content(file->fd, file))
		return file;
	close_file(t, file);
	return NULL;
}

static struct mapped_file *find_named(struct process_table *t, uint64_t hash,
				      const struct file_key *key, const char *path, size_t len)
{
	uint64_t *index = map_get(&t->file_by_key, hash);
	struct mapped_file *file = index ? t->files.items[*index] : NULL;
	_cleanup_close_ int fd = -1;

	if (!file || !key_equal(&file->key, key) || strncmp(file->path, path, len) ||
	    file->path[len])
		return NULL;
	/* Closed to save a descriptor: another file may have got the inode. */
	if (file->state == FILE_OPEN && file->is_elf && file->fd < 0 && !file->image &&
	    reopen(file, &fd))
		return NULL;
	if (file->state == FILE_UNREADABLE && file->nr_failures < FAILURES_MAX)
		file->state = FILE_NEW;
	return file;
}

int files_lookup(struct process_table *t, const struct file_key *key, const char *path,
		 uint32_t *ret)
{
	static const char deleted[] = " (deleted)", vdso[] = "[vdso]";
	size_t len = strlen(path), deleted_len = sizeof(deleted) - 1;
	const struct file_key none = { 0 };
	struct mapped_file *file;
	uint64_t hash;
	int r;

	if (!strcmp(path, vdso)) {
		key = &none;
	} else if (is_anonymous(key, path)) {
		*ret = MAPPING_ANON;
		return 0;
	}
	if (len > deleted_len && !strcmp(path + len - deleted_len, deleted))
		len -= deleted_len;
	file = key->inode ? find_held(t, key) : NULL;
	hash = hash_key(key, path, len);
	if (!file)
		file = find_named(t, hash, key, path, len);
	if (file) {
		*ret = file->index;
		return 0;
	}
	if (t->files.nr >= FILES_MAX) {
		t->nr_files_capped++;
		*ret = MAPPING_ANON;
		return 0;
	}
	r = file_new(t, key, path, len, &file);
	if (r)
		return r;
	r = map_put(&t->file_by_key, hash, file->index);
	if (r)
		return r;
	*ret = file->index;
	return 0;
}

int files_add(struct process_table *t, const struct file_key *key, const char *path,
	      struct mapped_file **ret)
{
	if (t->files.nr >= FILES_MAX)
		return -ENOSPC;
	return file_new(t, key, path, strlen(path), ret);
}

/* Closes one file that can be had again; false if none was found. */
static bool evict_one(struct process_table *t)
{
	size_t tries = t->files.nr < EVICT_TRIES ? t->files.nr : EVICT_TRIES;

	for (; tries; tries--) {
		_cleanup_close_ int fd = -1;
		struct mapped_file *file;

		t->private->evict_hand = (t->private->evict_hand + 1) % t->files.nr;
		file = t->files.items[t->private->evict_hand];
		if (file->fd < 0 || reopen(file, &fd))
			continue;
		close_file(t, file);
		return true;
	}
	return false;
}

int files_fail(struct mapped_file *file, int error)
{
	file->is_elf = false;
	file->state = FILE_UNREADABLE;
	file->error = error;
	file->nr_failures++;
	return error;
}

static int read_segments(const struct elf_file *elf, struct mapped_file *file)
{
	file->segments.nr = 0;
	for (size_t i = 0; i < elf->nr_segments && file->segments.nr < SEGMENTS_MAX; i++) {
		const struct elf_segment *s = &elf->segments[i];
		struct file_segment segment = { s->offset, s->vaddr, s->filesz };

		if (s->type == PT_LOAD && s->flags & PF_X && s->filesz &&
		    vec_push(&file->segments, segment))
			return -ENOMEM;
	}
	return 0;
}

int files_identify_image(struct mapped_file *file, const struct elf_file *elf)
{
	int r = read_segments(elf, file);

	if (r)
		return r;
	if (!file->segments.nr)
		return -ENOEXEC; /* cut off, or for a loader of its own */
	r = elf_file_build_id(elf, file->build_id);
	file->build_id_len = r > 0 ? (uint8_t)r : 0;
	file->is_elf = true;
	file->state = FILE_OPEN;
	file->error = 0;
	return 0;
}

static int hold(struct process_table *t, struct mapped_file *file, int fd)
{
	int r;

	if (t->private->nr_fds >= t->private->max_fds && !evict_one(t))
		return -EMFILE;
	r = map_put(&t->private->file_by_inode, hash_key(&file->key, "", 0), file->index);
	if (r)
		return r;
	file->fd = fd;
	t->private->nr_fds++;
	return 0;
}

int files_identify(struct process_table *t, struct mapped_file *file, int fd)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int owned = fd, copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;
	int r;

	if (copy < 0 || fstat(fd, &st))
		return files_fail(file, -errno);
	file->size = (uint64_t)st.st_size;
	file->mtime_ns = mtime_ns(&st);
	r = elf_file_open_fd(copy, &elf);
	if (!r) {
		copy = -1;
		r = files_identify_image(file, elf);
	}
	if (r == -ENOEXEC) {
		/* Its descriptor is not kept: a JIT's memfd would keep its memory with it. */
		file->is_elf = false;
		file->state = FILE_OPEN;
		return 0;
	}
	if (!r)
		r = hold(t, file, owned);
	if (r)
		return files_fail(file, r);
	owned = -1;
	return 0;
}

int mapped_file_elf(const struct mapped_file *file, struct elf_file **ret)
{
	_cleanup_close_ int fd = -1;
	int r = 0;

	if (file->state != FILE_OPEN || !file->is_elf)
		return -ENOEXEC;
	if (file->image)
		return elf_file_open_memory(file->image, file->size, ret);
	if (file->fd < 0)
		r = reopen(file, &fd);
	else if ((fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = -errno;
	if (!r)
		r = elf_file_open_fd(fd, ret);
	if (!r)
		fd = -1;
	return r;
}

uint64_t mapping_bias(const struct mapped_file *file, const struct mapping *m)
{
	uint64_t len = m->end - m->start;

	for (size_t i = 0; i < file->segments.nr; i++) {
		const struct file_segment *s = &file->segments.items[i];

		/* A mapping begins with a page, and so up to a page before its segment. */
		if (m->offset < s->offset + s->size && m->offset + len > s->offset)
			return m->start - (s->vaddr + (m->offset - s->offset));
	}
	return 0;
}
