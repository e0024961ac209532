/* SPDX-License-Identifier: Apache-2.0 */
/* Opens what should be a core file, and says in one line what it is instead. */
#pragma once

#include "elf/elf_core.h"

/* Logging. 0, and both are the caller's; or negative errno. */
int core_open(const char *path, struct elf_file **ret_elf, struct elf_core **ret_core);
