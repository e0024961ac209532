// SPDX-License-Identifier: Apache-2.0
/* Folded text of any bytes. */
#include "text_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_text_reader(&export_folded, data, size);
	return 0;
}
