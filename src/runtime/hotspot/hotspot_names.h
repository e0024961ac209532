/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What HotSpot's frames are called. In: the words of a frame that the step pushed (hotspot_abi.h),
 * and the process's memory. Out: an inline frame for each Java method that the frame stands for,
 * the innermost inlined one first:
 *
 *  - Java methods: "package.Class.method", source "package/Class.java" (of its SourceFile
 * attribute, below the class's package), line of the bytecode. What differs from run to run in the
 * names of hidden classes and lambdas is left out: "Main$$Lambda.run". With options.tiers the real
 * method ends in "_[0]" (interpreted), "_[1]" (compiled by C1) or "_[j]" (by C2).
 *  - Native methods: the Java method, without a line.
 *  - Other code that the JVM made: what it is, in the JVM's own words: hotspot_blob_name().
 *  - No inline frame, but a thread, for what says whose frames they are: hotspot_threads.h.
 *
 * Everything is read from a live process: what was read counts only if the frame's identity is
 * still the same behind it.
 */
#pragma once

#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_vm.h"
#include "runtime/runtime.h"

struct hotspot_names;

/* `vm` must outlive it; `layout` is that of the record, for cookies. NULL: no memory. */
struct hotspot_names *hotspot_names_new(const struct hotspot_vm *vm,
					const struct hotspot_symbol_layout *layout);
void hotspot_names_free(struct hotspot_names *n);

/* As runtime_ops.symbolize(). */
int hotspot_names_symbolize(struct hotspot_names *n, const uint64_t *words, size_t nr,
			    const struct runtime_sink *sink);

/* What the Method at `method` hangs on now. -ENOENT: its class is not loaded any more. */
int hotspot_read_identity(const struct hotspot_vm *vm, const struct hotspot_symbol_layout *layout,
			  uint64_t method, struct hotspot_identity *ret);

/* A class as the JVM has it, "a/b/C$$Lambda$14+0x00007f00", as people write it: "a.b.C$$Lambda". In
 * place; the new length. */
size_t hotspot_class_name(char *name);

/*
 * What code is called that is no method's and no known stub's, by the CodeBlob that it lies in:
 *
 *   "RuntimeStub::_new_array_Java"	  a stub that calls into the JVM
 *   "vtable stub"			  of a virtual or an interface call
 *   "Interpreter", "I2C/C2I adapters", "DeoptimizationBlob", "StubRoutines (2)", ...
 *					  anything else, as the blob is called
 *
 * Stubs of a known name are "StubRoutines::jint_disjoint_arraycopy": hotspot_stubs.h. Cut if it
 *does not fit; the length.
 */
size_t hotspot_blob_name(const char *blob, char *ret, size_t size);
