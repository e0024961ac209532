/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for the one function at an address of code that no CFI covers, where there is too much of
 * it to be scanned whole (code_gap.h): CODE_UNFOLLOWED. Bounded: some KB around the address.
 *
 * Two ways that know nothing of each other: from where a function seems to begin, before the
 * address, and from the address on to where the function returns, which tells what lies on the
 * stack now. Each is believed only if every return that it reaches is as returns are, and where
 * they disagree, nothing is said (CODE_UNDECIDED).
 */
#pragma once

#include "elf/elf_file.h"
#include "unwind/code_scan.h"
#include "util/code_range.h"
#include "util/vec.h"

/* From `addr` on, up to the next one's. */
struct code_row {
	uint64_t addr;
	struct unwind_rule rule;
	bool known; /* else nothing was learned of this */
};

/* Sorted; the last is not known, and tells the end. */
struct code_rows {
	VEC(struct code_row) rows;
};

enum { CODE_ROWS_MAX = 4096 };

/*
 * The rows of the function at `addr`, as far as control flow reached them: an instruction's, or a
 * caller's return address - 1, of which the call before it is looked at. What is at `addr` itself
 * is always known, if only as CODE_UNDECIDED. 0, -EFAULT (no code of the file), -ENOMEM, -ENOTSUP.
 */
int code_follow(const struct elf_file *elf, uint64_t addr, bool is_caller, struct code_rows *ret);
/*
 * As code_follow(), where it is known where the function begins and ends: nothing is guessed of
 * that, and how it returns does not matter. It keeps a frame pointer: one that does something else
 * before it sets that up (taking its return address from the stack, say) has it from there on. One
 * that begins with a trap (INT3, x86-64) is returned to behind that, with its frame already there.
 * What that does not tell is CODE_UNDECIDED.
 */
int code_follow_function(const struct elf_file *elf, const struct code_range *function,
			 uint64_t addr, bool is_caller, struct code_rows *ret);

/*
 * What can be told of such a function before anybody is in it: where its frame pointer is set up,
 * and, if it returns as functions do, where its stack pointer is. The rest of it is not known. 0,
 * as above.
 */
int code_follow_ahead(const struct elf_file *elf, const struct code_range *function,
		      struct code_rows *ret);

struct code_bytes {
	uint16_t machine;
	uint64_t addr;
	const uint8_t *bytes;
	size_t size;
};

/*
 * The rule at `addr` of code that is in no file, and may be made by anybody: only what a return
 * proves. 0, -ENOENT (it tells nothing), -EFAULT (not among these bytes), -ENOMEM.
 */
int code_follow_bytes(const struct code_bytes *code, uint64_t addr, bool is_caller,
		      struct unwind_rule *ret);
/* Rows for code that can't be read now, around `addr`: CODE_UNDECIDED. 0 or -ENOMEM. */
int code_give_up(uint64_t addr, struct code_rows *ret);
void code_rows_fini(struct code_rows *rows);
