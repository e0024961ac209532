/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's tables that lead from code to source (src/codegen/source-position-table.cc,
 * src/baseline/bytecode-offset-iterator.h, src/base/vlq.h). Parsers of bytes that may be anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	V8_BYTECODES = 256,
	V8_SCALES = 3, /* of operands: single, double, quadruple */
};

/* How many bytes a bytecode has, without a prefix before it (Bytecodes::kBytecodeSizes). */
struct v8_bytecode_sizes {
	uint16_t nr; /* 0: not known */
	uint8_t sizes[V8_SCALES][V8_BYTECODES];
};

/* Where in the source: the offset in the script, and the number of the inlined call that this is
 * in, -1: none. */
struct v8_position {
	int32_t offset; /* -1: not known */
	int32_t inlined;
};

/* What SourcePosition's 64 bits say. */
struct v8_position v8_position_of(int64_t raw);
/* How a source position table is written. */
struct v8_position_format {
	int16_t first; /* what it counts from: -1 is a function's entry */
	bool flagged;  /* V8 14: steps stand above two flags; else they are negated for one */
	bool absolute; /* V8 15: and above a third: the position is no step from the one before */
};
/* The last position at or before `at` in such a table. */
struct v8_position v8_position_at(const uint8_t *table, size_t size,
				  const struct v8_position_format *format, uint32_t at);
/*
 * The offset of the bytecode whose baseline code has the byte `at`; -1: none (what goes before the
 * first one, or the table makes no sense).
 */
int64_t v8_bytecode_of_code(const uint8_t *table, size_t size, const uint8_t *bytecodes,
			    size_t nr_bytecodes, const struct v8_bytecode_sizes *sizes,
			    uint32_t at);
