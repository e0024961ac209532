/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of one walk, and what a step may do with it. One walk at a time on a CPU (on a host
 * thread), of each source of samples: the state is in the CPU's own block, not in arguments, so
 * that the verifier checks each step once.
 *
 * A step (STEP(name), one a runtime) looks at the current frame, pushes it, and moves to its
 * caller: it returns STOP_NONE with walk->runtime naming whose step is next, or how the walk ended.
 *
 * A runtime's step is called in four cases, told apart by walk->entry:
 *  - ENTRY_LOOP: a native frame was pushed whose function runs frames of this runtime (marked by
 *    RULE_RUNTIME). The walk has moved on to that frame's caller already; walk->loop_* say where it
 *    was. The step pushes its frames that this function ran, none to many, one a call, and hands
 *    over with walk_native().
 *  - ENTRY_CODE: walk->pc lies in code that this runtime made (unwind_mapping.runtime). The step
 *    pushes the frame, finds the caller, moves there with walk_to_caller(), and hands over with
 *    walk_native(), which comes back if that is the runtime's code again.
 *  - ENTRY_END: as ENTRY_LOOP, of a function that nobody called: the walk is where it was, at its
 *    end, and walk_native() says so.
 *  - ENTRY_SWITCHED: as ENTRY_END, of a function that has gone over to another stack, and nothing
 *    native leads back (CODE_SWITCHED).
 * What a step must remember from one call to the next lies in runtime_state().
 */
#pragma once

#include "bpf/prelude.bpf.h"
#include "abi/kernel_rows.h"

enum {
	WINDOW_SIZE = 1024,   /* of stack, read at once: 256, 512 and 4,096 cost more */
	WINDOW_DEEP = 2048,   /* of a stack that needs more: walk->deep */
	WINDOW_BELOW = 64,    /* so many bytes below the stack pointer */
	FRAMES_WINDOW = 1024, /* of a runtime's frames that lie side by side */
	WALK_BATCH = 32,      /* frames in one bounded loop, which the verifier follows */
	RULE_CACHE_ENTRIES = 4096,
	CALLER_CACHE_ENTRIES = 4096,
	LEAF_CACHE_ENTRIES = 1024,
	CALLER_PLACES = 8192,
	CALLER_ELSEWHERE = 1 << 16, /* no place in `callers` */
	KERNEL_CACHE_ENTRIES = 1024,
	KNOWN_STACKS = 4096,
	RUNTIME_STATE_WORDS = 20,
	SCRATCH_SIZE = 2048,
	SAMPLE_TIMES = 1024, /* steps of 32 ns */
	SAMPLE_TIMES_SHIFT = 5,
	CHANGES_MAX = 33, /* from program to program: the kernel allows no more tail calls */
	/* Reads of one walk, or what takes as long, that pushed frames do not bound: a millisecond
	 * or so, for which the CPU is held. Nested signals take 17 or 33 each, a search for a
	 * Python thread up to 128. See too_much_work(). */
	WALK_WORK_MAX = 8192,
	WALK_CHANGE = STOP_MAX_, /* of a walker: another runtime's goes on */
};

enum walk_entry { ENTRY_LOOP, ENTRY_CODE, ENTRY_END, ENTRY_SWITCHED };

/*
 * The rule of an exact address, or of a row's part of a bucket (see struct rule_cache), found
 * before. Or, of a caller, if `runtime` is not 0, code that this runtime made, whose step
 * (ENTRY_CODE) has written down in `own` what it knows of it. Or, of an address where no code can
 * be, what a step remembers of something else (python.bpf.c).
 */
struct cached_rule {
	__u64 pc;
	union {
		struct {
			__u32 generation;
			__u8 runtime;
			__u8 tag; /* of native code: address_tag() of the caller at `link` */
			/* 1 + a place in `callers` of struct rule_cache: of this frame's caller
			 * the last time; 0: there was none. */
			__u16 link;
		};
		__u64 of; /* all of these */
	};
	union {
		struct unwind_rule rule;
		__u64 own[3];
	};
};
_Static_assert(sizeof(struct cached_rule) == 40, "own is as large as a rule");
enum { LINK_BITS = 16, TAG_BITS = 8 }; /* the upper ones of `of` */

/* A walk of the kernel's stack: kernel_stack.bpf.c. */
struct kernel_walk {
	__u64 pc; /* of an interrupted frame the pc itself, else the return address - 1 */
	__u64 sp, fp;
	__u32 nr;   /* frames that were found */
	__u32 slot; /* where the rule of the current one is expected */
	struct kernel_walk_counts counts;
};

/*
 * What each sample touches stands side by side, in few cache lines and pages: when they are cold,
 * they are most of what a sample costs.
 */
struct walk {
	struct sample_header header;
	struct sample_full full;
	/* The current frame. */
	__u64 pc;	   /* of an interrupted frame the pc itself, else the return address - 1 */
	__u32 valid;	   /* bit N: regs[N] is known */
	__u32 kept;	   /* bit N: no frame since the interrupted one is known to have written
			    * regs[N]; says nothing of callee-saved ones */
	__u32 runtime;	   /* enum runtime_id: whose step is next */
	__u32 interrupted; /* the frame's code was interrupted: every register is its own */
	__u32 by_frame_pointer; /* the frame was found by a frame pointer, not by unwind information
				 */
	__u64 hash;
	__u64 names;	    /* hash of what runtimes will be asked to name; 0: nothing */
	__u64 window_start; /* of `window` */
	__u64 window_len;
	__u32 cpu;
	/* Where the rule of a frame that was not interrupted is expected, or CALLER_ELSEWHERE. */
	__u32 caller_slot;
	__u32 caller_next;  /* where in `callers` the next one that is in none gets its place; */
	__u32 caller_first; /* at the beginning of the walk */
	/* Where the last frame's rule was: 1 + its place in `callers`, or, if it was interrupted,
	 * 1 + CALLER_CACHE_ENTRIES + that in `leaves`; 0: it was none of native code. */
	__u32 callee_slot;
	__u32 caller_link; /* `link` and `tag` of the current frame's rule, as LINK_OF() has them */
	/* Configuration. */
	__u32 max_frames;
	__u32 nr_frames;
	__u64 address_mask; /* of user code addresses: aarch64 keeps a PAC above it */
	__u64 frames_start; /* of `frames` */
	__u64 frames_len;
	/* Runtimes. */
	__u32 walker;	      /* whose walker runs: enum runtime_id */
	__u32 nr_changes;     /* of these */
	__u32 entry;	      /* enum walk_entry: why a runtime's step is called */
	__u32 begun;	      /* bit N: state[N] is of this walk */
	__u64 thread_pointer; /* 0: not read yet, or not known; see walk_thread_pointer() */
	/*
	 * The stack is a copy, and what else is read of the process is of a later moment (never in
	 * the kernel): good for code and what describes it, not for what the thread was doing.
	 */
	__u32 late;
	/* Code that was not followed yet may end the walk, for the agent to do so. */
	__u32 may_ask;
	/* enum raws, as it was when the sample was taken: whoever asks gets one answer. */
	__u32 raws;
	/* Where a runtime's code was left for native code was not proved: the first frame is only
	 * one of which unwind information says so. */
	__u32 guessed;
	__u32 skipped; /* frames that run a runtime's code may have been: PROCESS_CODE_EXPECTED */
	__u32 work;    /* see too_much_work() */
	__u32 in_use;  /* a walk is under way: take_walk() */
	/* The CPU's last walk, which mostly was of the same stack, led up further than WINDOW_SIZE:
	 * a second read would cost more than twice as many bytes do. Never on the host. */
	__u32 deep;
	__u64 stack_begin; /* the stack pointer that the walk began with */
	__u64 zero;	   /* always; the verifier does not know */
	/* The process; in the kernel also the last sample's, if memo_pid is not 0. */
	__u64 mm; /* which address space is walked (mm_token()); 0: there is nothing to walk */
	struct unwind_process process;
	__u32 memo_pid;
	__u32 memo_epoch; /* of the table of processes when `process` was read */
	/* The mapping that the last address was found in; in the kernel also of the last sample, if
	 * that was of this process. */
	__u64 mapping_len, mapping_start, mapping_bias;
	__u32 mapping_file;
	__u32 mapping_runtime;
	/* By find_rule(), in the bucket of walk->pc: first and last address that have that rule. */
	__u8 rule_first, rule_last;
	__u64 loop_pc, loop_sp; /* ENTRY_LOOP, ENTRY_END: of that native frame: its pc, its stack
				   pointer, */
	__u64 loop_saved; /* and its ARCH_FIRST_SAVED, which its rule takes back; 0: not known */
	/* Whose record is in `record`, of which process; size 0: it has none. */
	__u32 record_runtime, record_cell, record_generation, record_size;
	__u64 regs[UNWIND_REGS_MAX];
	__u64 state[RUNTIME_END_][RUNTIME_STATE_WORDS];
	__u64 window[WINDOW_DEEP / 8];	 /* of the stack */
	__u64 frames[FRAMES_WINDOW / 8]; /* that lie outside of the stack: see frame_words() */
	__u64 scratch[SCRATCH_SIZE / 8]; /* for whoever runs: what was read of the process */
	__u64 record[RUNTIME_RECORD_MAX / 8];
	/* The registers that the walk began with, if they were the context's: keep_regs(). */
	__u64 first_regs[UNWIND_REGS_MAX], first_pc, first_kept;
	__u64 begin_ns; /* config_measure */
	/* Of the helper's frames, so many were before __schedule(), before try_to_wake_up(). */
	__u32 kernel_skip, waker_skip;
	/* SAMPLE_WAKER: the thread that is woken, and since when it has slept. */
	__u32 wakes;
	__u64 wakes_since_ns;
	struct kernel_walk kernel;
	WALK_WORDS /* the host's own; in the kernel they are more than a per-CPU value may have */
};

/* The record, as it goes out. */
struct walk_record {
	struct sample_header header;
	struct sample_full full;
	__u64 words[SAMPLE_MAX_KERNEL_FRAMES + 1 + SAMPLE_WORDS_MAX];
};

struct arena_segment {
	__u32 cells[ARENA_SEGMENT_CELLS];
};

/*
 * A CPU's memory of rules. `entries` is direct-mapped by address. `leaves`, of interrupted frames,
 * is so by bucket of code, since few are interrupted at the same instruction twice: `pc` there is
 * the bucket's number, and the first and the last address in it that have this rule. Most of a
 * stack was there before, so `callers` has the rules of callers one behind the other, as they were
 * walked: the next frame's is expected where it was the last time, mostly in the next place. That
 * is half a cache line of one page where `entries` takes a line of another page for each frame,
 * which is most of what a further frame costs when the caches are cold. A frame that is not where
 * it is expected is looked up in `places`, which leads to its place in `callers`: stacks share what
 * is below the functions in which they part. They are by address too, but in few pages: each that
 * the TLB does not have costs two or three lines that the caches do not have. One is 1 + a place,
 * and some of the address above that, so that few lead astray; 0: none.
 */
struct rule_cache {
	struct cached_rule entries[RULE_CACHE_ENTRIES];
	struct cached_rule callers[CALLER_CACHE_ENTRIES];
	__u32 places[CALLER_PLACES];
	struct cached_rule leaves[LEAF_CACHE_ENTRIES];
};

/*
 * A CPU's memory of rules of the kernel's code, which never change: an address's low half, its
 * rule. `callers` in the order of walks, as in struct rule_cache, `entries` by address.
 */
struct kernel_cache {
	__u64 callers[KERNEL_CACHE_ENTRIES];
	__u64 entries[KERNEL_CACHE_ENTRIES];
};

#define STEP(name) __noinline int WALK_NAME(step_##name)(void)

/* On the host, several architectures' walkers live in one program. */
#ifdef __bpf__
#define WALK_NAME(name) name
#endif

#define RUNTIME(name, NAME, id) STEP(name);
#include "abi/runtimes.def"
#undef RUNTIME
/* step_native(), several times. */
__noinline int WALK_NAME(native_steps)(void);

/*
 * Walkers. Each walks from the current frame on, pushing frames, and tells how that ended (never
 * STOP_NONE): walk_user() has all runtimes' steps. walk_NAME_frames() has that runtime's and the
 * native one, so that the verifier sees no more: WALK_CHANGE is that walk->runtime's walker goes
 * on.
 */
__noinline int WALK_NAME(walk_user)(void);
#define RUNTIME(name, NAME, id) __noinline int WALK_NAME(walk_##name##_frames)(void);
#include "abi/runtimes.def"
#undef RUNTIME
/*
 * Finds the rule for walk->pc in mappings and rows: its number, or a negative enum stop_reason.
 * Remembers the mapping.
 */
__noinline int WALK_NAME(find_rule)(void);
/* Fills walk->mapping_* for walk->pc; 0 or a stop reason, and they are as they were. */
__noinline int WALK_NAME(find_mapping)(void);

/*
 * The kernel's stack by rows, from walk->kernel's pc, sp and fp on, into the first of the record's
 * words: enum kernel_walk_end, never KERNEL_WALK_GOES_ON. How many: walk->kernel.nr.
 */
__noinline int WALK_NAME(walk_kernel_rows)(void);
/* KERNEL_RULE() of an address outside of the kernel's own code. */
__noinline int WALK_NAME(kernel_made_rule)(__u64 pc);

#define WALK_HASH_MULTIPLIER 0x9e3779b97f4a7c15ull

static __always_inline __u64 hash_with(__u64 hash, __u64 word)
{
	return (hash ^ word) * WALK_HASH_MULTIPLIER;
}

static __always_inline void hash_word(struct walk *w, __u64 word)
{
	w->hash = hash_with(w->hash, word);
}

static __always_inline void hash_name(struct walk *w, __u64 word)
{
	w->names = hash_with(w->names, word);
}

/* What is compared and remembered of such a hash. */
static __always_inline __u64 finish_hash(__u64 hash)
{
	hash = (hash ^ hash >> 32) * WALK_HASH_MULTIPLIER;
	return hash ^ hash >> 29;
}
