/* SPDX-License-Identifier: Apache-2.0 */
/* A recording's file, read whole and unpacked, and what format it is. */
#pragma once

#include "export/export.h"

/* Of a path with its quotes; longer ones are cut. */
enum { INPUT_NAME_MAX = 4096 };

struct input {
	char *data;
	size_t size;
};

/*
 * Reads `path` ("-": standard input); what gzip packed is unpacked. Logging. 0, -ENODATA: it is
 * empty; -EFBIG; -EBADMSG: the packed data is damaged; or what open() and read() say.
 */
int input_read(const char *path, struct input *ret);
/* What messages call it: "'a.perf'", "standard input". */
const char *input_name(const char *path, char buf[static INPUT_NAME_MAX]);
void input_fini(struct input *input);
/* By the extension, one of gzip left out of account; NULL: it says nothing. */
const struct export_ops *input_format_by_path(const char *path);
/* NULL: none of those that can be read. */
const struct export_ops *input_format_by_content(const struct input *input);
