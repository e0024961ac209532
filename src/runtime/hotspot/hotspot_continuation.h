/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads. Where their classes, jdk.internal.vm.Continuation and StackChunk, have the
 * frames that wait in the heap; and where they are mounted, in JVMs whose vmStructs don't say it
 * yet (19 to 25.0.2): the code of Continuation.enterSpecial, which the JVM makes by hand, has the
 * numbers. Nothing is taken that isn't exactly as expected.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

struct hotspot_continuation {
	uint64_t method;      /* enterSpecial's Method; 0: not found yet */
	uint32_t nr_searches; /* for the classes */
	/* Offsets of fields, and the width of a reference. chunk_stack 0: not known (before 21).
	 */
	uint8_t oop_size, pad_;
	uint16_t tail, chunk_parent, chunk_size, chunk_sp, chunk_stack;
	/* By hotspot_decode_enter_special(). */
	uint32_t thread_cont_entry; /* offset of JavaThread::_cont_entry; 0: not known */
	uint32_t entry_size;	    /* ContinuationEntry::size() */
	uint64_t return_pc;	    /* ContinuationEntry::_return_pc */
};

/* Looks for what is not known yet. It may come late: enterSpecial's code is made for the first
 * virtual thread. */
void hotspot_find_continuation(const struct hotspot_vm *vm, struct hotspot_continuation *c);

/*
 * The parser behind it: the code of enterSpecial for `machine` (EM_*), which lies at `addr`. 0, or
 * -ENOENT; only the last three members of `ret` are set.
 */
int hotspot_decode_enter_special(uint16_t machine, const void *code, size_t size, uint64_t addr,
				 struct hotspot_continuation *ret);
