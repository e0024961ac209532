/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions whose CFI says up to their end that the CFA hangs on the frame pointer, also behind the
 * instruction that has popped it: those that clang made before version 7, which has no CFI for
 * epilogues (LLVM's X86FrameLowering.cpp, emitEpilogue(), at llvmorg-6.0.0 and -7.0.0). Interrupted
 * at the return, their caller would be skipped. The code tells where that is.
 */
#pragma once

#include <stdbool.h>

#include "elf/elf_file.h"
#include "unwind/table_writer.h"

/* Did such a compiler make a part of the file? By what it says of itself in .comment. */
bool epilogues_are_missing(const struct elf_file *elf);
/* Adds `rule`, whose CFA hangs on rbp and which is said of [start, end), and what is true behind
 * each epilogue in there. */
void epilogues_add(const struct elf_file *elf, struct table_writer *writer, uint64_t start,
		   uint64_t end, const union cfi_rule *rule);
