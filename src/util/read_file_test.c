// SPDX-License-Identifier: Apache-2.0
#include "util/read_file.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

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

	ASSERT_OK(read_file_at(AT_FDCWD, "/proc/self/comm", 100, &text, &size));
	ASSERT_STR(text, "read_file_test\n");
	ASSERT_EQ(size, strlen(text));
	free(text);
	ASSERT_ERR(read_file_at(AT_FDCWD, "/proc/self/comm", 3, &text, &size), EFBIG);
	ASSERT_ERR(read_file_at(AT_FDCWD, "/nonexistent", 3, &text, &size), ENOENT);
}
