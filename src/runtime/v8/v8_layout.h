/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where V8 has its members, and how its types are numbered. Most of it the file exports itself, for
 * debuggers of cores: variables v8dbg_* of 4 bytes (gen-postmortem-metadata.py). What is not among
 * these stands in tables by version (v8_layout.c), each with the source that says so; what a file
 * would export that exports nothing, in v8_constants.h.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/v8/v8_abi.h"
#include "runtime/v8/v8_positions.h"
#include "runtime/v8/v8_translation.h"

#include <stdbool.h>
#include <stdint.h>

enum { V8_NO_TYPE = UINT16_MAX };

/*
 * Where C++ objects of WebAssembly's have their members: the manager of code its map of modules by
 * address, a module its map of code by address, the code that is not in that yet, and its bytes;
 * code its size and its function's index. In bytes; all 0: not known.
 */
struct v8_wasm_layout {
	uint16_t manager_modules;
	uint16_t module_code, module_new_code, module_bytes;
	uint16_t code_size, code_index;
	bool inlines; /* code tells which functions were inlined into it */
};

struct v8_layout {
	uint16_t version;	 /* of V8: 1103 is 11.3 */
	struct v8_record record; /* without what only a process tells */

	uint16_t shared_data, shared_name;
	uint16_t script_source, script_name, script_line_offset, script_line_ends;
	uint16_t script_functions; /* the list of its functions, by the literal's id */
	/* A heap's page: the heap, in what the page leads to at chunk_metadata, if that is not 0;
	 * both 0: not known. */
	uint16_t chunk_heap, chunk_metadata;
	/* ScopeInfo: flags, numbers of parameters and of locals in the context; then its parts.
	 * scope_start: where the function begins, if that stands before them; else 0. */
	uint16_t scope_flags, scope_locals, scope_start, scope_parts;
	bool scope_plain_flags;	   /* 4 bytes, no small integer */
	bool scope_receiver;	   /* parts say where `this` is, if flags say that it is kept */
	uint16_t scope_module;	   /* the type of modules' scopes, which have one part more, or
				    * V8_NO_TYPE
				    */
	uint16_t scope_locals_max; /* with more locals, their names are in a table */
	uint16_t scope_saved_class, scope_inferred; /* flags */
	uint16_t scope_function_shift;		    /* two of them */
	uint16_t array_length, array_data;	    /* FixedArray, ByteArray */
	/* V8 15: lengths of arrays have 4 bytes, and are no small integers (a BytecodeArray's is).
	 */
	bool plain_lengths;
	/* Optimized code has positions of its calls only. Node.js asks V8 for all of them
	 * (CpuProfiler::UseDetailedSourcePositionsForProfiling()), others do not. */
	bool call_positions;
	/* Sources that are no JavaScript are made into that, under the same name: with other lines.
	 */
	bool makes_sources;
	uint16_t string_length, string_chars;
	uint16_t cons_first, cons_second, thin_actual, sliced_parent, sliced_offset;
	uint16_t external_data;
	uint16_t bytecode_positions; /* BytecodeArray's source positions */
	/* V8 7.8 may keep them in an object that remembers frames; 0, or where in it they are. */
	uint16_t positions_inside;
	uint16_t interpreter_data_bytecodes;
	/* V8 9.4: a function with baseline code has both in an object of its own; else 0. */
	uint16_t baseline_data_code, baseline_data_bytecodes;
	/* Code: what describes it. Compiled code: what deoptimization needs, and source positions;
	 * baseline code: its bytecodes, and where each one's code ends. */
	uint16_t code_deopt, code_positions, code_flags;
	uint16_t code_kind_mask, kind_baseline;
	uint16_t stream_code;	/* InstructionStream: its Code; 0: these are one object */
	uint16_t stream_header; /* how far its instructions are behind its begin */
	/* DeoptimizationData, in elements */
	uint16_t deopt_literals, deopt_shared, deopt_inlining;
	uint16_t deopt_entries; /* the first one of what code is left by */
	enum v8_deopt_format
		deopt_format;	  /* of what Maglev's code notes, or that with call_positions */
	uint16_t code_safepoints; /* Code: where they are in it; 0: behind its instructions */
	uint16_t wrapper_shared;  /* SharedFunctionInfoWrapper, if deopt_shared is one; else 0 */

	uint16_t type_shared, type_script, type_scope, type_byte_array, type_bytecode_array,
		type_fixed_array, type_code, type_stream, type_interpreter_data, type_deopt,
		type_wrapper;
	uint16_t type_table; /* of tables of bytes, beside type_byte_array */
	uint16_t first_nonstring, string_representation, string_one_byte;
	uint16_t string_cons, string_external, string_sliced, string_thin;
	struct v8_position_format positions; /* how tables of source positions are written */
	uint16_t nr_bytecodes;		     /* 0: not known */
	uint64_t bytecode_sizes; /* address in the file: how many bytes bytecodes have */
	struct v8_async async;	 /* for --async; all 0: not known */
	struct v8_wasm_layout wasm;
	uint64_t wasm_state; /* address in the file: of a pointer to the manager; 0: not known */
	bool dispatched;     /* functions have an entry of a table in place of their Code */
};

/* Bytes of a tagged field: a pointer to an object, or a small integer. */
static inline uint16_t v8_tagged_size(const struct v8_layout *l)
{
	return l->record.compressed ? 4 : 8;
}

/* Is there a layout of that version? */
bool v8_knows(unsigned int major, unsigned int minor);
/* 0; -ENOENT: this is no V8; -ENOTSUP: it is, but of a version that we do not know (*ret_version
 * says which; 0: what exports Node-API, but not V8's version). */
int v8_layout_read(const struct elf_file *elf, struct v8_layout *ret, uint16_t *ret_version);
