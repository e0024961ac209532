// SPDX-License-Identifier: Apache-2.0
#include "cli/select.h"

#include "test.h"
#include "util/log.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

static struct selection selection;

static int parse(const char *include, const char *exclude)
{
	struct select_wanted wanted = { .include = { .nr = include != NULL },
					.exclude = { .nr = exclude != NULL } };

	if (include)
		wanted.include.items[0] = (struct list_text){ include, strlen(include) };
	if (exclude)
		wanted.exclude.items[0] = (struct list_text){ exclude, strlen(exclude) };
	selection_fini(&selection);
	return select_parse(&wanted, NULL, "record", &selection);
}

TEST(nothing_selects_all)
{
	ASSERT_OK(parse(NULL, NULL));
	ASSERT(selection_is_empty(&selection));
}

TEST(each_key_is_known)
{
	ASSERT_OK(
		parse("pid=1,comm=a,exe=/b*,cgroup=/c,container=0123,uid=4,min-age=5s", "comm=x"));
	ASSERT_EQ(selection.rules.nr, 2);
	ASSERT_EQ(selection.rules.nr_includes, 1);
	ASSERT_EQ(selection.facts.nr, 3);
	ASSERT_EQ(selection.rules.terms[1].asks, SELECT_COMM);
	ASSERT(selection.rules.terms[1].exclude && !selection.rules.terms[0].exclude);
	ASSERT_EQ(selection.rules.terms[0].asks,
		  SELECT_PID | SELECT_COMM | SELECT_UID | SELECT_AGE | SELECT_FACTS);
	ASSERT_EQ(selection.rules.terms[0].min_age_ns, 5000000000);
}

TEST(a_user_may_have_a_name)
{
	FILE *users = fopen("/etc/passwd", "re");
	const struct passwd *entry = NULL;
	char term[64];

	/* The first one that is not root. */
	while (users && (entry = fgetpwent(users)) && !entry->pw_uid)
		;
	if (entry) {
		uint32_t uid = entry->pw_uid; /* reading again fills the same entry */

		snprintf(term, sizeof(term), "uid=%s", entry->pw_name);
		ASSERT_OK(parse(term, NULL));
		ASSERT_EQ(selection.rules.terms[0].uid, uid);
		ASSERT_EQ(selection.rules.terms[0].uid_mask, UINT32_MAX);
		ASSERT_EQ(selection.rules.terms[0].asks, SELECT_UID);
	}
	if (users)
		fclose(users);
}

/* What is said, by a process of its own. */
static void expect_error(const char *include, const char *said)
{
	char text[512] = "";
	int fds[2], err = dup(2);
	ssize_t n;

	ASSERT_OK(pipe(fds));
	dup2(fds[1], 2);
	ASSERT_ERR(parse(include, NULL), EINVAL);
	dup2(err, 2);
	n = read(fds[0], text, sizeof(text) - 1);
	ASSERT(n > 0);
	ASSERT_MSG(strstr(text, said), "'%s' has no '%s'", text, said);
	close(fds[0]);
	close(fds[1]);
}

TEST(mistakes_are_told)
{
	expect_error("nonsense", "takes KEY=VALUE, not 'nonsense'");
	expect_error("com=a", "no key 'com' (did you mean 'comm'?)");
	expect_error("pid=1,contaner=a", "did you mean 'container'?");
	expect_error("zzzzzz=a", "there are pid, comm, exe");
	expect_error("pid=x", "pid takes the number of a process, not 'x'");
	expect_error("cgroup=system", "begins with '/'");
	expect_error("min-age=1y", "min-age takes");
	expect_error("uid=no such user",
		     "uid takes a user's number, or a name of /etc/passwd, not 'no such user'");
	expect_error("uid=-1", "not '-1'");
	expect_error("pid=1,,uid=0", "takes KEY=VALUE, not ''");
}

TEST(two_of_what_a_process_has_one_of_are_two_terms)
{
	ASSERT_ERR(parse("pid=1,pid=2", NULL), EEXIST);
}

TEST(an_age_for_all_is_in_each_including_term)
{
	struct select_wanted wanted = { .min_age_s = 1.5 };
	const struct select_term *terms = selection.rules.terms;

	selection_fini(&selection);
	ASSERT_OK(select_parse(&wanted, NULL, "agent", &selection));
	ASSERT_EQ(selection.rules.nr_includes, 1);
	ASSERT_EQ(selection.rules.asks, SELECT_AGE);
	ASSERT_EQ(terms[0].min_age_ns, 1500000000);
	selection_fini(&selection);
	wanted.include.items[0] = (struct list_text){ "uid=0", 5 };
	wanted.include.items[1] = (struct list_text){ "uid=1,min-age=10s", 17 };
	wanted.include.items[2] = (struct list_text){ "min-age=1", 9 };
	wanted.include.nr = 3;
	wanted.exclude.items[0] = (struct list_text){ "comm=x", 6 };
	wanted.exclude.nr = 1;
	ASSERT_OK(select_parse(&wanted, NULL, "agent", &selection));
	ASSERT_EQ(selection.rules.nr, 4);
	ASSERT_EQ(terms[0].asks, SELECT_UID | SELECT_AGE);
	ASSERT_EQ(terms[0].min_age_ns, 1500000000);
	ASSERT_EQ(terms[1].min_age_ns, 10000000000);
	ASSERT_EQ(terms[2].min_age_ns, 1500000000);
	ASSERT_EQ(terms[3].asks, SELECT_COMM);
	selection_fini(&selection);
}
