/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows for executable code that no CFI covers: PLTs, the program's entry point, signal
 * trampolines, and functions that code_scan.h can follow; CFA_FRAME_POINTER for the rest.
 */
#pragma once

#include "elf/elf_file.h"
#include "elf/elf_symbols.h"
#include "elf/go_table.h"
#include "unwind/code_scan.h"
#include "unwind/go_code.h"
#include "unwind/table_writer.h"

struct code_gaps {
	const struct elf_file *elf;
	struct table_writer *writer;
	struct scan_arch arch;
	const struct elf_section **sections; /* executable ones, by address */
	size_t nr_sections;
	uint64_t context_start; /* glibc's __start_context, 0: none */
	bool by_ghc;		/* ghc_code.h */
	struct go_code go;	/* of what Go's linker made, else empty */
	bool goexit_passed;
	union cfi_rule rule; /* of the row that was added last, as far as goexit is concerned */
	bool by_go;	     /* Go's linker made the file, or a part of it */
	struct go_table go_table; /* of code of Go's that is too large to be scanned */
	bool go_table_read;
	bool is_small_program;	   /* each of its functions can be looked at */
	size_t budget;		   /* bytes that may still be scanned */
	unsigned int nr_restorers; /* found in what could not be */
	bool symbols_read;
	struct elf_symbols symbols;
	uint8_t *text; /* of the segment that was scanned last, which begins at: */
	uint64_t text_start;
	size_t text_size;
	struct never_returns *never; /* of `text` */
	int error;
};

/* The arguments are borrowed. 0 or -ENOMEM. */
int code_gaps_init(struct code_gaps *gaps, const struct elf_file *elf, const struct cfi_arch *arch,
		   struct table_writer *writer);
void code_gaps_fini(struct code_gaps *gaps);
/* Forgets what was scanned, for another pass over the file. */
void code_gaps_reset(struct code_gaps *gaps);
/* Adds the row of runtime.goexit, if `start` is its address. */
bool code_gaps_goexit(struct code_gaps *gaps, uint64_t start);
/*
 * Whether the function in [start, end), which CFI says is a signal's frame, is a trampoline, by its
 * code; then *ret is its rule.
 */
bool code_gaps_trampoline(const struct code_gaps *gaps, uint64_t start, uint64_t end,
			  union cfi_rule *ret);
/*
 * Looks at a function of which CFI says nothing of the kind, `by_eh_frame` or .debug_frame's:
 * only if nothing but padding stands before the trampoline.
 */
bool code_gaps_restorer(const struct code_gaps *gaps, bool by_eh_frame, uint64_t start,
			uint64_t end, union cfi_rule *ret);
/*
 * Where in [start, end) the frame pointer is the caller's again: behind its pop. `end` if it isn't
 * popped there.
 */
uint64_t code_gaps_behind_pop(const struct code_gaps *gaps, uint64_t start, uint64_t end);
/*
 * Writes the rows of the function in [start, end), which .debug_frame covers, if its code goes over
 * to another stack, of which that says nothing. False: it does not.
 */
bool code_gaps_switch(struct code_gaps *gaps, uint64_t start, uint64_t end);
/* Writes the rows of [start, end). Failures are kept in gaps->error. */
void code_gaps_cover(struct code_gaps *gaps, uint64_t start, uint64_t end);
