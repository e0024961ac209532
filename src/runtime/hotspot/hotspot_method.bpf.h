/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which Method an interpreted frame runs: what it hangs on (hotspot_abi.h, struct hotspot_identity)
 * is read in as few reads as possible.
 */
#pragma once

#include "runtime/hotspot/hotspot_walk.bpf.h"

enum {
	BCI_MAX = 128, /* of a caller whose ConstMethod is read together with its Method */
	METHOD_AHEAD = HOTSPOT_HEADER_SIZE - 64 - HOTSPOT_CONST_METHOD, /* so, bytes */
};

__noinline int WALK_NAME(hotspot_read_class)(__u64 constants);
__noinline int WALK_NAME(hotspot_read_const)(__u64 method, __u64 bcp);

/* Reads the class that `constants` belong to, and its name as far as the cookie looks at it, into
 * scratch.id: 0, or -1. */
__noinline int WALK_NAME(hotspot_read_class)(__u64 constants)
{
	struct walk *w = current_walk();
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u32 len;

	if (!w)
		return -1;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	if (read_word(constants + r->constants_holder, &s->id.holder) ||
	    read_word(s->id.holder + r->klass_name, &s->id.name))
		return -1;
	/* It may be the last thing on its page. */
	if (read_memory(s->id.name, s->id.symbol, sizeof(s->id.symbol))) {
		if (read_word(s->id.name, &s->id.symbol[0]))
			return -1;
		len = hotspot_symbol_used(&r->symbol, s->id.symbol[0]);
		barrier_var(len);
		if (len > sizeof(s->id.symbol) ||
		    (len > 8 && read_memory(s->id.name, s->id.symbol, len & 127)))
			return -1;
	}
	len = hotspot_symbol_length(&r->symbol, s->id.symbol[0]);
	s->id.tail = 0;
	if (len > HOTSPOT_CLASS_NAME &&
	    read_word(s->id.name + r->symbol.body + len - 8, &s->id.tail))
		return -1;
	s->class_hash = hotspot_class_hash(&s->id, &r->symbol);
	return 0;
}

/*
 * Reads the ConstMethod of `method` into scratch.header: from which word on it has it, or -1. A
 * class's file is read method by method, so a Method mostly lies right behind its ConstMethod
 * (Method::allocate()), into which `bcp` points: then one read has both.
 */
__noinline int WALK_NAME(hotspot_read_const)(__u64 method, __u64 bcp)
{
	struct walk *w = current_walk();
	__u64 start, address = 0, behind;
	const struct hotspot_record *r;
	struct hotspot_scratch *s;
	__u32 back, size;

	if (!w)
		return -1;
	r = hotspot_record(w);
	s = hotspot_scratch(w);
	/* That is in it or in its bytecodes. It begins before, on the same page for all we know. */
	start = (bcp - r->const_codes) & ~7ull;
	back = start & (PAGE - 1);
	start -= back < BCI_MAX ? back : BCI_MAX;
	behind = method - start - HOTSPOT_CONST_METHOD;
	if (behind < METHOD_AHEAD && r->method_const < 64) {
		size = (__u32)(method - start) + r->method_const + 8;
		barrier_var(size);
		if (!read_memory(start, s->header, size & 511))
			address = s->header[(size - 8) / 8 & 63];
		if (address - start <= behind && !(address & 7)) {
			s->id.const_method = address;
			return (int)((address - start) / 8);
		}
	}
	if ((!address && read_word(method + r->method_const, &address)) ||
	    read_memory(address, s->method, sizeof(s->method)))
		return -1;
	s->id.const_method = address;
	return 0;
}

/*
 * Reads the entry `index` of the constants in scratch.id, which is a method's name, into there: 0,
 * or -1. With it come those around it: methods that stand together in a class have their names
 * together.
 */
static __always_inline int read_method_name(const struct hotspot_record *r,
					    struct hotspot_scratch *s, __u16 index)
{
	__u64 entries = s->id.constants + r->constants_size;
	__u64 at = entries + 8 * (__u64)(index & ~(HOTSPOT_ENTRIES - 1));

	if (s->entries_at != at) {
		s->entries_at = at;
		if (read_memory(at, s->entries, sizeof(s->entries))) {
			s->entries_at = 0;
			return read_word(entries + 8 * (__u64)index, &s->id.method_name);
		}
	}
	s->id.method_name = s->entries[index & (HOTSPOT_ENTRIES - 1)];
	return 0;
}

/* A member of the ConstMethod that was read. */
static __always_inline __u64 method_field(const struct hotspot_scratch *s, __u32 at, __u32 offset)
{
	return s->header[(at + offset / 8) & 63] >> 8 * (offset & 7);
}

/* Reads which method it is into the state: 0, or -1. */
static __always_inline int read_method(struct walk *w, __u64 method, __u64 bcp)
{
	const struct hotspot_record *r = hotspot_record(w);
	struct hotspot_scratch *s = hotspot_scratch(w);
	struct hotspot_state *st = hotspot_state(w);
	__u32 size;
	__u16 name;
	int at;

	if (!method || method & 7 || method > HOTSPOT_ADDRESS_MASK)
		return -1;
	if (method == st->method)
		return 0;
	at = WALK_NAME(hotspot_read_const)(method, bcp);
	if (at < 0)
		return -1;
	s->id.constants = method_field(s, at, r->const_constants);
	size = (__u16)method_field(s, at, r->const_code_size);
	name = (__u16)method_field(s, at, r->const_name_index);
	s->id.method = hotspot_method_id(size, name, (__u32)method_field(s, at, r->const_size));
	/* The class of the last method that was read still is that class. */
	if (s->id.constants != st->constants) {
		st->constants = 0;
		s->entries_at = 0;
		if (WALK_NAME(hotspot_read_class)(s->id.constants))
			return -1;
		st->constants = s->id.constants;
	}
	if (read_method_name(r, s, name))
		return -1;
	st->method = method;
	st->codes = s->id.const_method + r->const_codes;
	st->code_size = size;
	st->cookie = hotspot_method_cookie(&s->id, s->class_hash);
	return 0;
}
