/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which "/" a process has: of which mount namespace, and which folder of it. Told without asking a
 * file server, which may never answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct root_id {
	uint64_t mount_ns; /* its inode */
	uint64_t dev, ino; /* the folder's, as stat() has them */
	uint64_t mount;	   /* the id of the mount that it is in; 0: not known (Linux before 5.8) */
};

/*
 * `proc_dir`: "/proc/PID"; `root_fd`: its root, open, or -1. 0 or negative errno. `likely`: which
 * one it may be, or NULL: its namespace, which is slow to tell, is not asked for where the mount
 * tells.
 */
int root_id_read(const char *proc_dir, int root_fd, const struct root_id *likely,
		 struct root_id *ret);

static inline bool root_id_equal(const struct root_id *a, const struct root_id *b)
{
	return a->mount_ns == b->mount_ns && a->dev == b->dev && a->ino == b->ino;
}
