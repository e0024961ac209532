// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_positions.h"

#include <stdbool.h>

/* Bytes of a table that are left. */
struct bytes {
	const uint8_t *at, *end;
};

/* Groups of seven bits, the lowest first; each but the last one has the eighth bit set. */
static bool take_unsigned(struct bytes *b, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; b->at < b->end && shift < 64; shift += 7) {
		uint8_t byte = *b->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* The sign is in the lowest bit. */
static bool take_signed(struct bytes *b, int64_t *ret)
{
	uint64_t value;

	if (!take_unsigned(b, &value))
		return false;
	*ret = (int64_t)(value >> 1 ^ -(value & 1));
	return true;
}

struct v8_position v8_position_of(int64_t raw)
{
	uint64_t bits = (uint64_t)raw;
	struct v8_position none = { -1, -1 };

	/* Bit 0: not of a script, but of a file that builtins were made from. */
	if (bits & 1)
		return none;
	return (struct v8_position){
		.offset = (int32_t)(bits >> 1 & 0x3fffffff) - 1,
		.inlined = (int32_t)(bits >> 31 & 0xffff) - 1,
	};
}

enum { FLAGS = 2, ABSOLUTE = 1 << FLAGS };

/* How far it is to the next position, and whether that is no step from this one. */
static bool take_step(struct bytes *b, const struct v8_position_format *format, int64_t *ret,
		      bool *ret_absolute)
{
	uint64_t value;

	*ret_absolute = false;
	if (format->flagged) {
		if (!take_unsigned(b, &value))
			return false;
		*ret_absolute = format->absolute && value & ABSOLUTE;
		*ret = (int64_t)(value >> (format->absolute ? FLAGS + 1 : FLAGS));
		return true;
	}
	if (!take_signed(b, ret))
		return false;
	/* Begins of statements have a step of 0 or more; expressions have theirs negated. */
	*ret = *ret < 0 ? -(*ret + 1) : *ret;
	return true;
}

struct v8_position v8_position_at(const uint8_t *table, size_t size,
				  const struct v8_position_format *format, uint32_t at)
{
	struct v8_position found = { -1, -1 };
	int64_t step, step_raw, now = format->first;
	uint64_t raw = 0;
	struct bytes b;
	bool absolute;

	if (!size)
		return found;
	b = (struct bytes){ table, table + size };
	while (take_step(&b, format, &step, &absolute) && take_signed(&b, &step_raw)) {
		if (step > (int64_t)at - now)
			break;
		now += step;
		raw = (absolute ? 0 : raw) + (uint64_t)step_raw;
		found = v8_position_of((int64_t)raw);
	}
	return found;
}

int64_t v8_bytecode_of_code(const uint8_t *table, size_t size, const uint8_t *bytecodes,
			    size_t nr_bytecodes, const struct v8_bytecode_sizes *sizes, uint32_t at)
{
	struct bytes b = { table, table + size };
	uint64_t end, step;
	size_t bytecode = 0;

	if (!take_unsigned(&b, &end) || at < end)
		return -1; /* the prologue */
	while (bytecode < nr_bytecodes && take_unsigned(&b, &step)) {
		size_t code = bytecode, scale = 0;

		end += step;
		if (at < end)
			return (int64_t)bytecode;
		/* Wide, ExtraWide and what stands in their place for breakpoints come first. */
		if (bytecodes[code] < 4) {
			scale = bytecodes[code] & 1 ? 2 : 1;
			if (++code >= nr_bytecodes)
				break;
		}
		if (bytecodes[code] >= sizes->nr || !sizes->sizes[scale][bytecodes[code]])
			break;
		bytecode = code + sizes->sizes[scale][bytecodes[code]];
	}
	return -1;
}
