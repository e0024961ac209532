// SPDX-License-Identifier: Apache-2.0
#include "process/user_names.h"
#include "test.h"
#include "util/cleanup.h"

#include <pwd.h>
#include <unistd.h>

static char path[] = "/tmp/sonde_user_names_test_XXXXXX";

static void write_text(const char *text)
{
	FILE *out = fopen(path, "we");

	ASSERT(out);
	ASSERT(fputs(text, out) >= 0);
	ASSERT_OK(fclose(out));
}

TEST(users_are_called_as_the_file_says_now)
{
	struct user_names names = { .path = path };
	int fd = mkstemp(path);
	uint32_t uid = 7;

	ASSERT(fd >= 0);
	close(fd);
	ASSERT_STR(user_names_find(&names, 0), "");
	write_text(
		"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\nnonsense\n"
		"alice:x:1000:1000:A:/home/alice:/bin/sh\n:x:1001:1:::\nlarge:x:4294967294:1:::\n");
	ASSERT_STR(user_names_find(&names, 0), "root");
	ASSERT_STR(user_names_find(&names, 1000), "alice");
	ASSERT_STR(user_names_find(&names, UINT32_MAX - 1), "large");
	ASSERT_STR(user_names_find(&names, 7), "");
	ASSERT_OK(user_names_number(&names, "toor", &uid));
	ASSERT_EQ(uid, 0);
	ASSERT_OK(user_names_number(&names, "large", &uid));
	ASSERT_EQ(uid, UINT32_MAX - 1);
	ASSERT_ERR(user_names_number(&names, "nonsense", &uid), ENOENT);
	ASSERT_ERR(user_names_number(&names, "", &uid), ENOENT);
	ASSERT_EQ(uid, UINT32_MAX - 1);
	write_text("bob:x:1000:1000:A:/home/alice:/bin/sh\n");
	ASSERT_STR(user_names_find(&names, 1000), "bob");
	ASSERT_STR(user_names_find(&names, 0), "");
	ASSERT_OK(unlink(path));
	ASSERT_STR(user_names_find(&names, 1000), "");
	user_names_fini(&names);
}

TEST(it_is_this_machines_file)
{
	const struct passwd *entry = getpwuid(0);
	struct user_names names = { 0 };

	if (entry && !access("/etc/passwd", R_OK))
		ASSERT_STR(user_names_find(&names, 0), entry->pw_name);
	user_names_fini(&names);
}
