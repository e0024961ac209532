/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The records of the sample ring. Each begins with a sample_header; what follows depends on `type`.
 */
#pragma once

#include "abi/unwind.h"

#define STOP(name, NAME, id, sentence) STOP_##NAME = id,
enum stop_reason {
	STOP_NONE = 0, /* go on walking */
#include "abi/stop_reasons.def"
	STOP_MAX_ = 32,
};
#undef STOP

#define LOST(name, NAME, id, sentence) LOST_##NAME = id,
enum lost_reason {
#include "abi/lost_reasons.def"
	LOST_MAX_ = 32,
};
#undef LOST
/* Whether it is counted in BPF. */
#define LOST_IN_KERNEL(reason)                                                                     \
	((reason) < LOST_SIDE_BAND || (reason) == LOST_SLEEPER_TABLE_FULL ||                       \
	 (reason) == LOST_SLEEP_MISSED || (reason) == LOST_ARGUMENT_UNREADABLE)

#define RUNTIME(name, NAME, id) RUNTIME_##NAME = id,
enum runtime_id {
	RUNTIME_KERNEL = 0, /* a kernel address: the frame word is the address itself */
#include "abi/runtimes.def"
	RUNTIME_END_, /* behind the last one */
	RUNTIME_MAX_ = 32,
};
#undef RUNTIME

enum sample_type {
	SAMPLE_HIT =
		1, /* header only: the stack with this hash was sent before by this CPU's walker */
	SAMPLE_FULL = 2, /* header, sample_full, frame words */
	SAMPLE_RAW = 3,	 /* header, sample_raw, kernel frame words, stack bytes: to be walked by the
			    agent */
};

enum {
	SAMPLE_ALSO_FULL = 1 << 0, /* of a RAW: the same sample follows in full (tests) */
	/* The process is not known to be selected: who reads this decides (abi/select.h). */
	SAMPLE_UNDECIDED = 1 << 1,
	/* No sample: of a thread that wakes another, whose sample says so by this one's hash. It is
	 * sent in full only, or raw without a stack: for the agent to learn of its process. */
	SAMPLE_WAKER = 1 << 2,
	/* Undecided, and the first so: the agent is woken to find out, as it may not be so for
	   long. */
	SAMPLE_MET = 1 << 3,
	/* The bits from here on: enum off_cpu_state (abi/off_cpu.h). */
	SAMPLE_STATE_SHIFT = 4,
};

enum { SAMPLE_COMM_LEN = 16, SAMPLE_MAX_KERNEL_FRAMES = 127 };

/* What a sample of a source carries; the source's type and unit say so to people. */
enum sample_value {
	VALUE_ONE,	/* 1: each is an event */
	VALUE_RAN_NS,	/* of a task that is switched out: for how long it ran */
	VALUE_ARGUMENT, /* of a function with a probe: the first one that it was called with */
	VALUE_SLEPT_NS, /* of a thread that goes on: for how long it was on no CPU */
	VALUE_RETURNED, /* of a function with a probe where it returns: what */
	VALUE_PERIOD,	/* of a perf event: so many of it since the last sample */
	VALUE_MAX_,
};

/* The first source is the CPUs' clocks; how many there may be. */
enum { SOURCE_CLOCK = 0, SAMPLE_SOURCES_MAX = 16 };
/* Of the map `lost`: what a source loses for a reason. */
#define LOST_KEY(source, reason) ((source)*LOST_MAX_ + (reason))

enum { FILTER_TEXT_WORDS = 8 };
/*
 * Which runs of a probe are samples: where an argument is that points to a text, and how that
 * begins, or what it is.
 */
struct argument_filter {
	__u32 is_set;
	__u32 reg;	/* its word of the registers that a probe's program is called with */
	__u32 indirect; /* the argument is not reg + offset, but lies there */
	__u32 pad_;
	__s64 offset;
	__u64 text[FILTER_TEXT_WORDS], mask[FILTER_TEXT_WORDS];
};

/* Map `rates`, by source: how many samples of it were taken since `window_ns`, how many were not.
 */
struct source_rate {
	__u64 window_ns, taken, limited;
};

struct sample_header {
	__u8 type;   /* enum sample_type */
	__u8 stop;   /* enum stop_reason: how the walk ended; of a RAW, why it was sent raw */
	__u8 flags;  /* SAMPLE_ALSO_*, state << SAMPLE_STATE_SHIFT */
	__u8 source; /* below SAMPLE_SOURCES_MAX; the same stack of two sources has one hash */
	__u32 cpu;
	__u32 pid; /* tgid, in the initial PID namespace */
	__u32 tid;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 hash;    /* of the whole stack with generation and stop reason; 0 in a RAW */
	__u64 value;   /* enum sample_value of the source */
	__u64 waker;   /* of a sleep: who ended it (abi/off_cpu.h) */
	char comm[SAMPLE_COMM_LEN];
};
_Static_assert(sizeof(struct sample_header) == 64, "a hit is a cache line");

/*
 * Hits of one CPU and one source of samples, which go round the ring. The CPU writes `head`, and
 * what lies behind it; who takes the hits out says up to where the CPU may write: zero at first, so
 * nothing.
 */
enum { CPU_HITS = 512 };
struct cpu_hits {
	__u64 head;    /* how many were ever written */
	__u64 allowed; /* `may_write`, as the CPU saw it last */
	__u64 pad_[6];
	__u64 may_write;
	__u64 pad2_[7];
	struct sample_header hits[CPU_HITS];
};

/*
 * Frame words, innermost first: nr_kernel kernel addresses, then nr_words words of user frames. A
 * user frame is a header word and FRAME_EXTRA(header) words that its runtime defines.
 */
struct sample_full {
	__u32 generation; /* of the mappings that the addresses were found in; 0: no user frames */
	__u16 nr_kernel;
	__u16 nr_words;
};
_Static_assert(sizeof(struct sample_full) == 8, "wire size");

/*
 * The header word: runtime id, number of further words, 52 bits of data. NATIVE: data is the
 * address of the code that runs or called: the pc of an interrupted frame, else the return address
 * minus 1.
 */
#define FRAME(runtime, extra, data)                                                                \
	(((__u64)(runtime) << 56) | ((__u64)(extra) << 52) | ((data)&FRAME_DATA_MASK))
#define FRAME_DATA_MASK	     ((1ull << 52) - 1)
#define FRAME_RUNTIME(frame) ((__u32)((frame) >> 56))
#define FRAME_EXTRA(frame)   ((__u32)((frame) >> 52) & 15)
#define FRAME_DATA(frame)    ((frame)&FRAME_DATA_MASK)

/*
 * Any runtime, no further words, data below FRAME_NOTES: no frame, but what is to be said in place
 * of that runtime's frames. Native ones have one further word, 0, since any address can be run.
 */
#define NOTE(name, NAME, id, sentence) FRAME_NOTE_##NAME = id,
enum frame_note {
#include "abi/frame_notes.def"
	FRAME_NOTES = 16,
};
#undef NOTE
#define FRAME_IS_NOTE(frame)                                                                       \
	(FRAME_RUNTIME(frame) == RUNTIME_NATIVE                                                    \
		 ? FRAME_EXTRA(frame)                                                              \
		 : FRAME_RUNTIME(frame) && !FRAME_EXTRA(frame) && FRAME_DATA(frame) < FRAME_NOTES)
#define FRAME_IS_NATIVE(frame) (FRAME_RUNTIME(frame) == RUNTIME_NATIVE && !FRAME_EXTRA(frame))

enum {
	RAW_PAGE = 4096,
	RAW_PAGES_MAX = 32,
	RAW_PAGES_NEAR = 16, /* from the stack pointer on; of a deeper stack the others are its end
			      */
	RAW_PAGES_SHORT = 2, /* from the stack pointer on, of those that are short: enum raws */
	RAW_STACK_MAX = RAW_PAGES_MAX * RAW_PAGE,
	/* At a function's end, registers are already popped that the unwind rules still find below
	   sp. */
	RAW_STACK_BELOW = 128,
	RAW_CODE_BEFORE = 16,
	RAW_CODE_AFTER = 16,
};

/* What is sent in place of a stack that the kernel could not walk. */
enum raws {
	RAWS_WHOLE,
	/* One frame or a few, but it tells whose it is: the next sample may be walked. */
	RAWS_SHORT,
	RAWS_NONE, /* it is cut */
};

struct sample_raw {
	__u64 mm;		     /* see struct unwind_process */
	__u64 regs[UNWIND_REGS_MAX]; /* by DWARF number */
	__u64 pc;
	__u64 stack_start; /* where the copy of the stack begins: RAW_STACK_BELOW under sp */
	__u32 generation;  /* of the entry that failed to walk; 0: the process is unknown */
	__u16 nr_kernel;
	__u8 nr_pages;	  /* copied; the first one may be a part, see stack_start */
	__u8 is_short;	  /* more of the stack was there, but no room for it: RAWS_SHORT */
	__u32 stack_size; /* bytes copied */
	__u32 file; /* of a STOP_FILE_PENDING: whose table is wanted (struct unwind_mapping) */
	__u8 code[RAW_CODE_BEFORE + RAW_CODE_AFTER]; /* around pc; zero if unreadable */
	/* Which they are, ascending; 0 is that of stack_start. Those between are not there: nobody
	 * has touched them yet, or they lie between the near ones and the stack's end. */
	__u16 pages[RAW_PAGES_MAX];
	__u32 user; /* whose process it is: its real user, whatever it acts as */
	__u32 pad_;
};
_Static_assert(sizeof(struct sample_raw) == 8 + 8 * 32 + 16 + 16 + 32 + 64 + 8, "wire size");

/* 900 frames of an old Python, with four C functions each, are 4,500 frames and 5,400 words. */
enum { SAMPLE_FRAMES_DEFAULT = 8192, SAMPLE_FRAMES_MAX = 8192, SAMPLE_WORDS_MAX = 8192 };
