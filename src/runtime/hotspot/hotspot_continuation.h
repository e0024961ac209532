/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where virtual threads are mounted, in JVMs whose vmStructs don't say it yet (19 to 25.0.2): the
 * code of jdk.internal.vm.Continuation.enterSpecial, which the JVM makes by hand, has the numbers.
 * x86-64 only; nothing is taken that isn't exactly as expected.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

struct hotspot_continuation {
	uint64_t method;	    /* enterSpecial's Method; 0: not found yet */
	uint32_t nr_searches;	    /* for that */
	uint32_t thread_cont_entry; /* offset of JavaThread::_cont_entry; 0: not known */
	uint32_t entry_size;	    /* ContinuationEntry::size() */
	uint32_t pad_;
	uint64_t return_pc; /* ContinuationEntry::_return_pc */
};

/* Looks for what is not known yet. It may come late: the code is made for the first virtual thread.
 */
void hotspot_find_continuation(const struct hotspot_vm *vm, struct hotspot_continuation *c);

/*
 * The parser behind it: the code of enterSpecial, which lies at `addr`. 0, or -ENOENT; only the
 * last three members of `ret` are set.
 */
int hotspot_decode_enter_special(const void *code, size_t size, uint64_t addr,
				 struct hotspot_continuation *ret);
