// SPDX-License-Identifier: Apache-2.0
#include "process/maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

struct seen {
	struct maps_entry entries[16];
	char paths[16][9000];
	size_t nr;
	int stop_after;
};

static int each(void *ctx, const struct maps_entry *entry)
{
	struct seen *seen = ctx;

	ASSERT(seen->nr < 16);
	seen->entries[seen->nr] = *entry;
	snprintf(seen->paths[seen->nr], sizeof(seen->paths[0]), "%s", entry->path);
	seen->nr++;
	return seen->stop_after && (int)seen->nr == seen->stop_after ? 77 : 0;
}

static struct seen seen;

/* Parses an exact copy on the heap, so that ASan sees any byte read beyond it. */
static int parse(const char *text, size_t size)
{
	char *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, text, size);
	memset(&seen, 0, sizeof(seen));
	r = maps_parse(copy, size, each, &seen);
	free(copy);
	return r;
}

static size_t parse_line(const char *line)
{
	ASSERT_OK(parse(line, strlen(line)));
	return seen.nr;
}

TEST(reads_every_field)
{
	const struct maps_entry *e = seen.entries;

	ASSERT_EQ(parse_line("7f2b149b7000-7f2b14b0d000 r-xp 00026000 fe:01 326269"
			     "                     /usr/lib/x86_64-linux-gnu/libc.so.6\n"
			     "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n"
			     "1000-2000 -w-s 7fffffff000 00:1f 18446744073709551615 /dev/dri\n"),
		  3);
	ASSERT_EQ(e[0].start, 0x7f2b149b7000);
	ASSERT_EQ(e[0].end, 0x7f2b14b0d000);
	ASSERT_EQ(e[0].offset, 0x26000);
	ASSERT_EQ(e[0].dev_major, 0xfe);
	ASSERT_EQ(e[0].dev_minor, 1);
	ASSERT_EQ(e[0].inode, 326269);
	ASSERT(e[0].read && !e[0].write && e[0].exec && !e[0].shared && !e[0].deleted);
	ASSERT_STR(seen.paths[0], "/usr/lib/x86_64-linux-gnu/libc.so.6");
	ASSERT_EQ(e[1].start, 0xffffffffff600000);
	ASSERT(!e[1].read && e[1].exec);
	ASSERT(e[2].write && e[2].shared && !e[2].exec);
	ASSERT_EQ(e[2].inode, UINT64_MAX);
}

TEST(paths_of_all_sorts)
{
	static const struct {
		const char *shown, *path;
		bool deleted;
	} rows[] = {
		{ "", "", false },
		{ " ", "", false },
		{ "                    /usr/bin/cat", "/usr/bin/cat", false },
		{ " /a b  c ", "/a b  c ", false },
		{ " /line\\012break", "/line\nbreak", false },
		{ " /not\\040a\\blank\\01", "/not\\040a\\blank\\01", false },
		{ " /\\012\\012", "/\n\n", false },
		{ " /gone (deleted)", "/gone", true },
		{ " /gone (deleted) (deleted)", "/gone (deleted)", true },
		{ "  (deleted)", "(deleted)", false },
		{ " /memfd:jit cache (deleted)", "/memfd:jit cache", true },
		{ " [heap]", "[heap]", false },
		{ " [anon:v8 code]", "[anon:v8 code]", false },
		{ " anon_inode:[perf_event]", "anon_inode:[perf_event]", false },
		{ " /\xff\xfe\x01", "/\xff\xfe\x01", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[256];

		snprintf(line, sizeof(line), "1000-2000 r-xp 00000000 00:00 7%s", rows[i].shown);
		ASSERT_EQ(parse_line(line), 1);
		ASSERT_STR(seen.paths[0], rows[i].path);
		ASSERT_EQ(seen.entries[0].deleted, rows[i].deleted);
	}
}

TEST(passes_over_junk)
{
	static const char nul[] = "1000-2000 r-xp 0 0:0 0\0junk\n3000-4000 r-xp 0 0:0 0 /x\0y";
	static const char *const bad[] = {
		"",
		"\n",
		"\n\n\n",
		"-",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 ",
		"1000-2000 r-xp 0 fe",
		"1000-2000 r-xp 0 fe:",
		"1000-2000 r-xp 0 fe:1",
		"1000-2000 r-xp 0 fe:1 ",
		"1000-2000 r-xp 0 fe:1 x",
		"1000-2000 r-xp 0 fe:1 12x /a",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-2000 rwxq 0 0:0 0",
		"1000-2000 xwrp 0 0:0 0",
		"10000000000000000-20000000000000000 r-xp 0 0:0 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:0 18446744073709551616",
		" 1000-2000 r-xp 0 0:0 0",
		"1000-2000 r-xp -1 0:0 0",
		"G000-H000 r-xp 0 0:0 0",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[256];

		ASSERT_EQ(parse_line(bad[i]), 0);
		/* The good line behind it is still found. */
		snprintf(text, sizeof(text), "%s\n1000-2000 r-xp 0 0:0 0 /ok", bad[i]);
		ASSERT_EQ(parse_line(text), 1);
		ASSERT_STR(seen.paths[0], "/ok");
	}
	ASSERT_OK(parse(nul, sizeof(nul)));
	ASSERT_EQ(seen.nr, 1);
	ASSERT_STR(seen.paths[0], "/x");
}

TEST(a_path_without_end_keeps_its_mapping)
{
	static const char head[] = "1000-2000 r-xp 0 0:1 5 /";
	static char line[20000];

	memcpy(line, head, sizeof(head));
	memset(line + sizeof(head) - 1, 'x', sizeof(line) - sizeof(head));
	ASSERT_EQ(parse_line(line), 1);
	ASSERT_STR(seen.paths[0], "//toolong");
	ASSERT_EQ(seen.entries[0].inode, 5);
}

TEST(stops_when_told)
{
	static const char two[] = "1000-2000 r-xp 0 0:0 0\n3000-4000 r-xp 0 0:0 0\n";

	memset(&seen, 0, sizeof(seen));
	seen.stop_after = 1;
	ASSERT_EQ(maps_parse(two, strlen(two), each, &seen), 77);
	ASSERT_EQ(seen.nr, 1);
}

static int find_self(void *ctx, const struct maps_entry *entry)
{
	uint64_t addr = (uintptr_t)find_self;

	*(int *)ctx += addr >= entry->start && addr < entry->end && entry->exec &&
		       strstr(entry->path, program_invocation_short_name) && entry->inode;
	return 0;
}

TEST(reads_the_real_thing)
{
	static char text[1 << 20];
	FILE *f = fopen("/proc/self/maps", "r");
	size_t size = fread(text, 1, sizeof(text), f);
	int found = 0;

	fclose(f);
	ASSERT_OK(maps_parse(text, size, find_self, &found));
	ASSERT_EQ(found, 1);
}
