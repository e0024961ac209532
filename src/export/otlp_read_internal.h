/* SPDX-License-Identifier: Apache-2.0 */
/* Reading OTLP in two files: the dictionary (otlp_read_tables.c), and what refers to it. */
#pragma once

#include "export/proto/read.h"
#include "profile/profile.h"

enum otlp_key {
	OTLP_KEY_OTHER = 0,
	OTLP_KEY_THREAD_NAME,
	OTLP_KEY_THREAD_ID,
	OTLP_KEY_THREAD_CARRIER,
	OTLP_KEY_CPU,
	OTLP_KEY_FRAME_TYPE,
	OTLP_KEY_BUILD_ID_GNU,
	OTLP_KEY_BUILD_ID_GO,
	OTLP_KEY_BUILD_ID_HTLHASH,
	OTLP_KEY_PATH,
	OTLP_KEY_PID,
	OTLP_KEY_PARENT_PID,
	OTLP_KEY_VPID,
	OTLP_KEY_GROUP_PID,
	OTLP_KEY_SESSION_PID,
	OTLP_KEY_INTERACTIVE,
	OTLP_KEY_CGROUP,
	OTLP_KEY_USER_ID,
	OTLP_KEY_REAL_USER_ID,
	OTLP_KEY_SAVED_USER_ID,
	OTLP_KEY_EXE_NAME,
	OTLP_KEY_EXE_PATH,
	OTLP_KEY_TITLE,
	OTLP_KEY_COMMAND,
	OTLP_KEY_OWNER,
	OTLP_KEY_CREATION,
	OTLP_KEY_EXIT,
	OTLP_KEY_CONTAINER,
	OTLP_KEY_POD,
	OTLP_KEY_SERVICE,
	OTLP_KEY_HOST_NAME,
	OTLP_KEY_HOST_ID,
	OTLP_KEY_HOST_ARCH,
	OTLP_KEY_OS,
	OTLP_KEY_DEFAULT_TYPE,
	OTLP_KEY_LABEL, /* whatever is behind OTLP_LABEL_PREFIX */
};

struct otlp_attribute {
	uint8_t key;	      /* enum otlp_key */
	uint32_t text;	      /* string of the profile */
	int64_t number;	      /* 0 if it is none */
	bool has_number;      /* it is one */
	uint32_t label, unit; /* strings: of a label, its key; of a number */
};

struct otlp_file {
	uint32_t file;
	uint16_t kind;
	uint64_t bias;
};

struct otlp_location {
	uint32_t frame;
	uint8_t stop; /* of a marker of a truncated stack; else STOP_MAX_ */
};

struct otlp_reader {
	struct reader base;
	/* The dictionary; entry 0 of each stands for "not set". */
	VEC(struct slice)
	mapping_messages, location_messages, function_messages, attribute_messages, stack_messages,
		link_messages;
	VEC(struct otlp_attribute) attributes;
	VEC(struct otlp_file) files;
	VEC(uint32_t) functions;
	VEC(struct otlp_location) locations;
	VEC(uint32_t) stacks;
	VEC(uint32_t) scratch;
	VEC(struct profile_line) lines;

	/* What was found in the first pass over the profiles. */
	size_t nr_old, nr_new; /* samples that can be only of schema 1.8 or 1.9; only of 1.10 */
	bool may_be_new;       /* every field 2 of a sample may be an attribute */
	uint64_t first_ns, end_ns;

	bool old; /* samples are numbered as before 1.10 */
	bool has_type;
	struct slice type, unit; /* of the samples that are read */
	bool has_default;
	struct slice default_type;
	bool has_period;
	/* By type of the profile: some samples have no times, or not one for each value; of type 0
	 * also if one counts more than one. */
	bool no_events[PROFILE_TYPES_MAX];
	uint32_t at; /* the type that is being read */
	uint32_t process;
	uint32_t process_name; /* string */
};

#define OTLP_BASE(r) (&(r)->base)

/* Reads the whole dictionary, once all its entries are noted. */
int otlp_read_tables(struct otlp_reader *r);
/* What a key and its value (an Otlp__AnyValue, or NULL) say. */
int otlp_read_attribute(struct otlp_reader *r, struct slice key, const void *value,
			struct otlp_attribute *ret);
/* The attribute of an index that a message has; -EBADMSG: there is none. */
int otlp_attribute_of(struct otlp_reader *r, int32_t index, struct otlp_attribute *ret);
