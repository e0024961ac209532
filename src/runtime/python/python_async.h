/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the step needs for --async (python_async.bpf.h), by version: offsets in asyncio's tasks and
 * in suspended coroutines, and the names of asyncio's functions as they are compared.
 */
#pragma once

#include "runtime/python/python_abi.h"
#include "runtime/python/python_names.h"

/* Adds that to a record whose other offsets are known. -ENOTSUP: not for this version or build. */
int python_async_of(const struct python_layout *layout, struct python_record *record);
