/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a recording writes. Opened before it starts, so that a mistake shows at once;
 * written when it has ended. Logging.
 */
#pragma once

#include "record/recorder.h"
#include "export/export.h"

struct output {
	const char *path; /* NULL: not wanted; "-": stdout */
	struct export_file *file;
	bool is_copy;	   /* if it cannot be written, nothing is lost */
	uint64_t max_size; /* of a profile that is written, in bytes; 0: there is no limit */
};

/* 0 or negative errno. A `path` of NULL is no output: 0. */
int output_open(const char *path, struct output *ret);
/* `path` is no file that could be written, but a folder. */
bool output_is_folder(const char *path);
void output_fini(struct output *output);
/*
 * Writes the profile. SIGINT and SIGTERM meanwhile: the first gets a line that we are writing, the
 * second gives up (-EINTR, the file is what it was before), the third ends the process. -EFBIG,
 * which the caller has to explain: it would be larger than max_size; the file is what it was, too.
 */
int output_write_profile(struct output *output, const struct export_ops *format,
			 const struct profile *profile, const struct export_options *options);
/* Writes the statistics as JSON. */
int output_write_stats(struct output *output, const struct recorder_stats *stats);
