// SPDX-License-Identifier: Apache-2.0
/* Folded text of any bytes. */
#include "fuzz.h"
#include "text_reader.h"

FUZZER(data, size)
{
	fuzz_text_reader(&export_folded, data, size);
	return 0;
}
