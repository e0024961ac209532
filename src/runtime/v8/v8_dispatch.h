/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that functions are called by since V8 13.6 (src/sandbox/js-dispatch-table.h), as the
 * code of a builtin tells that calls one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * How far behind the root register (r13, x26) the table's address is; 0: it is not found.
 * *ret_shift: a function has the number of its entry shifted by so much.
 */
uint16_t v8_find_dispatch(uint16_t machine, const uint8_t *code, size_t size, uint16_t *ret_shift);
