/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual threads by name (--threads virtual): where the step finds the name, and what the words
 * that it brings of it mean.
 */
#pragma once

#include "runtime/hotspot/hotspot_abi.h"
#include "runtime/hotspot/hotspot_continuation.h"
#include "runtime/hotspot/hotspot_vm.h"

/* As in struct hotspot_record. */
struct hotspot_threads {
	uint32_t nr_searches; /* for the classes */
	uint16_t continuation_target, target_fields, virtual_cont;
	uint16_t thread_tid, thread_name, string_value, string_coder;
	uint16_t bytes_length, bytes_data; /* 0: not known */
};

/* Looks for what is not known yet; not before `c` is. About 500 small reads, once. */
void hotspot_find_threads(const struct hotspot_vm *vm, const struct hotspot_continuation *c,
			  struct hotspot_threads *t);
void hotspot_fill_threads(const struct hotspot_vm *vm, const struct hotspot_threads *t,
			  struct hotspot_record *ret);

/* In UTF-8 Latin-1 takes twice its bytes at most, UTF-16 one and a half; and "...". */
enum { HOTSPOT_THREAD_NAME_SIZE = 2 * HOTSPOT_VIRTUAL_NAME_MAX + 4 };

/*
 * The name that a frame of HOTSPOT_VIRTUAL has, FRAME_DATA() and the words behind it: "worker-17",
 * "a very long na...", "virtual-#23" of a thread without one, "[hotspot: unknown virtual thread]".
 * 0; -EINVAL: they make no sense.
 */
int hotspot_thread_name(uint64_t data, const uint64_t words[static HOTSPOT_VIRTUAL_WORDS],
			char ret[static HOTSPOT_THREAD_NAME_SIZE]);
