// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"
#include "test.h"

static const char *meant(const char *word)
{
	static const char *const words[] = { "record",	"top",	  "stack",     "core",
					     "convert", "doctor", "help",      "frequency",
					     "pid",	"output", "no-kernel", "no-inlines" };
	struct suggestion s = { .word = word, .len = strlen(word) };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		suggest(&s, words[i]);
	return s.best ? s.best : "";
}

TEST(a_slip_of_the_finger)
{
	ASSERT_STR(meant("reocrd"), "record");
	ASSERT_STR(meant("recoord"), "record");
	ASSERT_STR(meant("rcord"), "record");
	ASSERT_STR(meant("tpo"), "top");
	ASSERT_STR(meant("doktor"), "doctor");
	ASSERT_STR(meant("frequenzy"), "frequency");
	ASSERT_STR(meant("no-inline"), "no-inlines");
	ASSERT_STR(meant("outptu"), "output");
	ASSERT_STR(meant("pids"), "pid");
	ASSERT_STR(meant("rec"), "record");
}

TEST(it_is_said_behind_the_word)
{
	struct suggestion s = { .word = "shrt", .len = 4 };
	char buf[SUGGESTION_MAX];

	ASSERT_STR(suggestion_text(&s, buf), "");
	suggest(&s, "short");
	ASSERT_STR(suggestion_text(&s, buf), " (did you mean 'short'?)");
}

TEST(what_is_like_nothing_gets_none)
{
	ASSERT_STR(meant(""), "");
	ASSERT_STR(meant("x"), "");
	ASSERT_STR(meant("nope"), "");
	ASSERT_STR(meant("frobnicate"), "");
	ASSERT_STR(meant("a-word-that-is-longer-than-any-command-may-be"), "");
}
