/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names functions of WebAssembly: V8 knows by address which module's function has code there, and
 * keeps the module's bytes, which have names perhaps. All of that are C++ objects, which other
 * threads may change or free while they are read: what counts is what two readings say, with the
 * code still being what it was.
 */
#pragma once

#include "runtime/runtime.h"
#include "runtime/v8/v8_layout.h"

/* What is known of a process. */
struct v8_wasm {
	const struct runtime_target *target;
	const struct v8_layout *layout;
	uint64_t state; /* address of the pointer to the manager of code */
};

enum { V8_WASM_GETTER = 12 }; /* bytes of GetWasmCodeManager()'s code */

/* The address of the pointer that GetWasmCodeManager(), at `addr`, does nothing but read; 0: its
 * code does not tell. */
uint64_t v8_find_wasm_state(uint16_t machine, uint64_t addr, const uint8_t code[V8_WASM_GETTER]);

/* `words`: the header word, and what v8_abi.h says. As runtime_ops.symbolize(). */
int v8_wasm_name(const struct v8_wasm *wasm, const uint64_t words[2],
		 const struct runtime_sink *sink);
