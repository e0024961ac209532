/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where C libraries make threads: clone() and clone3() of glibc and musl. Behind the system call
 * the new thread and the one that made it run the same instructions, up to the jump that takes them
 * apart. What CFI and code say there is the latter's: on the new stack the function that is to be
 * called would be taken for a caller.
 */
#pragma once

#include "elf/elf_file.h"
#include "util/code_range.h"

enum { NEW_THREADS_MAX = 8 };

/* Fills `ret` with such ranges, by address; their number, or -ENOMEM. */
int new_threads_find(const struct elf_file *elf, struct code_range ret[static NEW_THREADS_MAX]);
