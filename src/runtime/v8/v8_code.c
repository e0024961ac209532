// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_code.h"

#include "runtime/v8/v8_translation.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TAG = 1,
	ALIGNMENT = 32, /* of code; 64 in later versions (kCodeAlignment) */
	PIECE = 4096, /* read at once when looking for where code begins: a page, the one before it
			may be a guard */
	LOOK_BACK = 1 << 20,
	/* What looks like the begin of code and is none: its map is read, and more. There is hardly
	 * any, unless somebody puts it there. */
	CANDIDATES_MAX = 1024,
	TABLE_MAX = 4 << 20, /* bytes of a table */
	INLINING_SIZE = 16,  /* of an InliningPosition */
	/* DeoptimizationData, from the index of inlining positions on: how many entries of both
	 * kinds, and these, of which one is three elements. */
	DEOPT_EAGER = 2,
	DEOPT_LAZY = 3,
	DEOPT_ENTRY = 3,
	DEOPT_ENTRY_TRANSLATION = 1,
	ENTRIES_MAX = 4096,
};

void v8_codes_fini(struct v8_codes *codes)
{
	vec_free(&codes->known);
}

static uint64_t code_start_of(const struct v8_heap *h, const struct v8_object *code)
{
	const struct v8_record *r = &h->layout->record;

	return r->code_inline ? code->at + r->code_inline : v8_field(code, r->code_start);
}

/* --- which code it is --------------------------------------------------------------------------
 */

static bool has(const struct v8_heap *h, const struct v8_object *code, uint64_t pc)
{
	const struct v8_record *r = &h->layout->record;

	return pc - code_start_of(h, code) < v8_field_4(code, r->code_size);
}

/* Whether it may be a map's: objects have the alignment of their fields. */
static bool is_address(const struct v8_layout *l, uint64_t tagged)
{
	return (tagged & (v8_tagged_size(l) - 1)) == TAG && tagged <= V8_ADDRESS_MASK;
}

/* If `map` is one of an InstructionStream: the Code that it leads to, if that has pc. */
static int code_of_stream(const struct v8_heap *h, struct v8_codes *codes, uint64_t map,
			  uint64_t code, uint64_t pc, struct v8_object *ret)
{
	const struct v8_layout *l = h->layout;
	uint16_t type;
	int r;

	if (map != codes->stream_map) {
		r = v8_read_bytes(h, map - TAG + l->record.map_type, &type, sizeof(type));
		if (r || type != l->type_stream)
			return r ? r : -ENOENT;
	}
	r = v8_read_as(h, code, l->type_code, ret);
	if (r)
		return r;
	if (!has(h, ret, pc))
		return -ENOENT;
	codes->stream_map = map;
	return 0;
}

/* Looks back from pc for where its code begins. */
static int look_back(const struct v8_heap *h, struct v8_codes *codes, uint64_t pc,
		     struct v8_object *ret)
{
	const struct v8_layout *l = h->layout;
	_cleanup_free_ uint8_t *piece = malloc(PIECE + V8_OBJECT_SIZE);
	uint64_t begin = pc & ~(uint64_t)(PIECE - 1), end = pc + 1;
	int nr_candidates = 0;

	if (!piece)
		return -ENOMEM;
	while (pc - begin < LOOK_BACK && begin >= PIECE) {
		/* What begins in front of this piece's end has its first words behind it. */
		uint64_t from = begin - l->stream_header, last = (end - 1) & ~(ALIGNMENT - 1ull);
		int r = v8_read_bytes(h, from, piece, (size_t)(end - from));

		/* The first code of a page has nothing readable before it. */
		if (r == -ENOENT) {
			from = begin;
			r = v8_read_bytes(h, from, piece, (size_t)(end - from));
		}
		if (r)
			return r;
		for (uint64_t at = last; at >= from + l->stream_header && at >= begin;
		     at -= ALIGNMENT) {
			const uint8_t *stream = piece + (at - l->stream_header - from);
			uint64_t map = v8_tagged_of(l, at, stream),
				 code = l->stream_code
						? v8_tagged_of(l, at, stream + l->stream_code)
						: at - l->stream_header + TAG;

			if (!is_address(l, map) || !is_address(l, code))
				continue;
			if (++nr_candidates > CANDIDATES_MAX)
				return -ENOENT;
			r = code_of_stream(h, codes, map, code, pc, ret);
			if (r != -ENOENT)
				return r;
		}
		end = begin;
		begin -= PIECE;
	}
	return -ENOENT;
}

int v8_code_find(const struct v8_heap *h, struct v8_codes *codes, uint64_t pc,
		 struct v8_object *ret)
{
	const struct v8_record *record = &h->layout->record;
	struct v8_known_code known;
	int r;

	for (size_t i = 0; i < codes->known.nr; i++) {
		const struct v8_known_code *k = &codes->known.items[i];

		if (pc - k->start >= k->size)
			continue;
		r = v8_read_as(h, k->code, h->layout->type_code, ret);
		if (r == -ESRCH)
			return r;
		if (!r && has(h, ret, pc))
			return 0;
	}
	r = look_back(h, codes, pc, ret);
	if (r)
		return r;
	known = (struct v8_known_code){ code_start_of(h, ret), v8_field_4(ret, record->code_size),
					ret->at + TAG };
	if (codes->known.nr < V8_KNOWN_CODE)
		return vec_push(&codes->known, known);
	codes->known.items[codes->next++ % V8_KNOWN_CODE] = known;
	return 0;
}

/* --- tables ------------------------------------------------------------------------------------
 */

/* An array of bytes; the caller's to free. */
static int read_table(const struct v8_heap *h, uint64_t tagged, uint8_t **ret, size_t *ret_size)
{
	const struct v8_layout *l = h->layout;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct v8_object array;
	int32_t length;
	int r = v8_read(h, tagged, &array);

	if (!r && l->positions_inside && array.type != l->type_byte_array)
		r = v8_read(h, v8_tagged(h, &array, l->positions_inside), &array);
	if (r)
		return r;
	if (array.type != l->type_byte_array && array.type != l->type_table)
		return -ENOENT;
	length = v8_array_length(h, &array);
	if (length < 0 || length > TABLE_MAX)
		return -ENOENT;
	bytes = malloc((size_t)length + 1);
	if (!bytes)
		return -ENOMEM;
	r = v8_read_bytes(h, array.at + l->array_data, bytes, (size_t)length);
	if (r)
		return r;
	*ret = TAKE_PTR(bytes);
	*ret_size = (size_t)length;
	return 0;
}

static struct v8_position position_at(const struct v8_heap *h, uint64_t tagged, uint32_t at)
{
	_cleanup_free_ uint8_t *table = NULL;
	size_t size;

	if (read_table(h, tagged, &table, &size))
		return (struct v8_position){ -1, -1 };
	return v8_position_at(table, size, &h->layout->positions, at);
}

/* The element of a FixedArray or its like, whose reference may be a weak one. */
static int element(const struct v8_heap *h, const struct v8_object *array, uint32_t i,
		   uint64_t *ret)
{
	const struct v8_layout *l = h->layout;
	int r;

	if ((int32_t)i < 0 || (int32_t)i >= v8_array_length(h, array))
		return -ENOENT;
	r = v8_read_tagged(h, array->at + l->array_data + v8_tagged_size(l) * (uint64_t)i, ret);
	if (!r && *ret & TAG)
		*ret &= ~2ull;
	return r;
}

/* --- bytecodes ---------------------------------------------------------------------------------
 */

/* The BytecodeArray behind what a function or its baseline code has in that place. */
static int read_bytecodes(const struct v8_heap *h, uint64_t tagged, struct v8_object *ret)
{
	const struct v8_layout *l = h->layout;

	for (int hops = 0; hops < 3; hops++) {
		int r = v8_read(h, tagged, ret);

		if (r)
			return r;
		if (ret->type == l->type_bytecode_array)
			return 0;
		if (ret->type == l->type_interpreter_data)
			tagged = v8_tagged(h, ret, l->interpreter_data_bytecodes);
		else if (ret->type == l->type_code &&
			 (v8_field_4(ret, l->code_flags) & l->code_kind_mask) == l->kind_baseline)
			tagged = v8_tagged(h, ret, l->code_deopt);
		else if (l->baseline_data_bytecodes && !hops)
			tagged = v8_tagged(h, ret, l->baseline_data_bytecodes);
		else
			return -ENOENT;
	}
	return -ENOENT;
}

/* The BytecodeArray that baseline code was made of, if that is the function's. */
static int baseline_bytecodes(const struct v8_heap *h, const struct v8_object *code,
			      const struct v8_object *shared, struct v8_object *ret)
{
	const struct v8_layout *l = h->layout;
	uint64_t data = v8_tagged(h, shared, l->shared_data);
	struct v8_object own;

	if (l->baseline_data_code) {
		if (v8_read(h, data, &own) ||
		    v8_tagged(h, &own, l->baseline_data_code) != code->at + TAG)
			return -ENOENT;
		return read_bytecodes(h, data, ret);
	}
	if (read_bytecodes(h, data, &own) ||
	    read_bytecodes(h, v8_tagged(h, code, l->code_deopt), ret) || own.at != ret->at)
		return -ENOENT;
	return 0;
}

int32_t v8_bytecode_place(const struct v8_heap *h, const struct v8_object *shared, uint32_t at)
{
	struct v8_object bytecodes;

	if (read_bytecodes(h, v8_tagged(h, shared, h->layout->shared_data), &bytecodes) ||
	    at >= (uint32_t)v8_small(v8_tagged(h, &bytecodes, h->layout->array_length)))
		return -1;
	return position_at(h, v8_tagged(h, &bytecodes, h->layout->bytecode_positions), at).offset;
}

static int baseline_places(const struct v8_heap *h, const struct v8_object *code,
			   const struct v8_object *shared, const struct v8_bytecode_sizes *sizes,
			   uint32_t at, struct v8_place *ret)
{
	const struct v8_layout *l = h->layout;
	_cleanup_free_ uint8_t *table = NULL, *bytes = NULL;
	struct v8_object bytecodes;
	size_t size;
	int32_t length;
	int64_t bytecode;
	int r;

	if (baseline_bytecodes(h, code, shared, &bytecodes))
		return -ENOENT;
	ret[0] = (struct v8_place){ .offset = -1 };
	if (!sizes->nr || read_table(h, v8_tagged(h, code, l->code_positions), &table, &size))
		return 1;
	length = v8_small(v8_tagged(h, &bytecodes, l->array_length));
	if (length <= 0 || length > TABLE_MAX)
		return 1;
	bytes = malloc((size_t)length);
	if (!bytes)
		return -ENOMEM;
	r = v8_read_bytes(h, bytecodes.at + l->record.bytecodes, bytes, (size_t)length);
	if (r)
		return r;
	bytecode = v8_bytecode_of_code(table, size, bytes, (size_t)length, sizes, at);
	if (bytecode >= 0)
		ret[0].offset = position_at(h, v8_tagged(h, &bytecodes, l->bytecode_positions),
					    (uint32_t)bytecode)
					.offset;
	return 1;
}

/* --- optimized code ----------------------------------------------------------------------------
 */

/* What is read of optimized code. */
struct optimized {
	const struct v8_heap *heap;
	const struct v8_object *code, *shared;
	struct v8_object deopt, literals;
};

/* Element `i` of what deoptimization needs, a small integer; -1: it is none. */
static int32_t deopt_number(const struct optimized *o, uint32_t i)
{
	uint64_t tagged;

	if (element(o->heap, &o->deopt, i, &tagged) || !v8_is_small(tagged))
		return -1;
	return v8_small(tagged);
}

/* The functions of the code's deoptimization entry `entry`, the outermost one first; -1: none. */
static int translated(const struct optimized *o, const uint8_t *table, size_t size, int64_t entry,
		      struct v8_translated ret[V8_INLINED_MAX])
{
	const struct v8_layout *l = o->heap->layout;
	int32_t at;

	if (entry < 0 || entry > ENTRIES_MAX)
		return -1;
	at = deopt_number(o, l->deopt_entries + DEOPT_ENTRY * (uint32_t)entry +
				     DEOPT_ENTRY_TRANSLATION);
	return at < 0 ? -1
		      : v8_translation(table, size, l->deopt_format, (uint32_t)at,
				       &o->heap->work->operations, ret, V8_INLINED_MAX);
}

/* The table of safepoints; the caller's to free. */
static int read_safepoints(const struct optimized *o, uint8_t **ret, uint32_t *ret_size)
{
	const struct v8_layout *l = o->heap->layout;
	uint32_t code_size = v8_field_4(o->code, l->record.code_size), at = code_size, size;
	uint8_t *safepoints;
	int r;

	if (l->code_safepoints) {
		at = v8_field_4(o->code, l->code_safepoints);
		size = code_size - at;
	} else {
		size = v8_field_4(o->code, l->record.code_size + 4);
	}
	if (at > code_size || size > TABLE_MAX)
		return -ENOENT;
	safepoints = malloc(size + 1);
	if (!safepoints)
		return -ENOMEM;
	r = v8_read_bytes(o->heap, code_start_of(o->heap, o->code) + at, safepoints, size);
	if (r)
		free(safepoints);
	else
		*ret = safepoints;
	*ret_size = size;
	return r;
}

/* Of a call that optimized code makes, which returns to `at`; -ENOENT: there is nothing of it. */
static int call_places(const struct optimized *o, bool maglev, uint32_t at, struct v8_place *ret)
{
	const struct v8_layout *l = o->heap->layout;
	_cleanup_free_ uint8_t *safepoints = NULL, *table = NULL;
	struct v8_translated frames[V8_INLINED_MAX];
	uint64_t tagged;
	uint32_t size;
	size_t table_size;
	int64_t entry;
	int nr, r = read_safepoints(o, &safepoints, &size);

	if (!r)
		r = element(o->heap, &o->deopt, 0, &tagged);
	if (!r)
		r = read_table(o->heap, tagged, &table, &table_size);
	if (r)
		return r;
	entry = l->code_safepoints ? v8_plain_safepoint_entry(safepoints, size, at)
		: maglev	   ? v8_safepoint_entry(safepoints, size, l->deopt_format, at)
				   : v8_packed_safepoint_entry(safepoints, size, at);
	nr = translated(o, table, table_size, entry, frames);
	if (nr <= 0)
		return -ENOENT;
	for (int i = 0; i < nr; i++) {
		struct v8_place *to = &ret[nr - 1 - i];
		struct v8_object function;

		*to = (struct v8_place){ 0 };
		if (element(o->heap, &o->literals, (uint32_t)frames[i].literal, &to->shared) ||
		    v8_read_as(o->heap, to->shared, l->type_shared, &function))
			return -ENOENT;
		to->offset = v8_bytecode_place(o->heap, &function, (uint32_t)frames[i].bytecode);
		if (!i) {
			if (function.at != o->shared->at)
				return -ENOENT;
			to->shared = 0;
		}
	}
	return nr;
}

/*
 * Where in their callers the inlined calls are: what Maglev's code says of these is a place before
 * the call. What it notes for deoptimization within the same calls is right; if those that there
 * are disagree, the function is inlined twice, and it is not known.
 */
static int mend_callers(const struct optimized *o, const int32_t *ids, struct v8_place *places,
			int nr)
{
	const struct v8_layout *l = o->heap->layout;
	_cleanup_free_ uint8_t *table = NULL;
	struct v8_translated frames[V8_INLINED_MAX] = { 0 }, found[V8_INLINED_MAX] = { 0 };
	int32_t nr_entries = deopt_number(o, l->deopt_inlining + DEOPT_EAGER),
		nr_lazy = deopt_number(o, l->deopt_inlining + DEOPT_LAZY);
	bool any = false, same = true;
	uint64_t tagged;
	size_t size;
	int r;

	for (int i = 1; i < nr; i++)
		places[i].offset = -1;
	r = element(o->heap, &o->deopt, 0, &tagged);
	if (!r)
		r = read_table(o->heap, tagged, &table, &size);
	if (r || nr_entries < 0 || nr_lazy < 0 || nr_entries + (int64_t)nr_lazy > ENTRIES_MAX)
		return r == -ENOMEM ? r : 0;
	for (int32_t entry = 0; entry < nr_entries + nr_lazy && same; entry++) {
		bool is_one = translated(o, table, size, entry, frames) >= nr;

		/* ids[0] is the innermost one's; the outermost one has none. */
		for (int i = 1; i < nr && is_one; i++)
			is_one = frames[i].literal == ids[nr - 1 - i];
		if (!is_one)
			continue;
		for (int i = 0; i < nr - 1 && any; i++)
			same &= frames[i].bytecode == found[i].bytecode;
		memcpy(found, frames, sizeof(found));
		any = true;
	}
	/* Those that were not looked at may disagree. */
	if (!o->heap->work->operations || !o->heap->work->reads)
		return 0;
	for (int i = 1; i < nr && any && same; i++) {
		struct v8_object function;

		if (places[i].shared
			    ? v8_read_as(o->heap, places[i].shared, l->type_shared, &function)
			    : (function = *o->shared, 0))
			continue;
		places[i].offset =
			v8_bytecode_place(o->heap, &function, (uint32_t)found[nr - 1 - i].bytecode);
	}
	return 0;
}

static int read_optimized(struct optimized *o)
{
	const struct v8_layout *l = o->heap->layout;
	struct v8_object own;
	uint64_t tagged;

	if (v8_read_as(o->heap, v8_tagged(o->heap, o->code, l->code_deopt), l->type_deopt,
		       &o->deopt) ||
	    element(o->heap, &o->deopt, l->deopt_shared, &tagged) || v8_read(o->heap, tagged, &own))
		return -ENOENT;
	if (l->wrapper_shared && own.type == l->type_wrapper &&
	    v8_read(o->heap, v8_tagged(o->heap, &own, l->wrapper_shared), &own))
		return -ENOENT;
	if (own.at != o->shared->at || element(o->heap, &o->deopt, l->deopt_literals, &tagged) ||
	    v8_read(o->heap, tagged, &o->literals))
		return -ENOENT;
	return 0;
}

/* Where code has no positions, or of its calls only, and was interrupted itself: the function that
 * it is of, and that others may be inlined there if there are any. */
static int interrupted_places(const struct optimized *o, struct v8_place *ret)
{
	_cleanup_free_ uint8_t *inlining = NULL;
	uint64_t tagged;
	size_t size;
	int r = element(o->heap, &o->deopt, o->heap->layout->deopt_inlining, &tagged), nr = 0;

	if (!r)
		r = read_table(o->heap, tagged, &inlining, &size);
	if (r == -ENOMEM || r == -ESRCH)
		return r;
	if (r || size)
		ret[nr++] = (struct v8_place){ .offset = -1, .unknown = true };
	ret[nr++] = (struct v8_place){ .offset = -1 };
	return nr;
}

/* Maglev's code before V8 13. */
static bool has_no_positions(const struct optimized *o)
{
	_cleanup_free_ uint8_t *table = NULL;
	size_t size;

	return !read_table(o->heap, v8_tagged(o->heap, o->code, o->heap->layout->code_positions),
			   &table, &size) &&
	       !size;
}

static int optimized_places(const struct v8_heap *h, const struct v8_object *code,
			    const struct v8_object *shared, uint32_t at, struct v8_place *ret)
{
	const struct v8_layout *l = h->layout;
	_cleanup_free_ uint8_t *inlining = NULL;
	struct optimized o = { .heap = h, .code = code, .shared = shared };
	uint32_t kind = v8_field_4(code, l->code_flags) & l->code_kind_mask;
	bool maglev = l->deopt_format >= V8_DEOPT_12_9 && kind == l->kind_baseline + 1u;
	int32_t ids[V8_INLINED_MAX];
	struct v8_position p;
	uint64_t tagged;
	size_t size = 0;
	int nr = 0, r;

	if (read_optimized(&o))
		return -ENOENT;
	if (maglev || l->call_positions) {
		r = call_places(&o, maglev, at + 1, ret);
		if (r != -ENOENT)
			return r;
	}
	if (l->call_positions || has_no_positions(&o))
		return interrupted_places(&o, ret);
	p = position_at(h, v8_tagged(h, code, l->code_positions), at);
	if (p.inlined >= 0 && (element(h, &o.deopt, l->deopt_inlining, &tagged) ||
			       read_table(h, tagged, &inlining, &size)))
		return -ENOENT;
	while (p.inlined >= 0) {
		int64_t position;
		int32_t function;

		if (nr == V8_INLINED_MAX - 1 || ((size_t)p.inlined + 1) * INLINING_SIZE > size)
			return -ENOENT;
		memcpy(&position, inlining + (size_t)p.inlined * INLINING_SIZE, sizeof(position));
		memcpy(&function, inlining + (size_t)p.inlined * INLINING_SIZE + 8,
		       sizeof(function));
		ret[nr] = (struct v8_place){ .shared = shared->at + TAG, .offset = p.offset };
		/* A function that is inlined into itself has no number. */
		if (function >= 0 && element(h, &o.literals, (uint32_t)function, &ret[nr].shared))
			return -ENOENT;
		ids[nr++] = function;
		p = v8_position_of(position);
	}
	ret[nr++] = (struct v8_place){ .offset = p.offset };
	if (maglev && nr > 1) {
		r = mend_callers(&o, ids, ret, nr);
		if (r)
			return r;
	}
	return nr;
}

int v8_code_places(const struct v8_heap *h, const struct v8_object *code,
		   const struct v8_object *shared, const struct v8_bytecode_sizes *sizes,
		   uint64_t pc, struct v8_place ret[V8_INLINED_MAX])
{
	const struct v8_layout *l = h->layout;
	uint32_t at = (uint32_t)(pc - code_start_of(h, code));
	uint32_t kind = v8_field_4(code, l->code_flags) & l->code_kind_mask;

	if (kind == l->kind_baseline)
		return baseline_places(h, code, shared, sizes, at, ret);
	return optimized_places(h, code, shared, at, ret);
}
