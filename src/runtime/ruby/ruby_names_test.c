// SPDX-License-Identifier: Apache-2.0
/*
 * Names of made-up functions in memory: what 3.4 calls code that was evaluated.
 */
#include "runtime/ruby/ruby_names.h"

#include "test.h"

#include <errno.h>
#include <stdio.h>

enum {
	BASE = 0x100000,
	SIZE = 0x4000,
	METHOD = BASE + 0x100, /* an iseq each, its body behind it */
	BLOCK = BASE + 0x400,
	EVAL = BASE + 0x700,
	INNER = BASE + 0xa00,
	BODY = 0x40,
	CODE = BASE + 0x2000,
	STRINGS = BASE + 0x3000,
};

static struct {
	uint8_t bytes[SIZE];
	uint64_t strings;
	struct ruby_record record;
	struct ruby_names names;
	struct runtime_target target;
	char name[256];
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	if (addr < BASE || addr >= BASE + SIZE || size > BASE + SIZE - addr)
		return -EFAULT;
	memcpy(to, t.bytes + (addr - BASE), size);
	return 0;
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(t.bytes + (addr - BASE), &value, sizeof(value));
}

static uint64_t get_word(uint64_t addr)
{
	uint64_t value;

	memcpy(&value, t.bytes + (addr - BASE), sizeof(value));
	return value;
}

/* A string within its object. */
static uint64_t put_string(const char *text)
{
	uint64_t addr = t.strings;

	t.strings += 128;
	put(addr, RUBY_T_STRING);
	put(addr + 16, strlen(text));
	memcpy(t.bytes + (addr - BASE) + 24, text, strlen(text));
	return addr;
}

static void put_iseq(uint64_t addr, uint32_t type, const char *label, const char *base,
		     uint64_t parent)
{
	const struct ruby_layout *l = t.names.layout;
	uint64_t body = addr + BODY;

	put(addr, RUBY_T_IMEMO | RUBY_IMEMO_ISEQ << RUBY_IMEMO_SHIFT);
	put(addr + 16, body);
	put(body, type);
	put(body + 8, CODE);
	put(body + l->path, put_string("/a.rb"));
	put(body + l->label, put_string(label));
	put(body + l->base_label, put_string(base));
	put(body + l->first_line, 7);
	put(body + l->parent, parent);
}

static void set_up(unsigned int version)
{
	memset(&t, 0, sizeof(t));
	t.strings = STRINGS;
	t.target.memory = (struct runtime_memory){ read_test, NULL };
	t.names.layout = ruby_layout_of(version);
	t.names.target = &t.target;
	t.names.record = &t.record;
	t.record.string_text = t.names.layout->string_text;
	t.record.string_length = t.names.layout->string_length;
	put_iseq(METHOD, RUBY_ISEQ_METHOD, "calls", "calls", 0);
	put_iseq(BLOCK, RUBY_ISEQ_BLOCK, "block in calls", "calls", METHOD);
	put_iseq(EVAL, RUBY_ISEQ_EVAL, "<compiled>", "<compiled>", BLOCK);
	put_iseq(INNER, RUBY_ISEQ_EVAL, "<compiled>", "<compiled>", EVAL);
}

/* As the step hashes a string's text. */
static uint64_t hash_of(uint64_t string)
{
	uint64_t words[RUBY_TEXT_WORDS] = { 0 }, length = get_word(string + 16);

	memcpy(words, t.bytes + (string - BASE) + 24, length);
	return ruby_text(length, (const __u64 *)words);
}

static int add_name(void *ctx, const struct runtime_level *level)
{
	(void)ctx;
	snprintf(t.name, sizeof(t.name), "%s %s", level->name, level->source);
	return 0;
}

static int name(uint64_t iseq)
{
	const struct ruby_layout *l = t.names.layout;
	uint64_t body = iseq + BODY;
	struct ruby_identity id = { .body = body,
				    .code = CODE,
				    .path = get_word(body + l->path),
				    .label = get_word(body + l->label),
				    .line = get_word(body + l->first_line) };
	struct runtime_sink sink = { .add = add_name };
	uint64_t words[3];

	id.path_text = hash_of(id.path);
	id.label_text = hash_of(id.label);
	words[0] = FRAME(RUNTIME_RUBY, 2, iseq);
	words[1] = RUBY_WORD1(ruby_cookie(&id), 0);
	words[2] = 0;
	return ruby_names_symbolize(&t.names, words, 3, &sink);
}

TEST(evaluated_code_is_called_as_what_evaluates)
{
	set_up(304);
	ASSERT_OK(name(METHOD));
	ASSERT_STR(t.name, "calls /a.rb");
	ASSERT_OK(name(EVAL));
	ASSERT_STR(t.name, "block in calls /a.rb");
	ASSERT_OK(name(INNER));
	ASSERT_STR(t.name, "block in calls /a.rb");
}

/* Up to 3.3 its own label says so. */
TEST(evaluated_code_of_older_versions)
{
	set_up(303);
	put_iseq(EVAL, RUBY_ISEQ_EVAL, "block in calls", "calls", METHOD);
	ASSERT_OK(name(EVAL));
	ASSERT_STR(t.name, "block in calls /a.rb");
}

TEST(evaluated_code_in_itself_or_in_nothing)
{
	set_up(304);
	put(EVAL + BODY + t.names.layout->parent, INNER);
	ASSERT_ERR(name(INNER), ENOENT);
	put(EVAL + BODY + t.names.layout->parent, 0);
	ASSERT_ERR(name(INNER), ENOENT);
	put(EVAL + BODY + t.names.layout->parent, STRINGS);
	ASSERT_ERR(name(INNER), ENOENT);
}
