/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Go's table and its CFI (.debug_frame, which the linker makes of that table) do not say of
 * its functions, but their code does. docs/unwind-tables.md
 */
#pragma once

#include <stdbool.h>

#include "abi/unwind.h"
#include "elf/elf_file.h"
#include "util/vec.h"

/*
 * Functions of the runtime that go on on another stack: a goroutine's and the thread's own change
 * places there. aarch64: those that leave theirs with the stack pointer in a register, and what C
 * calls, which has its return address where no other function of Go's has it.
 */

/*
 * Where instructions may be that load the stack pointer, or align it, by address. aarch64: those
 * that keep it, or begin what C calls.
 */
struct go_code {
	VEC(uint64_t) loads;
	uint64_t goexit; /* see go_code_is_goexit(); 0: none */
};

enum { GO_EXIT_SIZE = 7 };
/*
 * runtime.goexit, to which a goroutine's first function returns, and which nobody called: behind it
 * on the stack lies what was there before, and up to Go 1.16 arguments. nop; call goexit1; nop
 * (asm_amd64.s). Its CFI takes that for a return address.
 */
bool go_code_is_goexit(const uint8_t *code, size_t size);

/* Finds them in a file that Go's linker made. 0 or -ENOMEM. */
int go_code_init(const struct elf_file *elf, struct go_code *ret);
void go_code_fini(struct go_code *go);
/* Whether one may be in [start, end). */
bool go_code_switches(const struct go_code *go, uint64_t start, uint64_t end);
/*
 * aarch64: hands out the rows of such a function, `nr` instructions at `addr`, by their addresses.
 * False: it is another one, and none was.
 */
bool go_code_rows_a64(const uint32_t *code, size_t nr, uint64_t addr,
		      void (*emit)(void *arg, uint64_t addr, const struct unwind_rule *rule),
		      void *arg);

/*
 * aarch64: the rule where a frame has `size` bytes. The return address is at the stack pointer; of
 * a function without a frame, in the link register.
 */
struct unwind_rule go_frame_a64(int64_t size);
/*
 * aarch64: is this runtime.sigtramp, the handler of signals? Of the functions that Go's own walks
 * end at (TOPFRAME) it is the one that has a caller, the vDSO's trampoline. It saves what that
 * wants kept, x19 first (asm_arm64.h: SAVE_R19_TO_R28).
 */
bool go_code_is_handler(const struct elf_file *elf, uint64_t start);
