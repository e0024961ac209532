/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the walker reads to step over a native frame, as the agent writes it into BPF maps.
 *
 *   pc --(mappings of the process)--> file, file address --(buckets, rows)--> rule
 *
 * Everything whose size depends on the machine lives in one arena: an array of segments of
 * ARENA_SEGMENT_CELLS cells of 4 bytes, addressed by a flat cell number (segment = cell /
 * ARENA_SEGMENT_CELLS). One object never straddles a segment unless its comment says so.
 */
#pragma once

#include <linux/types.h>

enum {
	ARENA_SEGMENT_SHIFT = 16,
	ARENA_SEGMENT_CELLS = 1 << ARENA_SEGMENT_SHIFT, /* 256 KiB */
	ARENA_SEGMENTS_MAX = 1024,			/* 256 MiB: more than any --memory-limit */
};

/* --- registers ------------------------------------------------------------------------------- */

/*
 * Registers have their DWARF numbers: x86-64 0..15 (rax rdx rcx rbx rsi rdi rbp rsp r8..r15),
 * aarch64 0..31 (x0..x30, sp). The walker keeps all of them for the interrupted frame and those
 * in unwind_slots for callers.
 */
enum {
	UNWIND_REGS_MAX = 32,
	X86_RAX = 0,
	X86_RDX = 1,
	X86_RCX = 2,
	X86_RBX = 3,
	X86_RSI = 4,
	X86_RDI = 5,
	X86_RBP = 6,
	X86_RSP = 7,
	X86_R8 = 8,
	X86_R9 = 9,
	X86_R10 = 10,
	X86_R11 = 11,
	X86_R12 = 12,
	X86_R13 = 13,
	X86_R14 = 14,
	X86_R15 = 15,
	X86_RA = 16,
	A64_X19 = 19,
	A64_FP = 29,
	A64_LR = 30,
	A64_SP = 31,
};

/*
 * A rule has places for UNWIND_SLOTS saved registers: which ones they are depends on the
 * architecture. Slot 0 is the frame pointer.
 */
enum { UNWIND_SLOTS = 7 };
enum { X86_SLOT_RBP, X86_SLOT_RBX, X86_SLOT_R12, X86_SLOT_R13, X86_SLOT_R14, X86_SLOT_R15 };
#define X86_SLOT_REGS                                                                              \
	{                                                                                          \
		X86_RBP, X86_RBX, X86_R12, X86_R13, X86_R14, X86_R15, X86_R10                      \
	}
/* No CFA hangs on x24 to x27 in what compilers make; in x28 Java code has its JavaThread. */
enum { A64_SLOT_X28 = 6 };
#define A64_SLOT_REGS                                                                              \
	{                                                                                          \
		A64_FP, 19, 20, 21, 22, 23, 28                                                     \
	}

/* --- rules ----------------------------------------------------------------------------------- */

enum unwind_cfa {
	/* No caller can be found; `cfa_off` is an enum stop_reason (STOP_NO_RULE, STOP_BAD_CFI). */
	CFA_STOP = 0,
	/* This is the thread's first frame: the walk is complete. */
	CFA_END = 1,
	/* CFA = cfa_reg + cfa_off */
	CFA_REG = 2,
	/* CFA = *(cfa_reg + cfa_off) + cfa_off2, in bytes (realigned stacks: gcc saves the old
	 * CFA), or *(cfa_reg + 8 * RULE_INDEX + cfa_off) + cfa_off2 (OpenSSL's x86-64 assembler
	 * keeps it behind arrays of variable length) */
	CFA_DEREF = 3,
	/* CFA = cfa_reg + cfa_off + ((pc & 15) >= cfa_off2 ? 8 : 0): a PLT stub (x86-64) */
	CFA_PLT = 4,
	/*
	 * A signal trampoline: the interrupted frame's registers are in memory, in a block that
	 * begins at cfa_reg + cfa_off. x86-64, 17 words: r8..r15, rdi, rsi, rbp, rbx, rdx, rax,
	 * rcx, rsp, rip. aarch64, 33 words: x0..x30, sp, pc. Its row begins a byte early: pc - 1
	 * finds it too.
	 */
	CFA_SIGNAL = 5,
	/*
	 * No unwind information. The interrupted frame: look at the code around pc for a prologue
	 * or an epilogue. Else: frame pointer, CFA = fp + 16, fp and return address just below it.
	 * fp = 0, or a return address of 0, is the thread's first frame, but for CODE_ANON.
	 * `cfa_off`: unwind_code.
	 */
	CFA_FRAME_POINTER = 6,
	/* Code that a runtime made (struct unwind_mapping): `cfa_off` is the runtime, whose step
	 * finds the caller. Never in a file's table. */
	CFA_RUNTIME = 7,
};

/* What is known of code without unwind information, beside its bytes. */
enum unwind_code {
	CODE_BYTES = 0, /* nothing */
	/* Too much to be followed beforehand. Where its bytes do not tell how an interrupted frame
	 * is, the agent is asked, who then writes rules for its function: STOP_CODE_PENDING. */
	CODE_UNFOLLOWED = 1,
	/* It was followed, and that did not tell either. */
	CODE_UNDECIDED = 2,
	/* It was: the stack pointer is another stack's there, from which nothing leads back. A
	 * caller that is there is the first frame of that stack. What runs there is a runtime's or
	 * cut. */
	CODE_SWITCHED = 3,
	/* It is in no ELF file: made at run time. No thread's first frame is there, and a frame
	 * pointer that says so is a register that this code uses for something else. Where the
	 * frame pointer leads nowhere the agent is asked, who follows the code in the process's
	 * memory, for that one walk: STOP_CODE_PENDING. */
	CODE_ANON = 4,
};

/* The low two bits of `ra`. */
enum unwind_ra {
	/* The return address is at CFA + 8 * ra_off. */
	RA_AT_CFA = 0,
	/* The return address is in register ra_off (aarch64 leaf: LR; x86-64 vfork: rdi). */
	RA_IN_REG = 1,
};

enum {
	/* Values of slot_off that are no offset. A register is never saved at the CFA itself. */
	SLOT_SAME = 0,
	SLOT_LOST = 0x7fff,
};

enum {
	RULE_RA_SIGNED = 1 << 0, /* aarch64: the return address carries a PAC; strip it */
	/*
	 * Saved registers are at slot_off words from the frame pointer (its value in this frame) +
	 * UNWIND_FP_SLOTS_BIAS bytes, not from the CFA: functions that realign their stack, where
	 * nothing but the CFA's own location is at a known distance. ra_off is always from the CFA.
	 */
	RULE_SLOTS_AT_FP = 1 << 1,
	/*
	 * Nobody calls from here: a caller found at this address - 1 is really at the address
	 * itself, which was made a return address by hand (signal trampolines, the first frame of
	 * makecontext()).
	 */
	RULE_NO_CALL = 1 << 2,
	/*
	 * Of CFA_REG: the function has gone over to another stack, and the CFA may lie below the
	 * stack pointer (Go: from a goroutine's to the thread's).
	 */
	RULE_OTHER_STACK = 1 << 3,
	/*
	 * Of CFA_REG: right behind the system call that made a thread with a stack of its own. The
	 * new one is there too, with 0 in register 0 (rax, x0): it is its first frame, and the rule
	 * is the other's.
	 */
	RULE_NEW_THREAD = 1 << 4,
	/* Of CFA_DEREF: the register counted in words, or 0 for none: rax (x0) can't be it. */
	RULE_INDEX_SHIFT = 3,
};
#define RULE_INDEX(flags) ((flags) >> RULE_INDEX_SHIFT)
/* The frame pointer itself is saved where it points to: with the bias that is slot_off -1. */
enum { UNWIND_FP_SLOTS_BIAS = 8 };

struct unwind_rule {
	__u8 cfa; /* enum unwind_cfa */
	__u8 cfa_reg;
	__u8 ra;		      /* RULE_RA, RULE_RUNTIME */
	__u8 flags;		      /* RULE_* */
	__s32 cfa_off;		      /* bytes */
	__s16 ra_off;		      /* words of 8 bytes, or a register */
	__s16 slot_off[UNWIND_SLOTS]; /* words of 8 bytes from the CFA (RULE_SLOTS_AT_FP), or SLOT_*
				       */
};
_Static_assert(sizeof(struct unwind_rule) == 24, "unwind_rule is a map value");
#define RULE_RA(rule) ((rule)->ra & 3)
/* The function runs frames of this runtime (an interpreter's loop): after its own frame they are
 * this runtime's step to find. 0: none. */
#define RULE_RUNTIME(rule) ((rule)->ra >> 2)
#define RULE_RUNTIME_SHIFT 2

/* CFA_DEREF and CFA_PLT: the second offset stands where r10's (x24's) slot is, which is SAME then.
 */
enum { UNWIND_CFA_OFF2_SLOT = UNWIND_SLOTS - 1 };

/*
 * Rules live in one array. The first ones are always there: { CFA_STOP, STOP_NO_RULE },
 * { CFA_FRAME_POINTER, CODE_ANON }, { CFA_STOP, STOP_TABLE_EVICTED }, and { CFA_RUNTIME, id } at
 * RULE_RUNTIMES + id.
 */
enum { RULE_NONE = 0, RULE_FRAME_POINTER = 1, RULE_TABLE_EVICTED = 2, RULE_RUNTIMES = 3 };
enum { UNWIND_RULES_MAX = 32768 }; /* 786 KB; all of a desktop's libraries have about 10,000 */

/* --- rows ------------------------------------------------------------------------------------ */

/*
 * A row says: from this address on, until the next row's, rule N is in force. Rows are grouped in
 * buckets of 256 bytes of code; a row keeps the low 8 bits of its address, so that the rows of a
 * bucket are sorted as plain u32.
 */
enum {
	BUCKET_SHIFT = 8,
	BUCKET_ROWS_MAX = 255,
	FILE_ROWS_MAX = (1 << 24) - 1,
};
#define ROW(low8, rule) (((__u32)(low8) << 24) | (rule))
#define ROW_RULE(row)	((row)&0xffffff)
/* The bucket's first row (by number, within the file's rows) and how many rows it has. */
#define BUCKET(first_row, nr) (((__u32)(nr) << 24) | (first_row))
#define BUCKET_FIRST(bucket)  ((bucket)&0xffffff)
#define BUCKET_NR(bucket)     ((bucket) >> 24)
/*
 * Look-up of `addr`: in its bucket, the last row <= ROW(addr & 255, 0xffffff). If there is none,
 * the row before BUCKET_FIRST; if that is none either (first_row 0), rule 0.
 */

/* --- files and mappings ---------------------------------------------------------------------- */

enum unwind_file_state {
	FILE_STATE_NONE = 0,	/* unused slot */
	FILE_STATE_PENDING = 1, /* known, its table not loaded yet: STOP_FILE_PENDING */
	FILE_STATE_LOADED = 2,
	FILE_STATE_UNREADABLE = 3, /* STOP_FILE_UNREADABLE */
	FILE_STATE_EVICTED = 4,	   /* STOP_TABLE_EVICTED */
	FILE_STATE_SPILLED = 5,	   /* there is no room, but the agent can read it elsewhere:
				      STOP_FILE_PENDING in the kernel */
};

/* One ELF file (or vDSO) with executable code. */
struct unwind_file {
	__u64 start;	  /* lowest address covered, in the file's own address space; 256-aligned */
	__u32 nr_buckets; /* covers [start, start + nr_buckets * 256) */
	__u32 buckets;	  /* first cell; may straddle segments */
	__u32 rows;	  /* first cell; may straddle segments */
	__u32 state;	  /* enum unwind_file_state */
};
_Static_assert(sizeof(struct unwind_file) == 24, "unwind_file is a map value");
enum { UNWIND_FILES_MAX = 16384 }; /* 393 KB; a file here is a distinct ELF file that was sampled */

enum {
	/* Mappings without unwind tables: anonymous or non-ELF code. CFA_FRAME_POINTER everywhere.
	 */
	MAPPING_ANON = 0,
	MAPPINGS_MAX = 4096, /* executable mappings of one process */
	MAPPINGS_SEARCH_STEPS = 12,
};
_Static_assert(1 << MAPPINGS_SEARCH_STEPS >= MAPPINGS_MAX, "the search must reach every mapping");

/* An executable mapping; a process has a sorted array of them, which never straddles a segment. */
struct unwind_mapping {
	__u64 start;
	__u64 end;
	__u64 bias; /* address in memory - address in the file's own address space (ELF p_vaddr) */
	__u32 file; /* index into the files' array; MAPPING_ANON: none */
	__u32 runtime; /* whose code this is (enum runtime_id): its step is called; 0: nobody's */
};
_Static_assert(sizeof(struct unwind_mapping) == 32, "unwind_mapping lies in the arena");

/* --- functions in no file --------------------------------------------------------------------- */

/*
 * Functions without frame pointers that a process made at run time (patterns of PCRE's), as the
 * agent has learned them: key: the address space and a page; value: those that lie in it. Memory is
 * used again for other code and nobody tells: such a function is believed only where it still
 * begins with the same instructions, and returns to the very address that it returned to.
 */
enum { ANON_PAGE_SHIFT = 12, ANON_FUNCTIONS_MAX = 4, ANON_PAGES_MAX = 512 };

struct anon_page_key {
	__u64 mm, page;
};

struct anon_function {
	__u64 start;   /* 0: none */
	__u64 head[2]; /* how it begins: it pushes registers and makes room */
	__u64 ra;
	__u32 size;		      /* up to where another one may begin */
	__u32 frame;		      /* bytes: CFA - stack pointer, behind its begin */
	__s16 slot_off[UNWIND_SLOTS]; /* as in struct unwind_rule */
	__u16 pad_;
};
_Static_assert(sizeof(struct anon_function) == 56, "anon_function is in a map's value");

struct anon_page {
	struct anon_function functions[ANON_FUNCTIONS_MAX];
};

enum {
	/* The agent has looked: addresses outside these mappings lead nowhere. Do not send raw
	   records. */
	PROCESS_MAPPINGS_FINAL = 1 << 0,
	/* Code that was not followed is walked with a note, the agent is not asked for now:
	   STOP_CODE_PENDING. */
	PROCESS_ASKS_HELD = 1 << 1,
	/* Its code in no file was followed in vain: the agent is not asked for that any more. */
	PROCESS_ANON_SILENT = 1 << 2,
	PROCESS_NO_ANON_ASKS = PROCESS_ASKS_HELD | PROCESS_ANON_SILENT,
	/* Code in no file may be a runtime's that is not known to be: what runs it has a frame
	   pointer that leads past its own frames. */
	PROCESS_CODE_EXPECTED = 1 << 3,
};

/*
 * A process as the walker knows it; key: tgid. `mm` names the address space (the kernel's mm_struct
 * and the number of execs) when the mappings were read: after an exec (or a reuse of the PID) it
 * differs and the entry is void.
 */
struct unwind_process {
	__u64 mm;
	__u32 generation; /* names this very array of mappings, never reused in a run; not 0 */
	__u32 nr_mappings;
	__u32 mappings; /* first cell; 8-cell aligned */
	__u32 flags;	/* PROCESS_* */
	__u32 runtimes; /* cell of the first struct runtime_record; 8-cell aligned; 0: none */
	__u32 pad_;
};
_Static_assert(sizeof(struct unwind_process) == 32, "unwind_process is a map value");
/* As many as a busy host has live processes that were sampled, or are children of such. */
enum { UNWIND_PROCESSES_MAX = 8192 };

/*
 * What a runtime's step needs to know of a process: written by its attach(), for that process and
 * generation. Lies in the arena, in one segment; `size` bytes of the runtime's own struct follow.
 */
struct runtime_record {
	__u32 runtime; /* enum runtime_id */
	__u32 next;    /* cell of the next one of this process, 0: none */
	__u32 size;
	__u32 pad_;
};
enum {
	RUNTIME_RECORD_MAX =
		1024, /* bytes of a runtime's own struct; so many are there in any case */
	RUNTIME_RECORD_CELLS = (16 + RUNTIME_RECORD_MAX) / 4,
	RUNTIMES_OF_PROCESS_MAX = 4,
};
