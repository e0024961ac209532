/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What V8 notes at calls that optimized code makes, so that it can leave that code there: which
 * functions were inlined, and at what bytecodes each is. Maglev's code has exact places of calls
 * there only (src/codegen/{maglev-,}safepoint-table.h, src/deoptimizer/translation-opcode.h,
 * src/objects/deoptimization-data.cc). Parsers of bytes that may be anything.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How these tables are written. */
enum v8_deopt_format {
	V8_DEOPT_UNKNOWN,
	V8_DEOPT_8_3,
	V8_DEOPT_12_9,
	V8_DEOPT_13_6, /* to 15.0 */
};

/* Which of the code's deoptimization entries is that of the call which returns to the offset `at`,
 * by Maglev's table of safepoints; -1: none. */
int64_t v8_safepoint_entry(const uint8_t *table, size_t size, enum v8_deopt_format format,
			   uint32_t at);

/* As v8_safepoint_entry(), by the table that TurboFan's code has since V8 15. */
int64_t v8_packed_safepoint_entry(const uint8_t *table, size_t size, uint32_t at);

/* As v8_safepoint_entry(), by the table of plain words that TurboFan's code has in V8 8.3. */
int64_t v8_plain_safepoint_entry(const uint8_t *table, size_t size, uint32_t at);

struct v8_translated {
	int32_t bytecode; /* offset in the function's */
	int32_t literal;  /* its SharedFunctionInfo, among the code's literals */
};

/* The functions that the translation at `begin` tells of, the outermost one first: how many, at
 * most `max`; -1: it makes no sense, or there are more. `operations`: how many may be looked at,
 * less those that were. */
int v8_translation(const uint8_t *table, size_t size, enum v8_deopt_format format, uint32_t begin,
		   uint32_t *operations, struct v8_translated *ret, int max);
