/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a JVM counts how long its VM operations took: "sun.threads.vmOperationTime" of the counters
 * that it has for jstat (PerfMemory). It grows whenever one ends (VMThread::evaluate_operation() of
 * vmThread.cpp), before who wanted it goes on and before a safepoint ends.
 *
 * The step takes from that that nmethods which were on a stack are where they were. An nmethod's
 * memory is not used for another one unless all threads' stacks were looked at since it was last on
 * one: that takes a safepoint or a handshake with all threads, and so a VM operation: the sweeper's
 * (17 to 19: NMethodSweeper::do_stack_scanning(), whose marks last for two of its rounds), or those
 * that begin and end a collection's marking (20 and later). Up to 16 safepoints without an
 * operation count, too: there the number is not used.
 */
#pragma once

#include "runtime/hotspot/hotspot_vm.h"

struct hotspot_operations {
	uint64_t at; /* 0: not known */
	uint32_t nr_searches;
	uint32_t pad_;
};

/* Looks for it, if it is not known yet: two reads, a few times at most. */
void hotspot_find_operations(const struct hotspot_vm *vm, struct hotspot_operations *found);
