/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Java methods a place in compiled code stands for: HotSpot's debug information of an
 * nmethod. Two tables go in: PcDescs (pcDesc.hpp), sorted by offset in the code, lead to scopes in
 * a compressed stream (debugInfoRec.cpp, describe_scope()); a scope names its method by its number
 * in the nmethod's metadata, the bytecode, and the scope that it was inlined into. Out comes the
 * chain of scopes, the innermost first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Compiled methods are inlined into each other at most 15 deep (MaxInlineLevel), by default. */
enum { HOTSPOT_SCOPES_MAX = 64 };

/*
 * Reads one number of HotSpot's compressed streams (compressedStream.hpp): UNSIGNED5. Since JDK 20
 * no byte of a code is zero (utilities/unsigned5.hpp): each counts one less, and there are 191
 * codes of one byte, not 192. Moves *pos. -EINVAL: cut off, or a byte that can't be.
 */
int hotspot_read_unsigned5(const void *data, size_t size, bool no_zero, size_t *pos, uint32_t *ret);

/* What is in a pair of tables. */
struct hotspot_debug_info {
	const void *pcs;
	size_t pcs_size;
	const void *scopes;
	size_t scopes_size;
	bool no_zero; /* see hotspot_read_unsigned5() */
	bool dense;   /* -XX:+DebugNonSafepoints: all code is described by the next PcDesc */
};

/* A bytecode of no scope, or one that is not known. */
#define HOTSPOT_NO_SCOPE_BCI INT32_MIN

struct hotspot_scope {
	uint32_t method; /* its number in the nmethod's metadata, the first is 1; 0: none */
	int32_t bci;	 /* of the bytecode; -1: on the way in; less: not known */
	int32_t bci_to;	 /* it is one of the two, or something between them; mostly the same */
};

/*
 * The scopes of a call that returns to `offset` (in bytes from the start of the code), at most
 * HOTSPOT_SCOPES_MAX of them: of more, the innermost and the outermost are kept. Calls into the JVM
 * that need no description (arraycopy stubs, the time) have none: then those that the places before
 * and behind it share, or those of the next one if info->dense. Their number; 0: nothing is known
 * there but that it is the nmethod's own method. -EINVAL: the tables are damaged.
 */
int hotspot_find_call(const struct hotspot_debug_info *info, uint32_t offset,
		      struct hotspot_scope ret[HOTSPOT_SCOPES_MAX]);
/*
 * The scopes of the instruction at `offset`, which was interrupted. PcDescs stand at the end of
 * what they describe, and few instructions have one: it gets the next one that there is, as HotSpot
 * itself has it (forte.cpp).
 */
int hotspot_find_place(const struct hotspot_debug_info *info, uint32_t offset,
		       struct hotspot_scope ret[HOTSPOT_SCOPES_MAX]);
