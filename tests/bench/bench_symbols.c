// SPDX-License-Identifier: Apache-2.0
/*
 * How fast symbol tables are, for bench.py:
 *
 *	bench_symbols build FILE TABLE [symbols]   build it (or of symbols alone), write it to TABLE
 *	bench_symbols find TABLE SECONDS LOW HIGH  look up random addresses between those two
 *	bench_symbols hit FILE FOLDER              ask a store for it whose cache has it
 *	bench_symbols print TABLE                  name the addresses on stdin as llvm-symbolizer
 *does
 *
 * The first three print one JSON object.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "elf/elf_file.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_store.h"
#include "symbol/symbol_table.h"
#include "util/cleanup.h"

enum { ADDRESSES = 1 << 20, HITS = 20 };

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static long peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void complain(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "# %s\n", text);
}

static int build(const char *path, const char *output, bool symbols_only)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct symbol_builder_options options = {
		.search = { .roots = &root,
			    .nr_roots = 1,
			    .path = path,
			    .complain = complain,
			    .max_bytes = SIZE_MAX },
		.no_debug_info = symbols_only,
	};
	struct symbol_builder_stats stats = { 0 };
	double begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	int r = elf_file_open(path, &elf);

	fd = open(output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (!r && fd < 0)
		r = -errno;
	if (!r)
		r = symbol_table_build(elf, &options, fd, &stats);
	if (r) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return r;
	}
	printf("{\"seconds\": %.4f, \"cpu_seconds\": %.4f, \"functions\": %" PRIu64
	       ", \"ranges\": %" PRIu64 ", \"lines\": %" PRIu64 ", \"size\": %" PRIu64
	       ", \"units\": %" PRIu64 ", \"bad_units\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"peak_kb\": %ld}\n",
	       now(CLOCK_MONOTONIC) - begin, now(CLOCK_PROCESS_CPUTIME_ID) - cpu, stats.functions,
	       stats.ranges, stats.lines, stats.size, stats.dwarf.units, stats.dwarf.bad_units,
	       stats.dwarf.dropped, peak_kb());
	return 0;
}

static int open_table(const char *path, struct symbol_table **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : symbol_table_open_fd(fd, ret);

	if (r)
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
	return r;
}

/* Random addresses of the table's functions. */
static size_t pick_addresses(const struct symbol_table *t, uint64_t low, uint64_t high,
			     uint64_t *addresses)
{
	struct symbol_frame frame;
	size_t nr = 0;

	srandom(1);
	for (size_t tries = 0; tries < 100 * (size_t)ADDRESSES && nr < ADDRESSES; tries++) {
		uint64_t random_bits = (uint64_t)random() << 31 | (uint64_t)random();

		addresses[nr] = low + random_bits % (high - low);
		nr += symbol_table_find(t, addresses[nr], false, &frame, 1);
	}
	return nr;
}

static int find(const char *path, double seconds, uint64_t low, uint64_t high)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	_cleanup_free_ uint64_t *addresses = calloc(ADDRESSES + 1, sizeof(*addresses));
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	uint64_t nr_frames = 0, nr_done = 0, check = 0;
	double begin, spent;
	size_t nr;
	int r = open_table(path, &t);

	if (r || !addresses)
		return r ? r : -ENOMEM;
	nr = pick_addresses(t, low, high, addresses);
	if (!nr)
		return -ENOENT;
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	do {
		for (size_t i = 0; i < nr; i++) {
			size_t n =
				symbol_table_find(t, addresses[i], true, frames, SYMBOL_FRAMES_MAX);

			nr_frames += n;
			check += frames[0].line + frames[n - 1].function;
		}
		nr_done += nr;
		spent = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
	} while (spent < seconds);
	printf("{\"addresses\": %" PRIu64 ", \"seconds\": %.4f, \"rate\": %.0f, \"frames\": %.3f, "
	       "\"check\": %" PRIu64 "}\n",
	       nr_done, spent, (double)nr_done / spent, (double)nr_frames / (double)nr_done, check);
	return 0;
}

/* From nothing to the table: opens the store, identifies the file, finds its table in the cache. */
static int ask_store(const char *path, const char *folder, bool wait, double *ret_seconds)
{
	_cleanup_(symbol_store_free_p) struct symbol_store *store = NULL;
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_store_options options = { .cache_dir = folder };
	struct symbol_file file = { .fd = fd, .path = path };
	double begin = now(CLOCK_MONOTONIC);
	uint32_t id;
	int r = elf_file_open(path, &elf);

	if (!r)
		r = file_identity_of_fd(fd, 0, &file.identity);
	if (!r)
		r = symbol_store_new(&options, &store);
	file.elf = elf;
	if (!r)
		r = symbol_store_want(store, &file, &id);
	if (!r && wait)
		symbol_store_wait(store, 0, NULL, NULL);
	if (!r && symbol_store_state(store, id) != SYMBOL_STATE_READY)
		r = -ENOENT;
	*ret_seconds = now(CLOCK_MONOTONIC) - begin;
	return r;
}

static int hit(const char *path, const char *folder)
{
	double best = 1e9, seconds;
	int r = ask_store(path, folder, true, &seconds);

	for (int i = 0; i < HITS && !r; i++) {
		r = ask_store(path, folder, false, &seconds);
		best = seconds < best ? seconds : best;
	}
	if (r)
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
	else
		printf("{\"seconds\": %.6f}\n", best);
	return r;
}

static int print(const char *path)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *t = NULL;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	char line[64];
	int r = open_table(path, &t);

	while (!r && fgets(line, sizeof(line), stdin)) {
		size_t nr = symbol_table_find(t, strtoull(line, NULL, 16), true, frames,
					      SYMBOL_FRAMES_MAX);

		for (size_t i = 0; i < nr; i++)
			printf("%s\n%s:%u:%u\n", frames[i].name,
			       *frames[i].file ? frames[i].file : "??", frames[i].line,
			       frames[i].column);
		if (!nr)
			printf("??\n??:0:0\n");
		printf("\n");
	}
	return r;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int r = -EINVAL;

	if (!strcmp(what, "build") && argc >= 4)
		r = build(argv[2], argv[3], argc > 4);
	else if (!strcmp(what, "find") && argc == 6)
		r = find(argv[2], strtod(argv[3], NULL), strtoull(argv[4], NULL, 16),
			 strtoull(argv[5], NULL, 16));
	else if (!strcmp(what, "hit") && argc == 4)
		r = hit(argv[2], argv[3]);
	else if (!strcmp(what, "print"))
		r = print(argv[2]);
	if (r == -EINVAL)
		fprintf(stderr, "usage: bench_symbols build|find|hit|print ...\n");
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
