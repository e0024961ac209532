/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: distinct frames, distinct stacks, and how often each (comm, stack) was seen. The full
 * identity counts (kind, file, address, scope, name): two stacks are one only if every frame is and
 * they ended alike.
 *
 * The recorder fills it by address while it runs; names are attached at the end
 * (profile_name_frame) and exporters read it. Not thread-safe. Nothing here is bounded but by
 * 32-bit ids (-EOVERFLOW): who fills a profile watches profile_bytes() against its memory limit.
 */
#pragma once

#include "abi/sample.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
	FRAME_KIND_KERNEL = 0,
	FRAME_KIND_NATIVE = 1,
	FRAME_KIND_TRUNCATED = 2, /* the marker "[truncated: reason]", outermost */
	FRAME_KIND_MAX_ = 32,	  /* runtimes follow in later issues */
};

#define PROFILE_NO_FILE UINT32_MAX

/* Where a frame's code comes from: an ELF file, the kernel, a module, or anonymous memory. */
struct profile_file {
	uint32_t path; /* strtab; "[kernel]", "[anon]", "[vdso]", or the path as its process saw it
			*/
	uint32_t name; /* strtab; the last component of path */
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0: none known */
};

struct profile_frame {
	uint16_t kind;	     /* enum frame_kind */
	uint16_t named_late; /* profile_name_frame() gave the name: it is no part of the identity */
	uint32_t file;	     /* index into files; PROFILE_NO_FILE: none */
	uint64_t address; /* in the file's own address space; in anonymous memory and the kernel: as
			     is */
	uint32_t
		scope; /* what else tells two frames apart: the process of anonymous code; else 0 */
	uint32_t name; /* strtab; 0 until named: then exporters print profile_frame_label() */
};

/* A stack: frames[first..first+nr) of profile.stack_frames, innermost first. */
struct profile_stack {
	uint32_t first;
	uint32_t nr;
	uint8_t stop; /* enum stop_reason */
};

struct profile_sample {
	uint32_t comm; /* strtab */
	uint32_t stack;
	uint64_t count;
};

struct profile {
	struct strtab strings;
	VEC(struct profile_file) files;
	VEC(struct profile_frame) frames;
	VEC(struct profile_stack) stacks;
	VEC(uint32_t) stack_frames;
	VEC(struct profile_sample) samples; /* distinct (comm, stack) */
	/* Hash of the whole key -> index; the key itself is compared on a hit, see profile.c. */
	struct map file_ids, frame_ids, stack_ids, sample_ids;
	uint64_t start_ns, duration_ns; /* wall clock start (CLOCK_REALTIME) */
	uint32_t frequency_hz;
};

int profile_init(struct profile *p);
void profile_fini(struct profile *p);
size_t profile_bytes(const struct profile *p);

/* The file of (path, build_id), new or known. -EINVAL: the build id is longer than 20 bytes. */
int profile_add_file(struct profile *p, const char *path, const uint8_t *build_id,
		     size_t build_id_len, uint32_t *ret);
/* The frame, new or known; `named_late` is ignored. */
int profile_add_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret);
/* `frames` innermost first, without a truncation marker: that is made from `stop`. */
int profile_add_stack(struct profile *p, const uint32_t *frames, size_t nr, enum stop_reason stop,
		      uint32_t *ret);
/* Counts a stack; two hash look-ups and no allocation if (comm, stack) was seen before. */
int profile_add_sample(struct profile *p, const char *comm, uint32_t stack, uint64_t count);
/* Names a frame that was added without a name; -EEXIST if it was added with one. */
int profile_name_frame(struct profile *p, uint32_t frame, const char *name);

/*
 * A frame as text into `buf`, cut to `size`: its name; "[file+0xoffset]" where the name is not
 * known,
 * "[anon]" in anonymous memory. ';' becomes ':', control characters '_', broken UTF-8 '?'.
 */
const char *profile_frame_name(const struct profile *p, uint32_t frame, char *buf, size_t size);
/* The same with "_[k]" behind a kernel frame: as folded stacks have it. */
const char *profile_frame_label(const struct profile *p, uint32_t frame, char *buf, size_t size);
/* A `size` in which the two above cut nothing. */
size_t profile_frame_label_size(const struct profile *p, uint32_t frame);
/* Any text, made fit for output in that way. `len` bytes in, at most `size` - 1 out,
 * NUL-terminated. */
size_t profile_clean_text(const char *s, size_t len, char *buf, size_t size);

/* "no_mapping" and its sentence; "unknown" for a number without an entry. */
const char *profile_stop_name(enum stop_reason stop);
const char *profile_stop_sentence(enum stop_reason stop);
/* Samples in all, and those whose stack is complete. */
uint64_t profile_total(const struct profile *p);
uint64_t profile_complete(const struct profile *p);
