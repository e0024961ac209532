/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a profile by what they are, not by what they are called: a place is a profile's
 * function in one of its files; an address without a name is a place of its own, and so is each
 * reason for a truncation. For formats that tell a function's source and file; functions.h is for
 * those that tell its label alone.
 */
#pragma once

#include "profile/profile.h"

#define PLACE_NO_FUNCTION UINT32_MAX

struct place {
	uint64_t address;  /* of an address without a name; else 0 */
	uint32_t function; /* of the profile; PLACE_NO_FUNCTION: not known. Or the stop reason */
	uint32_t file;	   /* of the profile, or PROFILE_NO_FILE */
	uint32_t line;	   /* that runs, if lines count; else 0 */
	uint32_t kind;	   /* enum frame_kind; FRAME_KIND_TRUNCATED for the markers */
	uint32_t frame, inline_frame; /* one that is in it */
	uint32_t scope;		      /* of an address without a name */
};

struct place_table {
	VEC(struct place) places;
	struct map ids;
	uint32_t *first_inline;	       /* by frame of the profile, and one more: into of_inline */
	uint32_t *of_inline;	       /* of each frame, the innermost inline frame first */
	uint32_t truncated[STOP_MAX_]; /* by enum stop_reason; UINT32_MAX: does not occur */
};

/* `lines`: the same function in different lines is different places. */
int place_table_init(struct place_table *t, const struct profile *p, bool lines);
void place_table_fini(struct place_table *t);
/* What it is called, cleaned, into *buf (of *size, which grows); 0 or -ENOMEM. */
int place_name(const struct place_table *t, const struct profile *p, uint32_t place, char **buf,
	       size_t *size);
/* The function's source; "" if that is not known. */
const char *place_source(const struct profile *p, const struct place *place);
/* Its ELF file, "[kernel]", ...; "" if that is not known. */
const char *place_object(const struct profile *p, const struct place *place);

/* The stack's frames, innermost first; NULL if it has none. */
static inline const uint32_t *stack_frames(const struct profile *p,
					   const struct profile_stack *stack)
{
	return stack->nr ? p->stack_frames.items + stack->first : NULL;
}

/* A thread's name for people: its comm, "[no_name]" if that is not known. */
const char *thread_name(const struct profile *p, uint32_t thread);
/* The marker's text: "[truncated: reason]". */
const char *truncation_name(enum stop_reason stop, char buf[80]);
/* And back; STOP_COMPLETE if it is none. */
enum stop_reason truncation_parse(const char *name, size_t len);

/* The profile's events in the order of time, or of (thread, time); `ret` is the caller's. */
int order_events(const struct profile *p, bool by_thread, uint32_t **ret);
/* Of such an order by thread: how many of the events are this thread's, and where they begin. */
size_t events_of_thread(const struct profile *p, const uint32_t *events, uint32_t thread,
			size_t *ret_first);
/* The profile's samples by thread: *ret_first has nr + 1 numbers that lead into *ret. */
int order_samples(const struct profile *p, uint32_t **ret, uint32_t **ret_first);
/* The threads that have samples, those with the most first. */
int order_threads(const struct profile *p, uint32_t **ret, size_t *ret_nr);
/* One sampling period; 0: not known, or the profile does not count samples. */
uint64_t period_ns(const struct profile *p);
/* Counts are numbers of samples, and not bytes, say. */
bool counts_samples(const struct profile *p);
