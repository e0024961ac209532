// SPDX-License-Identifier: Apache-2.0
/* Names of virtual threads: classes of the JVM -> offsets for the step; its words -> UTF-8. */
#include "runtime/hotspot/hotspot_threads.h"
#include "runtime/hotspot/hotspot_class.h"
#include "util/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	SEARCHES_MAX = 8, /* the classes are loaded when the JVM starts */
	OFFSET_MAX = 512, /* of a field; java.lang.Thread has about 100 bytes */
};

/* ----- where they are ----- */

/* A field that is looked for. */
struct wanted {
	const char *name, *signature;
	uint16_t *ret;
};

enum { WANTED_MAX = 2 };

/* Those of a class, and where the first one of all its fields is. */
struct search {
	struct wanted wanted[WANTED_MAX];
	uint32_t first;
};

static int take_field(void *ctx, const char *name, const char *signature, uint32_t offset)
{
	struct search *s = ctx;

	if (!offset || offset > OFFSET_MAX)
		return -EBADMSG;
	if (!s->first || offset < s->first)
		s->first = offset;
	for (size_t i = 0; i < WANTED_MAX; i++) {
		const struct wanted *w = &s->wanted[i];

		if (w->name && !strcmp(w->name, name) && !strcmp(w->signature, signature))
			*w->ret = (uint16_t)offset;
	}
	return 0;
}

/* Are all of them there? */
static bool find_fields(const struct hotspot_vm *vm, const char *class_name, struct search *s)
{
	uint64_t klass = hotspot_find_class(vm, class_name);

	if (!klass || hotspot_each_field(vm, klass, take_field, s))
		return false;
	for (size_t i = 0; i < WANTED_MAX; i++) {
		if (s->wanted[i].name && !*s->wanted[i].ret)
			return false;
	}
	return true;
}

/*
 * An object begins with a word, in which, with compact headers, its class is, too; else that is
 * behind it, in 4 or 8 bytes (oopDesc of oop.hpp). Fields of 4 bytes fill what is left of the last
 * word (fieldLayoutBuilder.cpp), so that String's `hash` or something else of it is right behind.
 * An array has its length there, and then its elements: bytes were aligned to 8 up to JDK 22
 * (arrayOop.hpp; JDK-8139457, "Relax alignment of array elements", in 23).
 */
static void take_layout(const struct hotspot_vm *vm, uint32_t header, uint8_t oop_size,
			struct hotspot_threads *t)
{
	if (header != 8 && header != 12 && header != 16)
		return;
	t->bytes_length = (uint16_t)header;
	t->bytes_data = (uint16_t)(header + 4);
	if (vm->release <= 22)
		t->bytes_data = (uint16_t)((t->bytes_data + 7) & ~7);
	t->target_fields = (uint16_t)((header + oop_size - 1) & ~(oop_size - 1u));
}

void hotspot_find_threads(const struct hotspot_vm *vm, const struct hotspot_continuation *c,
			  struct hotspot_threads *t)
{
	/* As they are called in jdk-21+35 to jdk-26. */
	struct search continuation = { .wanted = { { "target", "Ljava/lang/Runnable;",
						     &t->continuation_target } } };
	struct search virtual_thread = { .wanted = { { "cont", "Ljdk/internal/vm/Continuation;",
						       &t->virtual_cont } } };
	struct search thread = { .wanted = { { "tid", "J", &t->thread_tid },
					     { "name", "Ljava/lang/String;", &t->thread_name } } };
	struct search string = { .wanted = { { "value", "[B", &t->string_value },
					     { "coder", "B", &t->string_coder } } };

	if (!c->chunk_stack || !c->oop_size || t->bytes_data || t->nr_searches >= SEARCHES_MAX)
		return;
	t->nr_searches++;
	if (find_fields(vm, "jdk/internal/vm/Continuation", &continuation) &&
	    find_fields(vm, "java/lang/VirtualThread", &virtual_thread) &&
	    find_fields(vm, "java/lang/Thread", &thread) &&
	    find_fields(vm, "java/lang/String", &string))
		take_layout(vm, string.first, c->oop_size, t);
}

void hotspot_fill_threads(const struct hotspot_vm *vm, const struct hotspot_threads *t,
			  struct hotspot_record *ret)
{
	if (!vm->target->options.virtual_threads)
		return;
	ret->virtual_threads =
		t->bytes_data && ret->oop_size ? HOTSPOT_VIRTUAL_NAMED : HOTSPOT_VIRTUAL_UNKNOWN;
	ret->continuation_target = t->continuation_target;
	ret->target_fields = t->target_fields;
	ret->virtual_cont = t->virtual_cont;
	ret->thread_tid = t->thread_tid;
	ret->thread_name = t->thread_name;
	ret->string_value = t->string_value;
	ret->string_coder = t->string_coder;
	ret->bytes_length = t->bytes_length;
	ret->bytes_data = t->bytes_data;
}

/* ----- what they are called ----- */

/* A character of UTF-16, from units[*at] on; U+FFFD for half of one. */
static uint32_t next_utf16(const uint16_t *units, size_t nr, size_t *at)
{
	uint32_t c = units[(*at)++];

	if (c < 0xd800 || c > 0xdfff)
		return c;
	if (c > 0xdbff || *at >= nr || units[*at] < 0xdc00 || units[*at] > 0xdfff)
		return 0xfffd;
	return 0x10000 + ((c & 0x3ff) << 10) + (units[(*at)++] & 0x3ffu);
}

int hotspot_thread_name(uint64_t data, const uint64_t words[static HOTSPOT_VIRTUAL_WORDS],
			char ret[static HOTSPOT_THREAD_NAME_SIZE])
{
	uint16_t units[HOTSPOT_VIRTUAL_NAME_MAX] = { 0 };
	uint32_t size = HOTSPOT_VIRTUAL_SIZE(data);
	const uint8_t *bytes = (const uint8_t *)words;
	size_t nr = size, len = 0;

	if (size > HOTSPOT_VIRTUAL_NAME_MAX)
		return -EINVAL;
	if (!HOTSPOT_VIRTUAL_IS_KNOWN(data)) {
		snprintf(ret, HOTSPOT_THREAD_NAME_SIZE, "[hotspot: unknown virtual thread]");
		return 0;
	}
	if (!size) {
		snprintf(ret, HOTSPOT_THREAD_NAME_SIZE, "virtual-#%" PRIu64, words[0]);
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		units[i] = bytes[i];
	if (HOTSPOT_VIRTUAL_IS_UTF16(data)) {
		nr = size / 2;
		memcpy(units, bytes, nr * sizeof(*units));
		/* No half of a pair where it was cut. */
		if (HOTSPOT_VIRTUAL_IS_CUT(data) && nr && (units[nr - 1] & 0xfc00) == 0xd800)
			nr--;
	}
	for (size_t i = 0; i < nr;)
		len += utf8_put(next_utf16(units, nr, &i), ret + len);
	snprintf(ret + len, HOTSPOT_THREAD_NAME_SIZE - len, "%s",
		 HOTSPOT_VIRTUAL_IS_CUT(data) ? "..." : "");
	return 0;
}
