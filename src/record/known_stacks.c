// SPDX-License-Identifier: Apache-2.0
#include "record/known_stacks.h"

#include "abi/off_cpu.h"

#include <errno.h>

static void set_fini(struct known_set *s)
{
	map_fini(&s->by_hash);
	vec_free(&s->items);
	vec_free(&s->labels);
}

void known_stacks_fini(struct known_stacks *k)
{
	set_fini(&k->now);
	set_fini(&k->before);
}

static struct known_stack *find(const struct known_set *s, uint64_t hash,
				const struct profile_label **labels)
{
	const uint64_t *found = map_get(&s->by_hash, hash);
	struct known_stack *stack = found ? &s->items.items[*found] : NULL;

	if (!stack || stack->stack == PROFILE_GONE)
		return NULL;
	*labels = stack->nr_labels ? &s->labels.items[stack->first_label] : NULL;
	return stack;
}

struct known_stack *known_stacks_find(const struct known_stacks *k, uint64_t hash,
				      const struct profile_label **labels)
{
	return find(&k->now, hash, labels) ?: find(&k->before, hash, labels);
}

struct known_stack *known_stacks_find_of(const struct known_stacks *k, uint64_t hash, uint32_t pid,
					 const struct profile_label **labels)
{
	struct known_stack *stack = known_stacks_find(k, hash, labels);

	return stack && stack->pid == pid ? stack : NULL;
}

struct known_stack *known_stacks_find_waker(const struct known_stacks *k, uint64_t waker,
					    const struct profile_label **labels)
{
	return known_stacks_find_of(k, waker, WAKER_PID(waker), labels);
}

/* Where they are: equal words have equal labels, so in place of those that were there. */
static int put_labels(struct known_set *s, const struct known_stack *old,
		      const struct profile_label *labels, size_t nr, uint32_t *ret)
{
	size_t first = old && old->nr_labels == nr ? old->first_label : s->labels.nr;
	int r;

	if (first + nr > KNOWN_LABELS_MAX)
		return -ENOSPC;
	r = nr ? vec_reserve(&s->labels, first + nr) : 0;
	if (r)
		return r;
	for (size_t i = 0; i < nr; i++)
		s->labels.items[first + i] = labels[i];
	if (s->labels.nr < first + nr)
		s->labels.nr = first + nr;
	*ret = (uint32_t)first;
	return 0;
}

int known_stacks_put(struct known_stacks *k, uint64_t hash, const struct known_stack *stack,
		     const struct profile_label *labels, size_t nr)
{
	struct known_set *s = &k->now;
	uint64_t *found = map_get(&s->by_hash, hash);
	struct known_stack *old = found ? &s->items.items[*found] : NULL, added = *stack;
	int r;

	if (!old && s->items.nr >= KNOWN_STACKS_MAX)
		return -ENOSPC;
	r = put_labels(s, old, labels, nr, &added.first_label);
	if (r)
		return r;
	added.nr_labels = (uint32_t)nr;
	if (old) {
		*old = added;
		return 0;
	}
	r = vec_push(&s->items, added);
	if (r)
		return r;
	r = map_put(&s->by_hash, hash, s->items.nr - 1);
	if (r)
		s->items.nr--;
	return r;
}

void known_stacks_each_unnamed(const struct known_stacks *k, void (*each)(void *ctx, uint64_t hash),
			       void *ctx)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&k->now.by_hash, &i)))
		if (k->now.items.items[slot->value].lacks_names)
			each(ctx, slot->key);
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

/* Numbers of strings; false: what they said must be asked for again. */
static bool move_string(uint32_t *string, const struct profile_collected *c)
{
	if (*string)
		*string = profile_moved(&c->strings, *string);
	return *string != PROFILE_GONE;
}

static void move_set(struct known_set *s, const struct profile_collected *c)
{
	for (size_t i = 0; i < s->items.nr; i++) {
		struct known_stack *stack = &s->items.items[i];
		bool known = stack->stack != PROFILE_GONE;

		if (!known)
			continue;
		stack->stack = profile_moved(&c->stacks, stack->stack);
		known = move_string(&stack->thread_name, c);
		for (uint32_t k = 0; k < stack->nr_labels; k++) {
			struct profile_label *label = &s->labels.items[stack->first_label + k];

			known &= move_string(&label->key, c);
			known &= move_string(&label->text, c);
		}
		if (!known)
			stack->stack = PROFILE_GONE;
	}
}

void known_stacks_collected(struct known_stacks *k, const struct profile_collected *c)
{
	move_set(&k->now, c);
	move_set(&k->before, c);
}
