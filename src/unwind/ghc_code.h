/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that GHC made of Haskell, x86-64. It has no CFI, its frames lie on a stack of its own (rbp),
 * its functions jump to one another; the C stack stays where StgRun() left it, so that each of them
 * has the same caller there: whoever called StgRun(). docs/unwind-tables.md
 */
#pragma once

#include "elf/elf_file.h"
#include "unwind/table_writer.h"

/* Whether the code without CFI in this file is GHC's. */
bool ghc_made(const struct elf_file *elf);
/* Writes the rows of [start, end), and those of the program's entry point in it. 0 or -errno. */
int ghc_code_cover(const struct elf_file *elf, uint64_t start, uint64_t end,
		   struct table_writer *writer);
