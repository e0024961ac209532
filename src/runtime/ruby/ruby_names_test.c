// SPDX-License-Identifier: Apache-2.0
/*
 * Names and lines of made-up functions in memory: what 3.4 calls code that was evaluated, how 2.5
 * keeps its lines.
 */
#include "runtime/ruby/ruby_names.h"

#include "fake_memory.h"
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
	ENTRY = BASE + 0xd00, /* of a method; its definition behind it */
	DEFINITION = ENTRY + 0x40,
	CLASS = BASE + 0x1000,
	VALUES = BASE + 0x1100,
	IDS = BASE + 0x1200,
	PART = BASE + 0x1280,
	SHAPES = BASE + 0x1800,
	VM = BASE + 0x1c00,
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
	uint32_t pc, line; /* of the frame to be named: asked for, and told */
} t;

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	return fake_memory_read(t.bytes, BASE, SIZE, addr, to, size);
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
	put(addr, RUBY_T_STRING | (t.record.string_length
					   ? 0
					   : (uint64_t)strlen(text) << RUBY_STRING_LENGTH_SHIFT));
	if (t.record.string_length)
		put(addr + 16, strlen(text));
	memcpy(t.bytes + (addr - BASE) + t.record.string_text, text, strlen(text));
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
	uint64_t words[RUBY_TEXT_WORDS] = { 0 }, s[RUBY_STRING_WORDS], length, at;

	memcpy(s, t.bytes + (string - BASE), sizeof(s));
	at = ruby_text_at(&t.record, (const __u64 *)s, string, (__u64 *)&length);
	memcpy(words, t.bytes + (at - BASE), length);
	return ruby_text(length, (const __u64 *)words);
}

static int add_name(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	(void)ctx;
	snprintf(t.name, sizeof(t.name), "%s %s", inline_frame->name, inline_frame->source);
	t.line = inline_frame->line;
	return 0;
}

static int name_in(uint64_t iseq, uint64_t entry)
{
	const struct ruby_layout *l = t.names.layout;
	uint64_t body = iseq + BODY;
	struct ruby_identity id = { .body = body,
				    .code = CODE,
				    .path = get_word(body + l->path),
				    .label = get_word(body + l->label),
				    .line = get_word(body + l->first_line),
				    .node = l->node ? (uint32_t)get_word(body + l->node) : 0,
				    .lines = get_word(body + l->lines) };
	struct runtime_sink sink = { .add = add_name };
	uint64_t words[3];

	if (entry) {
		id.definition = get_word(entry + 16);
		id.owner = get_word(entry + 32);
		id.name = get_word(id.definition + 32);
		id.serial = get_word(id.definition + l->serial);
	}
	id.path_text = hash_of(id.path);
	id.label_text = hash_of(id.label);
	words[0] = FRAME(RUNTIME_RUBY, 2, iseq);
	words[1] = RUBY_WORD1(ruby_cookie(&id), t.pc);
	words[2] = entry;
	return ruby_names_symbolize(&t.names, words, 3, &sink);
}

static int name(uint64_t iseq)
{
	return name_in(iseq, 0);
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

static uint32_t line_at(uint32_t pc)
{
	t.pc = pc;
	ASSERT_OK(name(METHOD));
	return t.line;
}

/* Of 2.5: each entry has its place in the code before its line, the instruction before the pc
 * counts. */
TEST(lines_that_have_their_places)
{
	static const uint32_t places[] = { 0, 3, 4, 9 };
	uint32_t nr = sizeof(places) / sizeof(places[0]);
	uint64_t body = METHOD + BODY;

	set_up(205);
	put(body + t.names.layout->lines, CODE);
	put(body + t.names.layout->nr_lines, nr);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t entry[3] = { places[i], 70 + i, 0 };

		memcpy(t.bytes + (CODE - BASE) + i * sizeof(entry), entry, sizeof(entry));
	}
	ASSERT_EQ(line_at(0), 70);
	ASSERT_EQ(line_at(3), 70);
	ASSERT_EQ(line_at(4), 71);
	ASSERT_EQ(line_at(5), 72);
	ASSERT_EQ(line_at(9), 72);
	ASSERT_EQ(line_at(10), 73);
	ASSERT_EQ(line_at(5000), 73);
	ASSERT_STR(t.name, "calls /a.rb");
	put(body + t.names.layout->nr_lines, 0);
	ASSERT_EQ(line_at(5), 0);
	put(body + t.names.layout->nr_lines, 1u << 30);
	ASSERT_EQ(line_at(5), 0);
	/* The table is not there. */
	put(body + t.names.layout->nr_lines, 1u << 12);
	put(body + t.names.layout->lines, 16);
	ASSERT_EQ(line_at(5), 0);
}

static void put_symbol(unsigned int serial, const char *text)
{
	put(PART + 16 + 16 * serial, put_string(text));
}

/* A shape of 3.2's: of `nr` variables. */
static void put_shape(uint32_t id, uint32_t parent, uint8_t type, unsigned int serial, uint32_t nr)
{
	uint64_t addr = SHAPES + 32 * id;

	put(addr + 8, (uint64_t)serial << 4);
	put(addr + 16, nr);
	put(addr + 24, type | (uint64_t)parent << 32);
}

enum { CLASSPATH = 20, ATTACHED = 21, OTHER = 22 };

/* A method of a class whose variables are told by its shape. */
static void set_up_shapes(void)
{
	const uint64_t within = RUBY_T_ARRAY | RUBY_ARRAY_WITHIN | 64 << RUBY_ARRAY_LENGTH_SHIFT;

	set_up(302);
	t.names.symbols = BASE;
	t.names.vm = VM;
	put(BASE + 16, IDS);
	put(IDS, within);
	put(IDS + 16, PART);
	put(PART, within);
	put_symbol(CLASSPATH, "__classpath__");
	put_symbol(ATTACHED, "__attached__");
	put_symbol(OTHER, "@other");
	put(VM, VM + 8);
	put(VM + 8 + t.names.layout->shapes, SHAPES);
	put(ENTRY, RUBY_T_IMEMO | RUBY_IMEMO_METHOD << RUBY_IMEMO_SHIFT);
	put(ENTRY + 16, DEFINITION);
	put(ENTRY + 32, CLASS);
	put(CLASS, RUBY_T_CLASS | 7ull << 32);
	put(CLASS + t.names.layout->class_ext, VALUES);
	put(VALUES, put_string("not it"));
	put(VALUES + 8, put_string("A::B"));
	put_shape(0, UINT32_MAX, 0, 0, 0);
	put_shape(3, 0, 1, OTHER, 1);
	put_shape(5, 3, 1, CLASSPATH, 2);
	put_shape(7, 5, 2, 0, 2); /* frozen */
}

TEST(classes_whose_shape_says_where_their_name_is)
{
	set_up_shapes();
	ASSERT_OK(name_in(METHOD, ENTRY));
	ASSERT_STR(t.name, "A::B#calls /a.rb");
	/* It has none. */
	put(CLASS, RUBY_T_CLASS | 3ull << 32);
	ASSERT_OK(name_in(METHOD, ENTRY));
	ASSERT_STR(t.name, "calls /a.rb");
	/* Shapes in a circle, and one that is nowhere. */
	put(CLASS, RUBY_T_CLASS | 7ull << 32);
	put_shape(5, 7, 1, OTHER, 2);
	ASSERT_OK(name_in(METHOD, ENTRY));
	ASSERT_STR(t.name, "calls /a.rb");
	put(CLASS, RUBY_T_CLASS | 0xfffffull << 32);
	ASSERT_OK(name_in(METHOD, ENTRY));
	ASSERT_STR(t.name, "calls /a.rb");
}

TEST(singleton_classes_with_shapes)
{
	const uint64_t single = BASE + 0x1080, values = BASE + 0x1180;

	set_up_shapes();
	put(ENTRY + 32, single);
	put(single, RUBY_T_CLASS | t.names.layout->singleton | 8ull << 32);
	put(single + t.names.layout->class_ext, values);
	put(values, CLASS);
	put_shape(8, 0, 1, ATTACHED, 1);
	ASSERT_OK(name_in(METHOD, ENTRY));
	ASSERT_STR(t.name, "A::B.calls /a.rb");
}
