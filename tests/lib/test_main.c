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
