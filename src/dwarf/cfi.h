/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information: .eh_frame and .debug_frame as bytes in, rows of unwind rules out.
 *
 *   cfi_entry_at()  walks the CIEs and FDEs of a section
 *   cfi_parse_cie() / cfi_parse_fde()  decode one
 *   cfi_rows_begin() / cfi_rows_next() / cfi_row_rule()  interpret an FDE row by row
 *
 * Nothing here does I/O or allocates. Everything that a rule cannot express becomes CFA_STOP for
 * its row; everything malformed is -EINVAL for its entry.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/unwind.h"

enum {
	CFI_REGS_MAX = 96,     /* DWARF registers that are told apart; aarch64's last is v31 = 95 */
	CFI_REMEMBER_MAX = 64, /* nesting of remember_state; compilers need 1, rarely 2 */
	CFI_SECTION_MAX = 128 << 20, /* a browser of 225 MB of code has 27 MB */
};

struct cfi_section {
	const uint8_t *data;
	uint32_t size;		       /* at most CFI_SECTION_MAX */
	uint64_t addr;		       /* of data[0] */
	uint64_t text_base, data_base; /* of DW_EH_PE_textrel and _datarel */
	bool eh_frame;		       /* else .debug_frame */
	bool to_terminator; /* `size` is only a bound: the first empty entry is the end */
};

/* Where a register's rule goes: below UNWIND_SLOTS a slot of the rule, else one of these. */
enum cfi_column {
	CFI_COLUMN_RA = UNWIND_SLOTS,
	CFI_COLUMN_SP,
	CFI_COLUMN_CFA, /* no register: the CFA's own expression */
	CFI_COLUMNS_MAX_,
	CFI_COLUMN_IGNORED = 15,
	/* CFI_COLUMN_UNTRACKED + n: a callee-saved register whose slot nobody needs */
	CFI_COLUMN_UNTRACKED = 16,
};

/*
 * A rule as its three words. The interpreter loads and stores whole words only: narrow stores that
 * are read back wide stall the processor, and cost a third of the time here.
 */
union cfi_rule {
	uint64_t words[3];
	struct unwind_rule rule;
};

/* One architecture, and which of its callee-saved registers are worth following. */
struct cfi_arch {
	uint16_t machine;
	uint8_t ra_reg, sp_reg, fp_reg;
	uint8_t nr_regs; /* that a CFA may be based on */
	uint8_t slot_regs[UNWIND_SLOTS];
	uint8_t columns[CFI_REGS_MAX]; /* enum cfi_column of each register */
	union cfi_rule lost;	       /* SLOT_LOST for each slot that is not followed */
};

/*
 * The interpreter's state. `u` is right whenever `odd` and `saved_untracked` are 0, which is
 * nearly always.
 */
struct cfi_state {
	union cfi_rule u;
	uint16_t saved_untracked; /* bit n: register of column CFI_COLUMN_UNTRACKED + n is saved */
	uint16_t odd;		  /* CFI_ODD_*, and bit c: column c has a location expression */
	uint32_t expr[CFI_COLUMNS_MAX_]; /* offset of the expression's length in the section */
};
enum {
	CFI_ODD_CFA_EXPR = 1 << CFI_COLUMN_CFA,
	CFI_ODD_RA_UNDEFINED = 1 << 12, /* the thread's first frame */
	CFI_ODD_RA_UNSUPPORTED = 1 << 13,
	CFI_ODD_SP_UNSUPPORTED = 1 << 14,  /* the caller's stack pointer is not the CFA */
	CFI_ODD_CFA_UNSUPPORTED = 1 << 15, /* none given yet, or of a register unknown to us */
};

struct cfi_entry {
	uint32_t offset; /* of the entry itself: its identity */
	uint32_t next;	 /* of the entry behind it */
	uint32_t body;	 /* behind the CIE id or pointer */
	uint32_t cie;	 /* an FDE's CIE */
	bool is_cie;
	bool dwarf64;
};

struct cfi_cie {
	uint32_t offset;
	uint32_t instructions, end;
	uint64_t code_align;
	int64_t data_align;
	uint8_t address_size;
	uint8_t segment_size;
	uint8_t encoding; /* DW_EH_PE_* of an FDE's addresses */
	bool augmented;	  /* 'z': FDEs have augmentation data */
	bool signal;	  /* 'S' */
	struct cfi_state initial;
};

struct cfi_fde {
	uint64_t start, end;
	uint32_t instructions, instructions_end;
};

/* One pass over an FDE. Large: keep one and reuse it. */
struct cfi_rows {
	const struct cfi_arch *arch;
	const struct cfi_section *section;
	const struct cfi_cie *cie;
	/* The row that cfi_rows_next() found: state is valid in [start, end). */
	uint64_t start, end;
	struct cfi_state state;
	/* private */
	uint64_t next, limit;
	const uint8_t *pos, *stop;
	unsigned int nr_remembered;
	struct cfi_state remembered[CFI_REMEMBER_MAX];
};

/*
 * `tracked`: bit n follows the register of slot n besides the frame pointer. 0 or -ENOTSUP.
 */
int cfi_arch_init(struct cfi_arch *arch, uint16_t machine, unsigned int tracked);

/*
 * The entry at or behind `offset`. 1: found; 0: no more; -EINVAL: its length is nonsense, so that
 * nothing behind it can be found either.
 */
int cfi_entry_at(const struct cfi_section *section, uint32_t offset, struct cfi_entry *ret);
/*
 * -EINVAL: malformed, -ENOTSUP: of a kind unknown to us. Then ret->encoding and ret->augmented are
 * still set, to the file's if that much could be read, else to what compilers use, so that the
 * range of its FDEs can be told.
 */
int cfi_parse_cie(const struct cfi_section *section, const struct cfi_arch *arch,
		  const struct cfi_entry *entry, struct cfi_cie *ret);
int cfi_parse_fde(const struct cfi_section *section, const struct cfi_entry *entry,
		  const struct cfi_cie *cie, struct cfi_fde *ret);

/* The arguments are borrowed until the last cfi_rows_next(). */
void cfi_rows_begin(struct cfi_rows *rows, const struct cfi_arch *arch,
		    const struct cfi_section *section, const struct cfi_cie *cie,
		    const struct cfi_fde *fde);
/* The next row: 1, or 0 at the end, or -EINVAL. */
int cfi_rows_next(struct cfi_rows *rows);
/*
 * The rule of the current row. 0; -ENOTSUP if something of it could not be expressed, then *ret is
 * a CFA_STOP.
 */
int cfi_row_rule_odd(const struct cfi_rows *rows, union cfi_rule *ret);
static inline int cfi_row_rule(const struct cfi_rows *rows, union cfi_rule *ret)
{
	const struct cfi_state *s = &rows->state;
	uint64_t lost;

	if (__builtin_expect(s->odd, 0))
		return cfi_row_rule_odd(rows, ret);
	lost = s->saved_untracked ? UINT64_MAX : 0;
	ret->words[0] = s->u.words[0];
	ret->words[1] = s->u.words[1] | (rows->arch->lost.words[1] & lost);
	ret->words[2] = s->u.words[2] | (rows->arch->lost.words[2] & lost);
	return 0;
}
/*
 * A signal trampoline's rows give every register relative to the stack pointer: turns them into
 * CFA_SIGNAL. -ENOENT if they are of another form.
 */
int cfi_row_signal(const struct cfi_rows *rows, union cfi_rule *ret);

/*
 * Reads an address in a DW_EH_PE_* encoding at *pos, which lies at address `at` once loaded.
 * -EINVAL, or -ENOTSUP (indirect, unknown). Exported for .eh_frame_hdr.
 */
struct cfi_reader;
int cfi_read_encoded(struct cfi_reader *r, uint8_t encoding, uint64_t at,
		     const struct cfi_section *section, uint64_t *ret);
