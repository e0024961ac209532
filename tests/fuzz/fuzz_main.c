// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a fuzzer without libFuzzer, over the files of its corpus: `fuzzers NAME FILE|FOLDER...`.
 *
 * With TORTURE in the environment each input is run again and again, its n-th allocation failing,
 * n = 1, 2, 3, ... until a run needs fewer: so every path that handles -ENOMEM is taken. The linker
 * leads malloc(), calloc() and realloc() of all our objects here (--wrap); what shared libraries
 * allocate for themselves does not fail.
 *
 * The output is TAP, a test an input. One that crashes ends it before its plan.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"
#include "util/cleanup.h"
#include "util/read_file.h"

enum {
	INPUT_MAX = 1 << 20,
	/* Failing allocations tried for an input. Behind them, its runs are the same again. */
	FAILURES_MAX = 3000,
};

void *__real_malloc(size_t size);
void *__real_calloc(size_t nr, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t nr, size_t size);
void *__wrap_realloc(void *p, size_t size);

static struct fuzzer *fuzzers;
static size_t nr_allocations, failing; /* 0: none fails */

static bool fails(void)
{
	return failing && ++nr_allocations == failing;
}

void fuzzer_register(struct fuzzer *fuzzer)
{
	fuzzer->next = fuzzers;
	fuzzers = fuzzer;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __real_calloc(nr, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static size_t torture(const struct fuzzer *fuzzer, const uint8_t *data, size_t size)
{
	size_t n;

	for (n = 1; n <= FAILURES_MAX; n++) {
		nr_allocations = 0;
		failing = n;
		fuzzer->run(data, size);
		failing = 0;
		if (nr_allocations < n)
			break;
	}
	return n - 1;
}

static bool run_file(const struct fuzzer *fuzzer, const char *path)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ uint8_t *data = NULL;
	size_t size, failures = 0;
	int r = read_file_at(AT_FDCWD, path, INPUT_MAX, &text, &size);

	/* The name first: if it crashes, it is the last one printed. */
	printf("# %s\n", path);
	fflush(stdout);
	if (r) {
		printf("# %s\n", strerror(-r));
		return false;
	}
	/* An allocation of just its size, so that ASan sees what reads beyond. */
	data = malloc(size);
	if (size)
		memcpy(data, text, size);
	fuzzer->run(data, size);
	if (getenv("TORTURE")) {
		failures = torture(fuzzer, data, size);
		printf("# %zu allocations failed\n", failures);
	}
	return true;
}

static void report(const struct fuzzer *fuzzer, const char *path, size_t *nr)
{
	const char *name = strrchr(path, '/');
	bool ok = run_file(fuzzer, path);

	++*nr;
	printf("%sok %zu - %s\n", ok ? "" : "not ", *nr, name ? name + 1 : path);
}

static void run_folder(const struct fuzzer *fuzzer, const char *path, size_t *nr)
{
	_cleanup_(closedir_p) DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		report(fuzzer, name, nr);
	}
}

static const struct fuzzer *find_fuzzer(const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "/fuzz_%s.c", name);
	for (const struct fuzzer *f = fuzzers; f; f = f->next) {
		const char *slash = strrchr(f->file, '/');

		if (slash && !strcmp(slash, file))
			return f;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct fuzzer *fuzzer = argc > 1 ? find_fuzzer(argv[1]) : NULL;
	size_t nr = 0;

	for (int i = 2; fuzzer && i < argc; i++) {
		struct stat st;

		if (!stat(argv[i], &st) && S_ISDIR(st.st_mode))
			run_folder(fuzzer, argv[i], &nr);
		else
			report(fuzzer, argv[i], &nr);
	}
	printf("1..%zu\n", nr);
	/* A corpus that is not where it should be must not pass as a good one. */
	return nr ? EXIT_SUCCESS : EXIT_FAILURE;
}
