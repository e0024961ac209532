// SPDX-License-Identifier: Apache-2.0
/*
 * Names of frames of a JVM that is made here, in one block of memory: a class "a/b/Main" with the
 * methods "outer" (lines 10 and up) and "inner" (lines 20 and up), and nmethods of outer with inner
 * inlined, in each of the layouts that there have been. What a real one does in between (classes
 * unloaded, memory used again) happens here at the n-th read.
 */
#include "runtime/hotspot/hotspot_names.h"

#include "test.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum {
	BASE = 0x100000,
	SIZE = 0x80000,
	/* Places in the block. Structures are laid out as `fields` below says. */
	SYMBOLS = 0x1000,
	CLASS = 0x4000,
	CONSTANTS = 0x4100,
	OUTER = 0x5000,
	INNER = 0x5100,
	OUTER_CONST = 0x6000,
	INNER_CONST = 0x6100,
	LIBJVM = 0x2400,
	STATICS = 0x2800, /* its data */
	STUB_DESCS = 0x3000,
	STUB = 0x7000,
	STUB_NAME = 0x7100,
	TABLES = 0x8000, /* of an nmethod, where they are outside of it */
	NMETHOD = 0x10000,
	NMETHOD_SIZE = 0x200,
};

enum { CONST_METHOD_SIZE = 40, CONSTANTS_SIZE = 48, BLOCK_SIZE = 16 };

#define F(offset, size)                                                                            \
	{                                                                                          \
		(offset), (size), false                                                            \
	}
static const struct hotspot_fields fields = {
	.blob_name = F(0, 8),
	.blob_size = F(8, 4),
	.blob_data_offset = F(12, 4),
	.blob_code_offset = F(16, 4),
	.nmethod_compile_id = F(20, 4),
	.nmethod_method = F(24, 8),
	.nmethod_state = { 32, 1, true },
	.nmethod_comp_level = { 33, 1, true },
	.nmethod_metadata_offset = F(34, 2),
	.nmethod_scopes_data_offset = F(36, 4),
	.nmethod_scopes_pcs_offset = F(40, 4),
	.nmethod_dependencies_offset = F(44, 4),
	.nmethod_immutable_data = F(48, 8),
	.nmethod_immutable_data_size = F(56, 4),
	.blob_relocation_size = F(60, 4),
	.blob_mutable_data = F(64, 8),
	.blob_mutable_data_size = F(72, 4),
	.method_const_method = F(8, 8),
	.const_method_constants = F(0, 8),
	.const_method_size = F(8, 4),
	.const_method_flags = F(12, 2),
	.const_method_code_size = F(14, 2),
	.const_method_name_index = F(16, 2),
	.constants_pool_holder = F(8, 8),
	.constants_length = F(16, 4),
	.constants_source_file_name_index = F(20, 2),
	.klass_name = F(16, 8),
	.symbol_length = F(4, 2),
	.symbol_body = F(6, 1),
	.block_length = F(0, 8),
	.block_used = F(8, 1),
};

/* jvm.target reads jvm.memory. */
static struct {
	uint8_t memory[SIZE];
	struct runtime_target target;
	struct runtime_keeper keeper;
	struct hotspot_vm vm;
	struct hotspot_names *names;
	uint32_t symbols;	      /* where the next one comes */
	uint32_t nr_reads, change_at; /* the read before which change() is called; 0: none */
	void (*change)(void);
	int error; /* of all reads from then on */
} jvm;

static const struct hotspot_symbol_layout layout = { .mask = ~0xffffull, .length = 4, .body = 6 };

static struct {
	int nr, r;
	char names[HOTSPOT_SYMBOL_MAX], sources[200];
	uint32_t lines[80], start_lines[80];
} got;

static int read_memory(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	if (++jvm.nr_reads == jvm.change_at)
		jvm.change();
	if (jvm.error)
		return jvm.error;
	if (addr < BASE || addr - BASE > SIZE || size > SIZE - (addr - BASE))
		return -EFAULT;
	memcpy(to, jvm.memory + (addr - BASE), size);
	return 0;
}

static int take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	int *r = ctx;

	snprintf(got.names + strlen(got.names), sizeof(got.names) - strlen(got.names), "%s%s",
		 got.nr ? ";" : "", inline_frame->name);
	snprintf(got.sources, sizeof(got.sources), "%s",
		 inline_frame->source ? inline_frame->source : "-");
	got.lines[got.nr] = inline_frame->line;
	got.start_lines[got.nr++] = inline_frame->start_line;
	return *r;
}

static void put(uint32_t at, uint64_t value, size_t size)
{
	memcpy(jvm.memory + at, &value, size);
}

static void put_field(uint32_t at, struct hotspot_field f, uint64_t value)
{
	put(at + f.offset, value, f.size);
}

/* Its address. */
static uint64_t put_symbol(const char *text)
{
	uint32_t at = jvm.symbols;

	put(at, 1, 2); /* references */
	put_field(at, fields.symbol_length, strlen(text));
	memcpy(jvm.memory + at + fields.symbol_body.offset, text, strlen(text));
	jvm.symbols += (uint32_t)(strlen(text) + 6 + 16) & ~7u;
	return BASE + at;
}

static void put_constant(uint32_t index, uint64_t symbol)
{
	put(CONSTANTS + CONSTANTS_SIZE + 8 * index, symbol, 8);
}

static void put_method(uint32_t at, uint32_t const_at, uint32_t name_index, uint8_t line)
{
	/* 10 bytes of code, of which two make a line each. */
	const uint8_t lines[] = { 2 << 3 | 1, 2 << 3 | 1, 2 << 3 | 1, 0 };

	put_field(at, fields.method_const_method, BASE + const_at);
	put_field(const_at, fields.const_method_constants, BASE + CONSTANTS);
	put_field(const_at, fields.const_method_size, (CONST_METHOD_SIZE + 24) / 8);
	put_field(const_at, fields.const_method_flags, 1);
	put_field(const_at, fields.const_method_code_size, 10);
	put_field(const_at, fields.const_method_name_index, name_index);
	const_at += CONST_METHOD_SIZE + 10;
	put(const_at, 0xff, 1);
	put(const_at + 1, jvm.vm.release >= 20, 1);
	put(const_at + 2, line * 2u + (jvm.vm.release >= 20), 1);
	memcpy(jvm.memory + const_at + 3, lines, sizeof(lines));
}

/* What does not depend on the layout. */
static void make_class(const char *name)
{
	jvm.symbols = SYMBOLS;
	put_field(CLASS, fields.klass_name, put_symbol(name));
	put_field(CONSTANTS, fields.constants_pool_holder, BASE + CLASS);
	put_field(CONSTANTS, fields.constants_length, 8);
	put_field(CONSTANTS, fields.constants_source_file_name_index, 3);
	put_constant(1, put_symbol("outer"));
	put_constant(2, put_symbol("inner"));
	put_constant(3, put_symbol("Main.java"));
	put_method(OUTER, OUTER_CONST, 1, 10);
	put_method(INNER, INNER_CONST, 2, 20);
}

static uint32_t put_tables(uint32_t at, uint32_t *scopes_ret)
{
	/* One byte, then outer at bytecode 4, in it inner at 2: sender, method, bci + 1. */
	uint8_t no_zero = jvm.vm.release >= 20;
	const uint8_t scopes[] = { 0xff, 0, 1, 5, 1, 2, 3 };
	const int32_t pcs[][4] = {
		{ -1, 0, 0, 0 }, { 0x20, 1, 0, 0 }, { 0x40, 4, 0, 0 }, { INT_MAX, 0, 0, 0 }
	};

	*scopes_ret = at + sizeof(pcs);
	memcpy(jvm.memory + at, pcs, sizeof(pcs));
	for (size_t i = 0; i < sizeof(scopes); i++)
		put(*scopes_ret + (uint32_t)i, (uint8_t)(scopes[i] + (i ? no_zero : 0)), 1);
	return *scopes_ret + sizeof(scopes);
}

static void put_metadata(uint32_t at)
{
	put(at, BASE + OUTER, 8);
	put(at + 8, BASE + INNER, 8);
}

static void make_nmethod(uint32_t at, uint32_t compile_id)
{
	uint32_t metadata = at + 0xc0, pcs = at + 0x100, scopes, end;

	put_field(at - BLOCK_SIZE, fields.block_length, 2);
	put_field(at - BLOCK_SIZE, fields.block_used, 1);
	put_field(at, fields.blob_name, BASE + STUB_NAME);
	put_field(at, fields.blob_size, NMETHOD_SIZE - BLOCK_SIZE);
	put_field(at, fields.nmethod_method, BASE + OUTER);
	put_field(at, fields.nmethod_compile_id, compile_id);
	put_field(at, fields.nmethod_comp_level, 4);
	if (jvm.vm.layout == HOTSPOT_CONTIGUOUS) {
		/* Scopes stand before PcDescs: as long as they are read, the order is all one. */
		put_metadata(metadata);
		put_tables(pcs, &scopes);
		memmove(jvm.memory + metadata + 16, jvm.memory + scopes, 8);
		put_field(at, fields.nmethod_metadata_offset, metadata - at);
		put_field(at, fields.nmethod_scopes_data_offset, metadata + 16 - at);
		put_field(at, fields.nmethod_scopes_pcs_offset, pcs - at);
		put_field(at, fields.nmethod_dependencies_offset, scopes - at);
		return;
	}
	end = put_tables(TABLES + 0x40, &scopes);
	put_field(at, fields.nmethod_immutable_data, BASE + TABLES);
	put_field(at, fields.nmethod_immutable_data_size, end - TABLES);
	put_field(at, fields.nmethod_scopes_pcs_offset, 0x40);
	put_field(at, fields.nmethod_scopes_data_offset, scopes - TABLES);
	if (jvm.vm.layout == HOTSPOT_IMMUTABLE) {
		put_metadata(at + 0xa0 + 0x10);
		put_field(at, fields.blob_data_offset, 0xa0);
		put_field(at, fields.nmethod_metadata_offset, 0x10);
	} else {
		put_metadata(TABLES + 0x400 + 0x18);
		put_field(at, fields.blob_mutable_data, BASE + TABLES + 0x400);
		put_field(at, fields.blob_mutable_data_size, 0x18 + 16);
		put_field(at, fields.blob_relocation_size, 0x18);
	}
}

static void make_jvm(uint32_t release)
{
	memset(&jvm, 0, sizeof(jvm));
	jvm.target =
		(struct runtime_target){ .memory = { read_memory, NULL }, .keeper = &jvm.keeper };
	jvm.vm = (struct hotspot_vm){ .target = &jvm.target,
				      .release = release,
				      .minor = 1,
				      .layout = release <= 22	? HOTSPOT_CONTIGUOUS
						: release <= 24 ? HOTSPOT_IMMUTABLE
								: HOTSPOT_MUTABLE,
				      .fields = fields,
				      .sizes = { .heap_block = BLOCK_SIZE,
						 .const_method = CONST_METHOD_SIZE,
						 .constants = CONSTANTS_SIZE,
						 .pc_desc = 16,
						 .nmethod = 0xa0 },
				      .const_method_has_lines = 1,
				      .pointer_size = 8 };
	jvm.vm.heaps[0] = (struct hotspot_heap){ .start = BASE + STUB, .end = BASE + STUB + 0x100 };
	jvm.vm.nr_heaps = 1;
	if (release > 22)
		jvm.vm.fields.nmethod_dependencies_offset.size = 0;
	jvm.names = hotspot_names_new(&jvm.vm, &layout);
	ASSERT_PTR_NONNULL(jvm.names);
	make_class("a/b/Main");
	make_nmethod(NMETHOD, 7);
}

static int name_to(uint32_t kind, uint32_t at, uint64_t word, int sink_r)
{
	const uint64_t words[] = { FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(kind, BASE + at)),
				   word };
	const struct runtime_sink sink = { .add = take, .ctx = &sink_r };

	memset(&got, 0, sizeof(got));
	jvm.nr_reads = 0;
	return hotspot_names_symbolize(jvm.names, words, 2, &sink);
}

static int name(uint32_t kind, uint32_t at, uint64_t word)
{
	return name_to(kind, at, word, 0);
}

/* As the step reads it. */
static uint32_t cookie_of(uint32_t method)
{
	struct hotspot_identity id = { 0 };
	uint16_t code_size, name_index;
	uint32_t const_at, size, len;

	memcpy(&id.const_method, jvm.memory + method + 8, 8);
	const_at = (uint32_t)(id.const_method - BASE);
	memcpy(&id.constants, jvm.memory + const_at, 8);
	memcpy(&size, jvm.memory + const_at + 8, 4);
	memcpy(&code_size, jvm.memory + const_at + 14, 2);
	memcpy(&name_index, jvm.memory + const_at + 16, 2);
	id.method = hotspot_method_id(code_size, name_index, size);
	memcpy(&id.method_name, jvm.memory + CONSTANTS + CONSTANTS_SIZE + 8 * name_index, 8);
	memcpy(&id.holder, jvm.memory + CONSTANTS + 8, 8);
	memcpy(&id.name, jvm.memory + CLASS + 16, 8);
	memcpy(id.symbol, jvm.memory + (id.name - BASE), sizeof(id.symbol));
	len = hotspot_symbol_length(&layout, id.symbol[0]);
	if (len > HOTSPOT_CLASS_NAME)
		memcpy(&id.tail, jvm.memory + (id.name - BASE) + layout.body + len - 8, 8);
	return hotspot_cookie(&id, &layout);
}

#define INTERPRETED(method, bci) HOTSPOT_INTERPRETED, method, HOTSPOT_WORD(cookie_of(method), bci)

/* ----- interpreter ----- */

TEST(interpreted_methods)
{
	for (uint32_t release = 19; release <= 21; release += 2) {
		make_jvm(release);
		ASSERT_OK(name(INTERPRETED(OUTER, 4)));
		ASSERT_EQ(got.nr, 1);
		ASSERT_STR(got.names, "a.b.Main.outer");
		ASSERT_STR(got.sources, "a/b/Main.java");
		ASSERT_EQ(got.lines[0], 12);
		ASSERT_EQ(got.start_lines[0], 10);
		ASSERT_OK(name(INTERPRETED(INNER, 0)));
		ASSERT_STR(got.names, "a.b.Main.inner");
		ASSERT_EQ(got.lines[0], 20);
		ASSERT_OK(name(INTERPRETED(INNER, HOTSPOT_NO_BCI)));
		ASSERT_EQ(got.lines[0], 20);
		hotspot_names_free(jvm.names);
	}
}

TEST(tiers)
{
	make_jvm(17);
	jvm.target.options.tiers = true;
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.names, "a.b.Main.outer_[0]");
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	ASSERT_STR(got.names, "a.b.Main.inner;a.b.Main.outer_[j]");
	for (int tier = 1; tier <= 3; tier++) {
		put_field(NMETHOD, fields.nmethod_comp_level, tier);
		ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
		ASSERT_STR(got.names, "a.b.Main.inner;a.b.Main.outer_[1]");
	}
	put_field(NMETHOD, fields.nmethod_comp_level, 0);
	ASSERT_OK(name(HOTSPOT_NATIVE, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	ASSERT_STR(got.names, "a.b.Main.outer");
	hotspot_names_free(jvm.names);
}

TEST(classes_without_package_or_source)
{
	make_jvm(17);
	make_class("Main");
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.names, "Main.outer");
	ASSERT_STR(got.sources, "Main.java");
	put_field(CONSTANTS, fields.constants_source_file_name_index, 0);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.sources, "-");
	ASSERT_EQ(got.lines[0], 12);
	put_field(OUTER_CONST, fields.const_method_flags, 0);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_EQ(got.lines[0], 0);
	ASSERT_EQ(got.start_lines[0], 0);
	hotspot_names_free(jvm.names);
}

TEST(source_of_the_class)
{
	/* Before it moved to the constants. */
	make_jvm(11);
	jvm.vm.fields.constants_source_file_name_index.size = 0;
	jvm.vm.fields.instance_klass_source_file_name_index = (struct hotspot_field)F(32, 2);
	jvm.vm.fields.instance_klass_constants = (struct hotspot_field)F(40, 8);
	put(CLASS + 32, 3, 2);
	put(CLASS + 40, BASE + CONSTANTS, 8);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.sources, "a/b/Main.java");
	put(CLASS + 32, 0, 2);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.sources, "-");
	hotspot_names_free(jvm.names);
}

TEST(names_outside_of_ascii)
{
	make_jvm(17);
	make_class("\xc3\x9c"
		   "ber/\xed\xa0\xbd\xed\xb8\x80"); /* U+1F600 as two surrogates */
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.names, "\u00dcber.\U0001f600.outer");
	ASSERT_STR(got.sources, "\u00dcber/Main.java");
	hotspot_names_free(jvm.names);
}

static void load_another_class(void)
{
	make_class("c/Other");
}

static void end_process(void)
{
	jvm.error = -ESRCH;
}

static void unmap_all(void)
{
	jvm.error = -EFAULT;
}

/* Whenever it happens: the right name, or none. */
static void check_changes(uint32_t kind, uint32_t at, uint64_t word, void (*change)(void),
			  int error)
{
	uint32_t reads, gone = 0;

	make_jvm(17);
	ASSERT_OK(name(kind, at, word));
	reads = jvm.nr_reads;
	ASSERT(reads > 5);
	for (uint32_t i = 1; i <= reads; i++) {
		int r;

		hotspot_names_free(jvm.names);
		make_jvm(17);
		jvm.change = change;
		jvm.change_at = i;
		r = name(kind, at, word);
		if (r == error) {
			ASSERT_EQ(got.nr, 0);
			gone++;
			continue;
		}
		ASSERT_OK(r);
		ASSERT(!strcmp(got.names, "a.b.Main.outer") ||
		       !strcmp(got.names, "a.b.Main.inner;a.b.Main.outer"));
	}
	/* Reads that fail are noticed each time, classes unless it was over by then. */
	ASSERT(gone >= (error == -ENOENT ? 1 : reads));
	hotspot_names_free(jvm.names);
}

TEST(classes_that_change_while_they_are_read)
{
	uint64_t word;

	make_jvm(17);
	word = HOTSPOT_WORD(cookie_of(OUTER), 4);
	hotspot_names_free(jvm.names);
	check_changes(HOTSPOT_INTERPRETED, OUTER, word, load_another_class, -ENOENT);
	check_changes(HOTSPOT_INTERPRETED, OUTER, word, unmap_all, -ENOENT);
	check_changes(HOTSPOT_INTERPRETED, OUTER, word, end_process, -ESRCH);
}

TEST(methods_of_another_class)
{
	uint64_t word;

	make_jvm(17);
	word = HOTSPOT_WORD(cookie_of(OUTER), 4);
	load_another_class();
	ASSERT_ERR(name(HOTSPOT_INTERPRETED, OUTER, word), ENOENT);
	ASSERT_EQ(got.nr, 0);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.names, "c.Other.outer");
	hotspot_names_free(jvm.names);
}

/* Another class is loaded where this one was: all lies where it lay, the names are as long. */
static void check_another_name(const char *name_before, const char *name_behind)
{
	uint64_t word;

	make_jvm(17);
	make_class(name_before);
	word = HOTSPOT_WORD(cookie_of(OUTER), 4);
	ASSERT_OK(name(HOTSPOT_INTERPRETED, OUTER, word));
	make_class(name_behind);
	ASSERT_ERR(name(HOTSPOT_INTERPRETED, OUTER, word), ENOENT);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	hotspot_names_free(jvm.names);
}

TEST(names_that_differ_anywhere)
{
	static const char digits[] = "123456789 123456789 123456789 123456789 123456789 123456789 ";
	char before[80], behind[80];

	check_another_name("Gen$$00000001", "Gen$$00000002");
	check_another_name("a/B", "a/C");
	for (int len = 1; len < 17; len++) {
		snprintf(before, sizeof(before), "%.*sA", len, digits);
		snprintf(behind, sizeof(behind), "%.*sB", len, digits);
		check_another_name(before, behind);
	}
	/* Longer than what is looked at: its end is. */
	snprintf(before, sizeof(before), "%s$Gen$$00000001", digits);
	snprintf(behind, sizeof(behind), "%s$Gen$$00000002", digits);
	check_another_name(before, behind);
}

TEST(a_method_of_another_name_in_a_class_of_the_same)
{
	uint64_t word;

	make_jvm(17);
	word = HOTSPOT_WORD(cookie_of(OUTER), 4);
	put_constant(1, put_symbol("other"));
	ASSERT_ERR(name(HOTSPOT_INTERPRETED, OUTER, word), ENOENT);
	ASSERT_OK(name(INTERPRETED(OUTER, 4)));
	ASSERT_STR(got.names, "a.b.Main.other");
	hotspot_names_free(jvm.names);
}

static void unload_class(void)
{
	put(SYMBOLS, 0, 2);			   /* nobody refers to its name */
	memcpy(jvm.memory + SYMBOLS + 16, "x", 1); /* a method's name is something else */
}

TEST(classes_that_were_unloaded)
{
	uint64_t word;

	make_jvm(17);
	word = HOTSPOT_WORD(cookie_of(OUTER), 4);
	unload_class();
	ASSERT_ERR(name(HOTSPOT_INTERPRETED, OUTER, word), ENOENT);
	ASSERT_EQ(got.nr, 0);
	hotspot_names_free(jvm.names);
	check_changes(HOTSPOT_INTERPRETED, OUTER, word, unload_class, -ENOENT);
}

/* ----- nmethods ----- */

static void check_compiled(uint32_t release)
{
	make_jvm(release);
	for (int again = 0; again < 2; again++) {
		ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
		ASSERT_STR(got.names, "a.b.Main.inner;a.b.Main.outer");
		ASSERT_EQ(got.lines[0], 21);
		ASSERT_EQ(got.start_lines[0], 20);
		ASSERT_EQ(got.lines[1], 12);
		ASSERT_EQ(got.start_lines[1], 10);
		/* A call that returns to 0x20, and what runs behind it. */
		ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x20)));
		ASSERT_STR(got.names, "a.b.Main.outer");
		ASSERT_OK(name(HOTSPOT_COMPILED | HOTSPOT_INTERRUPTED, NMETHOD,
			       HOTSPOT_WORD(7, 0x20)));
		ASSERT_STR(got.names, "a.b.Main.inner;a.b.Main.outer");
		ASSERT_OK(name(HOTSPOT_COMPILED | HOTSPOT_INTERRUPTED, NMETHOD,
			       HOTSPOT_WORD(7, 0x40)));
		ASSERT_STR(got.names, "a.b.Main.outer");
		ASSERT_EQ(got.lines[0], 0);
		ASSERT_EQ(got.start_lines[0], 10);
	}
	/* Now it is kept: no more than its head is read, before and behind. */
	ASSERT_EQ(jvm.nr_reads, 2);
	ASSERT_OK(name(HOTSPOT_NATIVE, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	ASSERT_STR(got.names, "a.b.Main.outer");
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(8, 0x40)), ENOENT);
	hotspot_names_free(jvm.names);
}

TEST(compiled_methods_of_each_layout)
{
	static const uint32_t releases[] = { 8, 11, 17, 21, 22, 23, 24, 25, 26 };

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++)
		check_compiled(releases[i]);
}

TEST(nmethods_that_are_no_more)
{
	static const struct {
		uint32_t release, state;
		bool gone;
	} states[] = { { 8, 0, false },	 { 8, 1, false },  { 8, 2, true },  { 8, 3, true },
		       { 17, 2, false }, { 17, 3, true },  { 17, 4, true }, { 19, 3, true },
		       { 21, 3, false }, { 25, 1, false }, { 17, 0, false } };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		make_jvm(states[i].release);
		put_field(NMETHOD, fields.nmethod_state, states[i].state);
		if (states[i].gone)
			ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)), ENOENT);
		else
			ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
		hotspot_names_free(jvm.names);
	}
	make_jvm(25);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	put_field(NMETHOD - BLOCK_SIZE, fields.block_used, 0);
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)), ENOENT);
	put_field(NMETHOD - BLOCK_SIZE, fields.block_used, 1);
	put_field(NMETHOD, fields.nmethod_method, 0);
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)), ENOENT);
	hotspot_names_free(jvm.names);
}

static void free_nmethod(void)
{
	put_field(NMETHOD - BLOCK_SIZE, fields.block_used, 0);
	make_class("c/Other");
}

static void compile_another(void)
{
	make_class("c/Other");
	make_nmethod(NMETHOD, 9);
}

TEST(nmethods_that_change_while_they_are_read)
{
	uint64_t word = HOTSPOT_WORD(7, 0x40);

	check_changes(HOTSPOT_COMPILED, NMETHOD, word, free_nmethod, -ENOENT);
	check_changes(HOTSPOT_COMPILED, NMETHOD, word, compile_another, -ENOENT);
	check_changes(HOTSPOT_COMPILED, NMETHOD, word, unmap_all, -ENOENT);
	check_changes(HOTSPOT_COMPILED, NMETHOD, word, end_process, -ESRCH);
}

TEST(another_nmethod_at_the_same_address)
{
	make_jvm(25);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	compile_another();
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)), ENOENT);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(9, 0x40)));
	ASSERT_STR(got.names, "c.Other.inner;c.Other.outer");
	hotspot_names_free(jvm.names);
}

TEST(damaged_nmethods)
{
	make_jvm(25);
	/* Scopes that lead nowhere: the nmethod is still its method's. */
	put(TABLES + 0x40 + 64 + 4, 0xbf, 1);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40)));
	ASSERT_STR(got.names, "a.b.Main.outer");
	ASSERT_EQ(got.lines[0], 0);
	/* A method that there is not. */
	make_nmethod(NMETHOD, 8);
	put(TABLES + 0x40 + 64 + 5, 4, 1);
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(8, 0x40)), ENOENT);
	ASSERT_EQ(got.nr, 0);
	/* Tables of a size that cannot be. */
	make_nmethod(NMETHOD, 9);
	put_field(NMETHOD, fields.nmethod_immutable_data_size, 0x7fffffff);
	ASSERT_ERR(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(9, 0x40)), ENOENT);
	make_nmethod(NMETHOD, 10);
	put_field(NMETHOD, fields.nmethod_scopes_data_offset, 0);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(10, 0x40)));
	ASSERT_STR(got.names, "a.b.Main.outer");
	ASSERT_ERR(name(HOTSPOT_COMPILED, SIZE - 8, HOTSPOT_WORD(10, 0x40)), ENOENT);
	hotspot_names_free(jvm.names);
}

TEST(more_nmethods_than_are_kept)
{
	enum { NR = 800 };

	make_jvm(17);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < NR; i++) {
			uint32_t at = NMETHOD + i * NMETHOD_SIZE;

			make_nmethod(at, 100 + i);
			ASSERT_OK(name(HOTSPOT_COMPILED, at, HOTSPOT_WORD(100 + i, 0x40)));
			ASSERT_STR(got.names, "a.b.Main.inner;a.b.Main.outer");
		}
	}
	/* The last one is kept, the first one is not. */
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD + (NR - 1) * NMETHOD_SIZE,
		       HOTSPOT_WORD(100 + NR - 1, 0x20)));
	ASSERT_EQ(jvm.nr_reads, 2);
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(100, 0x20)));
	ASSERT(jvm.nr_reads > 2);
	hotspot_names_free(jvm.names);
}

/* Each of its methods, some 64, has a line table of 200 KiB; method i is at LARGE_PC + i. */
enum { LARGE_METHODS = 64, LARGE_LINES = 200 << 10, LARGE_PC = 0x20 };

static void make_large_nmethod(void)
{
	enum { METADATA = NMETHOD + 0x1000, SCOPES = METADATA + 8 * LARGE_METHODS };
	enum { PCS = SCOPES + 0x400, END = PCS + 16 * (LARGE_METHODS + 2) };

	make_nmethod(NMETHOD, 7);
	put_field(INNER_CONST, fields.const_method_size, LARGE_LINES / 8);
	put_field(NMETHOD, fields.nmethod_metadata_offset, METADATA - NMETHOD);
	put_field(NMETHOD, fields.nmethod_scopes_data_offset, SCOPES - NMETHOD);
	put_field(NMETHOD, fields.nmethod_scopes_pcs_offset, PCS - NMETHOD);
	put_field(NMETHOD, fields.nmethod_dependencies_offset, END - NMETHOD);
	put(SCOPES, 0xff, 1);
	put(PCS, (uint32_t)-1, 4);
	put(PCS + 16 * (LARGE_METHODS + 1), INT_MAX, 4);
	for (uint32_t i = 0; i < LARGE_METHODS; i++) {
		/* At bytecode 2. */
		put(METADATA + 8 * i, BASE + INNER, 8);
		put(SCOPES + 1 + 3 * i, (i + 1) << 8 | 3 << 16, 3);
		put(PCS + 16 * (i + 1), LARGE_PC + i, 4);
		put(PCS + 16 * (i + 1) + 4, 1 + 3 * i, 4);
	}
}

/* How many reads it took to name method i of it. */
static uint32_t name_large(uint32_t i)
{
	ASSERT_OK(name(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, LARGE_PC + i)));
	ASSERT_STR(got.names, "a.b.Main.inner");
	return jvm.nr_reads;
}

TEST(an_nmethod_that_is_more_than_is_kept)
{
	make_jvm(17);
	make_large_nmethod();
	for (uint32_t i = 0; i < LARGE_METHODS; i++)
		ASSERT(name_large(i) > 2);
	/* What was named last is kept, what was first is not. */
	ASSERT_EQ(name_large(LARGE_METHODS - 1), 2);
	ASSERT(name_large(0) > 2);
	hotspot_names_free(jvm.names);
}

/* Anybody may start many: all keep 16 MB together. */
TEST(jvms_have_one_budget)
{
	enum { NR = 4, METHODS = 30 };
	struct hotspot_names *names[NR];

	make_jvm(17);
	make_large_nmethod();
	for (size_t i = 0; i < NR; i++) {
		names[i] = i ? hotspot_names_new(&jvm.vm, &layout) : jvm.names;
		ASSERT_PTR_NONNULL(names[i]);
		jvm.names = names[i];
		for (uint32_t k = 0; k < METHODS; k++)
			ASSERT(name_large(k) > 2);
		ASSERT(jvm.keeper.bytes >= METHODS * LARGE_LINES);
		ASSERT(jvm.keeper.bytes <= RUNTIME_KEPT_MAX);
	}
	/* The last two are kept; who was there first is read again, and the others make room. */
	for (size_t i = NR; i-- > 0;) {
		jvm.names = names[i];
		ASSERT_EQ(name_large(0) == 2, i >= NR - 2);
	}
	ASSERT(jvm.keeper.nr_dropped);
	for (size_t i = 0; i < NR; i++)
		hotspot_names_free(names[i]);
	ASSERT(!jvm.keeper.bytes && !jvm.keeper.oldest);
}

/* ----- others ----- */

TEST(stubs)
{
	uint32_t check = hotspot_stub_check(BASE + STUB_NAME, 0x80);

	make_jvm(25);
	put_field(STUB, fields.blob_name, BASE + STUB_NAME);
	put_field(STUB, fields.blob_size, 0x80);
	put_field(STUB, fields.blob_code_offset, 0x20);
	put_field(STUB, fields.blob_data_offset, 0x80);
	memcpy(jvm.memory + STUB_NAME, "DeoptimizationBlob", 19);
	ASSERT_OK(name(HOTSPOT_STUB, STUB, HOTSPOT_WORD(check, 8)));
	ASSERT_EQ(got.nr, 1);
	ASSERT_STR(got.names, "DeoptimizationBlob");
	ASSERT_EQ(got.lines[0], 0);
	memcpy(jvm.memory + STUB_NAME, "vtable chunks", 14);
	ASSERT_OK(name(HOTSPOT_STUB | HOTSPOT_INTERRUPTED, STUB, HOTSPOT_WORD(check, 8)));
	ASSERT_STR(got.names, "vtable stub");
	/* There is no list of stubs here. */
	memcpy(jvm.memory + STUB_NAME, "StubRoutines (1)", 17);
	ASSERT_OK(name(HOTSPOT_STUB, STUB, HOTSPOT_WORD(check, 8)));
	ASSERT_STR(got.names, "StubRoutines (1)");
	put_field(STUB, fields.blob_size, 0x90);
	ASSERT_ERR(name(HOTSPOT_STUB, STUB, HOTSPOT_WORD(check, 8)), ENOENT);
	ASSERT_ERR(name(HOTSPOT_STUB, SIZE - 4, HOTSPOT_WORD(check, 8)), ENOENT);
	hotspot_names_free(jvm.names);
}

static void put_stub(uint32_t i, uint64_t next, const char *text, uint32_t start, uint32_t end)
{
	uint32_t at = STUB_DESCS + i * 0x80, behind = at + (jvm.vm.release <= 8 ? 32 : 24);

	put(at, next, 8);
	put(at + 8, BASE + LIBJVM, 8);
	put(at + 16, BASE + at + 0x40, 8);
	put(at + 24, i, 4);
	put(behind, BASE + start, 8);
	put(behind + 8, BASE + end, 8);
	snprintf((char *)jvm.memory + at + 0x40, 0x20, "%s", text);
	memcpy(jvm.memory + LIBJVM, "StubRoutines", 13);
	put(STATICS + 0x100, BASE + at, 8);
}

static void check_stub(uint32_t offset, const char *wanted)
{
	uint32_t check = hotspot_stub_check(BASE + STUB_NAME, 0x100);

	ASSERT_OK(name(HOTSPOT_STUB | HOTSPOT_INTERRUPTED, STUB, HOTSPOT_WORD(check, offset)));
	ASSERT_STR(got.names, wanted);
}

/* A JVM whose stubs are in one blob, and that has no list of them yet. */
static void make_stubs(uint32_t release)
{
	make_jvm(release);
	jvm.target.bias = BASE + LIBJVM;
	jvm.vm.at_heaps = BASE + STATICS;
	put_field(STUB, fields.blob_name, BASE + STUB_NAME);
	put_field(STUB, fields.blob_size, 0x100);
	put_field(STUB, fields.blob_code_offset, 0x20);
	put_field(STUB, fields.blob_data_offset, 0x100);
	memcpy(jvm.memory + STUB_NAME, "StubRoutines (1)", 17);
}

/* A JVM that starts: one stub is asked for before there is a list, the next one when there is. */
TEST(stubs_whose_list_is_late)
{
	make_stubs(17);
	check_stub(0x40, "StubRoutines (1)");
	put_stub(0, 0, "forward exception", STUB + 0x40, STUB + 0x60);
	put_stub(1, BASE + STUB_DESCS, "call_stub", STUB + 0x60, STUB + 0x70);
	check_stub(0x40, "StubRoutines::call_stub");
	hotspot_names_free(jvm.names);
}

/* The newest one has no end as long as its code is written. */
TEST(a_stub_that_is_being_made)
{
	make_stubs(17);
	put_stub(0, 0, "forward exception", STUB + 0x40, STUB + 0x60);
	put_stub(1, BASE + STUB_DESCS, "call_stub", STUB + 0x60, STUB + 0x70);
	put(STUB_DESCS + 0x80 + 32, 0, 8);
	check_stub(0x20, "StubRoutines::forward exception");
	check_stub(0x40, "StubRoutines (1)");
	put_stub(1, BASE + STUB_DESCS, "call_stub", STUB + 0x60, STUB + 0x70);
	check_stub(0x40, "StubRoutines::call_stub");
	/* One that is its own successor. */
	put_stub(2, BASE + STUB_DESCS + 0x100, "late", STUB + 0x70, STUB + 0x80);
	put(STUB_DESCS + 0x100 + 32, 0, 8);
	check_stub(0x50, "StubRoutines (1)");
	hotspot_names_free(jvm.names);
}

/* Its data are made up: each word leads to a list that is long, and none that is wanted. */
TEST(lists_without_end_are_not_followed)
{
	enum { LIST = 0x10000, NR = 1000, DESC = 0x28, WORDS = 0x20000, READS_MAX = 1 << 18 };

	make_stubs(17);
	memcpy(jvm.memory + LIBJVM, "Others", 7);
	for (uint32_t i = 0; i < NR; i++) {
		put(LIST + i * DESC, i + 1 < NR ? BASE + LIST + (i + 1) * DESC : 0, 8);
		put(LIST + i * DESC + 8, BASE + LIBJVM, 8);
		put(LIST + i * DESC + 16, BASE + LIBJVM, 8);
		put(LIST + i * DESC + 24, BASE + STUB + 0x40, 8);
		put(LIST + i * DESC + 32, BASE + STUB + 0x60, 8);
	}
	for (uint32_t i = 0; i < 0x40000; i += 8)
		put(WORDS + i, BASE + LIST + i / 8 % 2 * DESC, 8);
	check_stub(0x20, "StubRoutines (1)");
	ASSERT(jvm.nr_reads > NR && jvm.nr_reads < READS_MAX);
	/* What is not there is not looked for again. */
	check_stub(0x20, "StubRoutines (1)");
	ASSERT(jvm.nr_reads < NR);
	hotspot_names_free(jvm.names);
}

/* What they are called is within the budget of all processes, too. */
TEST(a_list_that_was_dropped_is_read_again)
{
	make_stubs(17);
	put_stub(0, 0, "call_stub", STUB + 0x40, STUB + 0x60);
	check_stub(0x20, "StubRoutines::call_stub");
	ASSERT(jvm.keeper.bytes > 0);
	jvm.keeper.oldest->drop(jvm.keeper.oldest);
	check_stub(0x20, "StubRoutines::call_stub");
	hotspot_names_free(jvm.names);
	ASSERT_EQ(jvm.keeper.bytes, 0);
}

TEST(stubs_that_are_listed)
{
	static const struct {
		uint32_t release;
		const char *text;
	} lists[] = { { 8, "call_stub" },
		      { 17, "call_stub" },
		      { 26, "Stub Generator call_stub_stub" },
		      { 27, "call_stub_stub (stub gen)" } };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		make_stubs(lists[i].release);
		put_stub(0, 0, "forward exception", STUB + 0x40, STUB + 0x60);
		put_stub(1, BASE + STUB_DESCS, lists[i].text, STUB + 0x60, STUB + 0x70);
		/* Pointers into the midst of the list are not its head. */
		put(STATICS + 0x80, BASE + STUB_DESCS, 8);
		check_stub(0x1f, "StubRoutines (1)");
		check_stub(0x20, "StubRoutines::forward exception");
		check_stub(0x3f, "StubRoutines::forward exception");
		check_stub(0x40, "StubRoutines::call_stub");
		check_stub(0x50, "StubRoutines (1)");
		/* One more is made. */
		put_stub(2, BASE + STUB_DESCS + 0x80, "late", STUB + 0x70, STUB + 0x80);
		check_stub(0x50, "StubRoutines::late");
		/* A list that is no more: what was known is still known. */
		put(STUB_DESCS + 0x100, BASE + STUB_DESCS + 0x100, 8);
		put(STATICS + 0x100, BASE + STUB_DESCS, 8);
		put(STUB_DESCS, BASE + STUB_DESCS, 8);
		check_stub(0x60, "StubRoutines (1)");
		check_stub(0x40, "StubRoutines::call_stub");
		hotspot_names_free(jvm.names);
	}
}

TEST(words_that_make_no_sense)
{
	const uint64_t words[] = { FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(0, BASE)), 0, 0 };
	const uint64_t python[] = { FRAME(RUNTIME_PYTHON, 1,
					  HOTSPOT_FRAME(HOTSPOT_COMPILED, BASE + NMETHOD)),
				    HOTSPOT_WORD(7, 0x40) };
	int r = 0;
	const struct runtime_sink sink = { .add = take, .ctx = &r };

	make_jvm(17);
	for (size_t nr = 0; nr <= 3; nr++)
		ASSERT_ERR(hotspot_names_symbolize(jvm.names, words, nr, &sink), EINVAL);
	ASSERT_ERR(hotspot_names_symbolize(jvm.names, python, 2, &sink), EINVAL);
	for (uint32_t kind = 5; kind < 8; kind++)
		ASSERT_ERR(name(kind, NMETHOD, HOTSPOT_WORD(7, 0x40)), EINVAL);
	ASSERT_ERR(name(HOTSPOT_INTERPRETED, OUTER, HOTSPOT_WORD(cookie_of(OUTER), 0x10000)),
		   EINVAL);
	hotspot_names_free(jvm.names);
	hotspot_names_free(NULL);
}

TEST(errors_of_the_sink)
{
	make_jvm(17);
	ASSERT_ERR(name_to(INTERPRETED(OUTER, 0), -ENOMEM), ENOMEM);
	ASSERT_ERR(name_to(HOTSPOT_COMPILED, NMETHOD, HOTSPOT_WORD(7, 0x40), -ENOMEM), ENOMEM);
	ASSERT_EQ(got.nr, 1);
	hotspot_names_free(jvm.names);
}
