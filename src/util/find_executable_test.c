// SPDX-License-Identifier: Apache-2.0
#include "util/find_executable.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/find_executable.XXXXXX";

static void make_file(const char *name, mode_t mode)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);
	ASSERT(fd >= 0);
	close(fd);
}

static void set_up(void)
{
	char path[PATH_MAX];

	memcpy(strchr(folder, '.'), ".XXXXXX", 7);
	ASSERT(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/first", folder);
	ASSERT_EQ(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/second", folder);
	ASSERT_EQ(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/first/tool", folder);
	ASSERT_EQ(mkdir(path, 0755), 0);
	make_file("first/text", 0644);
	make_file("second/tool", 0755);
	make_file("second/text", 0644);
	snprintf(path, sizeof(path), "%s/first:%s/second", folder, folder);
	ASSERT_EQ(setenv("PATH", path, 1), 0);
}

static void tear_down(void)
{
	static const char *const names[] = { "first/text", "second/tool", "second/text",
					     "first/tool", "first",	  "second" };
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		ASSERT_EQ(remove(path), 0);
	}
	ASSERT_EQ(rmdir(folder), 0);
}

TEST(a_folder_of_that_name_is_no_program)
{
	char path[PATH_MAX], wanted[PATH_MAX];

	set_up();
	ASSERT_EQ(find_executable("tool", path), 0);
	snprintf(wanted, sizeof(wanted), "%s/second/tool", folder);
	ASSERT_STR(path, wanted);
	tear_down();
}

TEST(what_cannot_be_run_is_told_from_what_is_not_there)
{
	char path[PATH_MAX];

	set_up();
	ASSERT_EQ(find_executable("text", path), -EACCES);
	ASSERT_EQ(find_executable("nothing", path), -ENOENT);
	ASSERT_EQ(find_executable("", path), -ENOENT);
	tear_down();
}

TEST(a_path_is_not_searched_for)
{
	char path[PATH_MAX], name[PATH_MAX];

	set_up();
	snprintf(name, sizeof(name), "%s/second/tool", folder);
	ASSERT_EQ(find_executable(name, path), 0);
	ASSERT_STR(path, name);
	ASSERT_EQ(find_executable("second/tool", path), -ENOENT);
	tear_down();
}

TEST(an_empty_entry_is_the_current_folder)
{
	char path[PATH_MAX];

	set_up();
	ASSERT_EQ(setenv("PATH", "/nowhere:", 1), 0);
	snprintf(path, sizeof(path), "%s/second", folder);
	ASSERT_EQ(chdir(path), 0);
	ASSERT_EQ(find_executable("tool", path), 0);
	ASSERT_STR(path, "./tool");
	ASSERT_EQ(chdir("/"), 0);
	tear_down();
}
