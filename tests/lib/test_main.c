// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

static struct test_entry *first, **last = &first;

void test_register(struct test_entry *entry)
{
	*last = entry;
	last = &entry->next;
}

__attribute__((weak)) const char *test_skip_reason(void)
{
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

int main(int argc, char **argv)
{
	const char *only = argc > 1 ? argv[1] : NULL, *reason = test_skip_reason();
	Suite *suite = suite_create("tests");
	SRunner *runner;
	int failed;

	if (reason) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	for (struct test_entry *e = first; e; e = e->next) {
		TCase *tcase;

		if (only && strcmp(only, e->name))
			continue;
		tcase = tcase_create(e->name);
		tcase_set_timeout(
			tcase, 1200); /* meson has the time limit; times $CK_TIMEOUT_MULTIPLIER */
		tcase_add_test(tcase, e->test);
		suite_add_tcase(suite, tcase);
	}
	runner = srunner_create(suite);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
