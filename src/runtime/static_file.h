/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is linked with all of its libraries and exports nothing. A runtime in it is not
 * to be found by names, but its texts tell that it is there: that is said, once, in place of
 * frames. Few files are so, and only of these that much is read.
 */
#pragma once

#include "elf/elf_file.h"

/* Its constants, the caller's to free. 0; -ENOENT: it is none (Go's have names of their own), or
 * has too many; -ENOMEM. */
int runtime_static_constants(const struct elf_file *elf, struct elf_data *ret);
/* Why its frames are not shown (runtime_about.why). */
extern const char runtime_static_why[];
