/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line number table of a Java method: in goes the compressed table that follows the bytecodes
 * of HotSpot's ConstMethod (CompressedLineNumberReadStream, method.cpp), out comes the line of a
 * bytecode.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hotspot_line {
	uint32_t line;	     /* of the bytecode; 0: not known */
	uint32_t start_line; /* the first line of the method that has code; 0: none has */
};

/*
 * The line of bytecode `bci`. -1, the way into the method, counts as its first bytecode; others
 * below zero have no line. `no_zero` is that of hotspot_read_unsigned5(). -EINVAL: damaged, or cut
 * off.
 */
int hotspot_find_line(const void *table, size_t size, bool no_zero, int32_t bci,
		      struct hotspot_line *ret);
