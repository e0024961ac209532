// SPDX-License-Identifier: Apache-2.0
/*
 * Offline processes: the caller knows them and their files, not this machine. Those of a core.
 */
#include "process/process_internal.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "util/cleanup.h"
#include "util/clock.h"

int process_add(struct process_table *t, int32_t pid, struct process **ret)
{
	struct process *proc;
	int r;

	if (process_find(t, pid))
		return -EEXIST;
	r = process_new(t, pid, now_ns(), &proc);
	if (r)
		return r;
	proc->complete = true;
	/* Nobody shall look for it in /proc, where that number is somebody else's. */
	proc->exited = true;
	*ret = proc;
	return 0;
}

int process_add_mapping(struct process_table *t, struct process *proc, const struct mapping *m)
{
	int r = mapping_list_carve(&proc->mappings, m);

	if (r == -ENOSPC)
		t->nr_mappings_capped++;
	if (r > 0)
		process_touch(t, proc, now_ns());
	return r < 0 ? r : 0;
}

int process_add_file(struct process_table *t, const char *path, int fd, uint32_t *ret_index)
{
	_cleanup_close_ int owned = fd;
	struct file_key key = { 0 };
	struct mapped_file *file;
	struct stat st;
	int r;

	if (fd >= 0 && !fstat(fd, &st))
		key = (struct file_key){ major(st.st_dev), minor(st.st_dev), st.st_ino };
	r = files_add(t, &key, path, &file);
	if (r)
		return r;
	if (fd < 0)
		files_fail(file, fd);
	else
		files_identify(t, file, TAKE_FD(owned));
	*ret_index = file->index;
	return 0;
}

int process_add_image(struct process_table *t, const char *path, uint8_t *image, size_t size,
		      uint32_t *ret_index)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	const struct file_key none = { 0 };
	struct mapped_file *file;
	int r = elf_file_open_memory(image, size, &elf);

	if (r)
		return r;
	r = files_add(t, &none, path, &file);
	if (r)
		return r;
	r = files_identify_image(file, elf);
	if (r) {
		/* Its number is taken: it stays, as one that can't be read. */
		return files_fail(file, r);
	}
	file->image = image;
	file->size = size;
	*ret_index = file->index;
	return 0;
}
