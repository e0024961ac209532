// SPDX-License-Identifier: Apache-2.0
#include "util/open_in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* openat2() says EAGAIN when something was renamed meanwhile. */
	TRIES_MAX = 8,
};

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20
#endif

static int open_resolved(int root_fd, const char *path, int flags, uint64_t resolve, int *ret)
{
	struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve };

	for (int n = 0; n < TRIES_MAX; n++) {
		int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

		if (fd >= 0) {
			*ret = fd;
			return 0;
		}
		if (errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

int open_in_root(int root_fd, const char *path, int flags, int *ret)
{
	return open_resolved(root_fd, path, flags, 0, ret);
}

int open_in_root_cached(int root_fd, const char *path, int flags, int *ret)
{
	return open_resolved(root_fd, path, flags, RESOLVE_CACHED, ret);
}

int open_found(int path_fd, int *ret)
{
	char link[64];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}
