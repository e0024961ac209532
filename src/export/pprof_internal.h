/* SPDX-License-Identifier: Apache-2.0 */
/* What writing and reading pprof share. */
#pragma once

#include "profile/profile.h"

/* The fields of a Profile, see proto/pprof.proto. */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE = 2,
	PPROF_MAPPING = 3,
	PPROF_LOCATION = 4,
	PPROF_FUNCTION = 5,
	PPROF_STRING_TABLE = 6,
	PPROF_TIME_NANOS = 9,
	PPROF_DURATION_NANOS = 10,
	PPROF_PERIOD_TYPE = 11,
	PPROF_PERIOD = 12,
	PPROF_DEFAULT_SAMPLE_TYPE = 14,
};

/* The two of struct export_ops. */
int pprof_read(const void *data, size_t size, struct profile *ret, char ret_problem[200]);
bool pprof_recognise(const void *data, size_t size);
