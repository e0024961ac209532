/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes are recorded: terms, each of one or several conditions that must all hold. A
 * process is recorded if an including term holds for it, or there is none, and no excluding one
 * does (docs/selection.md). The kernel decides by what it knows of a process (abi/select.h), and
 * asks for the rest, which is found out here.
 */
#pragma once

#include "abi/select.h"
#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum selection_key {
	SELECTION_PID,
	SELECTION_COMM,
	SELECTION_EXE,
	SELECTION_CGROUP,
	SELECTION_CONTAINER,
	SELECTION_UID,
	SELECTION_MIN_AGE,
	SELECTION_KEYS_,
};

struct selection_fact {
	enum selection_key key;
	char *pattern; /* owned */
};

struct selection {
	struct select_rules rules; /* bit N of facts: facts.items[N] holds */
	VEC(struct selection_fact) facts;
};

/* "min-age" */
const char *selection_key_name(enum selection_key key);

/*
 * Adds a condition to a term, which is all zero at first, and not added itself. 0; -EINVAL: the key
 * has no such value; -E2BIG: there are SELECT_FACTS_MAX of those that the kernel cannot decide;
 * -EEXIST: the term has one of this kind, which a process has one of; -ENOMEM.
 */
int selection_add_condition(struct selection *s, struct select_term *term, enum selection_key key,
			    const char *value);
/* -E2BIG: there are SELECT_TERMS_MAX. */
int selection_add_term(struct selection *s, const struct select_term *term, bool exclude);
/* There are no terms: all is selected. */
static inline bool selection_is_empty(const struct selection *s)
{
	return !s->rules.nr;
}
/* 0 or -ENOMEM; *ret is the caller's then. */
int selection_copy(const struct selection *s, struct selection *ret);
void selection_fini(struct selection *s);

/* What is to be known of a process, of what /proc tells. */
struct selection_process {
	uint64_t facts; /* bit N: the selection's fact N holds */
	enum select_verdict verdict;
	char comm[64]; /* of its main thread */
};

/* Looks at a process now. -ESRCH: it is gone. */
int selection_look(const struct selection *s, int32_t pid, struct selection_process *ret);

/*
 * Does what /proc tells of a process now hold for a sample of it? `asked`: what the kernel saw when
 * it asked, and since when; NULL: it had no room to say so.
 */
bool selection_holds_for(const struct selection_process *p, const struct select_facts *asked,
			 const struct sample_header *sample);

/* Of /proc/PID/cgroup: is the process in this cgroup of any hierarchy, or below it? */
bool selection_cgroup_matches(const char *pattern, const char *text);
bool selection_exe_matches(const char *pattern, const char *path);
bool selection_container_matches(const char *pattern, const char *id);
