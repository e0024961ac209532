// SPDX-License-Identifier: Apache-2.0
#include "cli/tracers.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* What is said meanwhile must contain `want`; NULL: nothing is said. */
static void expect(const char *list, int r, uint32_t ids, bool labels, const char *want)
{
	struct runtime_options o = { 0 };
	char said[1024] = "";
	int fds[2], saved = dup(STDERR_FILENO);

	ASSERT_OK(pipe2(fds, O_CLOEXEC));
	dup2(fds[1], STDERR_FILENO);
	ASSERT_EQ(tracers_parse(list, NULL, "agent", &o), r);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	ASSERT(read(fds[0], said, sizeof(said) - 1) >= 0);
	close(fds[0]);
	ck_assert_msg(want ? !!strstr(said, want) : !*said, "%s: \"%s\"", list, said);
	if (r) {
		ASSERT(!o.off && !o.no_labels);
		return;
	}
	ASSERT_EQ(~o.off, ids);
	ASSERT_EQ(!o.no_labels, labels);
}

enum {
	NATIVE = 1u << RUNTIME_NATIVE,
	PYTHON = 1u << RUNTIME_PYTHON,
	EIGHT = 1u << RUNTIME_V8,
};

TEST(names_are_those_that_are_wanted)
{
	expect("python", 0, NATIVE | PYTHON, false, NULL);
	expect("v8, python ,labels", 0, NATIVE | PYTHON | EIGHT | 1u << RUNTIME_GO, true, NULL);
	expect("native", 0, NATIVE, false, NULL);
	expect("all", 0, UINT32_MAX, true, NULL);
	expect("python,all", 0, UINT32_MAX, true, NULL);
	expect("perl,php,python,hotspot,ruby,v8,go", 0,
	       NATIVE | PYTHON | EIGHT | 1u << RUNTIME_PERL | 1u << RUNTIME_PHP |
		       1u << RUNTIME_HOTSPOT | 1u << RUNTIME_RUBY | 1u << RUNTIME_GO,
	       false, NULL);
}

TEST(what_is_not_here_is_said_once)
{
	expect("dotnet,python,beam,luajit", 0, NATIVE | PYTHON, false,
	       "no frames of it here: dotnet, beam, luajit\n");
}

TEST(mistakes_are_told)
{
	expect("pythonn", -EINVAL, 0, false, "knows no 'pythonn' (did you mean 'python'?)");
	expect("python,zzzzz", -EINVAL, 0, false, "knows no 'zzzzz'; there are native, python");
	expect("python,", -EINVAL, 0, false, "knows no ''");
	expect("python:ruby", -EINVAL, 0, false, "knows no 'python:ruby'");
}
