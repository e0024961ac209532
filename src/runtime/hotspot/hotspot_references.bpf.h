/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * References between objects of the Java heap, followed as the JVM would: compressed ones; and
 * those of generational ZGC (struct hotspot_zgc), as ZBarrier::make_load_good() and
 * remap_generation() of zBarrier.inline.hpp have it. An object that is about to be moved and has
 * not been yet is not read: where it is may be another's in a moment.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

/* scratch.oop: what the reference at `at` refers to. 0, or -1. */
__noinline int WALK_NAME(hotspot_dereference)(__u64 at);
/* Did what was at `address` move, in the last collection of the old (or young) generation? 1:
 * scratch.oop is where it is; 0: nothing there did; -1: it cannot be told. */
__noinline int WALK_NAME(hotspot_moved)(__u64 address, __u32 old);

enum {
	ZGC_REMAPPED_SHIFT = 12, /* ZPointerRemappedShift */
	ZGC_COLOURS = 16,	 /* bits of a reference */
	ZGC_REMEMBERED = 3 << 4, /* ZPointerRememberedMask */
	ZGC_YOUNG = 1,
	ZGC_OLD = 2,
	ZGC_ENTRIES = 24,	  /* that are looked at: half of them are empty, in no order */
	ZGC_FORWARDING_SIZE = 64, /* bytes of a ZForwarding that are read */
};

/* Which of Remapped00, 01, 10 and 11 a reference has: a bit for each generation; 4: none. */
static __always_inline __u32 zgc_colour(__u64 reference)
{
	__u32 bits = reference >> ZGC_REMAPPED_SHIFT & 15;

#if defined(__TARGET_ARCH_arm64)
	bits ^= 15;
#endif
	return bits == 1 ? 0 : bits == 2 ? 1 : bits == 4 ? 2 : bits == 8 ? 3 : 4;
}

/* zAddress_x86.inline.hpp, zAddress_aarch64.inline.hpp: load_shift_lookup() */
static __always_inline __u64 zgc_address(__u64 reference, __u32 colour)
{
#if defined(__TARGET_ARCH_arm64)
	return reference >> ZGC_COLOURS;
#else
	return reference >> (ZGC_REMAPPED_SHIFT + 1 + (colour & 3));
#endif
}

/* ZHash::uint32_to_uint32() of zHash.inline.hpp */
static __always_inline __u32 zgc_hash(__u32 key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ key >> 16;
}

/* The ZForwarding in the table for `address`, 0: there is none; or -1. */
static __always_inline int zgc_forwarding(const struct hotspot_zgc *z, __u64 table, __u64 address,
					  __u64 *ret)
{
	__u64 granule = (address & z->offset_mask) >> (z->granule_shift & 63);

	return granule < z->granules ? read_word(table + 8 * granule, ret) : -1;
}

/* Where a ZForwarding says that the object at `address` is now (zForwarding.inline.hpp, find()): 0;
 * -1: it has not been moved yet. */
static __always_inline int zgc_find(const struct hotspot_zgc *z, struct hotspot_scratch *s,
				    __u64 forwarding, __u64 address, __u64 *ret)
{
	__u64 entry, index, length;
	__u32 at, i;

	if (read_memory(forwarding, s->forwarding, ZGC_FORWARDING_SIZE))
		return -1;
	length = s->forwarding[z->length / 8 & 7];
	index = ((address & z->offset_mask) - s->forwarding[z->start / 8 & 7]) >>
		(s->forwarding[z->alignment / 8 & 7] & 63);
	at = zgc_hash((__u32)index);
	for (i = 0; i < ZGC_ENTRIES; i++) {
		if (read_word(forwarding + z->entries + 8 * ((at + i) & (length - 1)), &entry) ||
		    !(entry & 1))
			return -1;
		/* zForwardingEntry.hpp: 18 bits of the index, 45 of the new offset. */
		if (entry >> 46 == index) {
			*ret = (address & ~z->offset_mask) | (entry >> 1 & ((1ull << 45) - 1));
			return 0;
		}
	}
	return -1;
}

/* What a coloured reference refers to: 0, or -1. */
static __always_inline int zgc_follow(const struct hotspot_zgc *z, struct hotspot_scratch *s,
				      __u64 reference, __u64 *ret)
{
	__u64 good, address, table, forwarding = 0;
	__u32 colour = zgc_colour(reference), stale;

	*ret = 0;
	if (!(reference >> ZGC_COLOURS))
		return 0;
	if (read_word(z->good, &good))
		return -1;
	stale = zgc_colour(good) ^ colour;
	if (stale > (ZGC_YOUNG | ZGC_OLD))
		return -1;
	address = zgc_address(reference, colour);
	*ret = address;
	if (!stale)
		return 0;
	/* Of both colours: only references from old to old objects have both bits. */
	table = stale == ZGC_OLD || (stale != ZGC_YOUNG &&
				     (reference & ZGC_REMEMBERED) == ZGC_REMEMBERED)
			? z->old
			: z->young;
	if (zgc_forwarding(z, table, address, &forwarding))
		return -1;
	if (!forwarding && table == z->young && stale != ZGC_YOUNG &&
	    zgc_forwarding(z, z->old, address, &forwarding))
		return -1;
	return forwarding ? zgc_find(z, s, forwarding, address, ret) : 0;
}

/* Follows a reference that lies at an address, with whatever collector. */
static __always_inline int follow_oop(const struct hotspot_record *r, struct hotspot_scratch *s,
				      __u64 at, __u64 *ret)
{
	__u64 reference, bad = 0;
	__u32 narrow;

	if (r->oop_size == 8) {
		if (read_word(at, &reference))
			return -1;
		if (r->zgc.good)
			return zgc_follow(&r->zgc, s, reference, ret);
		if (r->zgc.weak_bad && (read_word(r->zgc.weak_bad, &bad) || reference & bad))
			return -1;
		*ret = reference;
		return 0;
	}
	if (read_memory(at, &narrow, sizeof(narrow)))
		return -1;
	*ret = narrow ? r->oop_base + ((__u64)narrow << (r->oop_shift & 63)) : 0;
	return 0;
}

__noinline int WALK_NAME(hotspot_dereference)(__u64 at)
{
	struct walk *w = current_walk();
	struct hotspot_scratch *s;

	if (!w)
		return -1;
	s = hotspot_scratch(w);
	return follow_oop(hotspot_record(w), s, at, &s->oop);
}

__noinline int WALK_NAME(hotspot_moved)(__u64 address, __u32 old)
{
	struct walk *w = current_walk();
	const struct hotspot_zgc *z;
	struct hotspot_scratch *s;
	__u64 forwarding = 0;

	if (!w)
		return -1;
	z = &hotspot_record(w)->zgc;
	s = hotspot_scratch(w);
	if (zgc_forwarding(z, old ? z->old : z->young, address, &forwarding))
		return -1;
	if (!forwarding)
		return 0;
	return zgc_find(z, s, forwarding, address, &s->oop) ? -1 : 1;
}

/* Of a reference that a stack has, which has no colour. */
static __always_inline bool may_have_moved(const struct hotspot_record *r, __u64 address)
{
	__u64 young = 0, old = 0, bad = 0;

	if (r->zgc.weak_bad)
		return read_word(r->zgc.weak_bad, &bad) || address & bad;
	return r->zgc.good && (zgc_forwarding(&r->zgc, r->zgc.young, address, &young) ||
			       zgc_forwarding(&r->zgc, r->zgc.old, address, &old) || young || old);
}

/* For callers that have a call left. */
static __always_inline int follow(struct walk *w, __u64 at, __u64 *ret)
{
	if (WALK_NAME(hotspot_dereference)(at))
		return -1;
	*ret = hotspot_scratch(w)->oop;
	return 0;
}
