// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_translation.h"
#include "runtime/words.h"

#include <stdbool.h>
#include <string.h>

/* --- safepoints --------------------------------------------------------------------------------
 */

enum {
	/* MaglevSafepointTable's header: four words, of which the second and the third count; in
	 * 12.9 the first and the second. */
	AT_LENGTH = 4,
	AT_CONFIGURATION = 8,
	HEADER_SIZE = 16,
	HAS_DEOPT_DATA = 1,
};

/* Of SafepointTable's second word, above the length. */
#define HAS_PACKED_REGISTERS  (1u << 30)
#define HAS_PACKED_DEOPT_DATA (1u << 31)

static int64_t number_at(const uint8_t *p, uint32_t bytes)
{
	int64_t number = 0;

	for (uint32_t i = 0; i < bytes; i++)
		number |= (int64_t)p[i] << 8 * i;
	return number;
}

int64_t v8_safepoint_entry(const uint8_t *table, size_t size, enum v8_deopt_format format,
			   uint32_t at)
{
	size_t before = format == V8_DEOPT_12_9 ? 4 : 0;
	uint32_t length, configuration, registers, pc, deopt;
	size_t entry;

	if (size < HEADER_SIZE)
		return -1;
	length = half_at(table + AT_LENGTH - before, 0);
	configuration = half_at(table + AT_CONFIGURATION - before, 0);
	registers = configuration >> 1 & 7;
	pc = configuration >> 4 & 7;
	deopt = configuration >> 7 & 7;
	if (!(configuration & HAS_DEOPT_DATA) || !pc || !deopt)
		return -1;
	/* The pc; which deoptimization and where its code is, each one more; a count; registers. */
	entry = pc + deopt + pc + 1 + registers;
	if (length > (size - HEADER_SIZE) / entry)
		return -1;
	for (uint32_t i = 0; i < length; i++) {
		const uint8_t *p = table + HEADER_SIZE + i * entry;

		if (number_at(p, pc) == at)
			return number_at(p + pc, deopt) - 1;
	}
	return -1;
}

/* Groups of seven bits, the lowest first. */
static bool take_packed(const uint8_t **at, const uint8_t *end, uint32_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < end && shift <= 28; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = (uint32_t)value;
			return true;
		}
	}
	return false;
}

/* Which slots of the frame are pointers: so many bytes; or groups of seven bits, as many as there
 * are, behind how many slots there is nothing to say of. */
static bool skip_slots(const uint8_t **at, const uint8_t *end)
{
	uint32_t value;

	if (*at == end)
		return false;
	if (!(**at & 1)) {
		if (!take_packed(at, end, &value) || value / 2 > (size_t)(end - *at))
			return false;
		*at += value / 2;
		return true;
	}
	if ((**at & 3) == 3 && !take_packed(at, end, &value))
		return false;
	while (*at < end)
		if (!(*(*at)++ & 0x80))
			return true;
	return false;
}

int64_t v8_packed_safepoint_entry(const uint8_t *table, size_t size, uint32_t at)
{
	enum { HEADER = 8, LENGTH = HAS_PACKED_REGISTERS - 1 };
	const uint8_t *p, *end;
	uint32_t configuration, step, pc = 1, value;
	int64_t deopt = -1;

	if (size < HEADER)
		return -1;
	configuration = half_at(table, 4);
	if ((configuration & LENGTH) > size || !(configuration & HAS_PACKED_DEOPT_DATA))
		return -1;
	p = table + HEADER;
	end = table + (configuration & LENGTH);
	while (p < end) {
		if (!take_packed(&p, end, &step) || step > at || pc + step > at)
			return -1;
		pc += step;
		if (!take_packed(&p, end, &step) || (step && !take_packed(&p, end, &value)))
			return -1;
		deopt += step;
		if (pc == at)
			return step ? deopt : -1;
		if ((configuration & HAS_PACKED_REGISTERS && !take_packed(&p, end, &value)) ||
		    !skip_slots(&p, end))
			return -1;
	}
	return -1;
}

int64_t v8_plain_safepoint_entry(const uint8_t *table, size_t size, uint32_t at)
{
	enum { HEADER = 8, ENTRY = 12, DEOPT = 4 };
	uint32_t length, entry;

	if (size < HEADER)
		return -1;
	length = half_at(table, 0);
	if (length > (size - HEADER) / ENTRY)
		return -1;
	for (uint32_t i = 0; i < length; i++) {
		if (half_at(table, HEADER + (size_t)i * ENTRY) != at)
			continue;
		entry = half_at(table, HEADER + (size_t)i * ENTRY + DEOPT);
		return entry <= INT32_MAX ? (int64_t)entry : -1;
	}
	return -1;
}

/* --- translations ------------------------------------------------------------------------------
 */

/* TRANSLATION_OPCODE_LIST: how many operands each has. */
static const uint8_t operands_13[] = {
	6, 4, 3, 3,			 /* frames of JavaScript */
	2, 1, 3, 4, 3, 3, 3,		 /* others */
	1, 0, 0,			 /* arguments */
	3, 3,				 /* BEGIN_* */
	1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, /* values */
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, /* ... OPTIMIZED_OUT */
	1, 1, 1, 1, 1,			 /* LITERAL ... */
	2, 1,				 /* UPDATE_FEEDBACK, MATCH_PREVIOUS_TRANSLATION */
};

/* 12.9: frames without their bytecodes, and one value less. */
static const uint8_t operands_12[] = {
	5, 3, 3, 3, 2, 1, 3, 4, 3, 3, 2, 1, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1,
};

enum {
	INTERPRETED_FRAME = 1, /* and 0 */
	BEGIN = 14,	       /* and 15 */
};

/*
 * A translation may say that its next operations are those of an earlier one, which has none of
 * that kind: `earlier` goes along in that.
 */
struct reader {
	const uint8_t *nr_operands;
	unsigned int nr_opcodes; /* of which the last one says that */
	const uint8_t *table;
	size_t size, at, earlier;
	uint64_t repeated; /* operations that are still to come from the earlier one */
	uint64_t behind;   /* how many operations `earlier` is behind */
	uint32_t *left;	   /* how many may be looked at */
};

static bool take(const struct reader *r, size_t *at, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < r->size && shift <= 28; shift += 7) {
		uint8_t byte = r->table[(*at)++];

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_opcode(const struct reader *r, size_t *at, unsigned int *ret)
{
	if (*at >= r->size || !*r->left)
		return false;
	--*r->left;
	*ret = r->table[(*at)++];
	return true;
}

static bool skip_operands(const struct reader *r, size_t *at, unsigned int opcode)
{
	uint64_t value;

	for (unsigned int i = 0; i < r->nr_operands[opcode]; i++)
		if (!take(r, at, &value))
			return false;
	return true;
}

/* The next operation; *ret_operands: where its operands are read. */
static bool next(struct reader *r, unsigned int *ret, size_t **ret_operands)
{
	const unsigned int match_previous = r->nr_opcodes - 1;
	size_t lookback;
	uint64_t value;

	*ret_operands = &r->earlier;
	if (r->repeated && --r->repeated)
		return take_opcode(r, &r->earlier, ret) && *ret < match_previous;
	*ret_operands = &r->at;
	if (!take_opcode(r, &r->at, ret))
		return false;
	if (*ret >= r->nr_opcodes) {
		r->repeated = *ret - r->nr_opcodes;
		*ret = match_previous;
	} else if (*ret == match_previous && !take(r, &r->at, &r->repeated)) {
		return false;
	}
	if (*ret == BEGIN || *ret == BEGIN + 1) {
		lookback = r->at;
		if (!take(r, &lookback, &value) || value > r->at - 1)
			return false;
		if (value)
			r->earlier = r->at - 1 - value;
		r->behind = 1;
		return true;
	}
	if (*ret != match_previous) {
		r->behind++;
		return true;
	}
	if (!r->repeated)
		return false;
	for (; r->behind; r->behind--)
		if (!take_opcode(r, &r->earlier, ret) || *ret >= match_previous ||
		    !skip_operands(r, &r->earlier, *ret))
			return false;
	*ret_operands = &r->earlier;
	return take_opcode(r, &r->earlier, ret) && *ret < match_previous;
}

/* A signed one: its sign is in the lowest bit. */
static bool take_signed(const struct reader *r, size_t *at, int32_t *ret)
{
	uint64_t value;

	if (!take(r, at, &value))
		return false;
	*ret = value & 1 ? -(int32_t)(value >> 1 & INT32_MAX) : (int32_t)(value >> 1 & INT32_MAX);
	return true;
}

/* Of 8.3: how many operands each operation has. */
static const uint8_t operands_8[] = {
	3,			/* BEGIN */
	5, 3, 3, 3,		/* frames of JavaScript */
	3, 2,			/* others */
	1, 1, 1, 1,		/* objects, arguments */
	1, 1, 1, 1, 1, 1, 1,	/* registers */
	1, 1, 1, 1, 1, 1, 1, 1, /* slots of the stack, LITERAL */
	2,			/* UPDATE_FEEDBACK */
};

enum {
	BEGIN_8 = 0,
	INTERPRETED_FRAME_8 = 1,
	FIRST_BUILTIN_8 = 3,
	LAST_JS_FRAME_8 = 4,
	OPERANDS_MAX_8 = 5,
};

/* A number of 8.3: groups of seven bits above a bit that says whether another one follows. */
static bool take_number_8(const uint8_t *table, size_t size, size_t *at, int32_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < size && shift <= 28; shift += 7) {
		uint8_t byte = table[(*at)++];

		value |= (uint64_t)(byte >> 1) << shift;
		if (!(byte & 1)) {
			*ret = (int32_t)(value >> 1 & INT32_MAX);
			if (value & 1)
				*ret = -*ret;
			return true;
		}
	}
	return false;
}

/* The next operation of 8.3, with its operands. */
static bool next_8(const uint8_t *table, size_t size, size_t *at, uint32_t *left, int32_t *ret,
		   int32_t operands[OPERANDS_MAX_8])
{
	if (!*left || !take_number_8(table, size, at, ret) || *ret < 0 ||
	    *ret >= (int32_t)sizeof(operands_8))
		return false;
	--*left;
	for (int i = 0; i < operands_8[*ret]; i++)
		if (!take_number_8(table, size, at, &operands[i]))
			return false;
	return true;
}

/* As v8_translation(), of 8.3. */
static int translation_8(const uint8_t *table, size_t size, size_t at, uint32_t *operations,
			 struct v8_translated *ret, int max)
{
	int32_t opcode, operands[OPERANDS_MAX_8], nr_js;
	int nr = 0;

	if (!next_8(table, size, &at, operations, &opcode, operands) || opcode != BEGIN_8)
		return -1;
	nr_js = operands[1];
	while (nr_js > 0) {
		if (!next_8(table, size, &at, operations, &opcode, operands) || opcode == BEGIN_8)
			return -1;
		if (opcode >= FIRST_BUILTIN_8 && opcode <= LAST_JS_FRAME_8)
			nr_js--; /* a builtin goes on */
		if (opcode != INTERPRETED_FRAME_8)
			continue;
		nr_js--;
		if (nr == max)
			return -1;
		ret[nr++] = (struct v8_translated){ operands[0], operands[1] };
	}
	return nr_js ? -1 : nr;
}

int v8_translation(const uint8_t *table, size_t size, enum v8_deopt_format format, uint32_t begin,
		   uint32_t *operations, struct v8_translated *ret, int max)
{
	bool older = format == V8_DEOPT_12_9;
	struct reader r = { .nr_operands = older ? operands_12 : operands_13,
			    .nr_opcodes = older ? sizeof(operands_12) : sizeof(operands_13),
			    .table = table,
			    .size = size,
			    .at = begin,
			    .earlier = size,
			    .left = operations };
	int32_t nr_frames, nr_js;
	unsigned int opcode;
	size_t *operands;
	uint64_t lookback;
	int nr = 0;

	if (format == V8_DEOPT_8_3)
		return translation_8(table, size, begin, operations, ret, max);
	if (!next(&r, &opcode, &operands) || (opcode != BEGIN && opcode != BEGIN + 1) ||
	    operands != &r.at || !take(&r, operands, &lookback) ||
	    !take_signed(&r, operands, &nr_frames) || !take_signed(&r, operands, &nr_js))
		return -1;
	while (nr_js > 0) {
		struct v8_translated found;
		size_t at;

		if (!next(&r, &opcode, &operands) || opcode == BEGIN || opcode == BEGIN + 1)
			return -1;
		at = *operands;
		if (!skip_operands(&r, operands, opcode))
			return -1;
		if (opcode > INTERPRETED_FRAME + 2)
			continue;
		nr_js--;
		if (opcode > INTERPRETED_FRAME)
			continue; /* a builtin goes on */
		if (nr == max || !take_signed(&r, &at, &found.bytecode) ||
		    !take_signed(&r, &at, &found.literal))
			return -1;
		ret[nr++] = found;
	}
	return nr_js ? -1 : nr;
}
