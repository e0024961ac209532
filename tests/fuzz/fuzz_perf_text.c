// SPDX-License-Identifier: Apache-2.0
/* Text of perf script, of any bytes. */
#include "text_reader.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	log_set_level(LOG_LEVEL_ERROR); /* samples of other events are told */
	fuzz_text_reader(&export_perf, data, size);
	return 0;
}
