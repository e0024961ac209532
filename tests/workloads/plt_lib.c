// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

uint64_t lib_add(uint64_t n);
uint64_t lib_add(uint64_t n)
{
	return n + 3;
}
