/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where V8 counts its collections of garbage: Heap::gc_count_, 4 bytes, as the code of three of its
 * functions tells.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	/* As much as is looked at of each one's code. */
	V8_PROLOGUE_CODE = 4096,
	V8_STATISTICS_CODE = 64,
	V8_EXIT_CODE = 128,
};

/*
 * How far behind the root register that is, and *ret_heap, the heap; 0: it is not to be seen. The
 * code of Heap::GarbageCollectionPrologueInSafepoint() (up to V8 8.4,
 * Heap::GarbageCollectionPrologue()), which counts; of Isolate::GetHeapStatistics(), which begins
 * with the heap's address; of CEntry, which gives functions in C++ the isolate's, by the root
 * register.
 */
uint32_t v8_find_collections(const uint8_t *prologue, size_t prologue_size,
			     const uint8_t *statistics, size_t statistics_size, const uint8_t *exit,
			     size_t exit_size, int32_t *ret_heap);
/* What aarch64's code tells. */
uint32_t v8_find_collections_a64(const uint8_t *prologue, size_t prologue_size,
				 const uint8_t *statistics, size_t statistics_size,
				 const uint8_t *exit, size_t exit_size, int32_t *ret_heap);
