// SPDX-License-Identifier: Apache-2.0
/* The table of formats, and how one is chosen. */
#include "export/export.h"
#include "export/formats.h"

#include <string.h>
#include <strings.h>

const struct export_ops *const export_formats[] = {
	&export_html, &export_folded, &export_speedscope, &export_firefox,
	&export_perf, &export_pprof,  &export_otlp,	  NULL,
};

const struct export_ops *export_by_name(const char *name)
{
	for (size_t i = 0; export_formats[i]; i++)
		if (!strcmp(export_formats[i]->name, name))
			return export_formats[i];
	return NULL;
}

static bool ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), end_len = strlen(end);

	return len > end_len && !strcasecmp(s + len - end_len, end);
}

const struct export_ops *export_by_path(const char *path)
{
	const struct export_ops *found = NULL;
	size_t longest = 0;

	if (!strcmp(path, "-"))
		return &export_folded;
	/* The longest one: ".linux-perf.txt" is not ".txt". */
	for (size_t i = 0; export_formats[i]; i++) {
		for (const char *const *e = export_formats[i]->extensions; *e; e++) {
			if (!ends_with(path, *e) || strlen(*e) <= longest)
				continue;
			longest = strlen(*e);
			found = export_formats[i];
		}
	}
	return found;
}
