/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the record for HotSpot's step (hotspot_abi.h) out of what was read of a JVM: what is in
 * vmStructs, and what has to be looked for in the code heaps themselves.
 */
#pragma once

#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "runtime/hotspot/hotspot_operations.h"
#include "runtime/hotspot/hotspot_threads.h"
#include "runtime/hotspot/hotspot_vm.h"
#include "runtime/hotspot/hotspot_zgc.h"

/* Looked for, and remembered by who owns it; all zero at first. */
struct hotspot_found {
	uint64_t name_nmethod, name_native; /* see hotspot_record */
	uint64_t entries_start, entries_end;
	uint64_t interpreter_end; /* of the interpreter that the entries are of */
	struct hotspot_continuation continuation;
	struct hotspot_threads threads;
	struct hotspot_zgc_found zgc;
	struct hotspot_operations operations;
};

/* Looks for what is not known yet: at most `blocks_max` blocks of each code heap are looked at. */
void hotspot_find(const struct hotspot_vm *vm, uint32_t blocks_max, struct hotspot_found *found);
/* 0; -EBADMSG: members lie where they cannot. */
int hotspot_record_fill(const struct hotspot_vm *vm, const struct hotspot_found *found,
			struct hotspot_record *ret);
