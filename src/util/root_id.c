// SPDX-License-Identifier: Apache-2.0
#include "util/root_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int look_at_root(const char *proc_dir, int root_fd, struct root_id *ret)
{
	struct statx root;
	char path[64];

	snprintf(path, sizeof(path), "%s/root", proc_dir);
	/* What the kernel has in mind of it. */
	if (statx(root_fd < 0 ? AT_FDCWD : root_fd, root_fd < 0 ? path : "",
		  AT_STATX_DONT_SYNC | (root_fd < 0 ? 0 : AT_EMPTY_PATH), STATX_INO | STATX_MNT_ID,
		  &root))
		return -errno;
	*ret = (struct root_id){ .dev = makedev(root.stx_dev_major, root.stx_dev_minor),
				 .ino = root.stx_ino,
				 .mount = root.stx_mask & STATX_MNT_ID ? root.stx_mnt_id : 0 };
	return 0;
}

/* A mount is of one namespace. */
static bool is_in_mount_of(const struct root_id *root, const struct root_id *likely)
{
	return likely && likely->mount && root->mount == likely->mount;
}

int root_id_read(const char *proc_dir, int root_fd, const struct root_id *likely,
		 struct root_id *ret)
{
	struct root_id found;
	struct statx ns;
	char path[64];
	int r = look_at_root(proc_dir, root_fd, &found);

	if (r)
		return r;
	if (is_in_mount_of(&found, likely)) {
		found.mount_ns = likely->mount_ns;
	} else {
		snprintf(path, sizeof(path), "%s/ns/mnt", proc_dir);
		if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &ns))
			return -errno;
		found.mount_ns = ns.stx_ino;
	}
	*ret = found;
	return 0;
}
