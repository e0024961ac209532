/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pure parsers of what a code object holds: its line table (three formats) and its strings. No
 * I/O, nothing allocated; any bytes are fine.
 *
 *   3.6 to 3.9   co_lnotab, CPython's Objects/lnotab_notes.txt
 *   3.10         co_linetable of PEP 626, the same file
 *   3.11 on      co_linetable with locations, Objects/locations.md (3.14:
 * InternalDocs/code_objects.md)
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 3.x's line tables: co_lnotab up to 3.9, co_linetable from 3.10 on. */
enum python_line_rules { PYTHON_LINETABLE = 10, PYTHON_LOCATIONS = 11 };

/*
 * The line of the instruction at byte `offset` of the code; 0: it has none, or it is not known.
 * Before the first instruction (offset is (uint32_t)-2 or -1) it is the function's own.
 */
uint32_t python_line(unsigned int minor, const uint8_t *table, size_t size, uint32_t first_line,
		     uint32_t offset);

/*
 * Writes `nr` characters of `width` bytes each (1, 2 or 4: PEP 393) as UTF-8 with a final 0, at
 * most `room` bytes in all, cut at a character; room is at least 1. What UTF-8 has no form for
 * (surrogates, what lies beyond U+10FFFF) and U+0000 become U+FFFD. The length without the 0.
 */
size_t python_utf8(const void *chars, size_t nr, unsigned int width, char *to, size_t room);
