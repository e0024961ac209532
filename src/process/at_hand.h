/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of another process that can be read without anybody's doing: its pages are there, and who
 * may run code in that process has no reason to take them away in the microsecond until they are
 * read, since he could as well stop whoever reads. Nothing is told of other users' processes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this our own user's process, whatever it runs as, and has it all of these pages? Some 4 us; no
 * page is asked for. */
bool memory_is_at_hand(int32_t pid, uint64_t addr, size_t size);
