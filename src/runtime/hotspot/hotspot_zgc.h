/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generational ZGC (JDK 21 and later): where it says what colour its references have now, and where
 * objects went that it has moved. The colour is in vmStructs; the two tables of what was moved are
 * not, but their owners, the generations, lie in the ZHeap, which is, and each has two pointers
 * that nothing else there has side by side.
 */
#pragma once

#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_vm.h"

struct hotspot_zgc_found {
	uint32_t nr_searches;
	bool is_known; /* whether it is in use */
	bool in_use;   /* this JVM's references are coloured */
	uint8_t pad_[2];
	struct hotspot_zgc zgc; /* .good 0: not known */
};

/* Looks for what is not known yet: three reads if another collector is in use, else some 100, once.
 */
void hotspot_find_zgc(const struct hotspot_vm *vm, struct hotspot_zgc_found *found);
