/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of functions whose CFI goes on saying that the CFA hangs on the frame pointer where it does
 * no more. The code tells where that is.
 *
 * Behind the instruction that has popped it, in what clang made before version 7, which has no CFI
 * for epilogues (LLVM's X86FrameLowering.cpp, emitEpilogue(), at llvmorg-6.0.0 and -7.0.0):
 * interrupted at the return, the caller would be skipped.
 *
 * Where gcc's __builtin_longjmp() has gone over to the stack of who called __builtin_setjmp()
 * (expand_builtin_longjmp() of gcc/builtins.cc): whoever that is would be skipped. Ruby throws so.
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
/* Where in [start, end), up to a function's end, the stack is another frame's; `end`: nowhere. */
uint64_t epilogues_longjmp(const struct elf_file *elf, uint64_t start, uint64_t end);
