// SPDX-License-Identifier: Apache-2.0
#include "util/read_file.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int read_file_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *buf = NULL;
	size_t nr = 0, cap = 4096;

	if (fd < 0)
		return -errno;
	buf = malloc(cap + 1);
	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, buf + nr, cap - nr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		nr += (size_t)n;
		if (nr > max)
			return -EFBIG;
		if (nr == cap) {
			char *bigger = realloc(buf, cap * 2 + 1);

			if (!bigger)
				return -ENOMEM;
			buf = bigger;
			cap *= 2;
		}
	}
	buf[nr] = '\0';
	*ret = TAKE_PTR(buf);
	if (ret_size)
		*ret_size = nr;
	return 0;
}

ssize_t read_at(int fd, uint64_t offset, void *buf, size_t size)
{
	size_t nr = 0;

	while (nr < size) {
		ssize_t n = pread(fd, (char *)buf + nr, size - nr, (off_t)(offset + nr));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		nr += (size_t)n;
	}
	return (ssize_t)nr;
}

int read_all_at(int fd, uint64_t offset, void *buf, size_t size)
{
	ssize_t n = read_at(fd, offset, buf, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -ENODATA;
}

int parse_size(const char *s, uint64_t *ret)
{
	static const char units[] = "KMGT";
	unsigned long long n;
	unsigned int shift = 0;
	char *end;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	n = strtoull(s, &end, 10);
	if (errno)
		return -EINVAL;
	if (*end) {
		const char *unit = strchr(units, *end & ~0x20);

		if (!unit || !*unit || (end[1] && strcmp(end + 1, "iB") && strcmp(end + 1, "B")))
			return -EINVAL;
		shift = 10 * (unsigned int)(unit - units + 1);
	}
	if (shift && n >> (64 - shift))
		return -EINVAL;
	*ret = n << shift;
	return 0;
}
