// SPDX-License-Identifier: Apache-2.0
#include "unwind/rule_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "abi/sample.h"
#include "util/intern.h"

/* Its number, or -ENOENT; *ret_hash is its key, or that of a new one. */
static int64_t find(const struct rule_set *s, const struct unwind_rule *rule, uint64_t *ret_hash)
{
	uint64_t hash = XXH3_64bits(rule, sizeof(*rule));
	int64_t found = intern_find(&s->numbers, hash, number,
				    !memcmp(&s->rules[number], rule, sizeof(*rule)));

	*ret_hash = hash;
	return found;
}

static int add(struct rule_set *s, const struct unwind_rule *rule, uint64_t hash, uint32_t *ret)
{
	uint32_t number = s->free.nr ? s->free.items[s->free.nr - 1] : s->nr;
	int r;

	if (number == UNWIND_RULES_MAX)
		return -ENOSPC;
	r = map_put(&s->numbers, hash, number);
	if (r)
		return r;
	if (s->free.nr)
		s->free.nr--;
	else
		s->nr++;
	s->rules[number] = *rule;
	s->refs[number] = 1;
	*ret = number;
	return 0;
}

int rule_set_get(struct rule_set *s, const struct unwind_rule *rule, bool may_add, uint32_t *ret,
		 bool *ret_new)
{
	uint64_t hash;
	int64_t found = find(s, rule, &hash);
	int r;

	if (found >= 0) {
		uint32_t number = (uint32_t)found;

		if (!s->refs[number]++) {
			s->retired_ns[number] = 0;
			s->nr_retired--;
		}
		*ret = number;
		*ret_new = false;
		return 0;
	}
	r = may_add ? add(s, rule, hash, ret) : -ENOSPC;
	*ret_new = !r;
	return r;
}

void rule_set_ref(struct rule_set *s, uint32_t number)
{
	s->refs[number]++;
}

void rule_set_unref(struct rule_set *s, uint32_t number, uint64_t now_ns)
{
	/* 0 says that it is none. */
	struct retired_rule retired = { number, now_ns ? now_ns : 1 };

	if (--s->refs[number])
		return;
	/* Without memory for the note the place stays unused, until somebody has that rule. */
	s->nr_retired++;
	if (!vec_push(&s->retired, retired))
		s->retired_ns[number] = retired.at_ns;
}

static void free_rule(struct rule_set *s, uint32_t number)
{
	uint64_t hash;

	/* First, so that what is forgotten below has a place. */
	if (vec_push(&s->free, number))
		return;
	if (find(s, &s->rules[number], &hash) == number)
		map_del(&s->numbers, hash);
	/* Should the map have kept it (rules of one hash), it is no rule's any more. */
	memset(&s->rules[number], 0, sizeof(s->rules[number]));
	s->retired_ns[number] = 0;
	s->nr_retired--;
}

void rule_set_expire(struct rule_set *s, uint64_t before_ns)
{
	size_t i;

	for (i = 0; i < s->retired.nr && s->retired.items[i].at_ns <= before_ns; i++) {
		const struct retired_rule *r = &s->retired.items[i];

		/* Else it was taken up, and may have been retired once more since. */
		if (s->retired_ns[r->number] == r->at_ns)
			free_rule(s, r->number);
	}
	if (!i)
		return;
	memmove(s->retired.items, s->retired.items + i,
		(s->retired.nr - i) * sizeof(*s->retired.items));
	s->retired.nr -= i;
}

uint32_t rule_set_nr_free(const struct rule_set *s)
{
	return UNWIND_RULES_MAX - s->nr + (uint32_t)s->free.nr;
}

int rule_set_init(struct rule_set *s, struct unwind_rule *rules)
{
	static const struct unwind_rule fixed[] = {
		[RULE_NONE] = { .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE },
		[RULE_FRAME_POINTER] = { .cfa = CFA_FRAME_POINTER, .cfa_off = CODE_ANON },
		[RULE_TABLE_EVICTED] = { .cfa = CFA_STOP, .cfa_off = STOP_TABLE_EVICTED },
	};
	struct unwind_rule runtime = { .cfa = CFA_RUNTIME };
	uint32_t number;
	bool is_new;
	int r = 0;

	*s = (struct rule_set){
		.rules = rules,
		.refs = calloc(UNWIND_RULES_MAX, sizeof(*s->refs)),
		.retired_ns = calloc(UNWIND_RULES_MAX, sizeof(*s->retired_ns)),
	};
	if (!s->refs || !s->retired_ns)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && !r; i++)
		r = rule_set_get(s, &fixed[i], true, &number, &is_new);
	for (; runtime.cfa_off < RUNTIME_MAX_ && !r; runtime.cfa_off++)
		r = rule_set_get(s, &runtime, true, &number, &is_new);
	return r;
}

void rule_set_fini(struct rule_set *s)
{
	map_fini(&s->numbers);
	vec_free(&s->free);
	vec_free(&s->retired);
	free(s->refs);
	free(s->retired_ns);
	*s = (struct rule_set){ 0 };
}
