// SPDX-License-Identifier: Apache-2.0
/*
 * Walks every saved case (tests/replay/cases) with the host's walker: the frames must be those that
 * the kernel or a live walk found; and what names the runtimes gave them then, they must give them
 * again. How cases are made: docs/formats/replay-case.md.
 */
#include "replay/replay_case.h"
#include "test.h"
#include "util/cleanup.h"
#include "util/read_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define HINT "(has a runtime's code changed what it reads? Then run tests/replay/make-cases --zoo)"

static int nr_cases;
static int nr_wanted[RUNTIME_MAX_], nr_named[RUNTIME_MAX_]; /* frames with names, by runtime */

static void count(const struct replay_result *frames, int *nr)
{
	for (uint32_t i = 0; i < frames->nr_words; i += 1 + FRAME_EXTRA(frames->words[i]))
		if (FRAME_EXTRA(frames->words[i]))
			nr[FRAME_RUNTIME(frames->words[i]) % RUNTIME_MAX_]++;
}

/*
 * Runtimes may ask for what they did not ask for when the case was made, and not every machine has
 * the versions to make it anew: such a case is passed over, as long as there are others.
 */
static void compare_names(const char *name, const struct replay_case *c)
{
	const char *want = replay_case_expected_names(c);
	struct replay_result frames = replay_case_expected(c);
	_cleanup_free_ char *got = NULL;
	int r = replay_case_name(c, &got);

	if (!*want)
		return;
	count(&frames, nr_wanted);
	if (r) {
		printf("# %s: its frames can't be named: %s\n", name, strerror(-r));
		return;
	}
	ck_assert_msg(!strcmp(got, want), "%s: the names are\n%snot\n%s" HINT, name, got, want);
	count(&frames, nr_named);
}

static void replay(const char *name, struct replay_case *c)
{
	struct replay_result got, want;

	want = replay_case_expected(c);
	got = replay_case_walk(c);
	ck_assert_msg(got.stop == want.stop, "%s: ended %d, not %d " HINT, name, got.stop,
		      want.stop);
	ck_assert_msg(got.nr_words == want.nr_words, "%s: %u words, not %u " HINT, name,
		      got.nr_words, want.nr_words);
	for (uint32_t i = 0; i < got.nr_words; i++)
		ck_assert_msg(got.words[i] == want.words[i],
			      "%s: word %u is 0x%llx, not 0x%llx " HINT, name, i, got.words[i],
			      want.words[i]);
	compare_names(name, c);
	nr_cases++;
}

static void replay_file(const char *dir, const char *name)
{
	_cleanup_free_ char *data = NULL, *path = NULL;
	_cleanup_free_ uint8_t *plain = NULL;
	const uint8_t *at;
	size_t size;
	int r, nr;

	ASSERT(asprintf(&path, "%s/%s", dir, name) > 0);
	ASSERT_OK(read_file_at(AT_FDCWD, path, 1 << 20, &data, &size));
	ck_assert_msg(!replay_cases_unpack(data, size, &plain, &size), "%s: no cases", name);
	at = plain;
	for (nr = 0;; nr++) {
		_cleanup_(replay_case_free_p) struct replay_case *c = NULL;

		r = replay_case_next(&at, &size, &c);
		if (r)
			break;
		replay(name, c);
	}
	ck_assert_msg(r == -ENODATA && nr, "%s: number %d is no case", name, nr);
}

TEST(every_saved_case_gives_its_frames_and_names)
{
	char dir[4096];
	struct dirent *e;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/tests/replay/cases", test_source_root());
	d = opendir(dir);
	ASSERT_PTR_NONNULL(d);
	while ((e = readdir(d)))
		if (strstr(e->d_name, ".case"))
			replay_file(dir, e->d_name);
	closedir(d);
	ASSERT(nr_cases >= 60);
	ASSERT(nr_wanted[RUNTIME_PYTHON] && nr_wanted[RUNTIME_HOTSPOT]);
	ASSERT(nr_wanted[RUNTIME_V8] && nr_wanted[RUNTIME_GO]);
	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		ck_assert_msg(!nr_wanted[id] || nr_named[id],
			      "none of the frames of %s got its name " HINT, runtimes[id]->name);
}

TEST(garbage_is_no_case)
{
	const uint8_t zeros[4096] = { 0 }, *at = zeros;
	struct replay_case *c = NULL;
	size_t size = sizeof(zeros);

	ASSERT_ERR(replay_case_next(&at, &size, &c), EINVAL);
	size = 10;
	ASSERT_ERR(replay_case_next(&at, &size, &c), EINVAL);
	size = 0;
	ASSERT_ERR(replay_case_next(&at, &size, &c), ENODATA);
	ASSERT_PTR_NULL(c);
	ASSERT(at == zeros);
}
