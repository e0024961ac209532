// SPDX-License-Identifier: Apache-2.0
#include "cli/names.h"

#include "cli/term.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

/* Without const: exec's type. */
static char builder_path[] = "/proc/self/exe", builder_command[] = "build-symbols";
char *const names_builder[] = { builder_path, builder_command, NULL };

int names_style(const char *value, bool *ret_short)
{
	if (strcmp(value, "full") && strcmp(value, "short")) {
		log_error("--names takes 'full' or 'short', not '%s'", value);
		return -EINVAL;
	}
	*ret_short = !strcmp(value, "short");
	return 0;
}

bool names_print_progress(const struct symbol_progress *progress)
{
	const char *slash = strrchr(progress->path, '/');

	if (!term_width(stderr))
		return false;
	fprintf(stderr, "reading symbols: %u of %u files%s%s (Ctrl-C: without the rest)\033[K\r",
		progress->done, progress->total, *progress->path ? ", " : "",
		slash ? slash + 1 : progress->path);
	fflush(stderr);
	return true;
}
