// SPDX-License-Identifier: Apache-2.0
/* The line about symbols that are waited for: in whatever width, of files of whatever name. */
#include "cli/names.h"
#include "test.h"

#include <errno.h>
#include <string.h>

TEST(the_line_fits_and_obeys_nobody)
{
	const struct symbol_progress progress = { 3, 12, "/usr/lib/evil\033]0;x\007\n.so" };
	const struct symbol_progress nothing = { 0, 12, "" };
	char line[256];

	names_format_progress(&progress, 100, line, sizeof(line));
	ASSERT_STR(line, "reading symbols: 3 of 12 files (Ctrl-C: without the rest), "
			 "evil_]0:x__.so");
	names_format_progress(&progress, 20, line, sizeof(line));
	ASSERT_STR(line, "reading symbols: 3 ");
	names_format_progress(&nothing, 100, line, sizeof(line));
	ASSERT_STR(line, "reading symbols: 0 of 12 files (Ctrl-C: without the rest)");
	names_format_progress(&nothing, 1000, line, 8);
	ASSERT_STR(line, "reading");
}

TEST(names_are_full_or_short)
{
	bool is_short;

	ASSERT_OK(names_style("full", &is_short));
	ASSERT(!is_short);
	ASSERT_OK(names_style("short", &is_short));
	ASSERT(is_short);
	ASSERT_ERR(names_style("long", &is_short), EINVAL);
	ASSERT(is_short);
}
