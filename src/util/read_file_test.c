// SPDX-License-Identifier: Apache-2.0
#include "util/read_file.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

TEST(sizes_have_units)
{
	uint64_t n = 1;

	ASSERT_OK(parse_size("64M", &n));
	ASSERT_EQ(n, 64 << 20);
	ASSERT_OK(parse_size("1GiB", &n));
	ASSERT_EQ(n, 1 << 30);
	ASSERT_OK(parse_size("4096", &n));
	ASSERT_EQ(n, 4096);
	ASSERT_OK(parse_size("16k", &n));
	ASSERT_EQ(n, 16384);
	ASSERT_ERR(parse_size("", &n), EINVAL);
	ASSERT_ERR(parse_size("-1", &n), EINVAL);
	ASSERT_ERR(parse_size("12q", &n), EINVAL);
	ASSERT_ERR(parse_size("1Mx", &n), EINVAL);
	ASSERT_ERR(parse_size("99999999999999999T", &n), EINVAL);
	ASSERT_EQ(n, 16384);
}

TEST(files_are_bounded)
{
	char *text = NULL;
	size_t size = 0;

	ASSERT_OK(prctl(PR_SET_NAME, "read_file_test"));
	ASSERT_OK(read_file_at(AT_FDCWD, "/proc/self/comm", 100, &text, &size));
	ASSERT_STR(text, "read_file_test\n");
	ASSERT_EQ(size, strlen(text));
	free(text);
	ASSERT_ERR(read_file_at(AT_FDCWD, "/proc/self/comm", 3, &text, &size), EFBIG);
	ASSERT_ERR(read_file_at(AT_FDCWD, "/nonexistent", 3, &text, &size), ENOENT);
}

TEST(parts_end_with_the_file)
{
	char name[] = "/tmp/sonde-read-file-XXXXXX", buf[8] = "";
	int fd = mkstemp(name);

	ASSERT(fd >= 0 && !unlink(name));
	ASSERT_EQ(write(fd, "abcdef", 6), 6);
	ASSERT_EQ(read_at(fd, 4, buf, 8), 2);
	ASSERT(!memcmp(buf, "ef", 2));
	ASSERT_EQ(read_at(fd, 9, buf, 8), 0);
	ASSERT_OK(read_all_at(fd, 1, buf, 4));
	ASSERT(!memcmp(buf, "bcde", 4));
	ASSERT_ERR(read_all_at(fd, 4, buf, 3), ENODATA);
	ASSERT_OK(read_all_at(fd, 9, buf, 0));
	close(fd);
	ASSERT_ERR((int)read_at(fd, 0, buf, 1), EBADF);
	ASSERT_ERR(read_all_at(fd, 0, buf, 1), EBADF);
}
