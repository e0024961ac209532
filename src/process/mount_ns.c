// SPDX-License-Identifier: Apache-2.0
/*
 * Roots other than ours: of mount namespaces (containers) and chroots, so that the file of a
 * process that has ended can still be opened by its path.
 *
 * A held namespace keeps its mounts alive, so it is dropped as soon as the table has no process in
 * it.
 */
#include "process/proc_stat.h"
#include "process/process_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void root_close(struct foreign_root *root)
{
	if (root->ns_fd >= 0)
		close(root->ns_fd);
	if (root->root_fd >= 0)
		close(root->root_fd);
	mounts_close(&root->mounts);
}

int mount_ns_init(struct process_table *t)
{
	/* Without it all is taken for what may hang. */
	mounts_open(&t->private->own_mounts, "/proc/self");
	return root_id_read("/proc/self", -1, NULL, &t->private->own_root);
}

void mount_ns_fini(struct process_table *t)
{
	for (size_t i = 0; i < t->private->roots.nr; i++)
		root_close(&t->private->roots.items[i]);
	vec_free(&t->private->roots);
	mounts_close(&t->private->own_mounts);
}

static size_t least_used(const struct process_table *t)
{
	size_t least = 0;

	for (size_t i = 1; i < t->private->roots.nr; i++)
		if (t->private->roots.items[i].used_ns < t->private->roots.items[least].used_ns)
			least = i;
	return least;
}

static void root_add(struct process_table *t, const char *proc_dir, const struct root_id *id,
		     uint64_t when_ns)
{
	struct foreign_root added = { .id = *id, .ns_fd = -1, .mounts.fd = -1, .used_ns = when_ns };
	bool other_ns = id->mount_ns != t->private->own_root.mount_ns;
	struct root_id now;
	char path[64];

	if (t->private->roots.nr == FOREIGN_ROOTS_MAX) {
		size_t i = least_used(t);

		root_close(&t->private->roots.items[i]);
		t->private->roots.items[i] = t->private->roots.items[--t->private->roots.nr];
	}
	snprintf(path, sizeof(path), "%s/root", proc_dir);
	added.root_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (other_ns) {
		snprintf(path, sizeof(path), "%s/ns/mnt", proc_dir);
		added.ns_fd = open(path, O_RDONLY | O_CLOEXEC);
		mounts_open(&added.mounts, proc_dir);
	}
	/* The process may have moved on in between. */
	if (added.root_fd < 0 || (other_ns && added.ns_fd < 0) ||
	    root_id_read(proc_dir, -1, &t->private->own_root, &now) || !root_id_equal(&now, id) ||
	    vec_push(&t->private->roots, added))
		root_close(&added);
}

void mount_ns_note(struct process_table *t, struct process *proc, uint64_t when_ns)
{
	struct root_id id;
	char proc_dir[32];

	proc->root_due = proc->at_home = false;
	/* Short-lived ones: /proc takes its time to say so. */
	if (proc_is_gone(proc->pid))
		return;
	snprintf(proc_dir, sizeof(proc_dir), "/proc/%d", proc->pid);
	if (root_id_read(proc_dir, -1, &t->private->own_root, &id))
		return;
	proc->mount_ns = id.mount_ns;
	proc->at_home = root_id_equal(&id, &t->private->own_root);
	if (proc->at_home)
		return;
	for (size_t i = 0; i < t->private->roots.nr; i++)
		if (root_id_equal(&t->private->roots.items[i].id, &id)) {
			t->private->roots.items[i].used_ns = when_ns;
			return;
		}
	root_add(t, proc_dir, &id, when_ns);
}

uint64_t mount_ns_of(const struct process_table *t, int32_t pid)
{
	const struct process *proc = process_find(t, pid);
	struct root_id id = { .mount_ns = proc ? proc->mount_ns : 0 };
	char proc_dir[32];

	snprintf(proc_dir, sizeof(proc_dir), "/proc/%d", pid);
	(void)root_id_read(proc_dir, -1, &t->private->own_root, &id);
	return id.mount_ns;
}

bool process_root_may_hang(const struct process_table *t, int32_t pid)
{
	struct root_id id;
	char proc_dir[32];
	int r;

	snprintf(proc_dir, sizeof(proc_dir), "/proc/%d", pid);
	r = root_id_read(proc_dir, -1, &t->private->own_root, &id);
	/* One that is gone has none. */
	if (r)
		return r != -ENOENT && r != -ESRCH;
	if (root_id_equal(&id, &t->private->own_root))
		return false;
	if (id.mount_ns == t->private->own_root.mount_ns)
		return mounts_any_may_hang(&t->private->own_mounts);
	for (size_t i = 0; i < t->private->roots.nr; i++)
		if (root_id_equal(&t->private->roots.items[i].id, &id))
			return mounts_any_may_hang(&t->private->roots.items[i].mounts);
	return true;
}

struct foreign_root *mount_ns_root(const struct process_table *t, uint64_t mount_ns, size_t *i)
{
	while ((*i)--)
		if (t->private->roots.items[*i].id.mount_ns == mount_ns)
			return &t->private->roots.items[*i];
	return NULL;
}

static bool is_in_use(const struct process_table *t, uint64_t mount_ns)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&t->by_pid, &i)))
		if (((struct process *)(uintptr_t)slot->value)->mount_ns == mount_ns)
			return true;
	return false;
}

void mount_ns_expire(struct process_table *t, uint64_t before_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->private->roots.nr; i++) {
		struct foreign_root *root = &t->private->roots.items[i];

		if (root->used_ns < before_ns && !is_in_use(t, root->id.mount_ns))
			root_close(root);
		else
			t->private->roots.items[kept++] = *root;
	}
	t->private->roots.nr = kept;
}
