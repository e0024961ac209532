/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of code, [start, end): in memory or in a file's own address space. */
#pragma once

#include <stdint.h>

struct code_range {
	uint64_t start, end;
};
