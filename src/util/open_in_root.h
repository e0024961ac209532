/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files below a folder that is somebody else's root: a container's, a sysroot. Whoever owns
 * it chooses what lies there, so that nothing may lead out of it, block, or act when it is opened.
 */
#pragma once

/*
 * Opens `path` as if root_fd were "/": no symbolic link and no ".." leads out, and the links of
 * /proc to open files are not followed. `flags` are open()'s; O_CLOEXEC is added. O_PATH opens
 * nothing yet, so the caller can look first. -ENOSYS (some sandboxes: -EPERM) without openat2(),
 * Linux 5.6; what serves instead depends on what the caller checks. 0 or negative errno.
 */
int open_in_root(int root_fd, const char *path, int flags, int *ret);
/*
 * open_in_root(), if the kernel has the way there in its memory: nothing is asked of a disk or a
 * server. -EAGAIN: it has not. -EINVAL before Linux 5.12.
 */
int open_in_root_cached(int root_fd, const char *path, int flags, int *ret);
/* Opens for reading what an O_PATH descriptor found. Blocks on nothing. 0 or negative errno. */
int open_found(int path_fd, int *ret);
