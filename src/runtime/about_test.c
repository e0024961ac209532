// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool minors(unsigned int major, unsigned int minor)
{
	return (major == 2 && minor >= 5 && minor <= 7) ||
	       (major == 3 && minor >= 1 && minor <= 2) || (major == 4 && minor == 0) ||
	       (major == 5 && minor >= 90);
}

static bool releases(unsigned int major, unsigned int minor)
{
	(void)minor;
	return major == 3 || (major >= 5 && major <= 7);
}

static bool since_8(unsigned int major, unsigned int minor)
{
	(void)minor;
	return major >= 8;
}

static void check_list(bool (*knows)(unsigned int, unsigned int), const char *want)
{
	const struct runtime_ops ops = { .knows = knows };
	char text[256];

	runtime_known_versions(&ops, text, sizeof(text));
	ASSERT_STR(text, want);
}

TEST(lists_of_versions)
{
	check_list(NULL, "");
	check_list(minors, "2.5 to 2.7, 3.1, 3.2, 4.0, 5.90 and later");
	check_list(releases, "3, 5 to 7");
	check_list(since_8, "8 and later");
}

TEST(a_list_without_room_ends)
{
	const struct runtime_ops ops = { .knows = minors };
	char text[8];

	runtime_known_versions(&ops, text, sizeof(text));
	ASSERT_STR(text, "2.5 to ");
}

TEST(what_is_said)
{
	const struct runtime_ops ops = { .language = "Toy" };
	struct runtime_about about = { 0 };
	char text[256];

	runtime_about_unsupported(&ops, &about, text, sizeof(text));
	ASSERT_STR(text, "a runtime of Toy that does not say its version is not supported (its "
			 "version is not known): only its native frames are shown");
	runtime_is_version(&about, "toyvm %d\n\xc3", 3);
	ASSERT_EQ(runtime_not_supported(&about, "it is red"), -ENOTSUP);
	about.lost = "its wheels are not shown";
	runtime_about_unsupported(&ops, &about, text, sizeof(text));
	ASSERT_STR(text, "toyvm 3?? is not supported (it is red): its wheels are not shown");
	/* Nobody asks. */
	runtime_is_version(NULL, "%d", 3);
	ASSERT_EQ(runtime_not_supported(NULL, "it is red"), -ENOTSUP);
}

/* Of each whose tables can be asked. */
TEST(lists_of_runtimes)
{
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++) {
		char text[256] = "";

		if (!runtimes[id] || !runtimes[id]->probe || !runtimes[id]->knows)
			continue;
		runtime_known_versions(runtimes[id], text, sizeof(text));
		ck_assert_msg(*text && runtimes[id]->product && strlen(text) < sizeof(text) - 1,
			      "%s: '%s'", runtimes[id]->name, text);
	}
}
