// SPDX-License-Identifier: Apache-2.0
/*
 * V8's tables of source positions, of baseline code and of safepoints. Two bytes of an offset, one
 * that says how many bytes are bytecodes; these, then the table. Whatever they are, there is an
 * end, and what is found lies in the bytecodes.
 */
#include "fuzz.h"
#include "runtime/v8/v8_positions.h"
#include "runtime/v8/v8_translation.h"

#include <stdlib.h>
#include <string.h>

FUZZER(data, size)
{
	struct v8_bytecode_sizes sizes = { .nr = 200 };
	uint32_t at;
	size_t nr;
	int64_t found;

	if (size < 3)
		return 0;
	at = data[0] | (uint32_t)data[1] << 8;
	nr = data[2] < size - 3 ? data[2] : size - 3;
	data += 3;
	size -= 3;
	for (size_t i = 0; i < V8_BYTECODES; i++)
		for (size_t scale = 0; scale < V8_SCALES; scale++)
			sizes.sizes[scale][i] = (uint8_t)(i % 7 + scale);
	found = v8_bytecode_of_code(data + nr, size - nr, data, nr, &sizes, at);
	if (found < -1 || found >= (int64_t)nr)
		abort();
	if (v8_packed_safepoint_entry(data, size, at) < -1 ||
	    v8_plain_safepoint_entry(data, size, at) < -1)
		abort();
	for (int i = 0; i < 6; i++) {
		const struct v8_position_format format = { .first = -(i & 1),
							   .flagged = i >> 1,
							   .absolute = i >> 2 };

		if (v8_position_at(data + nr, size - nr, &format, at).offset < -1)
			abort();
	}
	return 0;
}
