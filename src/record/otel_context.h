/* SPDX-License-Identifier: Apache-2.0 */
/* The message of a process's context (process/process_context.h), as the profile has it. */
#pragma once

#include "process/proc_identity.h"

#include <stddef.h>

struct otel_context {
	/* As a process's environment would say it: "" if it does not; util/pairs.h, valid. */
	char service[SERVICE_SIZE], attributes[ATTRIBUTES_SIZE];
};

/*
 * ProcessContext{Resource resource = 1} of OpenTelemetry's processcontext.proto. `data` is hostile.
 * Lists, maps and bytes are left out, and what finds no room, or has control characters.
 * 0; -EBADMSG: it is none.
 */
int otel_context_read(const void *data, size_t size, struct otel_context *ret);
