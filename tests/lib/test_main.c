// SPDX-License-Identifier: Apache-2.0
/*
 * `foo_tests [FILE_test] [TEST]`: runs the tests of all files that it is linked with, of one, or
 * one test.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct test_entry *first, **last = &first;

void test_register(struct test_entry *entry)
{
	*last = entry;
	last = &entry->next;
}

static struct test_skip_entry *skips;

void test_register_skip(struct test_skip_entry *entry)
{
	entry->next = skips;
	skips = entry;
}

/* "../src/elf/file_id_test.c" is "file_id_test". */
static bool is_file(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return !strncmp(base, name, len) && !strcmp(base + len, ".c");
}

static bool has_file(const char *name)
{
	for (struct test_entry *e = first; e; e = e->next)
		if (is_file(e->file, name))
			return true;
	return false;
}

static const char *skip_reason(const char *path)
{
	for (struct test_skip_entry *e = skips; e; e = e->next)
		if (!strcmp(e->file, path))
			return e->reason();
	return NULL;
}

const char *test_source_root(void)
{
	const char *root = getenv("SONDE_SOURCE_ROOT");

	return root ? root : ".";
}

/*
 * At the end of each process AddressSanitizer looks for leaks in all memory, of which its own
 * tables are the most: 10 ms, where most tests take one. What has allocated just what it has freed
 * has no leak.
 */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));
int __lsan_is_turned_off(void) __attribute__((visibility("default")));

static size_t allocated_before;
static bool nothing_left;

void test_begins(void)
{
	nothing_left = false;
	if (__sanitizer_get_current_allocated_bytes)
		allocated_before = __sanitizer_get_current_allocated_bytes();
}

void test_ends(void)
{
	if (__sanitizer_get_current_allocated_bytes)
		nothing_left = __sanitizer_get_current_allocated_bytes() == allocated_before;
}

int __lsan_is_turned_off(void)
{
	return nothing_left;
}

static void add(Suite *suite, const struct test_entry *entry)
{
	TCase *tcase = tcase_create(entry->name);

	tcase_set_timeout(tcase, 1200); /* meson has the time limit; times $CK_TIMEOUT_MULTIPLIER */
	tcase_add_test(tcase, entry->test);
	suite_add_tcase(suite, tcase);
}

/* How many were added. */
static int add_wanted(Suite *suite, const char *file, const char *only, const char **skipped)
{
	int nr = 0;

	for (struct test_entry *e = first; e; e = e->next) {
		const char *reason;

		if ((file && !is_file(e->file, file)) || (only && strcmp(only, e->name)))
			continue;
		reason = skip_reason(e->file);
		if (reason) {
			*skipped = reason;
			continue;
		}
		add(suite, e);
		nr++;
	}
	return nr;
}

int main(int argc, char **argv)
{
	const char *file = argc > 1 && has_file(argv[1]) ? argv[1] : NULL;
	const char *only = file ? argv[2] : argv[1], *skipped = NULL;
	Suite *suite = suite_create("tests");
	SRunner *runner = srunner_create(suite);
	int failed = 0;

	if (add_wanted(suite, file, only, &skipped)) {
		srunner_set_tap(runner, "-");
		srunner_run_all(runner, CK_SILENT);
		failed = srunner_ntests_failed(runner);
	} else if (skipped) {
		printf("1..0 # SKIP %s\n", skipped);
	} else {
		fprintf(stderr, "there is no such test\n");
		failed = 1;
	}
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
