/* SPDX-License-Identifier: Apache-2.0 */
/* Between side_band.c (rings) and side_band_parse.c (records). */
#pragma once

#include "process/side_band.h"

#include <linux/perf_event.h>
#include <stddef.h>

/* What the rings' events are opened with, and the parser relies on. */
#define SIDE_SAMPLE_TYPE (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/*
 * Appends the events of whole records up to the first one later than `until_ns`, and tells how many
 * bytes those were. -EBADMSG: a record makes no sense (what came before it is in the batch);
 * -ENOMEM.
 */
int side_band_parse_until(const void *data, size_t size, uint64_t until_ns,
			  struct side_events *batch, size_t *ret_used);
int side_events_push(struct side_events *batch, struct side_event event, const char *text,
		     size_t text_len);
/* By time; events of equal time keep their order. */
void side_events_sort(struct side_events *batch);
