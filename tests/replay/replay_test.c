// SPDX-License-Identifier: Apache-2.0
/*
 * Walks every saved case (tests/replay/cases) with the host's walker: the frames must be those that
 * the kernel or a live walk found; and what names the runtimes gave them then, they must give them
 * again. How cases are made: docs/formats/replay-case.md.
 */
#include "agent/replay_case.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* True if there were names to compare. */
static bool compare_names(const char *case_name, const struct replay_case *c)
{
	const char *want = replay_case_expected_names(c);
	_cleanup_free_ char *got = NULL;
	int r = replay_case_name(c, &got);

	if (r == -ENOENT && !*want)
		return false;
	ck_assert_msg(!r, "%s: its frames can't be named: %s", case_name, strerror(-r));
	ck_assert_msg(!strcmp(got, want), "%s: the names are\n%snot\n%s", case_name, got, want);
	return *want;
}

static bool replay(const char *dir, const char *name)
{
	_cleanup_(replay_case_free_p) struct replay_case *c = NULL;
	_cleanup_free_ char *data = NULL;
	struct replay_result got, want;
	_cleanup_free_ char *path = NULL;
	size_t size;

	ASSERT(asprintf(&path, "%s/%s", dir, name) > 0);
	ASSERT_OK(read_file_at(AT_FDCWD, path, 1 << 20, &data, &size));
	ck_assert_msg(!replay_case_read(data, size, &c), "%s is no replay case", name);
	want = replay_case_expected(c);
	got = replay_case_walk(c);
	ck_assert_msg(got.stop == want.stop, "%s: ended %d, not %d", name, got.stop, want.stop);
	ck_assert_msg(got.nr_words == want.nr_words, "%s: %u frames, not %u", name, got.nr_words,
		      want.nr_words);
	for (uint32_t i = 0; i < got.nr_words; i++)
		ck_assert_msg(got.words[i] == want.words[i], "%s: frame %u is 0x%llx, not 0x%llx",
			      name, i, got.words[i], want.words[i]);
	return compare_names(name, c);
}

TEST(every_saved_case_gives_its_frames_and_names)
{
	char dir[4096];
	struct dirent *e;
	int nr = 0, nr_named = 0;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/tests/replay/cases", test_source_root());
	d = opendir(dir);
	ASSERT_PTR_NONNULL(d);
	while ((e = readdir(d))) {
		if (!strstr(e->d_name, ".case"))
			continue;
		nr_named += replay(dir, e->d_name);
		nr++;
	}
	closedir(d);
	printf("# %d cases, %d with names\n", nr, nr_named);
	ASSERT(nr >= 20);
}

TEST(garbage_is_no_case)
{
	struct replay_case *c = NULL;
	char zeros[4096] = { 0 };

	ASSERT_ERR(replay_case_read(zeros, sizeof(zeros), &c), EINVAL);
	ASSERT_ERR(replay_case_read(zeros, 10, &c), EINVAL);
}
