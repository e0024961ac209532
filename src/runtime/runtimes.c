// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#define RUNTIME(name, NAME, id) extern const struct runtime_ops name##_runtime;
#include "abi/runtimes.def"
#undef RUNTIME

/* Compiled code is everybody's: nothing to recognise, and its names are symbols. */
const struct runtime_ops native_runtime = { .name = "native",
					    .id = RUNTIME_NATIVE,
					    .label = "native" };

#define RUNTIME(name, NAME, id) [RUNTIME_##NAME] = &name##_runtime,
const struct runtime_ops *const runtimes[RUNTIME_MAX_] = {
#include "abi/runtimes.def"
};
#undef RUNTIME
