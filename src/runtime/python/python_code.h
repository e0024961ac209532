/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the machine code of CPython's eval loop tells where symbols don't: where the loop runs while
 * its frame is not, or no longer, what the thread's state leads to. x86-64 and aarch64; by
 * patterns, so that code of another form tells nothing. Its cold part: runtime/loop_code.h.
 */
#pragma once

#include "elf/elf_file.h"
#include "runtime/loop_code.h"
#include "runtime/python/python_abi.h"
#include "runtime/runtime.h"

/*
 * 3.6 to 3.10: where a loop's frame is not linked: from its begin up to the store to tstate->frame,
 * and from where tstate->frame is f_back again up to the return; that only if there is a byte
 * f_executing (negative: there is none), which is cleared before. Writes them relative to
 * loops[0].start, at most PYTHON_GAPS_MAX; returns how many, or -ENOTSUP: too
 * much work, or -ENOMEM.
 */
int python_find_gaps(const struct elf_file *elf, const struct code_range *loops, size_t nr,
		     int f_executing, struct loop_work *work,
		     struct python_gap ret[static PYTHON_GAPS_MAX]);

/*
 * 3.12: where a loop's CFrame may be linked and not be filled in, which is near its function's
 * begin. As above.
 */
size_t python_find_begin(const struct code_range *loops, size_t nr,
			 struct python_gap ret[static PYTHON_GAPS_MAX]);

/*
 * How far above its stack pointer the loop at `loops` keeps its frame pointer where it calls
 * another function, by what it begins with: push %rbp; mov %rsp, %rbp; pushes; sub $N, %rsp. 0: it
 * has no frame pointer, or is not so; aarch64.
 */
uint64_t python_loop_frame(const struct elf_file *elf, uint64_t function);

/*
 * 3.12, 3.13: where the number lies that each new code object gets for its co_version, as the code
 * in .text has it that takes it and counts it up. x86-64. An address (3.12), or how far behind the
 * begin of the interpreter's struct (3.13), told apart by `interp`. 0: not found, or not one place.
 */
uint64_t python_find_codes(const struct elf_file *elf, bool interp);
/* In `size` bytes of code that lie at `start`: likewise. */
uint64_t python_codes_in(const uint8_t *code, size_t size, uint64_t start, bool interp);

/*
 * _PyFunction_Vectorcall() of 3.14, where no symbol names it: the code whose address the function
 * at `maker`, PyFunction_NewWithQualName(), stores in what it makes. x86-64. 0, or -ENOENT,
 * -ENOTSUP (too much work), -ENOMEM.
 */
int python_find_vectorcall(const struct elf_file *elf, uint64_t maker, struct loop_work *work,
			   struct code_range *ret);
/*
 * The address that `size` bytes of code, which lie at `start`, store as 64 bits at `offset` from a
 * register, as a number or out of the register that it was loaded to (lea); 0: none.
 */
uint64_t python_stored_address(const uint8_t *code, size_t size, uint64_t start, uint32_t offset);
