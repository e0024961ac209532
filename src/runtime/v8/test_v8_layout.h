/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of made-up heaps, for tests and fuzzers: one in which each kind of object has few words.
 */
#pragma once

#include "runtime/v8/v8_layout.h"

enum test_v8_kind {
	TEST_V8_PLAIN_FLAGS = 1, /* of ScopeInfos, as since 13.6 */
	TEST_V8_OLD = 2,
	TEST_V8_INLINE = 4, /* a Code holds its instructions */
	TEST_V8_DISPATCHED = 8,
	TEST_V8_12_9 = 16,  /* what Maglev's code notes is as there */
	TEST_V8_CALLS = 32, /* positions of calls only */
	TEST_V8_COMPRESSED = 64,
};

static inline void test_v8_compress(struct v8_layout *l)
{
	l->record.compressed = 1;
	l->shared_data = l->script_source = l->scope_flags = 4;
	l->shared_name = l->script_name = l->scope_locals = 8;
	l->record.shared_script = l->script_line_offset = l->scope_parts = 12;
	l->record.shared_token = l->script_line_ends = 16;
	l->record.shared_literal = l->record.script_id = 20;
	l->array_length = l->interpreter_data_bytecodes = l->code_deopt = l->stream_code = 4;
	l->array_data = l->string_length = l->bytecode_positions = l->code_positions = 8;
	l->string_chars = l->cons_first = l->thin_actual = l->sliced_parent = 12;
	l->external_data = 12;
	l->cons_second = l->sliced_offset = 16;
}

static inline struct v8_layout test_v8_layout(uint8_t kind)
{
	struct v8_layout l = {
		.version = 1306,
		.record = { .map_type = 8,
			    .shared_script = 24,
			    .shared_token = 32,
			    .shared_literal = 36,
			    .script_id = 40,
			    .code_start = 32,
			    .code_size = 44,
			    .bytecodes = 24 },
		.shared_data = 8,
		.shared_name = 16,
		.script_source = 8,
		.script_name = 16,
		.script_line_offset = 24,
		.script_line_ends = 32,
		.scope_flags = 8,
		.scope_locals = 16,
		.scope_parts = 24,
		.scope_module = 5,
		.scope_locals_max = 75,
		.scope_saved_class = 1 << 10,
		.scope_inferred = 1 << 14,
		.scope_function_shift = 12,
		.array_length = 8,
		.array_data = 16,
		.string_length = 12,
		.string_chars = 16,
		.cons_first = 16,
		.cons_second = 24,
		.thin_actual = 16,
		.sliced_parent = 16,
		.sliced_offset = 24,
		.external_data = 16,
		.bytecode_positions = 16,
		.interpreter_data_bytecodes = 8,
		.code_deopt = 8,
		.code_positions = 16,
		.code_flags = 40,
		.code_kind_mask = 15,
		.kind_baseline = 10,
		.stream_code = 8,
		.stream_header = 16,
		.deopt_literals = 3,
		.deopt_shared = 1,
		.deopt_inlining = 2,
		.deopt_entries = 6,
		.type_shared = 128,
		.type_script = 129,
		.type_scope = 130,
		.type_byte_array = 131,
		.type_bytecode_array = 132,
		.type_fixed_array = 133,
		.type_code = 134,
		.type_stream = 135,
		.type_interpreter_data = 136,
		.type_deopt = 133,
		.type_wrapper = 137,
		.type_table = 138,
		.first_nonstring = 128,
		.string_representation = 7,
		.string_one_byte = 8,
		.string_cons = 1,
		.string_external = 2,
		.string_sliced = 3,
		.string_thin = 5,
		.positions = { .first = -1 },
	};

	if (kind & TEST_V8_COMPRESSED)
		test_v8_compress(&l);
	if (kind & TEST_V8_PLAIN_FLAGS) {
		l.scope_plain_flags = true;
		l.scope_start = 24;
		l.scope_parts = 32;
		l.wrapper_shared = 8;
		l.positions.flagged = true;
	}
	if (kind & TEST_V8_OLD) {
		l.scope_receiver = true;
		l.scope_module = V8_NO_TYPE;
		l.scope_locals_max = V8_NO_TYPE;
		l.positions_inside = 8;
		l.baseline_data_code = 8;
		l.baseline_data_bytecodes = 2 * 8;
	}
	l.dispatched = kind & TEST_V8_DISPATCHED;
	if (kind & TEST_V8_12_9)
		l.deopt_format = V8_DEOPT_12_9;
	else if (l.dispatched)
		l.deopt_format = V8_DEOPT_13_6;
	l.call_positions = kind & TEST_V8_CALLS;
	if (kind & TEST_V8_INLINE) {
		l.record.code_inline = l.stream_header = 64;
		l.stream_code = 0;
		l.type_stream = l.type_code;
	}
	return l;
}
