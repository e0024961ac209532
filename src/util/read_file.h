/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /proc and /sys, parts of large ones, and byte sizes as people write them. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads a whole file of at most `max` bytes relative to `dirfd` (AT_FDCWD allowed); the result is
 * NUL-terminated and the caller's. 0, -EFBIG, or another negative errno.
 */
int read_file_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size);
/*
 * Bytes of an open file, wherever its position is: as many as there are up to `size`, fewer only at
 * the file's end. Their number, or negative errno.
 */
ssize_t read_at(int fd, uint64_t offset, void *buf, size_t size);
/* All of them: 0, or -ENODATA if the file ends before. What `buf` has is undefined then. */
int read_all_at(int fd, uint64_t offset, void *buf, size_t size);
/* "64M", "1G", "4096", "16k": bytes; -EINVAL if it is not a size. */
int parse_size(const char *s, uint64_t *ret);
