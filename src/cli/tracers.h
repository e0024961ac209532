/* SPDX-License-Identifier: Apache-2.0 */
/* --tracers: whose frames are looked for, by the names that the OpenTelemetry profiler has. */
#pragma once

#include "cli/config.h"
#include "runtime/runtime.h"

/*
 * "python,ruby": those alone; "all": all. Sets `off` and `no_labels` of *ret. Logging: names that
 * Sonde has no frames of, or -EINVAL after a line that says what is wrong; `command` is what help
 * is asked for by, `config` (or NULL) where the list came from.
 */
int tracers_parse(const char *list, const struct config *config, const char *command,
		  struct runtime_options *ret);
