/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writing and reading OTLP profiles share, and the dictionary of a request that is written.
 * Index 0 of each of its tables is the empty entry, "not set"; everything else in it is there
 * because something refers to it, and once only.
 */
#pragma once

#include "export/otlp_parts.h"
#include "export/proto/pack.h"
#include "export/proto/used.h"
#include "profile/profile.h"

#include <stdio.h>

enum otlp_request_field {
	OTLP_RESOURCE_PROFILES = 1,
	OTLP_DICTIONARY = 2,
};

enum otlp_dictionary_field {
	OTLP_MAPPING_TABLE = 1,
	OTLP_LOCATION_TABLE = 2,
	OTLP_FUNCTION_TABLE = 3,
	OTLP_LINK_TABLE = 4,
	OTLP_STRING_TABLE = 5,
	OTLP_ATTRIBUTE_TABLE = 6,
	OTLP_STACK_TABLE = 7,
	OTLP_TABLE_MAX_ = 8,
};

/* ResourceProfiles and ScopeProfiles have the same form. */
enum otlp_group_field {
	OTLP_GROUP_HEAD = 1, /* the resource, or the scope */
	OTLP_GROUP_MEMBERS = 2,
	OTLP_GROUP_SCHEMA_URL = 3,
};

enum otlp_profile_field {
	OTLP_SAMPLE_TYPE = 1,
	OTLP_SAMPLES = 2,
	OTLP_TIME_UNIX_NANO = 3,
	OTLP_DURATION_NANO = 4,
	OTLP_PERIOD_TYPE = 5,
	OTLP_PERIOD = 6,
};

/* Ours: where the code of a location is, if its file has no id to make a mapping of. */
#define OTLP_PATH_ATTRIBUTE "sonde.mapping.path"

/* In front of the key of a label, as the OpenTelemetry profiler calls Go's. */
#define OTLP_LABEL_PREFIX "process.context.label."

/* In place of a name that no address tells. */
#define OTLP_NAME_LEFT_OUT "[name left out]"

#define OTLP_NOT_YET UINT32_MAX

/* Values of profile.frame.type that are remembered: those of all runtimes, and native ones. */
enum { OTLP_FRAME_TYPES_MAX = 32 };

/* A string that stays, and its attribute. */
struct otlp_frame_type {
	const char *type;
	uint32_t id;
};

struct otlp_dictionary {
	const struct profile *p;
	struct used used;
	struct pack_table tables[OTLP_TABLE_MAX_]; /* by their field */
	struct pack_text text;
	/* By what the profile numbers: its index in the dictionary, or OTLP_NOT_YET. */
	uint32_t *functions, *files, *frames, *stacks;
	struct otlp_frame_type frame_types[OTLP_FRAME_TYPES_MAX];
	size_t nr_frame_types;
	char *name;
	size_t name_size;
	VEC(int32_t) indices;
	bool nameless; /* no names but the kernel's, of files only the last part of their paths */
};

int otlp_dictionary_init(struct otlp_dictionary *d, const struct profile *p);
void otlp_dictionary_fini(struct otlp_dictionary *d);
int otlp_string(struct otlp_dictionary *d, const char *s, uint32_t *ret);
/* An entry of the attribute table. */
int otlp_text_attribute(struct otlp_dictionary *d, const char *key, const char *text,
			uint32_t *ret);
int otlp_number_attribute(struct otlp_dictionary *d, const char *key, int64_t number,
			  uint32_t *ret);
/* One of a label of the profile. */
int otlp_label_attribute(struct otlp_dictionary *d, const struct profile_label *label,
			 uint32_t *ret);
/* The entry of a context's trace and span; 0: it has none. */
int otlp_link(struct otlp_dictionary *d, const struct profile_context *context, uint32_t *ret);
/* The entry of a stack of the profile, with all that it refers to. */
int otlp_stack(struct otlp_dictionary *d, uint32_t stack, uint32_t *ret);

/*
 * Part of a profile: of the items of each type (events if otlp_choose_events() says so, else
 * samples) those whose place lies in [from, to).
 */
struct otlp_window {
	uint32_t *places[PROFILE_TYPES_MAX];
	uint32_t from, to;
	size_t max_size; /* what is larger is given up as soon as that is clear */
	bool nameless;	 /* as of struct otlp_dictionary */
	/* What was written until then: stacks were looked up of so many items, and so many told. */
	uint32_t looked_up, told;
};

/*
 * Whether a type's events are written: they are its samples told better, if they are all there and
 * tell all that was counted. *duration_ns grows to cover them then. 0 or -ENOMEM.
 */
int otlp_choose_events(const struct profile *p, uint32_t type, uint64_t *duration_ns, bool *ret);
/* One request; `window` NULL: of all. 0; -EFBIG: larger than it may be; or negative errno. */
int otlp_write_window(const struct profile *p, struct otlp_window *window, enum otlp_schema schema,
		      FILE *out);

/* Of struct export_ops. */
int otlp_read(const void *data, size_t size, struct profile *ret, char ret_problem[200]);
bool otlp_recognise(const void *data, size_t size);
