/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A language runtime whose stacks we can walk and whose frames we can name.
 *
 * The facts about a runtime come in two lifetimes. A `runtime_dso` holds what one ELF file tells us
 * (version, offsets in structures) and is shared by every process that maps the file. A
 * `runtime_proc` holds what one process adds (addresses, what was read of it) and dies with it.
 *
 * To add the runtime "foo" (docs/adding-a-runtime.md has it step by step):
 *  - Append a line to abi/runtimes.def. That alone gives it an id, a step in the walker, a name in
 *    the formats and a place in the replay tests.
 *  - Create runtime/foo/ with foo.c (defines `foo_runtime`), foo.bpf.c (defines STEP(foo)) and
 *    foo_abi.h, what the two exchange.
 *  - List the sources in runtime/foo/meson.build.
 *
 * Everything here is called by the one thread that owns the state. Nothing may block, and nothing
 * may read more of a process than it needs: a call costs milliseconds at most.
 */
#pragma once

#include "abi/sample.h"
#include "elf/elf_file.h"
#include "runtime/about.h"
#include "runtime/kept.h"
#include "util/code_range.h"
#include "util/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory of a process: of a live one, or out of a core. */
struct runtime_memory {
	/* Reads all of `size` bytes, or fails with a negative errno: -ESRCH if the process is gone.
	 */
	int (*read)(void *ctx, uint64_t addr, void *to, size_t size);
	void *ctx;
};

/* Options of the user's that concern names. */
struct runtime_options {
	bool tiers;	      /* tell compiled code of different tiers apart (--tiers) */
	bool async;	      /* continue stacks of tasks with those that wait for them (--async) */
	bool virtual_threads; /* say whose frames those of a virtual thread are (--threads) */
	bool no_labels;	      /* none of those that a program gives its goroutines (--tracers) */
	uint32_t off;	      /* bit N: files are not offered to runtime N (--tracers) */
};

struct runtime_ops;

/* What one ELF file tells. Embedded in the runtime's own struct; made by probe(). */
struct runtime_dso {
	const struct runtime_ops *ops;
	/* Functions that run frames of this runtime (an interpreter's loop), in the file's own
	 * address space: the walker calls the runtime's step after it has pushed the native frame
	 * of such a function. Sorted, not overlapping. */
	VEC(struct code_range) interpreter_functions;
	/* Functions that only implement a script frame (those that run them and their like): their
	 * native frames are left out unless somebody wants them (--interpreter-frames). Sorted, not
	 * overlapping. */
	VEC(struct code_range) hidden;
	/* Functions without unwind information, all of which keep a frame pointer: where they begin
	 * and end tells how, and is not told by their code. One that others return to at its first
	 * instruction has the trap before that in its range (code_follow.h). Sorted, not
	 * overlapping. */
	VEC(struct code_range) functions;
	/* Bit n: the step wants the register of slot n (X86_SLOT_RBX, ...: abi/unwind.h) to be
	 * known behind native frames of this file. (Callee-saved registers are followed only where
	 * some CFA hangs on them: that keeps tables small.) */
	unsigned int follow;
	uint32_t charged; /* the agent's: whose share of what is kept it takes; 0: nobody's */
	/* Of a version that is not known, and shows less for it: `about` says what. */
	bool unknown;
	struct runtime_about about; /* as probe() told; not the runtime's to fill in */
};

/* Where and in what a runtime is found. Lives as long as the runtime_proc that attach() makes of
 * it. */
struct runtime_target {
	int32_t pid;	  /* for messages only: read by `memory` */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	struct runtime_memory memory;
	uint64_t bias; /* address in memory - address in the dso's file */
	/* As `bias`, of its data: `bias` may be that of a copy of some of the code. */
	uint64_t data_bias;
	struct runtime_options options;
	struct runtime_keeper *keeper; /* borrowed: what is kept of all processes (kept.h) */
	/* What attach() tells beside what probe() told; NULL: nobody asks. */
	struct runtime_about *about;
};

/* What one process adds. Embedded in the runtime's own struct; made by attach(). */
struct runtime_proc {
	const struct runtime_ops *ops;
	const struct runtime_dso *dso;
	const struct runtime_target *target;
	/* Where this runtime puts the code that it makes (JIT code, stubs, an interpreter that was
	 * made at the start), in memory: executable mappings in these ranges belong to its step.
	 * Sorted, not overlapping; reserved address space counts as well. */
	VEC(struct code_range) code;
	/* Anonymous executable memory that no runtime has in such a range may be its own, too: its
	 * step tells by what it finds there, and walks what is not its own by the frame pointer. */
	bool anonymous_code;
	/* It may have made code that is not in `code` yet. Where anonymous memory is left by the
	 * frame pointer, frames may be skipped then, and that is said. */
	bool code_expected;
};

/* One function at work, as it is shown. Strings are copied by whoever takes them; NULL: not known.
 */
struct runtime_inline_frame {
	const char *name;    /* UTF-8, as people of that language write it */
	const char *source;  /* path of the source file */
	uint32_t start_line; /* of the function; 0: not known */
	uint32_t line;	     /* where it is; 0: not known */
};

/* Takes the inline frames of one frame: the innermost inlined function first, the real one last. */
struct runtime_sink {
	int (*add)(void *ctx, const struct runtime_inline_frame *inline_frame); /* 0 or -ENOMEM */
	void *ctx;
	/* In place of inline frames: this is no frame, but says that the stack is a virtual
	 * thread's of that name, which is copied. 0 or -ENOMEM. NULL: nobody wants to know. */
	int (*thread)(void *ctx, const char *name);
};

/* What a stack works for, as its program says. */
enum { RUNTIME_LABEL_SIZE = 96 };
struct runtime_label {
	char key[RUNTIME_LABEL_SIZE], text[RUNTIME_LABEL_SIZE]; /* UTF-8 */
};

struct runtime_ops {
	const char *name; /* as in abi/runtimes.def */
	enum runtime_id id;
	const char *label;    /* what its frames are called in formats: OpenTelemetry's
				 profile.frame.type ("cpython", "jvm") */
	const char *language; /* what people call what it runs: "Python", "Java" */
	/* Optional: how the name of a library begins that programs need which load this runtime
	 * when they run ("libjli"): so it is ready sooner. */
	const char *library;
	/* Optional: how names of its programs begin, with blanks between them ("node deno"): what a
	 * script or another program is going to start. */
	const char *programs;
	/* Are frames of that version shown, if a file is built as its version's are? By the tables
	 * that probe() and attach() use. (A runtime whose releases have one number takes any
	 * minor.) NULL: `sonde doctor` names docs/NAME.md. */
	bool (*knows)(unsigned int major, unsigned int minor);
	const char *product; /* whose versions these are: "CPython" */
	size_t record_size;  /* what attach() writes for the step; at most RUNTIME_RECORD_MAX */

	/*
	 * Is `elf` this runtime? By its contents (symbols, notes, sections), not by its name;
	 * called once for each executable file of a sampled process, so decide in microseconds if
	 * it is not. 0: it is, and *ret is the caller's. -ENOENT: it is not. -ENOTSUP: it is, but
	 * of a version that we cannot walk. `about` (may be NULL) is told which version it is, and
	 * why it is not supported, which counts only if it is not (about.h): the caller says so.
	 * Non-logging.
	 */
	int (*probe)(const struct elf_file *elf, struct runtime_about *about,
		     struct runtime_dso **ret);
	void (*dso_free)(struct runtime_dso *dso);
	/*
	 * Optional: does the function of that name, inlined into another one of such a file, or
	 * with another one inlined, only implement a script frame? (What runtime_dso.hidden says of
	 * whole functions.) `source`: the path of its source; "" or NULL: not known.
	 */
	bool (*hides)(const char *name, const char *source);
	/*
	 * Optional: as runtime_dso.follow, of a file that is no runtime, but may be a module that
	 * this one loads, whose functions stand between its own on the stack. Called once for each
	 * such file before its table is made.
	 */
	unsigned int (*follow)(const struct elf_file *elf);

	/*
	 * Reads what is needed of a process that maps the dso, checks that it makes sense, and
	 * fills `record` (record_size bytes, zeroed) for the step. 0, and *ret is the caller's
	 * (detach()). -EAGAIN: it has not begun yet, ask again later. -EBADMSG: what is there makes
	 * no sense, perhaps it is being written; if that stays so for some seconds it is said and
	 * given up. -ENOTSUP: never; target->about is told why. Other errors: it cannot be read
	 * now.
	 */
	int (*attach)(const struct runtime_dso *dso, const struct runtime_target *target,
		      void *record, struct runtime_proc **ret);
	/*
	 * Optional. Called after the process's mappings have changed, and now and then: has
	 * something moved that record or rp->code must show? 1: yes, `record` is filled anew; 0:
	 * no.
	 */
	int (*refresh)(struct runtime_proc *rp, void *record);
	void (*detach)(struct runtime_proc *rp);

	/*
	 * Names one frame that the step pushed: `words`, the header word first, 1 + FRAME_EXTRA of
	 * them. Called soon after the stack was seen for the first time; the answer is remembered
	 * for equal words of this process. The words must tell apart what has different names,
	 * also when memory was freed and used again in between, and what is read now must be
	 * checked against them. 0: named. -ENOENT: the function is gone, or another one has taken
	 * its place: it is shown as unknown. -ESRCH: the process is gone. -EINVAL: the words make
	 * no sense.
	 */
	int (*symbolize)(struct runtime_proc *rp, const uint64_t *words, size_t nr,
			 const struct runtime_sink *sink);
	/*
	 * Optional: are these words, as symbolize() has them, no frame but a label of the stack's?
	 * All of it is in them: the process may be gone.
	 */
	bool (*sample_label)(const uint64_t *words, size_t nr, struct runtime_label *ret);
};

/* The runtimes, by id; NULL: none of that id. One without probe() is never looked for (native). */
extern const struct runtime_ops *const runtimes[RUNTIME_MAX_];

/* Reads through target->memory. */
static inline int runtime_read(const struct runtime_target *t, uint64_t addr, void *to, size_t size)
{
	return t->memory.read(t->memory.ctx, addr, to, size);
}

/* What symbolize() says of memory that cannot be read: it is gone (-ENOENT), if the process is not.
 */
static inline int runtime_read_or_gone(const struct runtime_target *t, uint64_t addr, void *to,
				       size_t size)
{
	int r = runtime_read(t, addr, to, size);

	return !r || r == -ESRCH ? r : -ENOENT;
}
