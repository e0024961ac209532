/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing protobuf piece by piece: a buffer that messages are packed into, tables of distinct
 * messages numbered from 0, and what text and files of a profile are called in pprof and OTLP.
 */
#pragma once

#include "profile/profile.h"
#include "util/map.h"
#include "util/vec.h"

struct pack {
	uint8_t *items;
	size_t nr, cap; /* bytes */
};

void pack_fini(struct pack *b);
/* Fields, with their tag; 0 or -ENOMEM. A number 0 and an empty string are left out. */
int pack_number(struct pack *b, uint32_t field, uint64_t value);
int pack_fixed64(struct pack *b, uint32_t field, uint64_t value);
/* Also if `size` is 0. */
int pack_bytes(struct pack *b, uint32_t field, const void *data, size_t size);
/* A message within (a ProtobufCMessage), also if it is empty. */
int pack_message(struct pack *b, uint32_t field, const void *message);
/* The tag and length of a field of which `size` bytes follow by other means. */
int pack_header(struct pack *b, uint32_t field, size_t size);

/*
 * Distinct records of one repeated field: equal ones have equal numbers. They stand in `bytes` as
 * they are written, tags and lengths included.
 */
struct pack_table {
	struct pack bytes;
	uint32_t field;
	VEC(size_t) at; /* where each begins */
	struct map ids; /* hash of the record -> number */
};

/* With the empty record as number 0. */
int pack_table_init(struct pack_table *t, uint32_t field);
void pack_table_fini(struct pack_table *t);
int pack_table_bytes(struct pack_table *t, const void *data, size_t size, uint32_t *ret);
int pack_table_message(struct pack_table *t, const void *message, uint32_t *ret);

/*
 * A string of the profile as both formats want it: valid UTF-8 without control characters; ';'
 * stays, it is no separator there. Valid until the next call with this buffer.
 */
struct pack_text {
	char *text;
	size_t cap;
};

int pack_clean(struct pack_text *t, const char *s, const char **ret);
void pack_text_fini(struct pack_text *t);

/* How others call the kernel ("[kernel]" of a profile), and back. */
extern const char pack_kernel_path[];
const char *pack_path(const char *profile_path);
const char *pack_path_back(const char *path, size_t len, size_t *ret_len);
/* Whether a file of that name is the kernel or a module of it. */
bool pack_is_kernel_path(const char *path, size_t len);
/* "[truncated: reason]": the reason; STOP_NONE if it is another one; STOP_MAX_: no marker. */
enum stop_reason pack_parse_marker(const char *name, size_t len);
/* The period of the profile's samples; 0: not known, or its unit is not samples. */
uint64_t pack_period_ns(const struct profile *p);
