// SPDX-License-Identifier: Apache-2.0
/* Text of perf script, of any bytes. */
#include "fuzz.h"
#include "text_reader.h"
#include "util/log.h"

FUZZER(data, size)
{
	log_set_level(LOG_LEVEL_ERROR); /* samples of other events are told */
	fuzz_text_reader(&export_perf, data, size);
	return 0;
}
