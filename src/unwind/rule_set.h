/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The distinct rules of all tables that are loaded, in the array that the walkers read, each with
 * the number of tables that use it. One that nobody uses any more keeps its number and its place
 * for RETIRE_NS, since a walk may be about to read it, and may be taken up again until then.
 *
 * Copies of rules, as CPUs keep them by address and generation, stay true: what is copied is the
 * rule itself, and a generation's files do not change. Private to src/unwind.
 */
#pragma once

#include "abi/unwind.h"
#include "util/map.h"
#include "util/vec.h"

#include <stdbool.h>

struct retired_rule {
	uint32_t number;
	uint64_t at_ns;
};

struct rule_set {
	struct unwind_rule *rules; /* borrowed: UNWIND_RULES_MAX */
	uint32_t nr;		   /* numbers that were ever given out */
	uint32_t *refs;
	uint64_t *retired_ns; /* 0: not retired */
	uint32_t nr_retired;
	struct map numbers; /* hash -> number */
	VEC(uint32_t) free;
	VEC(struct retired_rule) retired; /* in the order of time; also some that were taken up */
};

/* With the fixed rules (RULE_NONE, ...). 0 or -ENOMEM. */
int rule_set_init(struct rule_set *s, struct unwind_rule *rules);
void rule_set_fini(struct rule_set *s);
/*
 * The rule's number, with a reference; a new one only if `may_add`. -ENOSPC, -ENOMEM. *ret_new: it
 * was not there.
 */
int rule_set_get(struct rule_set *s, const struct unwind_rule *rule, bool may_add, uint32_t *ret,
		 bool *ret_new);
/* Of a number that has a reference. */
void rule_set_ref(struct rule_set *s, uint32_t number);
void rule_set_unref(struct rule_set *s, uint32_t number, uint64_t now_ns);
/* Frees what was retired at `before_ns` or earlier. */
void rule_set_expire(struct rule_set *s, uint64_t before_ns);
/* Places that are free now. */
uint32_t rule_set_nr_free(const struct rule_set *s);
