// SPDX-License-Identifier: Apache-2.0
/*
 * Frames of a made-up heap: their names, also if objects move while they are read and another
 * function takes their place; how much is read, and how much is kept, whatever is there.
 */
#include "runtime/v8/v8_frame.h"

#include "runtime/v8/test_v8_layout.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x700040000) /* a page of the heap begins there */

enum {
	SIZE = 64 << 10,
	TAG = 1,
	WEAK = 3, /* of what is not held; by itself, it is gone */
	LITERAL = 3,
	TOKEN = 5,
	SCRIPT = 7,
	KIND_OPTIMIZED = 13,
	ONE_BYTE = 8, /* a string's type: its characters are within it */
	EXTERNAL = 8 | 2,
	/* Within the image: what the heap is found by, and its roots. */
	CHUNK_HEAP = 8,
	LINES = 1 << 19, /* of a made-up source, which lies elsewhere: every second unit ends one */
};
#define MAPS	  BASE /* their instance type is behind 8 bytes */
#define HEAP	  (BASE + 0xe000)
#define LIST	  (HEAP - 0x1238)
#define ELSEWHERE UINT64_C(0x100000000)
#define SMALL(n)  ((uint64_t)(n) << 32)

struct image {
	uint8_t bytes[SIZE], then[SIZE];
	size_t used;
	int change_at; /* when `then` takes the place of `bytes`; -1: never */
	int nr_reads;
	uint64_t bytes_read;
};

struct heap {
	struct image *image;
	struct v8_layout layout;
	struct v8_bytecode_sizes sizes;
	struct runtime_keeper keeper;
	struct runtime_target target;
	struct v8_frames frames;
};

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct image *i = ctx;

	if (i->nr_reads++ == i->change_at)
		memcpy(i->bytes, i->then, SIZE);
	i->bytes_read += size;
	if (addr >= ELSEWHERE && addr < 2 * ELSEWHERE) {
		for (size_t k = 0; k < size; k++)
			((char *)to)[k] = (addr + k) % 2 ? '\n' : 'x';
		return 0;
	}
	if (addr < BASE || addr - BASE > SIZE || size > SIZE - (addr - BASE))
		return -EFAULT;
	memcpy(to, i->bytes + (addr - BASE), size);
	return 0;
}

static struct heap *heap_new_of(uint8_t kind)
{
	struct heap *h = calloc(1, sizeof(*h));

	ASSERT(h && (h->image = calloc(1, sizeof(*h->image))));
	h->image->change_at = -1;
	h->image->used = 4096;
	h->layout = test_v8_layout(kind);
	h->target =
		(struct runtime_target){ .memory = { read_image, h->image }, .keeper = &h->keeper };
	h->frames = (struct v8_frames){ .target = &h->target,
					.layout = &h->layout,
					.sizes = &h->sizes };
	return h;
}

static struct heap *heap_new(void)
{
	return heap_new_of(0);
}

static void heap_free(struct heap *h)
{
	v8_frames_fini(&h->frames);
	free(h->image);
	free(h);
}

static void put(struct image *i, uint64_t at, const void *from, size_t size)
{
	ASSERT(at >= BASE && at - BASE + size <= SIZE);
	memcpy(i->bytes + (at - BASE), from, size);
}

static void put_8(struct image *i, uint64_t at, uint64_t value)
{
	put(i, at, &value, sizeof(value));
}

static void put_4(struct image *i, uint64_t at, uint32_t value)
{
	put(i, at, &value, sizeof(value));
}

static void put_2(struct image *i, uint64_t at, uint16_t value)
{
	put(i, at, &value, sizeof(value));
}

/* A pointer with its tag, or SMALL(). */
static void put_tagged(struct heap *h, uint64_t at, uint64_t value)
{
	if (!h->layout.record.compressed)
		put_8(h->image, at, value);
	else
		put_4(h->image, at, (uint32_t)(value & TAG ? value : value >> 31));
}

static uint64_t tagged_at(const struct heap *h, uint64_t at)
{
	return v8_tagged_of(&h->layout, at, h->image->bytes + (at - BASE));
}

/* A new object of that type, its first byte; each type has its map. */
static uint64_t put_object(struct heap *h, uint16_t type, size_t size)
{
	struct image *i = h->image;
	uint64_t at = BASE + i->used, map = MAPS + 16ull * type;

	ASSERT(type < 255);
	i->used += (size + 63) & ~63ull;
	put_2(i, map + 8, type);
	put_tagged(h, at, map + TAG);
	return at;
}

static uint64_t put_string(struct heap *h, const char *text)
{
	uint64_t at = put_object(h, ONE_BYTE, 16 + strlen(text));

	put_4(h->image, at + h->layout.string_length, (uint32_t)strlen(text));
	put(h->image, at + h->layout.string_chars, text, strlen(text));
	return at + TAG;
}

/* An array of that many words, or of that many bytes. */
static uint64_t put_array(struct heap *h, uint16_t type, const void *from, uint32_t length)
{
	bool bytes = type == h->layout.type_byte_array;
	uint64_t at = put_object(h, type, 16 + length * (bytes ? 1ull : 8ull)),
		 data = at + h->layout.array_data;

	put_tagged(h, at + h->layout.array_length, SMALL(length));
	if (bytes && length)
		put(h->image, data, from, length);
	for (uint32_t i = 0; !bytes && i < length; i++)
		put_tagged(h, data + i * v8_tagged_size(&h->layout), ((const uint64_t *)from)[i]);
	return at + TAG;
}

static uint64_t put_script(struct heap *h, uint32_t id, uint64_t source)
{
	uint64_t at = put_object(h, h->layout.type_script, 64);

	put_tagged(h, at + h->layout.script_source, source);
	put_tagged(h, at + h->layout.script_name, put_string(h, "file.js"));
	put_tagged(h, at + h->layout.script_line_offset, 0);
	put_tagged(h, at + h->layout.record.script_id, SMALL(id));
	return at + TAG;
}

static void fill_shared(struct heap *h, uint64_t at, uint64_t script, uint16_t token,
			uint32_t literal, const char *name)
{
	put_tagged(h, at + h->layout.shared_name, put_string(h, name));
	put_tagged(h, at + h->layout.record.shared_script, script);
	put_2(h->image, at + h->layout.record.shared_token, token);
	put_4(h->image, at + h->layout.record.shared_literal, literal);
}

static uint64_t put_shared(struct heap *h, uint64_t script, uint16_t token, uint32_t literal,
			   const char *name)
{
	uint64_t at = put_object(h, h->layout.type_shared, 64);

	fill_shared(h, at, script, token, literal, name);
	return at;
}

/* A function that another one replaces, whose name lies where its own did. */
static void replace_shared(struct heap *h, uint64_t at)
{
	uint64_t script = put_script(h, SCRIPT + 1, put_string(h, "\n\n\n\n\n\n\n")), string;

	string = tagged_at(h, at + h->layout.shared_name);
	put(h->image, string - TAG + h->layout.string_chars, "thief", strlen("thief"));
	fill_shared(h, at, script, TOKEN + 1, LITERAL + 1, "thief");
}

struct answer {
	int nr;
	char names[4][32];
	uint32_t lines[4], start_lines[4];
};

static int take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct answer *a = ctx;

	ASSERT(a->nr < 4);
	snprintf(a->names[a->nr], sizeof(*a->names), "%s", inline_frame->name);
	a->start_lines[a->nr] = inline_frame->start_line;
	a->lines[a->nr++] = inline_frame->line;
	return 0;
}

static int name(struct heap *h, uint32_t kind, uint64_t shared, uint32_t script, uint64_t place,
		struct answer *ret)
{
	const struct runtime_sink sink = { .add = take, .ctx = ret };
	const uint64_t words[] = { FRAME(RUNTIME_V8, 2, V8_FRAME(kind, shared)),
				   (uint64_t)script << 32 | LITERAL, V8_PLACE_WORD(TOKEN, place) };

	*ret = (struct answer){ 0 };
	return v8_frame_name(&h->frames, words, &sink);
}

/* The function's bytecodes, of which 4 is at the offset 6 of the source. */
static void put_bytecodes(struct heap *h, uint64_t shared)
{
	/* From -1 on, five further, six further (those of expressions are negated). */
	static const uint8_t positions[] = { 5 << 1, (6 + 1) << 2 };
	uint64_t bytecodes = put_object(h, h->layout.type_bytecode_array, 64);

	put_tagged(h, bytecodes + h->layout.array_length, SMALL(16));
	put_tagged(h, bytecodes + h->layout.bytecode_positions,
		   put_array(h, h->layout.type_byte_array, positions, sizeof(positions)));
	put_tagged(h, shared + h->layout.shared_data, bytecodes + TAG);
}

static uint64_t put_interpreted(struct heap *h)
{
	uint64_t script = put_script(h, SCRIPT, put_string(h, "0\n2\n4\n6\n8")),
		 shared = put_shared(h, script, TOKEN, LITERAL, "right");

	put_bytecodes(h, shared);
	return shared;
}

static void replace_while_read(uint8_t kind)
{
	struct answer a;
	int named = 0, gone = 0;

	for (int at = 0; at < 1000; at++) {
		struct heap *h = heap_new_of(kind);
		uint64_t shared = put_interpreted(h);
		uint8_t before[SIZE];
		int r;

		/* Another function comes to have these words. */
		memcpy(before, h->image->bytes, SIZE);
		replace_shared(h, shared);
		memcpy(h->image->then, h->image->bytes, SIZE);
		memcpy(h->image->bytes, before, SIZE);
		h->image->change_at = at;
		r = name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a);
		if (!r) {
			ASSERT_EQ(a.nr, 1);
			ASSERT_STR(a.names[0], "right");
			ASSERT_EQ(a.lines[0], 4);
			named++;
		} else {
			ASSERT_EQ(r, -ENOENT);
			ASSERT_EQ(a.nr, 0);
			gone++;
		}
		r = h->image->nr_reads <= at;
		heap_free(h);
		if (r)
			break;
	}
	ASSERT(named && gone);
}

TEST(functions_that_another_one_replaces_while_they_are_read)
{
	replace_while_read(0);
	replace_while_read(TEST_V8_COMPRESSED);
}

/* The line of a function in a file of that name. */
static uint32_t line_in(const char *file, bool makes_sources)
{
	struct heap *h = heap_new();
	uint64_t shared = put_interpreted(h), script;
	struct answer a;

	h->layout.makes_sources = makes_sources;
	script = tagged_at(h, shared + h->layout.record.shared_script);
	put_tagged(h, script - TAG + h->layout.script_name, put_string(h, file));
	ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
	ASSERT_EQ(a.nr, 1);
	heap_free(h);
	return a.lines[0];
}

TEST(sources_that_were_made_of_others_have_no_lines)
{
	static const char *const made[] = { "a.ts", ".mts", "file:///b/c.cts", "d.tsx", "e.jsx" };
	static const char *const others[] = { "a.js", "ts", "a.ts.mjs", "" };

	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		ASSERT_EQ(line_in(made[i], true), 0);
		ASSERT_EQ(line_in(made[i], false), 4);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		ASSERT_EQ(line_in(others[i], true), 4);
}

struct code {
	uint64_t shared, literals, pc;
	uint64_t inlining;  /* tagged: where the inlined calls are */
	uint64_t positions; /* likewise */
};

/* Optimized code of `right`, into which `inner` is inlined, at `inner_at`. */
static struct code put_optimized(struct heap *h, uint64_t *inner_at)
{
	/* At the offset 7: the place 2, in the inlined call 0, which is at the place 6. */
	uint64_t inner_position = (2 + 1) << 1 | 1ull << 31, zigzag = inner_position << 1;
	uint8_t positions[16] = { 8 << 1 }, inlining[16] = { 0 };
	/* A begin; two frames, both of JavaScript: of literal 1, and of 0 in it, at bytecode 4. */
	static const uint8_t translation[] = { 14, 0, 2 << 1, 2 << 1, 1, 4 << 1, 1 << 1,
					       0,  0, 1,      4 << 1, 0, 0,	 0 };
	/* The call that returns to 0x20 has the first entry, and that to 0x30 none. */
	static const uint8_t safepoints[] = { 0,    0, 0, 0, 16,   0, 0, 0x80,
					      0x1f, 1, 0, 0, 0x10, 0, 0, 0 };
	const struct v8_layout *l = &h->layout;
	uint64_t script = put_script(h, SCRIPT, put_string(h, "0\n2\n4\n6\n8")), code, stream,
		 position = (6 + 1) << 1, deopt[8] = { 0 };
	struct code c = { .shared = put_shared(h, script, TOKEN, LITERAL, "right") };
	uint32_t size = 1;

	for (; zigzag >= 0x80; zigzag >>= 7)
		positions[size++] = (uint8_t)(zigzag | 0x80);
	positions[size++] = (uint8_t)zigzag;
	*inner_at = put_shared(h, script, TOKEN + 2, LITERAL + 2, "inner");
	memcpy(inlining, &position, sizeof(position));
	c.literals = put_array(h, l->type_fixed_array,
			       (uint64_t[]){ *inner_at + TAG, c.shared + TAG }, 2);
	deopt[l->deopt_shared] = c.shared + TAG;
	c.inlining = put_array(h, l->type_byte_array, inlining, sizeof(inlining));
	deopt[0] = put_array(h, l->type_byte_array, translation, sizeof(translation));
	deopt[l->deopt_inlining] = c.inlining;
	deopt[l->deopt_literals] = c.literals;
	code = put_object(h, l->type_code, 64);
	stream = put_object(h, l->type_stream, 256);
	ASSERT(!(stream % 32));
	/* Instructions begin where they are aligned. */
	h->layout.stream_header = 32;
	put_tagged(h, stream + l->stream_code, code + TAG);
	put_tagged(h, code + l->code_deopt, put_array(h, l->type_deopt, deopt, 8));
	c.positions = put_array(h, l->type_byte_array, positions, size);
	put_tagged(h, code + l->code_positions, c.positions);
	put_8(h->image, code + l->record.code_start, stream + l->stream_header);
	put_4(h->image, code + l->code_flags, KIND_OPTIMIZED);
	put_4(h->image, code + l->record.code_size, 200);
	put_4(h->image, code + l->record.code_size + 4, sizeof(safepoints));
	put(h->image, stream + l->stream_header + 200, safepoints, sizeof(safepoints));
	c.pc = stream + l->stream_header + 7;
	return c;
}

/* What is at a place in code that has positions of its calls only: as told, innermost first. */
static void check_calls_only(uint8_t kind, uint64_t offset, bool none_inlined, int nr,
			     const char *first, uint32_t line)
{
	struct heap *h = heap_new_of(kind);
	uint64_t inner;
	struct code c = put_optimized(h, &inner);
	struct answer a;

	h->layout = test_v8_layout(kind | TEST_V8_CALLS);
	h->layout.stream_header = 32;
	put_bytecodes(h, inner);
	put_bytecodes(h, c.shared);
	if (none_inlined)
		put_tagged(h, c.inlining - TAG + h->layout.array_length, 0);
	ASSERT_OK(name(h, V8_CODE, c.shared, SCRIPT, c.pc - 7 + offset, &a));
	ASSERT_EQ(a.nr, nr);
	ASSERT_STR(a.names[0], first);
	ASSERT_STR(a.names[nr - 1], "right");
	ASSERT_EQ(a.lines[0], line);
	ASSERT_EQ(a.lines[nr - 1], line);
	heap_free(h);
}

static void check_calls(uint8_t kind)
{
	check_calls_only(kind, 0x1f, false, 2, "inner", 4);
	check_calls_only(kind, 0x1f, true, 2, "inner", 4);
	/* Interrupted itself, and at a call of which nothing is known. */
	check_calls_only(kind, 7, false, 2, "[v8: inlined_unknown]", 0);
	check_calls_only(kind, 0x20, false, 2, "[v8: inlined_unknown]", 0);
	check_calls_only(kind, 0x2f, false, 2, "[v8: inlined_unknown]", 0);
	check_calls_only(kind, 7, true, 1, "right", 0);
}

TEST(code_that_has_positions_of_its_calls_only)
{
	check_calls(0);
	check_calls(TEST_V8_COMPRESSED);
}

/* A function whose first word says where it is now. */
static void name_moved(uint8_t kind)
{
	struct heap *h = heap_new_of(kind);
	uint64_t shared = put_interpreted(h), moved = put_object(h, h->layout.type_shared, 64);
	struct answer a;

	memcpy(h->image->bytes + (moved - BASE), h->image->bytes + (shared - BASE), 64);
	memset(h->image->bytes + (shared - BASE), 0xff, 64);
	if (kind & TEST_V8_COMPRESSED)
		put_4(h->image, shared, (uint32_t)moved);
	else
		put_8(h->image, shared, moved);
	ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
	ASSERT_STR(a.names[0], "right");
	ASSERT_EQ(a.lines[0], 4);
	heap_free(h);
}

TEST(functions_that_were_moved)
{
	name_moved(0);
	name_moved(TEST_V8_COMPRESSED);
}

/* Maglev's code before V8 13, where it was interrupted. */
static void check_no_positions(bool none_inlined, int nr, const char *first)
{
	struct heap *h = heap_new();
	uint64_t inner;
	struct code c = put_optimized(h, &inner);
	struct answer a;

	put_tagged(h, c.positions - TAG + h->layout.array_length, 0);
	if (none_inlined)
		put_tagged(h, c.inlining - TAG + h->layout.array_length, 0);
	ASSERT_OK(name(h, V8_CODE, c.shared, SCRIPT, c.pc, &a));
	ASSERT_EQ(a.nr, nr);
	ASSERT_STR(a.names[0], first);
	ASSERT_STR(a.names[nr - 1], "right");
	ASSERT_EQ(a.lines[0], 0);
	heap_free(h);
}

TEST(code_without_positions_does_not_tell_what_is_inlined)
{
	check_no_positions(false, 2, "[v8: inlined_unknown]");
	check_no_positions(true, 1, "right");
}

static void move_while_read(uint8_t kind)
{
	struct answer a;
	int named = 0;

	for (int at = 0; at < 1000; at++) {
		struct heap *h = heap_new_of(kind);
		uint64_t inner, moved;
		struct code c = put_optimized(h, &inner);
		uint8_t before[SIZE];
		int r;

		/* `inner` goes elsewhere, and its place is used again. */
		memcpy(before, h->image->bytes, SIZE);
		moved = put_object(h, h->layout.type_shared, 64);
		put(h->image, moved, before + (inner - BASE), 64);
		put_tagged(h, moved + h->layout.shared_name, put_string(h, "inner"));
		put_tagged(h, c.literals - TAG + h->layout.array_data, moved + TAG);
		replace_shared(h, inner);
		memcpy(h->image->then, h->image->bytes, SIZE);
		memcpy(h->image->bytes, before, SIZE);
		h->image->change_at = at;
		r = name(h, V8_CODE, c.shared, SCRIPT, c.pc, &a);
		ASSERT_OK(r);
		ASSERT_EQ(a.nr, 2);
		ASSERT_STR(a.names[0], "inner");
		ASSERT_STR(a.names[1], "right");
		ASSERT_EQ(a.lines[0], 2);
		ASSERT_EQ(a.lines[1], 4);
		named++;
		r = h->image->nr_reads <= at;
		heap_free(h);
		if (r)
			break;
	}
	ASSERT(named > 10);
}

TEST(inlined_functions_that_move_while_they_are_read)
{
	move_while_read(0);
	move_while_read(TEST_V8_COMPRESSED);
}

/* A string whose characters are elsewhere. */
static uint64_t put_external(struct heap *h, uint32_t length)
{
	uint64_t at = put_object(h, EXTERNAL, 64);

	put_4(h->image, at + h->layout.string_length, length);
	put_8(h->image, at + h->layout.external_data, ELSEWHERE);
	return at + TAG;
}

/* A function of that script, at the begin of line 3 of its own. */
static uint64_t put_lines(struct heap *h, uint32_t script, uint64_t source)
{
	static const uint8_t positions[] = { 5 << 1, (4 + 1) << 2 };
	uint64_t shared = put_shared(h, put_script(h, script, source), TOKEN, LITERAL, "long"),
		 bytecodes = put_object(h, h->layout.type_bytecode_array, 64);

	put_tagged(h, bytecodes + h->layout.array_length, SMALL(16));
	put_tagged(h, bytecodes + h->layout.bytecode_positions,
		   put_array(h, h->layout.type_byte_array, positions, sizeof(positions)));
	put_tagged(h, shared + h->layout.shared_data, bytecodes + TAG);
	return shared;
}

TEST(lines_of_all_processes_have_one_budget)
{
	enum { PROCESSES = 3, SCRIPTS = 4 };
	struct heap *heaps[PROCESSES];
	uint64_t functions[PROCESSES][SCRIPTS];
	struct answer a;

	for (int p = 0; p < PROCESSES; p++) {
		uint64_t source = 0;

		heaps[p] = heap_new();
		heaps[p]->target.keeper = &heaps[0]->keeper;
		/* One source for all of them. */
		for (uint32_t s = 0; s < SCRIPTS; s++) {
			if (!source)
				source = put_external(heaps[p], 2 * LINES);
			functions[p][s] = put_lines(heaps[p], s + 1, source);
		}
	}
	for (int p = 0; p < PROCESSES; p++)
		for (uint32_t s = 0; s < SCRIPTS; s++) {
			ASSERT_OK(name(heaps[p], V8_INTERPRETED, functions[p][s], s + 1, 4, &a));
			ASSERT_EQ(a.lines[0], 3);
			ASSERT(heaps[0]->keeper.bytes >= LINES * sizeof(uint32_t));
			ASSERT(heaps[0]->keeper.bytes <= RUNTIME_KEPT_MAX);
		}
	ASSERT(heaps[0]->keeper.nr_dropped);
	/* What was read last is there. */
	heaps[PROCESSES - 1]->image->bytes_read = 0;
	ASSERT_OK(name(heaps[PROCESSES - 1], V8_INTERPRETED, functions[PROCESSES - 1][SCRIPTS - 1],
		       SCRIPTS, 4, &a));
	ASSERT(heaps[PROCESSES - 1]->image->bytes_read < LINES);
	for (int p = PROCESSES - 1; p >= 0; p--) {
		if (!p)
			ASSERT(heaps[0]->keeper.bytes <= RUNTIME_KEPT_MAX);
		v8_frames_fini(&heaps[p]->frames);
		heaps[p]->frames = (struct v8_frames){ .target = &heaps[p]->target };
	}
	ASSERT(!heaps[0]->keeper.bytes && !heaps[0]->keeper.oldest);
	for (int p = PROCESSES - 1; p >= 0; p--)
		heap_free(heaps[p]);
}

TEST(sources_without_lines_are_read_once)
{
	const uint32_t lengths[] = { 2 * V8_LINES_MAX + 2, V8_SOURCE_MAX + 1 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		struct heap *h = heap_new();
		uint64_t shared = put_lines(h, SCRIPT, put_external(h, lengths[i]));
		struct answer a;

		ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
		ASSERT_STR(a.names[0], "long");
		ASSERT_EQ(a.lines[0], 0);
		ASSERT_EQ(h->keeper.bytes, 0);
		ASSERT(h->image->bytes_read < 3ull * V8_LINES_MAX);
		h->image->bytes_read = 0;
		ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
		ASSERT_EQ(a.lines[0], 0);
		ASSERT(h->image->bytes_read < 65536);
		heap_free(h);
	}
}

/* The list of weak references to all scripts, of which nothing else there is one. */
static void put_scripts(struct heap *h, uint64_t script)
{
	uint64_t at = put_object(h, 200, 64), other = put_script(h, SCRIPT - 1, 0);
	const uint64_t elements[] = { SMALL(8), SMALL(3), WEAK, script - TAG + WEAK,
				      other - TAG + WEAK };

	h->layout.chunk_heap = CHUNK_HEAP;
	put_8(h->image, BASE + CHUNK_HEAP, HEAP);
	for (size_t i = 0; i < sizeof(elements) / sizeof(*elements); i++)
		put_tagged(h, at + (i + 1) * v8_tagged_size(&h->layout), elements[i]);
	put_8(h->image, LIST, at + TAG);
	put_8(h->image, LIST - 0x800, script); /* is none */
}

/* A script's list of its functions: `at` is the one of LITERAL. */
static uint64_t put_functions(struct heap *h, uint64_t script, uint64_t at)
{
	uint64_t elements[LITERAL + 2] = { WEAK, WEAK, WEAK, at + WEAK, WEAK }, list;

	h->layout.script_functions = 48;
	list = put_array(h, 201, elements, LITERAL + 2);
	put_tagged(h, script - TAG + h->layout.script_functions, list);
	return list;
}

/* Roots are not compressed. */
static uint64_t list_at(const struct heap *h)
{
	uint64_t list;

	memcpy(&list, h->image->bytes + (LIST - BASE), sizeof(list));
	return list;
}

enum drop { DROP_FUNCTION, DROP_SCRIPT, DROPS };

/* A collection takes a function out of where it is known, and then others take what had its name:
 * it looks whole. */
static void drop(struct heap *h, uint64_t shared, enum drop how)
{
	uint64_t script = tagged_at(h, shared + h->layout.record.shared_script),
		 functions = tagged_at(h, script - TAG + h->layout.script_functions),
		 list = list_at(h), name = tagged_at(h, shared + h->layout.shared_name);

	if (how == DROP_FUNCTION)
		put_tagged(h,
			   functions - TAG + h->layout.array_data +
				   v8_tagged_size(&h->layout) * LITERAL,
			   WEAK);
	else
		put_tagged(h, list - TAG + 4 * v8_tagged_size(&h->layout), WEAK);
	put(h->image, name - TAG + h->layout.string_chars, "thief", strlen("thief"));
}

static void drop_while_read(uint8_t kind)
{
	struct answer a;
	int named = 0, gone = 0;

	for (int at = 0, how = 0; how < DROPS; at++) {
		struct heap *h = heap_new_of(kind);
		uint64_t shared = put_interpreted(h),
			 script = tagged_at(h, shared + h->layout.record.shared_script);
		uint8_t before[SIZE];
		int r;

		put_functions(h, script, shared);
		put_scripts(h, script);
		memcpy(before, h->image->bytes, SIZE);
		drop(h, shared, how);
		memcpy(h->image->then, h->image->bytes, SIZE);
		memcpy(h->image->bytes, before, SIZE);
		h->image->change_at = at;
		/* Where the list is may be known from another function. */
		if (at % 2)
			h->frames.scripts.list = LIST - HEAP;
		r = name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a);
		if (!r) {
			ASSERT_EQ(a.nr, 1);
			ASSERT_STR(a.names[0], "right");
			ASSERT_EQ(a.lines[0], 4);
			ASSERT_EQ(h->frames.scripts.list, LIST - HEAP);
			named++;
		} else {
			ASSERT_EQ(r, -ENOENT);
			ASSERT_EQ(a.nr, 0);
			gone++;
		}
		if (h->image->nr_reads <= at) {
			at = -1;
			how++;
		}
		heap_free(h);
	}
	ASSERT(named >= 2 * DROPS && gone >= 2 * DROPS);
}

TEST(functions_that_are_dropped_while_they_are_read)
{
	drop_while_read(0);
	drop_while_read(TEST_V8_COMPRESSED);
}

TEST(functions_without_a_name_and_those_whose_name_is_gone)
{
	struct heap *h = heap_new();
	uint64_t shared = put_interpreted(h), name_at = shared + h->layout.shared_name;
	uint64_t others[] = { put_array(h, h->layout.type_fixed_array, NULL, 0), 0, 3 };
	struct answer a;

	put_tagged(h, name_at, 0);
	ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
	ASSERT_STR(a.names[0], "(anonymous)");
	put_tagged(h, name_at, put_string(h, ""));
	ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
	ASSERT_STR(a.names[0], "(anonymous)");
	others[1] = ELSEWHERE / 2 + TAG; /* where no memory is */
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		put_tagged(h, name_at, others[i]);
		ASSERT_EQ(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a), -ENOENT);
	}
	heap_free(h);
}

TEST(lists_of_scripts_that_are_not_to_be_found)
{
	struct heap *h = heap_new();
	uint64_t shared = put_interpreted(h),
		 script = tagged_at(h, shared + h->layout.record.shared_script);
	struct answer a;

	put_functions(h, script, shared);
	put_scripts(h, script);
	put_8(h->image, LIST, 0);
	/* Names are shown as they are read, and it is not looked for again and again. */
	for (int i = 0; i < 20; i++) {
		h->image->nr_reads = 0;
		ASSERT_OK(name(h, V8_INTERPRETED, shared, SCRIPT, 4, &a));
		ASSERT_STR(a.names[0], "right");
	}
	ASSERT(h->image->nr_reads < 100);
	heap_free(h);
}

TEST(memory_full_of_what_code_begins_with)
{
	struct heap *h = heap_new();
	uint64_t shared = put_interpreted(h), code = put_object(h, h->layout.type_code, 64);
	uint64_t map;
	struct answer a;

	/* All of these lead to code that lies elsewhere. */
	map = put_object(h, h->layout.type_stream, 64);
	memcpy(&map, h->image->bytes + (map - BASE), sizeof(map));
	for (uint64_t at = BASE + h->image->used; at < BASE + SIZE; at += 16) {
		put_8(h->image, at, map);
		put_8(h->image, at + 8, code + TAG);
	}
	h->layout.stream_header = 32;
	ASSERT_OK(name(h, V8_CODE, shared, SCRIPT, BASE + SIZE - 100, &a));
	ASSERT_STR(a.names[0], "right");
	ASSERT_EQ(a.lines[0], 0);
	ASSERT(h->image->nr_reads < 4 * 1024 + 512);
	heap_free(h);
}
