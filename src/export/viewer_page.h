/* SPDX-License-Identifier: Apache-2.0 */
/* The page that web/ builds (web/build.mjs makes the symbols); not NUL-terminated. */
#pragma once

#include <stdint.h>

extern const char viewer_html[];
extern const uint64_t viewer_html_size;

/* Stands in the page once: where the profile's data goes. */
#define VIEWER_DATA_PLACE "@PROFILE_DATA@"
