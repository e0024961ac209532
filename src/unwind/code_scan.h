/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind rules from the code itself, for functions that no CFI covers (hand-written assembly, libc
 * of musl): the stack pointer's distance from the CFA is followed through the control flow.
 *
 * scan_new() takes the bytes of a range of code, scan_function() follows one function from its
 * first instruction, scan_rest() finds the functions that nothing named, scan_emit() hands out
 * rows. What can't be followed becomes CFA_FRAME_POINTER.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dwarf/cfi.h"
#include "elf/code_flow.h"

enum {
	SCAN_BYTES_MAX = 1 << 20, /* of code, in one scan; needs 3 bytes of memory for each */
	SCAN_STATES_MAX = 65535,
	SCAN_TARGETS_MAX = 1 << 16,
};

enum scan_kind {
	SCAN_FOLLOWED, /* sp_off and fp_off count */
	SCAN_UNKNOWN,  /* lost track of the stack: frame pointer */
	SCAN_END,      /* the thread's first function */
	SCAN_SIGNAL,   /* a signal trampoline */
};

enum scan_sp {
	SP_UNKNOWN = 0,
	SP_KNOWN = 1, /* sp_off counts */
	/* Realigned, but what it was lies on the stack: CFA = *(stack pointer + sp_off) + old_off
	 */
	SP_OLD_SAVED = 2,
};

/* What is known before an instruction runs. Compared bytewise: no padding. */
struct scan_state {
	int32_t sp_off;	 /* CFA - stack pointer */
	int32_t fp_off;	 /* CFA - frame pointer */
	int32_t old_off; /* CFA - the old stack pointer, before it was realigned */
	int16_t slots[UNWIND_SLOTS];
	int16_t ra_off;
	uint8_t kind; /* enum scan_kind */
	uint8_t sp;   /* enum scan_sp */
	uint8_t fp_known;
	uint8_t ra;	 /* enum unwind_ra */
	uint8_t flags;	 /* RULE_* */
	uint8_t has_old; /* the old stack pointer is in register old_reg */
	uint8_t old_reg;
	uint8_t in_kernel; /* since the begin, or the last call */
	/* The stack pointer is another stack's; sp is not SP_KNOWN. What was the caller's stays
	 * with the frame pointer. */
	uint8_t switched;
	uint8_t pad_[3];
};
_Static_assert(sizeof(struct scan_state) == 40, "compared bytewise");

/* One per architecture. */
struct scan_arch {
	const struct cfi_arch *cfi;
	struct scan_state entry; /* at a function's first instruction */
	/*
	 * Decodes the instruction at `p`, address `addr`: false if it is none. Applies what it does
	 * to *state if that is not NULL; a call overwrites what callees may.
	 */
	bool (*step)(const struct cfi_arch *cfi, const uint8_t *p, size_t left, uint64_t addr,
		     struct code_insn *insn, struct scan_state *state);
	/*
	 * Whether the instruction at `p`, `insn`, may write the register. NULL: no state has one
	 * that matters (has_old).
	 */
	bool (*writes)(const uint8_t *p, const struct code_insn *insn, uint8_t reg);
	/* Whether `p`, at `addr`, looks like the begin of a function that sets up a frame. */
	bool (*prologue)(const uint8_t *p, size_t left, uint64_t addr);
	/* Whether `p` saves the frame pointer and sets up its own, wherever it is; or NULL. */
	bool (*frame)(const uint8_t *p, size_t left);
	/* Whether `p` goes straight on to a jump that an argument leads to, which no call leaves
	 * alone: a function that hands on to another one. */
	bool (*hands_on)(const uint8_t *p, size_t left, uint64_t addr);
	/* Whether a signal trampoline is at `p`, and its length. */
	size_t (*trampoline)(const uint8_t *p, size_t left);
	/* Whether what begins a stack of its own, and ends it, is at `p`, and its length; or NULL.
	 */
	size_t (*stack_begin)(const uint8_t *p, size_t left);
	struct unwind_rule signal;
	uint8_t min_insn; /* how far apart instructions begin */
	bool of_go;	  /* the code is: go_code.h */
};

/* Fills *ret for cfi->machine. */
void scan_arch_x86(const struct cfi_arch *cfi, struct scan_arch *ret);
void scan_arch_a64(const struct cfi_arch *cfi, struct scan_arch *ret);

struct scan;
struct never_returns;

/* `code` (at address `addr`, at most SCAN_BYTES_MAX) and `arch` are borrowed. */
int scan_new(const struct scan_arch *arch, const uint8_t *code, size_t size, uint64_t addr,
	     struct scan **ret);
void scan_free(struct scan *scan);
static inline void scan_free_p(struct scan **scan)
{
	scan_free(*scan);
}
/* A function begins at `addr`. Name all functions before following them. */
void scan_function(struct scan *scan, uint64_t addr);
/* The program's very first instruction is at `addr`. */
void scan_entry_point(struct scan *scan, uint64_t addr);
/* `never` (borrowed) knows more than this code, which may call what is elsewhere. NULL: nobody
 * does. */
void scan_never_returns(struct scan *scan, struct never_returns *never);
/* Follows the functions named, and those that it finds. 0 or -ENOMEM. */
int scan_run(struct scan *scan);
/* Calls `row` for each change of the rule, in order; padding has none of its own. */
void scan_emit(const struct scan *scan,
	       void (*row)(void *arg, uint64_t addr, const union cfi_rule *rule), void *arg);

/*
 * At how many returns the stack was as it has to be there, and at how many not; at how many jumps
 * to elsewhere, which may be calls in place of a return.
 */
struct scan_verdict {
	uint32_t good, bad, tails;
};
/*
 * Follows the one function alone that has `state` at `addr`, wherever in it that is, as far as it
 * goes from there. Instead of the three above. 0 or -ENOMEM.
 */
int scan_one(struct scan *scan, uint64_t addr, const struct scan_state *state,
	     struct scan_verdict *ret);
/* The state before the instruction that begins at `addr`, NULL: none was reached there; and that
 * instruction's length. */
const struct scan_state *scan_state_at(const struct scan *scan, uint64_t addr);
uint8_t scan_length_at(const struct scan *scan, uint64_t addr);
/* From the first instruction that was reached to the last. */
void scan_extent(const struct scan *scan, uint64_t *ret_start, uint64_t *ret_end);
/* The rule of a state. */
void scan_rule(const struct scan_arch *arch, const struct scan_state *s, union cfi_rule *ret);
