// SPDX-License-Identifier: Apache-2.0
#include "symbol/demangle_internal.h"

bool demangle_swift(const char *name, enum demangle_style style, char *buf, size_t size)
{
	(void)name, (void)style, (void)buf, (void)size;
	return false;
}
