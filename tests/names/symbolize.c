// SPDX-License-Identifier: Apache-2.0
/*
 * Names addresses of one file: `symbolize [OPTION...] FILE`, hexadecimal addresses on standard
 * input, in the file's own address space. The tests of names compare what it prints with what other
 * tools do. For each address: a line with it, a line a frame, innermost first, and an empty line.
 * A frame is "name, as the linker has it, file, line, column, i or f", with tabs in between.
 *
 *     --root DIR     where debug files are looked for
 *     --path PATH    of FILE below DIR
 *     --short        short names
 *     --no-inlines   real functions only
 *     --no-debug     symbol tables only
 *     --stats        what was built, on standard error
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "symbol/demangle.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_table.h"
#include "util/cleanup.h"

enum {
	NAME_SIZE = 256 << 10,
	SECTIONS_MAX = 1 << 30,
};

static enum demangle_style arg_style = DEMANGLE_FULL;
static bool arg_inlines = true, arg_stats;
static const char *arg_root = "/";
static struct symbol_builder_options options;

static void complain(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "complaint: %s\n", text);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int build(const char *path, struct symbol_table **ret)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	_cleanup_close_ int root = open(arg_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int fd = memfd_create("symbols", MFD_CLOEXEC);
	struct symbol_builder_stats stats;
	double begin = seconds();
	int r;

	if (root < 0 || fd < 0)
		return -errno;
	r = elf_file_open(path, &elf);
	if (r < 0)
		return r;
	options.search.roots = &root;
	options.search.nr_roots = 1;
	options.search.complain = complain;
	options.search.max_bytes = SECTIONS_MAX;
	r = symbol_table_build(elf, &options, fd, &stats);
	if (r < 0)
		return r;
	if (arg_stats)
		fprintf(stderr,
			"%.3f s, %lu functions, %lu ranges, %lu lines, %lu bytes; %lu units, "
			"%lu bad, %lu without .dwo, %lu dropped\n",
			seconds() - begin, stats.functions, stats.ranges, stats.lines, stats.size,
			stats.dwarf.units, stats.dwarf.bad_units, stats.dwarf.missing_split,
			stats.dwarf.dropped);
	return symbol_table_open_fd(fd, ret);
}

static void print_address(const struct symbol_table *table, uint64_t addr, char *name)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t nr = symbol_table_find(table, addr, arg_inlines, frames, SYMBOL_FRAMES_MAX);

	printf("0x%lx\n", addr);
	for (size_t i = 0; i < nr; i++) {
		const struct symbol_frame *f = &frames[i];

		demangle_name(f->name, (enum symbol_language)f->language, arg_style, name,
			      NAME_SIZE);
		printf("%s\t%s\t%s\t%u\t%u\t%c\n", name, f->name, f->file, f->line, f->column,
		       f->inlined ? 'i' : 'f');
	}
	printf("\n");
}

static int parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "root", required_argument, NULL, 'r' },
		{ "path", required_argument, NULL, 'p' },
		{ "short", no_argument, NULL, 's' },
		{ "no-inlines", no_argument, NULL, 'i' },
		{ "no-debug", no_argument, NULL, 'd' },
		{ "stats", no_argument, NULL, 't' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'r':
			arg_root = optarg;
			break;
		case 'p':
			options.search.path = optarg;
			break;
		case 's':
			arg_style = DEMANGLE_SHORT;
			break;
		case 'i':
			arg_inlines = false;
			break;
		case 'd':
			options.no_debug_info = true;
			break;
		case 't':
			arg_stats = true;
			break;
		default:
			return -EINVAL;
		}
	}
	return optind + 1 == argc ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	_cleanup_(symbol_table_free_p) struct symbol_table *table = NULL;
	_cleanup_free_ char *name = malloc(NAME_SIZE);
	char line[64];
	int r;

	if (!name || parse(argc, argv) < 0)
		return 2;
	if (!options.search.path)
		options.search.path = argv[optind];
	r = build(argv[optind], &table);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[optind], strerror(-r));
		return r == -ENOENT ? 3 : 1;
	}
	while (fgets(line, sizeof(line), stdin))
		print_address(table, strtoull(line, NULL, 16), name);
	return 0;
}
