// SPDX-License-Identifier: Apache-2.0
#include "record/known_stacks.h"

#include <errno.h>

static void set_fini(struct known_set *s)
{
	map_fini(&s->by_hash);
	vec_free(&s->items);
}

void known_stacks_fini(struct known_stacks *k)
{
	set_fini(&k->now);
	set_fini(&k->before);
}

static const struct known_stack *find(const struct known_set *s, uint64_t hash)
{
	const uint64_t *found = map_get(&s->by_hash, hash);
	const struct known_stack *stack = found ? &s->items.items[*found] : NULL;

	return stack && stack->stack != PROFILE_GONE ? stack : NULL;
}

const struct known_stack *known_stacks_find(const struct known_stacks *k, uint64_t hash)
{
	return find(&k->now, hash) ?: find(&k->before, hash);
}

int known_stacks_put(struct known_stacks *k, uint64_t hash, const struct known_stack *stack)
{
	struct known_set *s = &k->now;
	uint64_t *found = map_get(&s->by_hash, hash);
	int r;

	if (found) {
		s->items.items[*found] = *stack;
		return 0;
	}
	if (s->items.nr >= KNOWN_STACKS_MAX)
		return -ENOSPC;
	r = vec_push(&s->items, *stack);
	if (r)
		return r;
	r = map_put(&s->by_hash, hash, s->items.nr - 1);
	if (r)
		s->items.nr--;
	return r;
}

void known_stacks_forget(struct known_stacks *k, uint64_t now_ns)
{
	set_fini(&k->before);
	k->before = k->now;
	k->now = (struct known_set){ 0 };
	k->before_until_ns = now_ns + KNOWN_STACKS_STAY_NS;
}

void known_stacks_tick(struct known_stacks *k, uint64_t now_ns)
{
	if (now_ns >= k->before_until_ns)
		set_fini(&k->before);
}

static void move_set(struct known_set *s, const struct profile_collected *c)
{
	for (size_t i = 0; i < s->items.nr; i++) {
		struct known_stack *stack = &s->items.items[i];

		stack->stack = profile_moved(&c->stacks, stack->stack);
		if (!stack->thread_name)
			continue;
		stack->thread_name = profile_moved(&c->strings, stack->thread_name);
		/* Whose it is must be asked for again. */
		if (stack->thread_name == PROFILE_GONE)
			stack->stack = PROFILE_GONE;
	}
}

void known_stacks_collected(struct known_stacks *k, const struct profile_collected *c)
{
	move_set(&k->now, c);
	move_set(&k->before, c);
}
