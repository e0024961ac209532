// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_layout.h"

#include "abi/unwind.h"
#include "elf/elf_dynamic.h"
#include "elf/elf_symbols.h"
#include "elf/v8_unexported.h"
#include "runtime/v8/v8_constants.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMI = 8,	/* bytes of a small integer, and of a pointer; if it is not compressed */
	COMPRESSED = 4, /* else */
	WORD = 8,	/* of an address, and of a frame's slot */
	NAME_SIZE = 128,
	SYMTAB_MAX = 24 << 20, /* bytes of a table of symbols, or of its names; Node.js has 8 MB */
	A64_BYTECODES = 20,    /* kInterpreterBytecodeArrayRegister */
};

#define AT(member) offsetof(struct v8_layout, member)

static const char sizes_name[] = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";

/* What every version has; as 16 bits of struct v8_layout. */
static const struct {
	const char *name;
	size_t at;
} exported[] = {
	{ "off_fp_context", AT(record.fp_context) },
	{ "off_fp_function", AT(record.fp_function) },
	{ "class_Map__instance_type__uint16_t", AT(record.map_type) },
	{ "class_JSFunction__shared__SharedFunctionInfo", AT(record.function_shared) },
	{ "type_JSFunction__JS_FUNCTION_TYPE", AT(record.function_first) },
	{ "class_SharedFunctionInfo__raw_function_token_offset__int16_t", AT(record.shared_token) },
	{ "class_SharedFunctionInfo__name_or_scope_info__Object|"
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_|"
	  "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	  AT(shared_name) },
	{ "class_Script__name__Object", AT(script_name) },
	{ "class_Script__line_ends__Object", AT(script_line_ends) },
	{ "class_FixedArrayBase__length__SMI", AT(array_length) },
	{ "class_FixedArray__data__uintptr_t", AT(array_data) },
	{ "class_String__length__int32_t", AT(string_length) },
	{ "class_SeqOneByteString__chars__char", AT(string_chars) },
	{ "class_ConsString__first__String|class_ConsString__first_offset__int", AT(cons_first) },
	{ "class_ConsString__second__String|class_ConsString__second_offset__int",
	  AT(cons_second) },
	{ "class_ThinString__actual__String|class_ThinString__actual_offset__int",
	  AT(thin_actual) },
	{ "class_SlicedString__parent__String", AT(sliced_parent) },
	{ "class_SlicedString__offset__SMI|class_SlicedString__offset_offset__int",
	  AT(sliced_offset) },
	{ "class_ExternalString__resource__Object", AT(external_data) },
	{ "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", AT(type_shared) },
	{ "type_Script__SCRIPT_TYPE", AT(type_script) },
	{ "type_ScopeInfo__SCOPE_INFO_TYPE", AT(type_scope) },
	{ "type_ByteArray__BYTE_ARRAY_TYPE", AT(type_byte_array) },
	{ "type_BytecodeArray__BYTECODE_ARRAY_TYPE", AT(type_bytecode_array) },
	{ "type_FixedArray__FIXED_ARRAY_TYPE", AT(type_fixed_array) },
	{ "type_Code__CODE_TYPE", AT(type_code) },
	{ "FirstNonstringType", AT(first_nonstring) },
	{ "StringRepresentationMask", AT(string_representation) },
	{ "OneByteStringTag", AT(string_one_byte) },
	{ "ConsStringTag", AT(string_cons) },
	{ "ExternalStringTag", AT(string_external) },
	{ "SlicedStringTag", AT(string_sliced) },
	{ "ThinStringTag", AT(string_thin) },
};

/* What says how a file's V8 is: what that exports, or else what is known of its version. */
struct told {
	struct elf_dynamic dynamic;
	const struct v8_constant *known; /* up to one without a name */
};

static int read_int(const struct told *d, const char *symbol, int32_t *ret)
{
	uint64_t at;

	if (elf_dynamic_find(&d->dynamic, symbol, &at))
		return -ENOENT;
	return elf_file_read_vaddr(d->dynamic.elf, at, ret, sizeof(*ret)) ? -ENOENT : 0;
}

/* Of v8dbg_NAME; `names`: what it is called in one version or another, with `|` between these. */
static int32_t constant(const struct told *d, const char *names, int32_t fallback)
{
	char symbol[NAME_SIZE];
	int32_t value;

	while (*names) {
		size_t n = strcspn(names, "|");

		for (const struct v8_constant *k = d->known; k && k->name; k++)
			if (strlen(k->name) == n && !memcmp(k->name, names, n))
				return k->value;
		snprintf(symbol, sizeof(symbol), "v8dbg_%.*s", (int)n, names);
		if (!read_int(d, symbol, &value))
			return value;
		names += n + (names[n] == '|');
	}
	return fallback;
}

/* One that is never 0, or 0. */
static uint16_t number(const struct told *d, const char *names)
{
	int32_t value = constant(d, names, 0);

	return value > 0 && value <= INT16_MAX ? (uint16_t)value : 0;
}

static int read_exported(const struct told *d, struct v8_layout *l)
{
	for (size_t i = 0; i < sizeof(exported) / sizeof(*exported); i++) {
		int32_t value = constant(d, exported[i].name, INT32_MIN);
		uint16_t narrow = (uint16_t)value;

		if (value == INT32_MIN || value > UINT16_MAX || value < INT16_MIN)
			return -ENOTSUP;
		memcpy((char *)l + exported[i].at, &narrow, sizeof(narrow));
	}
	return 0;
}

/*
 * What did not change from one of these versions to the next. nr_bytecodes: how many there are in
 * BYTECODE_LIST (src/interpreter/bytecodes.h).
 */
static void read_common(struct v8_layout *l, uint16_t nr_bytecodes)
{
	const uint16_t size = v8_tagged_size(l);

	l->nr_bytecodes = nr_bytecodes;
	l->positions.first = -1;
	l->interpreter_data_bytecodes = size;
	/* src/objects/scope-info.tq */
	l->scope_flags = size;
	l->scope_locals = 3 * size;
	l->scope_parts = 4 * size;
	l->scope_module = V8_NO_TYPE;
	l->scope_locals_max = 75;
	l->scope_saved_class = 1 << 10;
	l->scope_function_shift = 12;
	l->scope_inferred = 1 << 14;
	l->type_table = l->type_byte_array;
	l->type_deopt = l->type_fixed_array;
	l->record.function_last = l->record.function_first + 24;
}

/* What V8 exports for frames and kinds of code since 10.2. */
static int read_kinds(const struct told *d, struct v8_layout *l)
{
	l->record.fp_bytecode_array = (int16_t)constant(d, "off_fp_bytecode_array", 0);
	l->record.fp_bytecode_offset = (int16_t)constant(d, "off_fp_bytecode_offset", 0);
	l->code_kind_mask = number(d, "CodeKindFieldMask");
	l->kind_baseline = number(d, "CodeKindBaseline");
	return l->record.fp_bytecode_array && l->record.fp_bytecode_offset && l->code_kind_mask &&
			       l->kind_baseline
		       ? 0
		       : -ENOTSUP;
}

/*
 * Up to V8 10.2: src/objects/{code,bytecode-array,deoptimization-data}.h: a Code has its
 * instructions behind its header, and is what lies in executable memory.
 */
static int read_inline(const struct told *d, struct v8_layout *l)
{
	const uint16_t size = v8_tagged_size(l);

	/* Behind the context and the feedback cell (js-function.tq), which 8.6 does not export. */
	l->record.function_code = l->record.function_shared + 3 * size;
	l->record.code_inline = number(d, "class_Code__instruction_start__uintptr_t");
	l->record.code_size = number(d, "class_Code__instruction_size__int");
	l->stream_header = l->record.code_inline;
	l->type_stream = l->type_code;
	l->code_deopt = 2 * size;
	l->code_positions = 3 * size;
	l->deopt_literals = 2;
	l->deopt_shared = 6;
	l->deopt_inlining = 7;
	l->bytecode_positions = 4 * size;
	return l->record.code_inline && l->record.code_size ? 0 : -ENOTSUP;
}

/*
 * V8 7.8, 7.9, 8.3, 8.4, 8.6, 9.4 (Node.js 12 to 16, Electron 9): src/execution/frame-constants.h,
 * src/objects/code.h, src/objects/scope-info.{h,tq}. There is no baseline code before 9.1. What was
 * read of 8.2.308 and 8.4.300 is alike, but for Code's header, and so 8.3's.
 */
static int read_old(const struct told *d, struct v8_layout *l)
{
	const uint16_t size = v8_tagged_size(l);

	read_common(l, 0);
	/* Behind five fields, three integers of 4 bytes and two of one. */
	l->record.bytecodes = 5 * size + 14;
	l->record.fp_bytecode_array = -3 * WORD;
	l->record.fp_bytecode_offset = -4 * WORD;
	l->record.bytecodes_register = X86_R14;
	l->record.function_last = l->record.function_first;
	l->code_kind_mask = 31;
	l->kind_baseline = V8_NO_TYPE;
	l->scope_receiver = true;
	l->scope_locals_max = V8_NO_TYPE;
	if (l->version == 904) {
		l->nr_bytecodes = 197;
		/* Frames have the number of arguments, too. */
		l->record.fp_bytecode_array = -4 * SMI;
		l->record.fp_bytecode_offset = -5 * SMI;
		l->record.bytecodes_register = X86_R12;
		/* Classes, and four kinds of built-in constructors, of which one has 11. */
		l->record.function_last += 15;
		l->code_kind_mask = 15;
		l->kind_baseline = 11;
		l->baseline_data_code = SMI;
		l->baseline_data_bytecodes = 2 * SMI;
	} else {
		/* A ScopeInfo is a FixedArray. */
		l->scope_flags += size;
		l->scope_locals += size;
		l->scope_parts += size;
	}
	if (l->version < 803) {
		l->scope_saved_class = 0;
		l->scope_function_shift = 11;
		l->scope_inferred = 1 << 13;
		l->positions_inside = SMI;
		l->positions.first = 0;
	}
	if (read_inline(d, l))
		return -ENOTSUP;
	l->code_flags = l->record.code_size + (l->version == 904 ? 8 : 4);
	if (d->known) {
		l->call_positions = true;
		l->deopt_format = V8_DEOPT_8_3;
		l->deopt_entries = l->deopt_inlining + 3;
		l->code_safepoints = l->code_flags + 4;
	}
	return 0;
}

/*
 * V8 9.6, 10.2, 10.8 (Node.js 17, 18, 19): the same files; in 10.8 a function's Code is behind what
 * read_inline() says (src/objects/js-function.tq). 9.6 has the ScopeInfos of 9.4.
 */
static int read_10(const struct told *d, struct v8_layout *l)
{
	read_common(l, l->version == 906 ? 197 : 198);
	if (read_kinds(d, l) || read_inline(d, l))
		return -ENOTSUP;
	if (l->version < 1008)
		l->record.function_code = number(
			d, "class_JSFunction__code__CodeT|class_JSFunction__raw_code__CodeT");
	if (l->version == 906) {
		l->scope_receiver = true;
		l->scope_locals_max = V8_NO_TYPE;
	}
	l->code_flags = number(d, "class_Code__flags__uint32_t");
	return l->record.function_code && l->code_flags ? 0 : -ENOTSUP;
}

/* Of what deoptimization needs, and of code that lies apart from what describes it. */
static int read_apart(const struct told *d, struct v8_layout *l)
{
	l->deopt_literals = number(d, "DeoptimizationDataLiteralArrayIndex");
	l->deopt_shared = number(d, "DeoptimizationDataSharedFunctionInfoIndex|"
				    "DeoptimizationDataSharedFunctionInfoWrapperIndex|"
				    "DeoptimizationDataWrappedSharedFunctionInfoIndex");
	l->deopt_inlining = number(d, "DeoptimizationDataInliningPositionsIndex");
	l->stream_header = number(d, "class_InstructionStream__instruction_start__uintptr_t");
	l->stream_code = SMI;
	l->type_stream = number(d, "type_InstructionStream__INSTRUCTION_STREAM_TYPE");
	return l->deopt_literals && l->deopt_shared && l->deopt_inlining && l->stream_header &&
			       l->type_stream
		       ? read_kinds(d, l)
		       : -ENOTSUP;
}

/*
 * V8 11.3 (Node.js 20): src/objects/{code,script,shared-function-info,bytecode-array}.h and *.tq:
 * Code has its instructions' address behind the InstructionStream's, and two words of flags before
 * the size of these.
 */
static int read_11(const struct told *d, struct v8_layout *l)
{
	read_common(l, 198);
	l->code_deopt = number(d, "class_Code__deoptimization_data__FixedArray");
	l->code_positions = number(d, "class_Code__source_position_table__ByteArray");
	l->record.function_code =
		number(d, "class_JSFunction__raw_feedback_cell__FeedbackCell") + SMI;
	l->record.code_start = l->code_positions + 2 * SMI;
	l->code_flags = l->code_positions + 3 * SMI;
	l->record.code_size = l->code_positions + 4 * SMI;
	l->bytecode_positions = 4 * SMI;
	return l->code_deopt && l->code_positions ? read_apart(d, l) : -ENOTSUP;
}

/*
 * V8 11.8 (Node.js 21): the same files: functions have their Code before the SharedFunctionInfo
 * (js-function.tq), and the size of instructions is right behind the flags.
 */
static int read_11_8(const struct told *d, struct v8_layout *l)
{
	int32_t last = constant(d, "LastJSFunctionType", 0);

	read_common(l, 199);
	l->record.function_last = (uint16_t)last;
	l->code_deopt = number(d, "class_Code__deoptimization_data__Tagged_FixedArray_");
	l->code_positions = number(d, "class_Code__source_position_table__Tagged_ByteArray_");
	l->record.function_code = l->record.function_shared - SMI;
	l->record.code_start = l->code_positions + 2 * SMI;
	l->code_flags = l->code_positions + 3 * SMI;
	l->record.code_size = l->code_flags + 4;
	l->bytecode_positions = 4 * SMI;
	return last > l->record.function_first && last < l->record.function_first + 64 &&
			       l->code_deopt && l->code_positions
		       ? read_apart(d, l)
		       : -ENOTSUP;
}

/*
 * V8 12.4 (Node.js 22): src/objects/{code,bytecode-array,deoptimization-data,
 * js-function}.h: what describes code is trusted objects. Those have a wrapper: Code behind what
 * deoptimization needs and the positions, a BytecodeArray before these.
 */
static int read_trusted(const struct told *d, struct v8_layout *l)
{
	uint16_t wrapper = number(d, "class_Code__wrapper__Tagged_CodeWrapper_");
	uint16_t of_bytecodes = number(d, "class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_");

	l->code_deopt = wrapper - 2 * SMI;
	l->code_positions = wrapper - SMI;
	l->record.code_start = number(d, "class_Code__instruction_start__Address");
	l->record.code_size = number(d, "class_Code__instruction_size__int");
	l->code_flags = number(d, "class_Code__flags__uint32_t");
	l->type_table = number(d, "type_TrustedByteArray__TRUSTED_BYTE_ARRAY_TYPE");
	l->bytecode_positions = of_bytecodes + SMI;
	return wrapper && of_bytecodes && l->record.code_start && l->record.code_size &&
			       l->code_flags && l->type_table
		       ? read_apart(d, l)
		       : -ENOTSUP;
}

/* Since 12.9: what deoptimization needs has the function in a wrapper. */
static int read_wrapped(const struct told *d, struct v8_layout *l)
{
	int32_t last = constant(d, "LastJSFunctionType", 0);

	l->record.function_last = (uint16_t)last;
	l->type_deopt = number(d, "type_ProtectedFixedArray__PROTECTED_FIXED_ARRAY_TYPE");
	l->type_wrapper =
		number(d, "type_SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER_TYPE");
	l->wrapper_shared = number(
		d, "class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_");
	return last > l->record.function_first && last < l->record.function_first + 64 &&
			       l->type_deopt && l->type_wrapper && l->wrapper_shared
		       ? 0
		       : -ENOTSUP;
}

/* Since 12.9: ScopeInfos have plain flags, and where the function is before the names. */
static void read_plain_scopes(struct v8_layout *l)
{
	l->scope_plain_flags = true;
	l->scope_start = 4 * SMI;
	l->scope_parts = 6 * SMI;
	l->scope_module = 5;
}

static int read_12(const struct told *d, struct v8_layout *l)
{
	read_common(l, 203);
	l->scope_module = 3;
	l->record.function_code = number(d, "class_JSFunction__code__Tagged_Code_");
	l->type_deopt = number(d, "type_TrustedFixedArray__TRUSTED_FIXED_ARRAY_TYPE");
	return l->type_deopt ? read_trusted(d, l) : -ENOTSUP;
}

/*
 * V8 12.9 (Node.js 23): src/objects/{scope-info,shared-function-info,js-function}.tq,
 * src/objects/{code,deoptimization-data}.h, src/codegen/maglev-safepoint-table.h,
 * src/deoptimizer/translation-opcode.h: as 12.4, but with 13.6's ScopeInfos and wrapped functions.
 */
static int read_12_9(const struct told *d, struct v8_layout *l)
{
	read_common(l, 204);
	read_plain_scopes(l);
	l->record.function_code = number(d, "class_JSFunction__code__Tagged_Code_");
	l->deopt_format = V8_DEOPT_12_9;
	return read_wrapped(d, l) ? -ENOTSUP : read_trusted(d, l);
}

/*
 * V8 13.6, 14.1, 14.6 (Node.js 24, 25, 26): src/objects/{js-function,scope-info}.tq,
 * src/objects/deoptimization-data.h, src/sandbox/js-dispatch-table.h: functions have an entry of
 * the JSDispatchTable, ScopeInfos plain flags, and where the function is before the names.
 */
static int read_dispatched(const struct told *d, struct v8_layout *l)
{
	read_common(l, l->version == 1306 ? 208 : l->version < 1500 ? 212 : 214);
	l->dispatched = true;
	l->deopt_format = V8_DEOPT_13_6;
	l->positions.flagged = l->version >= 1400;
	l->record.function_code = l->record.function_shared - SMI;
	read_plain_scopes(l);
	if (l->version >= 1500) {
		/* fixed-array.h, source-position-table.cc, scope-info.tq: ScopeType */
		l->plain_lengths = l->positions.absolute = true;
		l->call_positions = l->makes_sources = d->known;
		l->scope_module = 3;
	}
	return read_wrapped(d, l) ? -ENOTSUP : read_trusted(d, l);
}

/*
 * WebAssembly's objects, by version: src/wasm/wasm-code-manager.h (lookup_map_; owned_code_,
 * new_owned_code_, wire_bytes_; instructions_size_, index_) says what there is, Node.js's builds
 * where it lies. The C library's locks, which some stand behind, have 40 bytes on x86-64 and 48 on
 * aarch64.
 */
static void read_wasm(const struct told *d, uint16_t machine, struct v8_layout *l)
{
	static const struct {
		uint16_t machine, first, last;
		struct v8_wasm_layout layout;
	} known[] = {
		{ EM_X86_64, 904, 1002, { 0x50, 0x1a8, 0x1d0, 0x138, 0x20, 0x30, false } },
		{ EM_X86_64, 1008, 1008, { 0x48, 0x1a8, 0x1d0, 0x138, 0x20, 0x30, false } },
		{ EM_X86_64, 1103, 1108, { 0x48, 0x138, 0x160, 0xc8, 0x18, 0x2c, false } },
		{ EM_X86_64, 1204, 1204, { 0x48, 0x190, 0x1b8, 0xc8, 0x18, 0x2c, true } },
		{ EM_X86_64, 1209, 1209, { 0x48, 0x1b8, 0x1e0, 0xf0, 0x18, 0x30, true } },
		{ EM_X86_64, 1306, 1401, { 0x28, 0x140, 0x168, 0xf0, 0x20, 0x38, true } },
		{ EM_X86_64, 1406, 1406, { 0x28, 0x138, 0x160, 0xe8, 0x20, 0x38, true } },
		{ EM_AARCH64, 1103, 1103, { 0x50, 0x140, 0x168, 0xc8, 0x18, 0x2c, false } },
		{ EM_AARCH64, 1204, 1204, { 0x50, 0x1a0, 0x1c8, 0xc8, 0x18, 0x2c, true } },
		{ EM_AARCH64, 1306, 1306, { 0x28, 0x140, 0x168, 0xf0, 0x20, 0x38, true } },
		{ EM_AARCH64, 1406, 1406, { 0x28, 0x138, 0x160, 0xe8, 0x20, 0x38, true } },
	};
	uint16_t marker = number(d, "frametype_WasmFrame"),
		 to_marker = number(d, "frametype_JsToWasmFrame");

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (machine == known[i].machine && l->version >= known[i].first &&
		    l->version <= known[i].last)
			l->wasm = known[i].layout;
	if (!l->wasm.code_size || !marker || !to_marker)
		return;
	/* StackFrame::TypeToMarker() */
	l->record.wasm_marker = (uint16_t)(marker << 1);
	l->record.to_wasm_marker = (uint16_t)(to_marker << 1);
}

/* A heap's pages: src/heap/{spaces,basic-memory-chunk,memory-chunk-layout,memory-chunk-metadata}.h:
 * what stands before the heap, also of classes that it is derived from. */
static void read_chunk(struct v8_layout *l)
{
	l->chunk_metadata = l->version >= 1209 ? WORD : 0;
	if (l->version >= 1209)
		l->chunk_heap = 8 * WORD;
	else if (l->version >= 1204 || l->version <= 804)
		l->chunk_heap = 3 * WORD;
	else
		l->chunk_heap = 2 * WORD;
}

/*
 * Promises and those who wait for them: src/objects/{promise,js-generator}.tq; from 8.3 on, where
 * pointers are not compressed.
 */
static void read_async(const struct told *d, struct v8_layout *l)
{
	struct v8_async a = {
		.promise = number(d, "type_JSPromise__JS_PROMISE_TYPE"),
		.reaction = number(d, "type_PromiseReaction__PROMISE_REACTION_TYPE"),
		.capability = number(d, "type_PromiseCapability__PROMISE_CAPABILITY_TYPE"),
		.function = number(d, "type_JSAsyncFunctionObject__JS_ASYNC_FUNCTION_OBJECT_TYPE"),
		.generator =
			number(d, "type_JSAsyncGeneratorObject__JS_ASYNC_GENERATOR_OBJECT_TYPE"),
		.request = number(d, "type_AsyncGeneratorRequest__ASYNC_GENERATOR_REQUEST_TYPE"),
		.script = l->type_script,
		/* Behind what an embedder wants to be kept, since 12. */
		.next = l->version >= 1200 ? 2 * SMI : SMI,
		.function_context = number(d, "class_JSFunction__context__Context|"
					      "class_JSFunction__context__Tagged_Context_"),
	};

	a.fulfill = a.next + 2 * SMI;
	a.chained = a.next + 3 * SMI;
	if (l->version >= 803 && !l->record.compressed && a.promise && a.reaction && a.capability &&
	    a.function && a.generator && a.request && a.function_context &&
	    a.function_context <= V8_OBJECT_SIZE / 2 - 8)
		l->async = a;
}

/* All that are known. */
static const struct {
	uint16_t version;
	bool on_x86_only;
	int (*read)(const struct told *d, struct v8_layout *l);
} versions[] = {
	{ 708, true, read_old },	  { 709, true, read_old },
	{ 803, true, read_old },	  { 804, true, read_old },
	{ 806, true, read_old },	  { 904, true, read_old },
	{ 906, false, read_10 },	  { 1002, false, read_10 },
	{ 1008, false, read_10 },	  { 1103, false, read_11 },
	{ 1108, false, read_11_8 },	  { 1204, false, read_12 },
	{ 1209, false, read_12_9 },	  { 1306, false, read_dispatched },
	{ 1401, false, read_dispatched }, { 1406, false, read_dispatched },
	{ 1500, false, read_dispatched },
};

bool v8_knows(unsigned int major, unsigned int minor)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (minor < 100 && versions[i].version == 100 * major + minor)
			return true;
	return false;
}

static int read_version(const struct told *d, uint16_t machine, struct v8_layout *l)
{
	uint16_t flags = number(d, "class_SharedFunctionInfo__flags__int");

	l->record.shared_literal = flags + 4;
	/* 12.4 calls it trusted_function_data; the name follows. */
	l->shared_data = v8_tagged_size(l);
	l->record.shared_script =
		number(d, "class_SharedFunctionInfo__script__Tagged_HeapObject_|"
			  "class_SharedFunctionInfo__script_or_debug_info__HeapObject|"
			  "class_SharedFunctionInfo__script_or_debug_info__Object");
	/* What each Script begins with; 9.4 exports all but this. */
	l->script_source = (uint16_t)constant(d, "class_Script__source__Object", v8_tagged_size(l));
	l->record.bytecodes = number(d, "class_BytecodeArray__data__uintptr_t");
	l->record.bytecodes_register = machine == EM_X86_64 ? X86_R12 : A64_BYTECODES;
	l->type_interpreter_data = number(d, "type_InterpreterData__INTERPRETER_DATA_TYPE");
	if (!flags || !l->record.shared_script || !l->type_interpreter_data)
		return -ENOTSUP;
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++)
		if (versions[i].version == l->version &&
		    (machine == EM_X86_64 || !versions[i].on_x86_only))
			return versions[i].read(d, l);
	return -ENOTSUP;
}

/* Everything that is read of an object at once. */
static int check(const struct v8_layout *l)
{
	const uint16_t size = v8_tagged_size(l);
	const struct v8_record *r = &l->record;
	const uint16_t half[] = { r->shared_script, r->function_shared, r->function_code,
				  r->code_inline ? size : r->code_start };
	const uint16_t short_half[] = { r->shared_token, r->shared_literal, r->code_size };
	const uint16_t whole[] = {
		l->shared_data,	       l->shared_name,	      l->script_source, l->script_name,
		l->script_line_ends,   r->script_id,	      l->code_deopt,	l->code_positions,
		l->code_flags,	       l->script_line_offset, l->array_length,	l->array_data,
		l->string_length,      l->string_chars,	      l->cons_first,	l->cons_second,
		l->thin_actual,	       l->sliced_parent,      l->sliced_offset, l->external_data,
		l->bytecode_positions, l->scope_parts,	      l->scope_flags,	l->scope_locals,
		r->bytecodes,	       l->script_functions
	};

	for (size_t i = 0; i < sizeof(half) / sizeof(*half); i++)
		if (half[i] > V8_OBJECT_SIZE / 2 - 8 || half[i] < size)
			return -ENOTSUP;
	for (size_t i = 0; i < sizeof(short_half) / sizeof(*short_half); i++)
		if (short_half[i] > V8_OBJECT_SIZE / 2 - 4 || short_half[i] < 8)
			return -ENOTSUP;
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (whole[i] > V8_OBJECT_SIZE - 8 || whole[i] < size)
			return -ENOTSUP;
	if (l->scope_start > V8_OBJECT_SIZE - 8 || l->wrapper_shared > V8_OBJECT_SIZE - 8)
		return -ENOTSUP;
	if (l->stream_header < 2 * size || l->stream_header > V8_OBJECT_SIZE ||
	    l->stream_header % size || l->stream_code > size)
		return -ENOTSUP;
	if (r->shared_script % size || r->function_shared % size || r->function_code % size ||
	    r->script_id % size || r->code_start % 8 || r->shared_literal % 4 ||
	    r->shared_token % 2 || r->code_size % 4)
		return -ENOTSUP;
	if (r->fp_function >= 0 || r->fp_function < -64 || r->fp_context >= 0 ||
	    r->fp_context < -64 || r->fp_bytecode_array < -128 || r->fp_bytecode_offset < -128)
		return -ENOTSUP;
	return 0;
}

/* What the version is. As v8_layout_read(). */
static int find_version(struct told *d, uint16_t *ret)
{
	int32_t major, minor;

	if (v8_is_unexported(&d->dynamic)) {
		*ret = v8_unexported_version(d->dynamic.elf);
		d->known = v8_constants_of(*ret, false);
		return d->known ? 0 : -ENOTSUP;
	}
	if (read_int(d, "_ZN2v88internal7Version6major_E", &major) ||
	    read_int(d, "_ZN2v88internal7Version6minor_E", &minor)) {
		uint64_t at;

		return elf_dynamic_find(&d->dynamic, "napi_create_function", &at) ? -ENOENT
										  : -ENOTSUP;
	}
	if (major < 0 || major > 600 || minor < 0 || minor > 99)
		return -ENOENT;
	*ret = (uint16_t)(100 * major + minor);
	/* Electron exports that, but nothing for debuggers. */
	if (!constant(d, "off_fp_function", 0))
		d->known = v8_constants_of(*ret, true);
	return 0;
}

/* Whether pointers are compressed; -ENOTSUP: of that version it is not known how. */
static int read_tagging(const struct told *d, struct v8_layout *l)
{
	int32_t size = constant(d, "TaggedSize", SMI);

	l->record.compressed = size == COMPRESSED;
	if (l->record.compressed && l->version != 803)
		return -ENOTSUP;
	return (size == SMI || size == COMPRESSED) &&
			       constant(d, "SmiShiftSize", 31) == (size == SMI ? 31 : 0) &&
			       constant(d, "HeapObjectTag", 1) == 1
		       ? 0
		       : -ENOTSUP;
}

static uint64_t find_sizes(const struct told *d, const struct v8_layout *l)
{
	uint64_t at;

	if (v8_is_unexported(&d->dynamic))
		return v8_unexported_bytecode_sizes(d->dynamic.elf, l->nr_bytecodes);
	return elf_dynamic_find(&d->dynamic, sizes_name, &at)
		       ? elf_symtab_object(d->dynamic.elf, sizes_name, SYMTAB_MAX)
		       : at;
}

int v8_layout_read(const struct elf_file *elf, struct v8_layout *ret, uint16_t *ret_version)
{
	struct v8_layout l = { 0 };
	struct told told = { 0 };
	uint16_t size;
	int r;

	*ret_version = 0;
	if (elf_dynamic_read(elf, &told.dynamic))
		return -ENOENT;
	r = find_version(&told, ret_version);
	if (r)
		return r;
	l.version = *ret_version;
	r = read_tagging(&told, &l);
	if (!r)
		r = read_exported(&told, &l);
	if (!r)
		r = read_version(&told, elf->machine, &l);
	if (r)
		return r;
	size = v8_tagged_size(&l);
	l.script_line_offset = l.script_name + size;
	l.record.script_id = l.script_line_ends + size;
	/* Since 15.0 there is also what an eval() was called in. */
	l.script_functions = l.record.script_id + (l.version >= 1500 ? 4 : 3) * size;
	if (!l.deopt_entries)
		l.deopt_entries = l.deopt_inlining + 4;
	read_chunk(&l);
	l.external_data += WORD; /* the characters, which the resource has */
	l.bytecode_sizes = find_sizes(&told, &l);
	read_wasm(&told, elf->machine, &l);
	read_async(&told, &l);
	r = check(&l);
	if (!r)
		*ret = l;
	return r;
}
