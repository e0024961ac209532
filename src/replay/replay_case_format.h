/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a replay case as they stand in the file (docs/formats/replay-case.md), for those who
 * write and read it: replay_case*.c.
 */
#pragma once

#include "abi/sample.h"

#include <stdint.h>

#define REPLAY_MAGIC "SNDREPL3" /* the version is its last letter */

enum {
	REPLAY_BUCKETS_MAX = 2048,
	REPLAY_ROWS_MAX = 2 * ARENA_SEGMENT_CELLS,
	REPLAY_RULES_MAX = 4096,
	REPLAY_CASES_MAX = 64 << 20, /* bytes of a file of cases, not compressed */
	/* Rules that the walkers know by their numbers: a case begins with them. */
	REPLAY_FIXED_RULES = RULE_RUNTIMES + RUNTIME_MAX_,
};

enum { REPLAY_LATE = 1 }; /* see struct walk: late */

/* Behind it, in this order: words, buckets, rows, rules, records, ranges, their bytes,
 * names, images (each: its ranges, their bytes). */
struct replay_header {
	char magic[8];
	uint32_t machine, stop;
	uint32_t nr_words, nr_buckets, nr_rows, nr_rules;
	uint32_t valid, max_frames;
	uint32_t nr_records, nr_ranges, memory_size, names_size;
	uint32_t flags, nr_images; /* REPLAY_* */
	uint64_t pc, thread_pointer;
	uint64_t regs[UNWIND_REGS_MAX];
};
_Static_assert(sizeof(struct replay_header) == 8 + 14 * 4 + 16 + 8 * 32, "no padding");

/* 256 bytes of code that the walk touched, or what the mapping has of them; or a whole mapping of
 * code that a runtime made. */
struct replay_bucket {
	uint64_t start; /* in memory */
	uint64_t end;
	uint64_t bias;
	uint32_t is_file;	     /* 0: anonymous code */
	uint32_t first_row, nr_rows; /* in the case; row 0 of a bucket is in force at its start */
	uint32_t runtime;	     /* whose code it is (enum runtime_id), or 0 */
};
_Static_assert(sizeof(struct replay_bucket) == 40, "no padding");

/* What a runtime had written down for its step. */
struct replay_record {
	uint32_t runtime;
	uint32_t size;
	uint8_t bytes[RUNTIME_RECORD_MAX];
};
_Static_assert(sizeof(struct replay_record) == 8 + RUNTIME_RECORD_MAX, "no padding");

/* Memory; its bytes stand behind those of the range before it. */
struct replay_range {
	uint64_t addr;
	uint64_t size;
};

/* What a runtime needs of its file; the ranges' addresses are offsets. */
struct replay_image_head {
	uint32_t runtime, nr_ranges, kept_size, options; /* REPLAY_IMAGE_* */
	uint64_t bias, size;
};
_Static_assert(sizeof(struct replay_image_head) == 32, "no padding");
