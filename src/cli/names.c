// SPDX-License-Identifier: Apache-2.0
#include "cli/names.h"

#include "cli/suggest.h"
#include "cli/term.h"
#include "profile/profile.h"
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Without const: exec's type. */
static char builder_path[] = "/proc/self/exe", builder_command[] = "build-symbols";
static char table_builder_command[] = "build-table", walker_loader_command[] = "load-walker";
static char file_copier_command[] = "copy-file", memory_reader_command[] = "read-memory";
char *const names_builder[] = { builder_path, builder_command, NULL };
char *const names_table_builder[] = { builder_path, table_builder_command, NULL };
char *const names_file_copier[] = { builder_path, file_copier_command, NULL };
char *const names_memory_reader[] = { builder_path, memory_reader_command, NULL };
char *const names_walker_loader[] = { builder_path, walker_loader_command, NULL };

int names_style(const char *value, bool *ret_short)
{
	if (strcmp(value, "full") && strcmp(value, "short")) {
		struct suggestion s = { .word = value, .len = strlen(value) };
		char meant[SUGGESTION_MAX];

		suggest(&s, "full");
		suggest(&s, "short");
		log_error("--names takes 'full' or 'short', not '%s'%s", value,
			  suggestion_text(&s, meant));
		return -EINVAL;
	}
	*ret_short = !strcmp(value, "short");
	return 0;
}

void names_format_progress(const struct symbol_progress *progress, size_t columns, char *buf,
			   size_t size)
{
	const char *slash = strrchr(progress->path, '/');
	const char *name = slash ? slash + 1 : progress->path;
	char text[512];

	snprintf(text, sizeof(text),
		 "reading symbols: %u of %u files (Ctrl-C: without the rest)%s%s", progress->done,
		 progress->total, *name ? ", " : "", name);
	/* A file may be called anything; and a line that wraps would not be overwritten. */
	profile_clean_text(text, strlen(text), buf, columns < size ? columns : size);
}

bool names_print_progress(const struct symbol_progress *progress)
{
	char line[256];

	if (!term_width(stderr))
		return false;
	names_format_progress(progress, (size_t)term_width(stderr), line, sizeof(line));
	fprintf(stderr, "%s\033[K\r", line);
	fflush(stderr);
	return true;
}
