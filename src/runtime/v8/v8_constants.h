/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What V8's of versions would export as v8dbg_NAME that are built without these variables.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct v8_constant {
	const char *name; /* without v8dbg_ */
	int32_t value;
};

/*
 * Of version 100 * major + minor, of files that export that and nothing else of it, or not even
 * that: up to one without a name. NULL: not known.
 */
const struct v8_constant *v8_constants_of(uint16_t version, bool tells_version);
