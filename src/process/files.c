// SPDX-License-Identifier: Apache-2.0
/*
 * The files behind mappings: which mapping has which, and what their ELF headers say.
 *
 * A file that has been read keeps one descriptor, which also keeps its inode from being used again:
 * it is then known by device and inode alone. Until then an inode number proves little (ext4 gives
 * it to the next file at once), and the path is part of the identity. When descriptors run short,
 * those go that can be had again by their path below our own root; it is looked at again before
 * use.
 *
 * A file that nobody maps or holds is forgotten when that is found for the second time, and a
 * thousand new ones have come.
 */
#include "process/process_internal.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xxhash.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/owners.h"

enum {
	/* A file that could not be had is tried again for the next processes that map it. */
	FAILURES_MAX = 8,
	/* Files looked at for one to close. */
	EVICT_TRIES = 64,
	NR_FDS_MIN = 16,
	/* Open files that nobody maps any more: as many more before they are looked for; of those
	 * that we could not have again, as many are kept. */
	UNUSED_STEP = 32,
	UNUSED_MAX = 128,
	FDS_RESERVED = 4, /* a quarter of all is for root and us: owners_may_take() */
	/* As many new ones as there are forgotten ones looked for. */
	FORGET_STEP = 1024,
	PATH_BYTES_OF_FILE = 256, /* longer ones count as so many files */
	/* Of a CPU looking takes at most one part in so many. */
	FORGET_SHARE = 20,
	SEGMENTS_MAX = 64, /* executable ones of a file; linkers make one or two */
	/* Between two looks at whether a file was written to: those of one turn, in which many
	 * mappings of the C library may be taken in. */
	LOOK_AGAIN_NS = 1000000,
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

/* Seeded, so that nobody can choose what it is. */
static uint64_t hash_key(const struct process_table *t, const struct file_key *key,
			 const char *path, size_t len)
{
	uint64_t seed = ((uint64_t)key->dev_major << 32 | key->dev_minor) * 0x9e3779b97f4a7c15ull;

	return XXH3_64bits_withSeed(path, len,
				    t->private->seed ^ seed ^ key->inode * 0xff51afd7ed558ccdull);
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
static int reopen(const struct process_table *t, const struct mapped_file *file, int *ret)
{
	_cleanup_close_ int root_fd = -1, fd = -1;
	struct servers servers = servers_of(t, 0);
	int r;

	if (file->is_copy)
		return -ESTALE;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	r = open_below(&servers, root_fd, file->path, &file->key, &fd);
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
	struct process_table_private *p = t->private;
	struct mapped_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->key = *key;
	file->owner = FILE_OWNER_NONE;
	file->index = (uint32_t)t->files.nr;
	file->path = strndup(path, len);
	if (!file->path || (!p->free_files.nr && vec_push(&t->files, file))) {
		free(file->path);
		free(file);
		return -ENOMEM;
	}
	if (p->free_files.nr) {
		file->index = p->free_files.items[--p->free_files.nr];
		t->files.items[file->index] = file;
	}
	p->path_bytes += len;
	*ret = file;
	return 0;
}

/* Of FILES_MAX. */
static size_t files_taken(const struct process_table *t)
{
	return t->files.nr - t->private->free_files.nr +
	       t->private->path_bytes / PATH_BYTES_OF_FILE;
}

int files_init(struct process_table *t)
{
	struct file_key none = { 0 };
	struct mapped_file *anon, *beyond;
	struct rlimit limit;
	int r = file_new(t, &none, "[anon]", strlen("[anon]"), &anon);

	if (!r)
		r = file_new(t, &none, "[too many files]", strlen("[too many files]"), &beyond);
	if (r)
		return r;
	anon->state = FILE_OPEN;
	beyond->nr_failures = FAILURES_MAX;
	files_fail(beyond, -ENOSPC);
	t->private->forget_at = FORGET_STEP;
	/* Without any, nothing but time is lost. */
	if (getrandom(&t->private->seed, sizeof(t->private->seed), GRND_NONBLOCK) < 0)
		t->private->seed = now_ns();
	/* The other half is for sockets, rings, maps, and workers' descriptors. */
	t->private->max_fds = NR_FDS_MIN;
	t->private->close_unused_at = UNUSED_STEP;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 2 > NR_FDS_MIN)
		t->private->max_fds = limit.rlim_cur / 2;
	return 0;
}

static void file_free(struct mapped_file *file)
{
	if (!file)
		return;
	if (file->fd >= 0)
		close(file->fd);
	vec_free(&file->segments);
	free(file->image);
	free(file->path);
	free(file->place);
	free(file);
}

void files_fini(struct process_table *t)
{
	for (size_t i = 0; i < t->files.nr; i++)
		file_free(t->files.items[i]);
	vec_free(&t->files);
	vec_free(&t->private->free_files);
	map_fini(&t->file_by_key);
	map_fini(&t->private->file_by_inode);
	map_fini(&t->private->fds_of_owner);
}

size_t files_bytes(const struct process_table *t)
{
	size_t bytes = t->files.cap * sizeof(*t->files.items) + map_bytes(&t->file_by_key) +
		       map_bytes(&t->private->file_by_inode);

	for (size_t i = 0; i < t->files.nr; i++) {
		const struct mapped_file *file = t->files.items[i];

		if (file)
			bytes += sizeof(*file) + strlen(file->path) + 1 +
				 file->segments.cap * sizeof(*file->segments.items) +
				 (file->image ? file->size : 0);
	}
	return bytes;
}

static void close_file(struct process_table *t, struct mapped_file *file)
{
	owners_give_back(&t->private->fds_of_owner, file->owner);
	close(file->fd);
	file->fd = -1;
	t->private->nr_fds--;
	if (file->is_copy)
		slow_file_closed(t, file);
	map_del(&t->private->file_by_inode, hash_key(t, &file->key, "", 0));
}

static bool has_path(const struct mapped_file *file, const char *path, size_t len)
{
	return !strncmp(file->path, path, len) && !file->path[len];
}

/*
 * A file whose inode we hold: the same one under whatever path, if nobody has written to it since.
 * Where parts of a file system count inodes for themselves, or a server does, the path counts too.
 */
static struct mapped_file *find_held(struct process_table *t, const struct file_key *key,
				     const char *path, size_t len)
{
	uint64_t *index = map_get(&t->private->file_by_inode, hash_key(t, key, "", 0));
	struct mapped_file *file = index ? t->files.items[*index] : NULL;
	uint64_t now = now_ns();

	if (!file || !key_equal(&file->key, key) ||
	    ((file->own_devices || file->is_copy) && !has_path(file, path, len)))
		return NULL;
	if (!file->is_copy && now - file->looked_ns < LOOK_AGAIN_NS)
		return file;
	file->looked_ns = now;
	if (file->is_copy ? slow_file_is_current(t, file) : is_same_content(file->fd, file))
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

	if (!file || !key_equal(&file->key, key) || !has_path(file, path, len))
		return NULL;
	/* Closed to save a descriptor: another file may have got the inode. */
	if (file->state == FILE_OPEN && file->is_elf && file->fd < 0 && !file->image &&
	    reopen(t, file, &fd))
		return NULL;
	if (file->state == FILE_UNREADABLE && file->nr_failures < FAILURES_MAX &&
	    file->error != -EINPROGRESS)
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
	file = key->inode ? find_held(t, key, path, len) : NULL;
	hash = hash_key(t, key, path, len);
	if (!file)
		file = find_named(t, hash, key, path, len);
	if (file) {
		*ret = file->index;
		return 0;
	}
	if (files_taken(t) >= FILES_MAX) {
		t->private->files_full = true;
		t->nr_files_capped++;
		*ret = MAPPED_BEYOND;
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
	if (files_taken(t) >= FILES_MAX)
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
		if (!file || file->fd < 0 || reopen(t, file, &fd))
			continue;
		close_file(t, file);
		return true;
	}
	return false;
}

/* Which files some process maps; by index. NULL: no memory. */
static bool *find_mapped(const struct process_table *t)
{
	bool *mapped = calloc(t->files.nr, sizeof(*mapped));
	struct map_slot *slot;
	size_t i = 0;

	while (mapped && (slot = map_next(&t->by_pid, &i))) {
		const struct process *proc = (const struct process *)(uintptr_t)slot->value;

		for (size_t j = 0; j < proc->mappings.nr; j++)
			mapped[proc->mappings.items[j].file] = true;
	}
	return mapped;
}

/* Was it removed, or could we have it again? */
static bool is_not_missed(const struct process_table *t, const struct mapped_file *file)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	return (!fstat(file->fd, &st) && !st.st_nlink) || !reopen(t, file, &fd);
}

static void close_unused(struct process_table *t, const bool *mapped)
{
	size_t kept = 0;

	/* From the newest on: those of containers are kept, which may run the same program again.
	 */
	for (size_t i = t->files.nr; i-- > 0;) {
		struct mapped_file *file = t->files.items[i];

		if (!file || file->fd < 0 || mapped[i] ||
		    (kept < UNUSED_MAX && !is_not_missed(t, file) && ++kept))
			continue;
		close_file(t, file);
	}
	t->private->close_unused_at = t->private->nr_fds + UNUSED_STEP;
}

static void forget_file(struct process_table *t, struct mapped_file *file)
{
	uint64_t hash = hash_key(t, &file->key, file->path, strlen(file->path));
	uint64_t *named = map_get(&t->file_by_key, hash);

	if (t->forget_file)
		t->forget_file(t->ctx, file);
	slow_file_forget(t, file);
	if (file->fd >= 0)
		close_file(t, file);
	/* Another file may have got its name since. */
	if (named && *named == file->index)
		map_del(&t->file_by_key, hash);
	t->private->path_bytes -= strlen(file->path);
	t->files.items[file->index] = NULL;
	t->private->free_files.items[t->private->free_files.nr++] = file->index;
	file_free(file);
}

static void forget_unused(struct process_table *t, const bool *mapped)
{
	if (vec_reserve(&t->private->free_files, t->files.nr))
		return;
	for (size_t i = MAPPED_BEYOND + 1; i < t->files.nr; i++) {
		struct mapped_file *file = t->files.items[i];
		bool unused = file && !mapped[i] && !file->refs;

		if (unused && (file->unused || t->private->files_full))
			forget_file(t, file);
		else if (file)
			file->unused = unused;
	}
	t->private->forget_at = files_taken(t) + FORGET_STEP;
	if (t->private->forget_at > FILES_MAX)
		t->private->forget_at = FILES_MAX;
}

void files_expire(struct process_table *t)
{
	struct process_table_private *p = t->private;
	bool close_some = p->nr_fds >= p->close_unused_at;
	bool forget_some = files_taken(t) >= p->forget_at && now_ns() >= p->forget_next_ns;
	_cleanup_free_ bool *mapped = NULL;
	uint64_t begin;

	if (!close_some && !forget_some)
		return;
	begin = now_ns();
	mapped = find_mapped(t);
	if (mapped && forget_some) {
		forget_unused(t, mapped);
		p->files_full &= files_taken(t) >= FILES_MAX;
		p->forget_next_ns = now_ns() + FORGET_SHARE * (now_ns() - begin);
	}
	if (mapped && close_some)
		close_unused(t, mapped);
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

static int identify(const struct elf_file *elf, const struct file_key *key,
		    struct file_identity *ret)
{
	if (elf->fd < 0)
		return file_identity_of_memory(elf->memory, elf->size, ret);
	return file_identity_of_fd(elf->fd, makedev(key->dev_major, key->dev_minor), ret);
}

int files_identify_image(struct mapped_file *file, const struct elf_file *elf)
{
	int r = read_segments(elf, file);

	if (r)
		return r;
	if (!file->segments.nr)
		return -ENOEXEC; /* cut off, or for a loader of its own */
	if (elf->fd < 0)
		file->owner = 0;
	/* The child that made a copy has seen all of it. */
	r = file->is_copy ? 0 : identify(elf, &file->key, &file->identity);
	if (r)
		return r;
	r = elf_file_build_id(elf, file->build_id);
	file->build_id_len = r > 0 ? (uint8_t)r : 0;
	file->is_elf = true;
	file->state = FILE_OPEN;
	file->error = 0;
	return 0;
}

static bool has_share(const struct process_table *t, uint32_t owner)
{
	const struct process_table_private *p = t->private;

	return owner_is_trusted(owner) ||
	       owners_may_take(&p->fds_of_owner, owner, p->max_fds - p->nr_fds,
			       p->max_fds / FDS_RESERVED);
}

/* Keeps the descriptor, or closes it if it can be had again and there are too many. */
static int hold(struct process_table *t, struct mapped_file *file, int fd)
{
	_cleanup_close_ int owned = fd, again = -1;
	int r;

	if (t->private->nr_fds >= t->private->max_fds && !evict_one(t))
		return -EMFILE;
	if (!has_share(t, file->owner))
		return reopen(t, file, &again) ? -EMFILE : 0;
	r = map_put(&t->private->file_by_inode, hash_key(t, &file->key, "", 0), file->index);
	if (!r)
		r = owners_take(&t->private->fds_of_owner, file->owner);
	if (r)
		return r;
	file->fd = TAKE_FD(owned);
	t->private->nr_fds++;
	return 0;
}

/* Of the descriptor or the copy, which is kept if it is an ELF file. */
static int identify_fd(struct process_table *t, struct mapped_file *file, int fd)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int owned = fd, copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int r;

	if (copy < 0)
		return files_fail(file, -errno);
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
		r = hold(t, file, TAKE_FD(owned));
	return r ? files_fail(file, r) : 0;
}

int files_identify(struct process_table *t, struct mapped_file *file, int fd)
{
	_cleanup_close_ int owned = fd;
	struct stat st;

	if (fstat(fd, &st))
		return files_fail(file, -errno);
	file->size = (uint64_t)st.st_size;
	file->mtime_ns = mtime_ns(&st);
	file->owner = st.st_uid;
	file->own_devices = has_own_devices(fd);
	return identify_fd(t, file, TAKE_FD(owned));
}

int files_identify_copy(struct process_table *t, struct mapped_file *file, int fd,
			const struct file_copy *copy)
{
	int r;

	file->is_copy = true;
	file->size = copy->size;
	file->owner = copy->owner;
	file->identity = copy->identity;
	r = identify_fd(t, file, fd);
	if (file->fd < 0)
		file->is_copy = false;
	return r;
}

int mapped_file_elf(const struct process_table *t, const struct mapped_file *file,
		    struct elf_file **ret)
{
	_cleanup_close_ int fd = -1;
	int r = 0;

	if (file->state != FILE_OPEN || !file->is_elf)
		return -ENOEXEC;
	if (file->image)
		return elf_file_open_memory(file->image, file->size, ret);
	if (file->fd < 0)
		r = reopen(t, file, &fd);
	else if ((fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = -errno;
	if (!r)
		r = elf_file_open_fd(fd, ret);
	if (!r)
		fd = -1;
	return r;
}

bool process_has_code(const struct process_table *t, const struct process *proc, uint64_t addr,
		      const uint8_t *bytes, size_t size)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct mapping *m = process_mapping(proc, addr);
	uint8_t code[64];
	size_t nr_others = 0;

	if (!m || m->file == MAPPING_ANON || size > sizeof(code))
		return true;
	if (size > m->end - addr)
		size = m->end - addr;
	if (mapped_file_elf(t, t->files.items[m->file], &elf) ||
	    elf_file_read(elf, m->offset + (addr - m->start), code, size))
		return true;
	for (size_t i = 0; i < size; i++)
		nr_others += code[i] != bytes[i];
	return nr_others <= size / 4;
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
