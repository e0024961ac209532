/* SPDX-License-Identifier: Apache-2.0 */
/* Small files of /proc and /sys, and byte sizes as people write them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a whole file of at most `max` bytes relative to `dirfd` (AT_FDCWD allowed); the result is
 * NUL-terminated and the caller's. 0, -EFBIG, or another negative errno.
 */
int read_file_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size);
/* "64M", "1G", "4096", "16k": bytes; -EINVAL if it is not a size. */
int parse_size(const char *s, uint64_t *ret);
