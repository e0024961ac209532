/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the step's frames, read out of the process. */
#pragma once

#include "runtime/php/php_abi.h"
#include "runtime/runtime.h"

/* As runtime_ops.symbolize. */
int php_names_symbolize(const struct runtime_target *t, const struct php_layout *layout,
			const uint64_t *words, size_t nr, const struct runtime_sink *sink);
