// SPDX-License-Identifier: Apache-2.0
/*
 * Files behind servers, which may never answer: which these are, and when they are asked for.
 *
 * A copy (file_copy.h) is waited for a little, so that an ordinary server's files are there for the
 * first sample; who does not answer is asked again with growing pauses, for one file at a time, and
 * when it answers for all the others at once.
 */
#include "process/process_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "process/memory.h"
#include "process/proc_identity.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/owners.h"

enum {
	WANTED_MAX = 4096, /* more are looked for when they are mapped the next time */
	SILENT_MAX = 64,   /* file systems; of more it is not known that they do not answer */
	MEANWHILE_MS = 10,
	LOOKS_MAX = 32,
};

#define PATIENCE_OF_FILE_NS 300000000ull
#define PATIENCE_MAX_NS	    1000000000ull
#define PAUSE_FIRST_NS	    500000000ull
#define PAUSE_LAST_NS	    10000000000ull
#define NO_PLACE_NS	    200000000ull
/* Longer than a child is waited for. */
#define ASKING_NS 4000000000ull

void slow_files_init(struct process_table *t)
{
	file_copier_init(&t->private->slow.copier);
	t->private->slow.patience = patience_new(PATIENCE_OF_FILE_NS, PATIENCE_MAX_NS, now_ns());
}

void slow_files_fini(struct process_table *t)
{
	file_copier_fini(&t->private->slow.copier);
	vec_free(&t->private->slow.wanted);
	vec_free(&t->private->slow.silent);
}

void process_table_set_copier(struct process_table *t, char *const *program, uint64_t bytes)
{
	t->private->slow.copier.program = program;
	if (bytes)
		t->private->slow.copier.bytes_max = bytes;
}

/* --- which ------------------------------------------------------------------------------------ */

struct servers servers_of(const struct process_table *t, uint64_t mount_ns)
{
	struct servers servers = { .own = &t->private->own_mounts };
	size_t i = t->private->roots.nr;
	struct foreign_root *root = NULL;

	if (mount_ns && mount_ns != t->private->own_root.mount_ns)
		root = mount_ns_root(t, mount_ns, &i);
	if (root && root->mounts.fd >= 0)
		servers.others = &root->mounts;
	else
		servers.unknown = mount_ns && mount_ns != t->private->own_root.mount_ns;
	return servers;
}

/* Memfds and shared memory are of a file system that is mounted nowhere. */
static bool is_memfd(struct process_table_private *p, uint32_t dev_major, uint32_t dev_minor)
{
	struct stat st;
	int fd;

	if (!p->memfd_known) {
		fd = memfd_create("sonde-device", MFD_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st)) {
			p->memfd_major = major(st.st_dev);
			p->memfd_minor = minor(st.st_dev);
			p->memfd_known = true;
		}
		if (fd >= 0)
			close(fd);
	}
	return p->memfd_known && dev_major == p->memfd_major && dev_minor == p->memfd_minor;
}

bool is_slow(const struct process_table *t, const struct servers *servers, uint32_t dev_major,
	     uint32_t dev_minor)
{
	enum mounts_answer own = mounts_look(servers->own, dev_major, dev_minor), others;

	others = servers->others ? mounts_look(servers->others, dev_major, dev_minor)
				 : MOUNTS_UNKNOWN;
	if (own == MOUNTS_MAY_HANG || others == MOUNTS_MAY_HANG)
		return true;
	/* What we have mounted ourselves is not anybody's, though anybody inherits it. */
	if (own == MOUNTS_ANSWERS || dev_major)
		return false;
	if (own == MOUNTS_ANYBODYS || others == MOUNTS_ANYBODYS)
		return true;
	if (others == MOUNTS_ANSWERS)
		return false;
	return !is_memfd(t->private, dev_major, dev_minor);
}

/* --- whose ------------------------------------------------------------------------------------ */

/* A living process that maps the file, and where; false if there is none. */
static bool find_user(const struct process_table *t, uint32_t file, const struct process **ret,
		      const struct mapping **ret_m)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&t->by_pid, &i))) {
		const struct process *proc = (const struct process *)(uintptr_t)slot->value;

		*ret = proc;
		*ret_m = proc->exited ? NULL : process_mapping_of(proc, file);
		if (*ret_m)
			return true;
	}
	return false;
}

/*
 * As far as events have told; and the kernel, which knows what was unmapped. Whose mappings were
 * joined, or whose file system has other numbers for stat(), is no witness.
 */
static bool maps_it(const struct process *proc, const struct mapped_file *file)
{
	const struct mapping *m =
		proc && !proc->exited ? process_mapping_of(proc, file->index) : NULL;
	const struct file_key *key = &file->key;
	_cleanup_close_ int fd = -1;
	struct statx st;

	if (!m || process_open_map_file(proc->pid, m->start, m->end, &fd))
		return false;
	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) &&
	       st.stx_ino == key->inode && st.stx_dev_major == key->dev_major &&
	       st.stx_dev_minor == key->dev_minor;
}

bool slow_file_is_current(const struct process_table *t, struct mapped_file *file)
{
	const struct process *proc;
	const struct mapping *m;

	/* What is mounted, or mapped, keeps its number. */
	if (file->mounts_version && file->mounts_version == mounts_version(&t->private->own_mounts))
		return true;
	if (maps_it(process_find(t, file->mapped_by), file))
		return true;
	if (!find_user(t, file->index, &proc, &m) || !maps_it(proc, file))
		return false;
	file->mapped_by = proc->pid;
	return true;
}

/* --- who does not answer ---------------------------------------------------------------------- */

static struct silent_device *find_silent(struct slow_files *s, const struct file_key *key)
{
	for (size_t i = 0; i < s->silent.nr; i++)
		if (s->silent.items[i].dev_major == key->dev_major &&
		    s->silent.items[i].dev_minor == key->dev_minor)
			return &s->silent.items[i];
	return NULL;
}

static uint64_t longer(uint64_t pause_ns)
{
	return pause_ns * 2 < PAUSE_LAST_NS ? pause_ns * 2 : PAUSE_LAST_NS;
}

static void is_silent(struct slow_files *s, const struct file_key *key)
{
	struct silent_device *d = find_silent(s, key),
			     new = { key->dev_major, key->dev_minor, .pause_ns = PAUSE_FIRST_NS };

	if (!d) {
		/* In place of another, which is asked as if it had answered. */
		if (s->silent.nr == SILENT_MAX)
			s->silent.items[0] = s->silent.items[--s->silent.nr];
		if (vec_push(&s->silent, new))
			return;
		d = &s->silent.items[s->silent.nr - 1];
	} else {
		d->pause_ns = longer(d->pause_ns);
	}
	d->until_ns = now_ns() + d->pause_ns;
}

/* The server answers (again): what else was wanted of it is asked for at once. */
static void has_answered(struct process_table *t, const struct file_key *key)
{
	struct slow_files *s = &t->private->slow;
	struct silent_device *d = find_silent(s, key);

	if (!d)
		return;
	*d = s->silent.items[--s->silent.nr];
	for (size_t i = 0; i < s->wanted.nr; i++) {
		const struct mapped_file *file = t->files.items[s->wanted.items[i].file];

		if (file->key.dev_major == key->dev_major && file->key.dev_minor == key->dev_minor)
			s->wanted.items[i].next_ns = 0;
	}
}

/* --- asking ----------------------------------------------------------------------------------- */

static int start(struct process_table *t, const struct process *proc, const struct mapping *m,
		 struct mapped_file *file)
{
	struct slow_files *s = &t->private->slow;
	struct mounts *own = &t->private->own_mounts;
	struct copy_order order = { .pid = proc->pid, .start = m->start, .end = m->end };
	struct silent_device *silent = find_silent(s, &file->key);
	size_t i = t->private->roots.nr;
	const struct foreign_root *root;
	int r;

	if (silent && now_ns() < silent->until_ns)
		return -EAGAIN;
	file->mounts_version = mounts_version(own);
	if (mounts_look(own, file->key.dev_major, file->key.dev_minor) == MOUNTS_UNKNOWN)
		file->mounts_version = 0;
	order.file = file;
	order.owner = proc_user(proc->pid, FILE_OWNER_NONE);
	while (order.nr_roots < COPY_ROOTS_MAX && (root = mount_ns_root(t, proc->mount_ns, &i)))
		order.roots[order.nr_roots++] = root->root_fd;
	r = file_copier_start(&s->copier, &order);
	/* Its other files wait until this one has come. */
	if (!r && silent)
		silent->until_ns = now_ns() + ASKING_NS;
	return r;
}

static void want(struct process_table *t, struct mapped_file *file, uint64_t pause_ns)
{
	struct slow_files *s = &t->private->slow;
	struct wanted_copy new = { file->index, now_ns() + pause_ns };

	file->state = FILE_UNREADABLE;
	file->error = -EINPROGRESS;
	for (size_t i = 0; i < s->wanted.nr; i++)
		if (s->wanted.items[i].file == file->index) {
			s->wanted.items[i].next_ns = new.next_ns;
			return;
		}
	if (s->wanted.nr >= WANTED_MAX || vec_push(&s->wanted, new))
		files_fail(file, -EAGAIN);
}

static void want_no_more(struct slow_files *s, uint32_t file)
{
	for (size_t i = 0; i < s->wanted.nr; i++)
		if (s->wanted.items[i].file == file) {
			s->wanted.items[i] = s->wanted.items[--s->wanted.nr];
			return;
		}
}

static int too_large(struct process_table *t, struct mapped_file *file, uint64_t bytes)
{
	if (t->file_too_large && file->error != -EFBIG)
		t->file_too_large(t->ctx, file, bytes);
	return files_fail(file, -EFBIG);
}

/* What came of a job, `r`, for its file: 0, or the file's error. */
static int settle(struct process_table *t, struct mapped_file *file, const struct copy_job *job,
		  int r, int fd, struct file_copy *copy)
{
	struct slow_files *s = &t->private->slow;

	if (r == -EINPROGRESS || r == -ETIMEDOUT || r == -EAGAIN || r == -ENOSPC) {
		if (r == -ETIMEDOUT)
			is_silent(s, &file->key);
		want(t, file, r == -EINPROGRESS ? ASKING_NS : PAUSE_FIRST_NS);
		return file->error;
	}
	want_no_more(s, file->index);
	has_answered(t, &file->key);
	if (r)
		return r == -EFBIG ? too_large(t, file, job->bytes) : files_fail(file, r);
	/* A server says what it likes of its files' owners. */
	if (!owner_is_trusted(job->owner))
		copy->owner = job->owner;
	r = file_copier_keep(&s->copier, copy->owner, copy->size);
	if (r) {
		close(fd);
		return files_fail(file, r);
	}
	file->nr_failures = 0;
	r = files_identify_copy(t, file, fd, copy);
	if (!file->is_copy)
		file_copier_give_back(&s->copier, copy->owner, copy->size);
	return r;
}

static int take(struct process_table *t, struct mapped_file *file, struct copy_job *job,
		int wait_ms)
{
	struct copy_job was = *job;
	struct file_copy copy = { 0 };
	int fd = -1, r = file_copier_take(&t->private->slow.copier, job, wait_ms, &fd, &copy);

	return settle(t, file, &was, r, fd, &copy);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Has one of the same server's files been waited for in vain? */
static bool keeps_waiting(const struct file_copier *c, const struct copy_job *job)
{
	for (size_t i = 0; i < COPIES_AT_ONCE; i++) {
		const struct copy_job *other = &c->jobs[i];

		if (other != job && other->child.pid &&
		    other->key.dev_major == job->key.dev_major &&
		    other->key.dev_minor == job->key.dev_minor)
			return true;
	}
	return false;
}

static int wait_for(struct process_table *t, struct mapped_file *file, struct copy_job *job)
{
	struct slow_files *s = &t->private->slow;
	uint64_t begin = now_ns(), waited = 0;
	uint64_t most = patience_for(&s->patience, job->owner, begin);
	int r = -EINPROGRESS;

	if (keeps_waiting(&s->copier, job))
		most = 0;
	while (r == -EINPROGRESS && (!t->meanwhile || waited < most)) {
		r = take(t, file, job, MEANWHILE_MS);
		if (r == -EINPROGRESS && !file_copier_find(&s->copier, file->index))
			return r;
		if (r == -EINPROGRESS && t->meanwhile)
			t->meanwhile(t->meanwhile_ctx);
		waited = now_ns() - begin;
	}
	patience_take(&s->patience, waited);
	return r;
}

int slow_file_open(struct process_table *t, const struct process *proc, const struct mapping *m,
		   struct mapped_file *file)
{
	int r = start(t, proc, m, file);

	if (r == -EAGAIN || r == -ENOSPC) {
		/* Copies that nobody maps any more make room. */
		if (r == -ENOSPC)
			t->private->close_unused_at = 0;
		want(t, file, NO_PLACE_NS);
		return file->error;
	}
	if (r)
		return files_fail(file, r);
	want(t, file, ASKING_NS);
	return wait_for(t, file, file_copier_find(&t->private->slow.copier, file->index));
}

/* --- afterwards ------------------------------------------------------------------------------- */

static void ask_again(struct process_table *t)
{
	struct slow_files *s = &t->private->slow;
	uint64_t now = now_ns();

	/* Whom they are mapped by takes its time to find out: some at each tick, in turn. */
	for (size_t n = s->wanted.nr, nr_looked = 0; n && s->wanted.nr && nr_looked < LOOKS_MAX;
	     n--) {
		size_t i = ++s->hand % s->wanted.nr;
		struct wanted_copy *w = &s->wanted.items[i];
		struct mapped_file *file = t->files.items[w->file];
		const struct silent_device *silent = find_silent(s, &file->key);
		const struct process *proc;
		const struct mapping *m;
		int r;

		if (w->next_ns > now || file_copier_find(&s->copier, w->file) ||
		    (silent && silent->until_ns > now))
			continue;
		nr_looked++;
		if (!find_user(t, w->file, &proc, &m)) {
			want_no_more(s, w->file);
			files_fail(file, -ESRCH);
			continue;
		}
		r = start(t, proc, m, file);
		w->next_ns = now + (r ? NO_PLACE_NS : ASKING_NS);
	}
}

void process_table_tick(struct process_table *t)
{
	struct slow_files *s = &t->private->slow;

	for (size_t i = 0; i < COPIES_AT_ONCE && s->copier.nr_jobs; i++) {
		struct copy_job *job = &s->copier.jobs[i];
		struct mapped_file *file;

		if (!job->child.pid)
			continue;
		if (job->given_up) {
			file_copier_drop(&s->copier, job);
			continue;
		}
		file = t->files.items[job->file];
		if (!take(t, file, job, 0) && t->file_came)
			t->file_came(t->ctx, file);
	}
	if (s->wanted.nr)
		ask_again(t);
}

bool process_table_is_busy(const struct process_table *t)
{
	return t->private->slow.copier.nr_jobs || t->private->slow.wanted.nr;
}

void slow_file_closed(struct process_table *t, struct mapped_file *file)
{
	file_copier_give_back(&t->private->slow.copier, file->owner, file->size);
}

void slow_file_forget(struct process_table *t, const struct mapped_file *file)
{
	struct slow_files *s = &t->private->slow;
	struct copy_job *job = file_copier_find(&s->copier, file->index);

	if (job)
		file_copier_drop(&s->copier, job);
	want_no_more(s, file->index);
}
