/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading what a BPF iterator prints.
 */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* What comes next, whole records as the program wrote them; 0: that was all; or a negative errno.
 */
static inline ssize_t read_iter(int fd, void *to, size_t size)
{
	ssize_t n;

	/* EAGAIN: it passed over many objects without printing one. */
	do
		n = read(fd, to, size);
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? -errno : n;
}
