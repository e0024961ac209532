/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Writes all of it where the file's position is: 0 or negative errno. */
int write_all(int fd, const void *data, size_t size);
