// SPDX-License-Identifier: Apache-2.0
/*
 * What is read of V8's heap, with arbitrary memory as the process: which of the layouts, a
 * function, an offset in its source, an address in code; then what lies at a base address. Whatever
 * it is, there is an end, and what is found is a text, a line and places that can be shown.
 */
#include "runtime/v8/v8_code.h"
#include "runtime/v8/v8_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	BASE = 0x10000,
	PAGE = 4096,
	TAG = 1,
	SMI = 8,
	/* Steps of all that is asked for: code is looked for in a page, each begin of which may be
	 * one; strings are read part by part. */
	READS_MAX = 200000,
	PLAIN_FLAGS = 1, /* of input.layout */
	OLD = 2,
	INLINE = 4,
	DISPATCHED = 8,
};

struct image {
	uint8_t page[PAGE]; /* zero behind the input */
	unsigned int nr_reads;
};

struct input {
	uint8_t layout;
	uint8_t function; /* address / 16 */
	uint8_t offset[2], pc[2];
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct image *i = ctx;

	if (++i->nr_reads > READS_MAX)
		abort();
	if (addr < BASE || addr - BASE > PAGE || size > PAGE - (addr - BASE))
		return -EFAULT;
	memcpy(to, i->page + (addr - BASE), size);
	return 0;
}

static struct v8_layout make_layout(uint8_t kind)
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

	if (kind & PLAIN_FLAGS) {
		l.scope_plain_flags = true;
		l.scope_start = 24;
		l.scope_parts = 32;
		l.wrapper_shared = SMI;
		l.positions.flagged = true;
	}
	if (kind & OLD) {
		l.scope_receiver = true;
		l.scope_module = V8_NO_TYPE;
		l.scope_locals_max = V8_NO_TYPE;
		l.positions_inside = SMI;
		l.baseline_data_code = SMI;
		l.baseline_data_bytecodes = 2 * SMI;
	}
	l.dispatched = kind & DISPATCHED;
	if (kind & INLINE) {
		l.record.code_inline = l.stream_header = 64;
		l.stream_code = 0;
		l.type_stream = l.type_code;
	}
	return l;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct v8_bytecode_sizes sizes = { .nr = 200 };
	struct image image = { 0 };
	struct runtime_target target = { .memory = { read_image, &image } };
	struct v8_place places[V8_INLINED_MAX];
	struct v8_codes codes = { 0 };
	struct v8_lines lines = { 0 };
	struct v8_function f;
	struct v8_object code;
	struct v8_layout layout;
	struct v8_heap heap = { &target, &layout };
	struct input input;
	uint64_t pc;
	int32_t offset;
	int nr;

	if (size < sizeof(input) || size > sizeof(input) + PAGE)
		return 0;
	memcpy(&input, data, sizeof(input));
	memcpy(image.page, data + sizeof(input), size - sizeof(input));
	memset(sizes.sizes, 2, sizeof(sizes.sizes));
	layout = make_layout(input.layout);
	offset = input.offset[0] | input.offset[1] << 8;
	pc = BASE + (uint64_t)(input.pc[0] | input.pc[1] << 8) % PAGE;
	if (!v8_function_read(&heap, BASE + input.function * 16ull + TAG, &f)) {
		if (!f.name[0] || strnlen(f.name, sizeof(f.name)) == sizeof(f.name) ||
		    strnlen(f.source, sizeof(f.source)) == sizeof(f.source))
			abort();
		(void)v8_line(&heap, &lines, &f, offset);
		(void)v8_line(&heap, &lines, &f, f.start);
		if (v8_bytecode_place(&heap, &f.shared, (uint32_t)offset) < -1)
			abort();
		if (!v8_code_find(&heap, &codes, pc, &code)) {
			nr = v8_code_places(&heap, &code, &f.shared, &sizes, pc, places);
			if (nr > V8_INLINED_MAX || !nr || (nr > 0 && places[nr - 1].shared))
				abort();
			/* The second time, it is known already. */
			if (v8_code_find(&heap, &codes, pc, &code) == -EFAULT)
				abort();
		}
	}
	v8_codes_fini(&codes);
	v8_lines_fini(&lines);
	return 0;
}
