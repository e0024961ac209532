/* SPDX-License-Identifier: Apache-2.0 */
/* Text of labels as it may be shown. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/go/go_abi.h"
#include "runtime/runtime.h"

enum { GO_TEXT_ROOM = RUNTIME_LABEL_SIZE };
_Static_assert(GO_TEXT_SIZE + 4 <= GO_TEXT_ROOM && GO_KEY_SIZE + 4 <= GO_TEXT_ROOM, "go_text()");

/*
 * The first `size` bytes of a string of `length`, of which those are there: without what is no
 * UTF-8 and without control characters ('?'), cut at a character with "..." behind it if there is
 * more.
 */
void go_text(const uint8_t *bytes, size_t size, size_t length, char ret[static GO_TEXT_ROOM]);
