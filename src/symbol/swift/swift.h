/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swift's names, for there is no library to demangle them. This folder is finished: it is changed
 * for names that are shown wrong and for nothing else. docs/names.md says what it leaves mangled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes a Swift name ("$s...", "_$s...", "$S", "_$S", "_T0") as text; `brief`: without types.
 * False: it is none, or one that this does not understand; then `buf` is in disorder.
 * `ret_suffix`: a clone's (".cold"), which is not in the text.
 */
bool swift_demangle(const char *name, bool brief, char *buf, size_t size, const char **ret_suffix);
