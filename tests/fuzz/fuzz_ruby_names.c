// SPDX-License-Identifier: Apache-2.0
/*
 * Naming Ruby's methods with arbitrary memory as the process: which version, what kind of frame,
 * where in its code it is, where the frame's words and Ruby's own variables lead to, then the
 * memory. The frame is what the step would have made of that.
 */
#include "fuzz.h"
#include "name_image.h"
#include "runtime/ruby/ruby_names.h"

enum { READS = 4000, IN_C = 1, WITH_METHOD = 2, NO_PC = 255 };

struct input {
	uint8_t version, kind, pc;
	uint8_t iseq[2], entry[2], symbols[2], vm[2];
};

static int symbolize(void *ctx, const uint64_t *words, size_t nr, const struct runtime_sink *sink)
{
	return ruby_names_symbolize(ctx, words, nr, sink);
}

/* As ruby.bpf.c reads a text; an array's first string is one, too. */
static uint64_t text_of(const struct ruby_names *n, uint64_t addr)
{
	uint64_t s[RUBY_STRING_WORDS] = { 0 }, words[RUBY_TEXT_WORDS] = { 0 }, length, at;
	size_t size = sizeof(words);

	(void)runtime_read(n->target, addr, s, sizeof(s));
	if ((s[0] & RUBY_TYPE) == RUBY_T_ARRAY) {
		addr = s[0] & RUBY_ARRAY_WITHIN ? s[2] : name_word(n->target, s[4]);
		(void)runtime_read(n->target, addr, s, sizeof(s));
	}
	at = ruby_text_at(n->record, (const __u64 *)s, addr, (__u64 *)&length);
	if (length > size)
		at += length - size;
	else
		size = length;
	if (size)
		(void)runtime_read(n->target, at, words, size);
	return ruby_text(length, (const __u64 *)words);
}

static void add_method(const struct ruby_names *n, uint64_t entry, struct ruby_identity *id)
{
	const struct runtime_target *t = n->target;

	id->definition = name_word(t, entry + 16);
	id->owner = name_word(t, entry + 32);
	id->name = name_word(t, id->definition + 32);
	if (n->layout->serial)
		id->serial = name_word(t, id->definition + n->layout->serial);
}

static void add_iseq(const struct ruby_names *n, uint64_t iseq, struct ruby_identity *id)
{
	const struct runtime_target *t = n->target;
	const struct ruby_layout *l = n->layout;

	id->body = name_word(t, iseq + 16);
	id->code = name_word(t, id->body + 8);
	id->path = name_word(t, id->body + l->path);
	id->label = name_word(t, id->body + l->label);
	id->line = name_word(t, id->body + l->first_line);
	id->node = l->node ? (uint32_t)name_word(t, id->body + l->node) : 0;
	id->lines = name_word(t, id->body + l->lines);
	id->path_text = text_of(n, id->path);
	id->label_text = text_of(n, id->label);
}

FUZZER(data, size)
{
	static const unsigned int versions[] = { 205, 206, 207, 300, 301, 302, 303, 304, 400 };
	struct name_image image = { .reads_max = READS, .name_max = RUBY_SOURCE_MAX };
	struct runtime_target target = { .memory = { name_image_read, &image } };
	struct ruby_record record = { 0 };
	struct ruby_names names = { .target = &target, .record = &record };
	struct ruby_identity id = { 0 };
	uint64_t words[3], entry;
	struct input in;

	if (!name_image_begin(&image, data, size, &in, sizeof(in)))
		return 0;
	names.layout =
		ruby_layout_of(versions[in.version % (sizeof(versions) / sizeof(*versions))]);
	names.symbols = name_address(in.symbols);
	names.vm = name_address(in.vm);
	record.string_text = names.layout->string_text;
	record.string_length = names.layout->string_length;
	(void)ruby_is_symbols(&target, names.layout, &record, names.symbols);
	entry = in.kind & (IN_C | WITH_METHOD) ? name_address(in.entry) : 0;
	if (entry)
		add_method(&names, entry, &id);
	if (!(in.kind & IN_C))
		add_iseq(&names, name_address(in.iseq), &id);
	words[0] = in.kind & IN_C ? RUBY_CFUNC | entry : name_address(in.iseq);
	words[0] = FRAME(RUNTIME_RUBY, 2, words[0]);
	words[1] = RUBY_WORD1(ruby_cookie(&id), in.pc == NO_PC ? RUBY_NO_PC : in.pc);
	words[2] = in.kind & IN_C ? 0 : entry;
	name_twice(&image, symbolize, &names, words, 3);
	return 0;
}
