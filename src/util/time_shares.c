// SPDX-License-Identifier: Apache-2.0
#include "util/time_shares.h"

#include "util/clock.h"
#include "util/owners.h"

enum {
	SAVED_NS = 1000000000,
	/* Who has spent nothing of late is forgotten. Of more owners than that, the rest are
	 * one: numbers of subordinate users are many. */
	OWNERS_MAX = 256,
	OWNER_OF_REST = UINT32_MAX - 1,
};

void time_shares_fini(struct time_shares *s)
{
	map_fini(&s->used_each);
}

static uint64_t saved(uint64_t used_ns, uint64_t now_ns)
{
	uint64_t left = now_ns > used_ns ? now_ns - used_ns : 0;

	return left < SAVED_NS ? left : SAVED_NS;
}

static uint32_t known_owner(const struct time_shares *s, uint32_t owner)
{
	return map_get(&s->used_each, owner) || s->used_each.nr < OWNERS_MAX ? owner
									     : OWNER_OF_REST;
}

bool time_shares_may(const struct time_shares *s, uint32_t owner, uint64_t now_ns)
{
	uint64_t left = saved(s->used_ns, now_ns);
	const uint64_t *each;

	if (owner_is_trusted(owner) || left > SAVED_NS / 2)
		return left;
	each = map_get(&s->used_each, known_owner(s, owner));
	return left > SAVED_NS / 4 && (!each || saved(*each, now_ns));
}

static uint64_t add(uint64_t used_ns, uint64_t now_ns, uint64_t ns)
{
	return now_ns - saved(used_ns, now_ns) + ns + (used_ns > now_ns ? used_ns - now_ns : 0);
}

static void forget_idle(struct time_shares *s, uint64_t now_ns)
{
	struct map_slot *slot;
	size_t i = 0;

	while ((slot = map_next(&s->used_each, &i)))
		if (saved(slot->value, now_ns) == SAVED_NS)
			map_del(&s->used_each, slot->key);
}

void time_shares_take(struct time_shares *s, uint32_t owner, uint64_t now_ns, uint64_t took_ns)
{
	const uint64_t *each;
	uint64_t used;

	/* Nobody waits longer than that for what took another one long. */
	used = add(s->used_ns, now_ns, s->part * took_ns);
	s->used_ns = used < now_ns + SAVED_NS ? used : now_ns + SAVED_NS;
	if (owner_is_trusted(owner))
		return;
	if (s->used_each.nr >= OWNERS_MAX)
		forget_idle(s, now_ns);
	owner = known_owner(s, owner);
	each = map_get(&s->used_each, owner);
	used = add(each ? *each : 0, now_ns, s->part * OWNERS_PART * took_ns);
	/* Without memory it counts for all only. */
	(void)map_put(&s->used_each, owner, used);
}

bool time_shares_begin(const struct time_shares *s, uint32_t owner, uint64_t *ret_begin_ns)
{
	if (!time_shares_may(s, owner, now_ns()))
		return false;
	*ret_begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return true;
}

void time_shares_end(struct time_shares *s, uint32_t owner, uint64_t begin_ns)
{
	time_shares_take(s, owner, now_ns(), clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
}
