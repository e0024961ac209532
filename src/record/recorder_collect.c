// SPDX-License-Identifier: Apache-2.0
/*
 * What becomes of a profile that fills its part of the memory limit: what was not seen for long is
 * forgotten (profile/collect.h), and if all is of this cut, what was hardly ever met is made
 * shorter (profile/prune.h).
 */
#include "record/recorder_internal.h"
#include "profile/prune.h"
#include "util/clock.h"
#include "util/log.h"

#include <malloc.h>
#include <string.h>

enum { PRUNE_TRIES = 4 };

static void after_collection(struct recorder *r, struct profile_collected *c)
{
	known_stacks_collected(&r->known, c);
	metadata_collected(&r->metadata, c);
	process_contexts_collected(&r->contexts, r->profile);
	decoder_collected(&r->decoder, c);
	log_debug("of %zu stacks %zu are left", c->stacks.nr, r->profile->stacks.nr);
	profile_collected_fini(c);
	malloc_trim(0); /* what was kept now lies between what is free */
}

static void collect_now(struct recorder *r)
{
	struct profile_collected c;

	r->collect_at_ns = r->pruned_bytes = 0;
	if (profile_collect(r->profile, r->collect_since, &c))
		log_debug("the profile cannot be collected: out of memory");
	else
		after_collection(r, &c);
}

/* There is room now for what was sent in vain. */
static void ask_again(struct recorder *r, uint64_t now)
{
	recorder_forget_stacks(r);
	r->refused_until_ns = now + KNOWN_STACKS_STAY_NS;
}

/*
 * All stacks are of this cut: those that were hardly ever met become shorter. Hits that are on
 * their way mean what has become of their stacks; the kernel sends these anew, a little later.
 */
static int prune_once(struct recorder *r)
{
	struct recorder_stats *s = &r->stats;
	struct profile_collected c;
	uint64_t samples;
	int err = profile_prune(r->profile, &c, &samples);

	if (err)
		return err;
	after_collection(r, &c);
	s->complete -= samples;
	s->types[0].complete -= samples;
	s->truncated[STOP_NOT_KEPT] += samples;
	r->pruned_bytes = profile_bytes(r->profile);
	return 0;
}

/* Once more where it brought less than it should, but brings something: frames were shared. */
static void prune_now(struct recorder *r, uint64_t now)
{
	size_t before;
	int err, tries = PRUNE_TRIES;

	if (recorder_lend_to_profile(r))
		return;
	do {
		before = profile_bytes(r->profile);
		err = prune_once(r);
	} while (!err && --tries && r->pruned_bytes > r->profile_bytes_max / 4 * 3 &&
		 r->pruned_bytes < before - before / 16);
	if (err)
		log_debug("the profile cannot be pruned: %s", strerror(-err));
	r->has_pruned = true;
	if (r->refused_until_ns == UINT64_MAX)
		ask_again(r, now);
}

/*
 * Not if it was pruned, and has hardly grown since: then it is full of what no pruning takes. What
 * is to be collected soon may make room by itself.
 */
void recorder_make_room_at_once(struct recorder *r)
{
	size_t bytes = profile_bytes(r->profile), max = r->profile_bytes_max;
	size_t free_bytes = max / (r->collect_at_ns ? 32 : 8);

	if (bytes + free_bytes > max && bytes > r->pruned_bytes + max / 16)
		prune_now(r, now_ns());
}

/*
 * Makes room in a profile that is nearly full. The kernel must not take for known what goes, nor
 * may a hit of it be on its way: it is told first, and what goes stays until hits have settled.
 */
void recorder_make_room(struct recorder *r, uint64_t now)
{
	known_stacks_tick(&r->known, now);
	if (now >= r->refused_until_ns)
		r->refused_until_ns = 0;
	if (r->collect_at_ns && now >= r->collect_at_ns)
		collect_now(r);
	recorder_make_room_at_once(r);
	/* Not while hits of before the last time are on their way: they would mean nothing. */
	if (r->has_pruned && now >= r->known.before_until_ns)
		recorder_forget_stacks(r);
	if (r->collect_at_ns)
		return;
	if (profile_bytes(r->profile) < r->profile_bytes_max / 4 * 3) {
		if (r->refused_until_ns == UINT64_MAX)
			ask_again(r, now);
		return;
	}
	if (!profile_choose_since(r->profile, &r->collect_since))
		return;
	recorder_forget_stacks(r);
	r->collect_at_ns = now + KNOWN_STACKS_STAY_NS;
}
