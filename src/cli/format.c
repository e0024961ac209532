// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include "cli/output.h"
#include "cli/suggest.h"
#include "util/log.h"

#include <string.h>

const char *format_names(bool readable, char buf[static FORMAT_NAMES_MAX])
{
	buf[0] = '\0';
	for (const struct export_ops *const *f = export_formats; *f; f++) {
		size_t len = strlen(buf);

		if (!readable || (*f)->read)
			snprintf(buf + len, FORMAT_NAMES_MAX - len, "%s%s", len ? ", " : "",
				 (*f)->name);
	}
	return buf;
}

const struct export_ops *format_by_name(const char *name, bool readable)
{
	const struct export_ops *format = export_by_name(name);
	struct suggestion s = { .word = name, .len = strlen(name) };
	char names[FORMAT_NAMES_MAX], meant[SUGGESTION_MAX];

	if (format)
		return format;
	for (const struct export_ops *const *f = export_formats; *f; f++)
		if (!readable || (*f)->read)
			suggest(&s, (*f)->name);
	log_error("unknown format '%s'%s; %s: %s", name, suggestion_text(&s, meant),
		  readable ? "those that can be read are" : "there are",
		  format_names(readable, names));
	return NULL;
}

const struct export_ops *format_to_write(const char *name, const char *path)
{
	const struct export_ops *format;
	char names[FORMAT_NAMES_MAX];

	if (name)
		return format_by_name(name, false);
	format = export_by_path(path);
	if (format)
		return format;
	if (output_is_folder(path))
		log_error("'%s' is a folder; name a file in it", path);
	else
		log_error("the extension of '%s' names no format; give -f and one of: %s", path,
			  format_names(false, names));
	return NULL;
}
