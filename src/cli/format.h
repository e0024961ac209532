/* SPDX-License-Identifier: Apache-2.0 */
/* The format that an option or a file's extension names. Logging. */
#pragma once

#include "export/export.h"

enum { FORMAT_NAMES_MAX = 256 };

/* "folded, html": of all formats, or of those that can be read. */
const char *format_names(bool readable, char buf[static FORMAT_NAMES_MAX]);
/* The format of this name; NULL after a line that says which ones there are. */
const struct export_ops *format_by_name(const char *name, bool readable);
/* By `name`, or if that is NULL by the extension of `path`; NULL after a line that says why. */
const struct export_ops *format_to_write(const char *name, const char *path);
