/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of reports: each is a file of its own, NUMBER-TIME.otlp.gz or .pb.gz, in the order in
 * which they were made, and on over restarts, whatever format they had then. A name appears when
 * its file is whole. All files together are bounded: the oldest go first, and nothing goes that has
 * another kind of name. One process writes at a time; whoever takes files out, by moving or
 * deleting them, may do so whenever he likes.
 */
#pragma once

#include "agent/report.h"

#include <stddef.h>
#include <stdint.h>

struct output_dir;

struct output_dir_stats {
	uint64_t files, bytes; /* there now, as far as nobody took them out */
	uint64_t removed;      /* so far, to make room */
};

/*
 * Creates the folder if it is missing; removes what a killed predecessor did not finish. `path` is
 * borrowed. Logging.
 */
int output_dir_open(const char *path, enum report_format format, uint64_t max_bytes,
		    struct output_dir **ret);
void output_dir_free(struct output_dir *d);
static inline void output_dir_free_p(struct output_dir **d)
{
	output_dir_free(*d);
}
/*
 * One more file. Not synced: when the machine itself goes down, the last ones may be lost. -EFBIG:
 * it is larger than all files may be; or what the file system says (-ENOSPC), and nothing is left.
 */
int output_dir_put(struct output_dir *d, const void *data, size_t size);
struct output_dir_stats output_dir_stats(const struct output_dir *d);
