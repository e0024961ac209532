/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading pprof and OTLP have in common: input that may be gzip'ed, a table of strings, files
 * with address ranges, and what went wrong as a text.
 *
 * Caps: the input has at most GZIP_READ_MAX bytes uncompressed, each table READ_TABLE_MAX entries,
 * and the profile READ_PROFILE_MAX bytes; more is -E2BIG.
 */
#pragma once

#include "export/proto/wire.h"
#include "profile/profile.h"

enum { READ_TABLE_MAX = 16 << 20, READ_PROBLEM_SIZE = 200 };

#define READ_PROFILE_MAX ((size_t)4 << 30)

struct slice {
	const uint8_t *data;
	size_t size;
};

struct reader {
	struct wire input;
	struct profile *p; /* filled */
	struct wire_memory memory;
	VEC(struct slice) strings;
	uint64_t total; /* of reader_count() */
	char *problem;	/* READ_PROBLEM_SIZE bytes */
};

/*
 * Runs `parse` over `data`, unzipped if need be, with a new profile, and hands that out as *ret
 * (initialised) if it says 0. `parse` has its reader as the first member of what `size_of_state`
 * zeroed bytes hold; `fini` frees what is its own in there.
 */
int reader_run(const void *data, size_t size, size_t size_of_state, int (*parse)(struct reader *),
	       void (*fini)(struct reader *), struct profile *ret, char ret_problem[200]);
/* What is wrong with the input; -EBADMSG. */
__attribute__((format(printf, 2, 3))) int reader_bad(struct reader *r, const char *fmt, ...);
/* Unpacks one of `what`; says so if it can't. */
int reader_unpack(struct reader *r, const char *what, const void *descriptor, struct slice from,
		  void *ret_message);
/* One more entry of a table, `nr` are there: 0 or -E2BIG. */
int reader_room(struct reader *r, size_t nr);
/* The profile is not too large yet: 0 or -E2BIG. */
int reader_check_size(struct reader *r);

/* A value that counts: -EBADMSG if it is negative, or all together are beyond INT64_MAX. */
int reader_count(struct reader *r, int64_t value);

/* -EBADMSG: there is no such string. */
int reader_string(struct reader *r, int64_t index, struct slice *ret);
/* That string as one of the profile. */
int reader_intern(struct reader *r, int64_t index, uint32_t *ret);
/* Any bytes; a NUL ends them. */
int reader_intern_slice(struct reader *r, struct slice s, uint32_t *ret);
bool slice_is(struct slice s, const char *text);
struct slice slice_of(const char *text);
/* A line or column number; what is none is 0. */
uint32_t reader_line_number(int64_t number);
struct reader_function {
	int64_t name, linkage_name, source; /* strings */
	int64_t start_line;
};
/* Adds it to the profile; its name is the linkage name if it has no other. */
int reader_add_function(struct reader *r, const struct reader_function *function, uint32_t *ret);
/* "samples" or "count" as unit.type or unit.unit of a profile: 0, as profile.h has it. */
int reader_unit(struct reader *r, struct slice type, struct slice unit);
/* The frequency of a period that is exactly one, else 0. */
uint32_t reader_frequency(struct slice type, struct slice unit, int64_t period);

/*
 * The file of a path and a build id in hex (may be empty), and which kind of frames it has.
 * PROFILE_NO_FILE if it has neither, or stands for a runtime's functions ("[python]").
 */
int reader_file(struct reader *r, struct slice path, struct slice build_id, uint32_t *ret,
		uint16_t *ret_kind);
/*
 * Notes that the file is mapped there. A file has one address space: what must be added to
 * addresses of this mapping, so that they are in that of the file's first one, is *ret_bias.
 */
void reader_place_file(struct reader *r, uint32_t file, uint64_t start, uint64_t limit,
		       uint64_t offset, uint64_t *ret_bias);
/* Hexadecimal digits as bytes: how many, 0 if it is anything else or more than `max`. */
size_t slice_hex(struct slice s, uint8_t *buf, size_t max);
