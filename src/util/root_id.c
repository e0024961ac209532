// SPDX-License-Identifier: Apache-2.0
#include "util/root_id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int root_id_read(const char *proc_dir, int root_fd, struct root_id *ret)
{
	struct statx ns, root;
	char path[64];

	snprintf(path, sizeof(path), "%s/ns/mnt", proc_dir);
	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &ns))
		return -errno;
	snprintf(path, sizeof(path), "%s/root", proc_dir);
	/* What the kernel has in mind of it. */
	if (statx(root_fd < 0 ? AT_FDCWD : root_fd, root_fd < 0 ? path : "",
		  AT_STATX_DONT_SYNC | (root_fd < 0 ? 0 : AT_EMPTY_PATH), STATX_INO, &root))
		return -errno;
	*ret = (struct root_id){ .mount_ns = ns.stx_ino,
				 .dev = makedev(root.stx_dev_major, root.stx_dev_minor),
				 .ino = root.stx_ino };
	return 0;
}
