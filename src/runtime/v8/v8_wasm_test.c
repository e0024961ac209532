// SPDX-License-Identifier: Apache-2.0
/*
 * Names of WebAssembly's functions in made-up memory: by V8's maps of code, from a module's bytes,
 * and whatever is there.
 */
#include "runtime/v8/v8_wasm.h"

#include "runtime/v8/v8_code.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BASE = 0x10000,
	SIZE = 64 << 10,
	STATE = BASE,
	MANAGER = BASE + 0x100,
	MODULE = BASE + 0x400,
	CODE = BASE + 0x800, /* WasmCodes, 128 bytes each */
	NODES = BASE + 0x1000,
	BYTES = BASE + 0x2000, /* the module's, and what tells where they are */
	TABLES = BASE + 0x3000,
	VECTOR = BASE + 0x3800,
	TEXT = BASE + 0x4000, /* instructions: 0x100 bytes for each code */
	TEXT_SIZE = 0x1000,
	MAPS_MODULES = 0x28,
	MODULE_CODE = 0x140,
	MODULE_NEW = 0x168,
	MODULE_BYTES = 0xf0,
	CODE_SIZE = 0x20,
	CODE_INDEX = 0x38,
	PC = TEXT + 0x140, /* in the second code */
};

static const struct v8_layout layout = {
	.positions = { .first = -1 },
	.wasm = { MAPS_MODULES, MODULE_CODE, MODULE_NEW, MODULE_BYTES, CODE_SIZE, CODE_INDEX,
		  true },
};

/* Names: 1 "run", 2 "größe", 4 no text; then "leaf" in a part that is not looked at. */
static const uint8_t module_bytes[] = {
	0,   'a', 's', 'm', 1,	 0,    0,    0,	   3,	 2,   1, 0, 0, 31,  4,
	'n', 'a', 'm', 'e', 0,	 2,    1,    'm',  1,	 17,  3, 1, 3, 'r', 'u',
	'n', 2,	  7,   'g', 'r', 0xc3, 0xb6, 0xc3, 0x9f, 'e', 4, 0, 2, 1,   0,
};

struct image {
	uint8_t bytes[SIZE], then[SIZE];
	int change_at; /* when `then` takes the place of `bytes`; -1: never */
	int nr_reads;
};

struct answer {
	int nr;
	char names[4][64];
};

static int read_image(void *ctx, uint64_t addr, void *to, size_t size)
{
	struct image *i = ctx;

	if (i->nr_reads++ == i->change_at)
		memcpy(i->bytes, i->then, SIZE);
	if (addr < BASE || addr - BASE > SIZE || size > SIZE - (addr - BASE))
		return -EFAULT;
	memcpy(to, i->bytes + (addr - BASE), size);
	return 0;
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

static void put_node(struct image *i, int n, int left, int right, uint64_t key, uint64_t value)
{
	uint64_t at = NODES + 64ull * (uint64_t)n;

	put_8(i, at + 16, left ? NODES + 64ull * (uint64_t)left : 0);
	put_8(i, at + 24, right ? NODES + 64ull * (uint64_t)right : 0);
	put_8(i, at + 32, key);
	put_8(i, at + 40, value);
}

/* The code number `n`, which is a function's. */
static void put_code(struct image *i, uint64_t n, uint32_t index)
{
	uint64_t at = CODE + 128 * n;

	put_8(i, at, MODULE);
	put_8(i, at + 8, TEXT + 0x100 * n);
	put_8(i, at + CODE_SIZE - 8, TABLES);
	put_4(i, at + CODE_SIZE, 0x80);
	put_4(i, at + CODE_INDEX, index);
}

/* A module with three codes, of which one is a way out, and one that is new. */
static struct image *image_new(void)
{
	struct image *i = calloc(1, sizeof(*i));

	ASSERT(i);
	i->change_at = -1;
	for (uint64_t at = TEXT; at < TEXT + TEXT_SIZE; at++)
		i->bytes[at - BASE] = (uint8_t)(at * 7);
	put_8(i, STATE, MANAGER);
	put_8(i, MANAGER + MAPS_MODULES + 8, NODES + 64);
	put_node(i, 1, 0, 0, TEXT, TEXT + TEXT_SIZE);
	put_8(i, NODES + 64 + 48, MODULE);
	put_8(i, MODULE + MODULE_CODE + 8, NODES + 128);
	put_node(i, 2, 3, 4, TEXT + 0x100, CODE + 128);
	put_node(i, 3, 0, 0, TEXT, CODE);
	put_node(i, 4, 0, 0, TEXT + 0x200, CODE + 256);
	put_code(i, 0, 1);
	put_code(i, 1, 2);
	put_code(i, 2, UINT32_MAX);
	put_code(i, 3, 3);
	put_8(i, MODULE + MODULE_NEW, VECTOR);
	put_8(i, MODULE + MODULE_NEW + 8, VECTOR + 8);
	put_8(i, VECTOR, CODE + 3 * 128);
	put_8(i, MODULE + MODULE_BYTES, BYTES);
	put_8(i, BYTES, BYTES + 16);
	put_8(i, BYTES + 8, sizeof(module_bytes));
	put(i, BYTES + 16, module_bytes, sizeof(module_bytes));
	return i;
}

static int take(void *ctx, const struct runtime_inline_frame *inline_frame)
{
	struct answer *a = ctx;

	ASSERT(a->nr < 4);
	ASSERT(!inline_frame->source && !inline_frame->line);
	snprintf(a->names[a->nr++], sizeof(*a->names), "%s", inline_frame->name);
	return 0;
}

/* What the step makes of the code around pc. */
static uint64_t mix(const struct image *i, uint64_t pc)
{
	uint64_t words[V8_CODE_WORDS], hash = 0;

	memcpy(words, i->bytes + (V8_LINE_OF(pc) - V8_CODE_LINE - BASE), sizeof(words));
	for (size_t k = 0; k < V8_CODE_WORDS; k++)
		hash = V8_CODE_MIX(hash, words[k]);
	return hash;
}

static int name(struct image *i, uint32_t kind, uint64_t pc, uint64_t code, struct answer *ret)
{
	const struct runtime_target target = { .memory = { read_image, i } };
	const struct v8_wasm wasm = { .target = &target, .layout = &layout, .state = STATE };
	const struct runtime_sink sink = { .add = take, .ctx = ret };
	const uint64_t words[] = { FRAME(RUNTIME_V8, 1, V8_FRAME(kind, pc)), code };

	*ret = (struct answer){ 0 };
	return v8_wasm_name(&wasm, words, &sink);
}

static void expect(struct image *i, uint64_t pc, const char *want)
{
	struct answer a;

	ASSERT_OK(name(i, V8_WASM, pc, mix(i, pc), &a));
	ASSERT_EQ(a.nr, 1);
	ASSERT_STR(a.names[0], want);
}

TEST(functions_by_address)
{
	struct image *i = image_new();
	struct answer a;

	expect(i, TEXT + 0x70, "run");
	expect(i, PC, "größe");
	expect(i, TEXT + 0x310, "wasm-function[3]"); /* new, and without a name */
	/* A way out, and what is no module's. */
	expect(i, TEXT + 0x240, "wasm-stub");
	expect(i, VECTOR + 0x100, "wasm-stub");
	/* Behind code, and a function that no module can have. */
	ASSERT_EQ(name(i, V8_WASM, TEXT + 0x90, mix(i, TEXT + 0x90), &a), -ENOENT);
	put_code(i, 1, UINT32_MAX - 1);
	ASSERT_EQ(name(i, V8_WASM, PC, mix(i, PC), &a), -ENOENT);
	free(i);
}

TEST(names_that_are_none)
{
	struct image *i = image_new();

	put_code(i, 1, 4); /* no text */
	expect(i, PC, "wasm-function[4]");
	put_code(i, 1, 2);
	put(i, BYTES + 16 + 35, "\xff", 1); /* no UTF-8 */
	expect(i, PC, "wasm-function[2]");
	/* Bytes that end anywhere. */
	put(i, BYTES + 16, module_bytes, sizeof(module_bytes));
	for (size_t size = 0; size < sizeof(module_bytes); size++) {
		put_8(i, BYTES + 8, size);
		expect(i, PC, "wasm-function[2]");
	}
	free(i);
}

TEST(functions_that_are_inlined)
{
	/* At the offset 0x10: inlined call 1, which is in the inlined call 0; at 0x60: none. */
	struct image *i = image_new();
	uint8_t inlined[2 * 13] = { 0 }, positions[16];
	uint64_t in_first = (5 + 1) << 1 | 1ull << 31, in_second = (9 + 1) << 1 | 2ull << 31;
	uint64_t none = (7 + 1) << 1, zigzag = in_second << 1;
	uint32_t size = 0, index = 1;
	struct answer a;

	put_code(i, 1, 3);
	positions[size++] = (0x10 + 1) << 1;
	for (; zigzag >= 0x80; zigzag >>= 7)
		positions[size++] = (uint8_t)(zigzag | 0x80);
	positions[size++] = (uint8_t)zigzag;
	memcpy(inlined, &index, sizeof(index));
	memcpy(inlined + 5, &none, sizeof(none));
	index = 2;
	memcpy(inlined + 13, &index, sizeof(index));
	memcpy(inlined + 13 + 5, &in_first, sizeof(in_first));
	put_4(i, CODE + 128 + CODE_INDEX - 4, 3); /* bytes of protected instructions */
	put_4(i, CODE + 128 + CODE_SIZE + 4, 2);  /* of relocation */
	put_4(i, CODE + 128 + CODE_SIZE + 8, size);
	put_4(i, CODE + 128 + CODE_SIZE + 12, sizeof(inlined));
	put(i, TABLES + 5, positions, size);
	put(i, TABLES + 5 + size, inlined, sizeof(inlined));
	ASSERT_OK(name(i, V8_WASM_CALL, PC, mix(i, PC), &a));
	ASSERT_EQ(a.nr, 3);
	ASSERT_STR(a.names[0], "größe");
	ASSERT_STR(a.names[1], "run");
	ASSERT_STR(a.names[2], "wasm-function[3]");
	/* Where it was interrupted itself this is not known. */
	expect(i, PC, "wasm-function[3]");
	/* A call that is inlined into itself. */
	memcpy(inlined + 13 + 5, &in_second, sizeof(in_second));
	put(i, TABLES + 5 + size, inlined, sizeof(inlined));
	ASSERT_EQ(name(i, V8_WASM_CALL, PC, mix(i, PC), &a), -ENOENT);
	ASSERT_EQ(a.nr, 0);
	free(i);
}

/* Code is freed while it is named, and another function's takes its place. */
TEST(code_that_another_function_gets)
{
	struct answer a;
	int named = 0, gone = 0;

	for (int at = 0; at < 1000; at++) {
		struct image *i = image_new();
		uint64_t code = mix(i, PC);
		int r;

		memcpy(i->then, i->bytes, SIZE);
		i->then[PC - BASE] ^= 1;
		i->then[CODE + 128 + CODE_INDEX - BASE] = 1;
		i->change_at = at;
		r = name(i, V8_WASM, PC, code, &a);
		if (!r)
			ASSERT_STR(a.names[0], "größe");
		else
			ASSERT_EQ(r, -ENOENT);
		named += !r;
		gone += r != 0;
		r = i->nr_reads <= at;
		free(i);
		if (r)
			break;
	}
	ASSERT(named && gone);
}

TEST(maps_that_never_end)
{
	struct image *i = image_new();
	struct answer a;

	put_node(i, 2, 2, 2, TEXT + 0x100, CODE + 128);
	put_node(i, 1, 1, 0, TEXT + TEXT_SIZE, 0);
	ASSERT_EQ(name(i, V8_WASM, PC, mix(i, PC), &a), -ENOENT);
	put_node(i, 1, 0, 0, TEXT, TEXT + TEXT_SIZE);
	put_8(i, NODES + 64 + 48, MODULE);
	put_node(i, 2, 2, 0, TEXT + 0x1000, CODE);
	/* A vector of all memory. */
	put_8(i, MODULE + MODULE_NEW, 0);
	put_8(i, MODULE + MODULE_NEW + 8, UINT64_MAX);
	ASSERT_EQ(name(i, V8_WASM, PC, mix(i, PC), &a), -ENOENT);
	ASSERT(i->nr_reads < 1000);
	free(i);
}

/* The code is what Node.js has there: 24.22 on x86-64, 20.20, 24.22 and 26 on aarch64. */
TEST(where_the_manager_is)
{
	static const uint8_t plain[V8_WASM_GETTER] = { 0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0xc3 },
			     framed[V8_WASM_GETTER] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b,
							0x05, 0xf0, 0xff, 0xff, 0xff, 0x5d };
	static const uint32_t node20[] = { 0xd001ef00, 0xf9450c00, 0xd65f03c0 },
			      node24[] = { 0xd0027620, 0xf943e400, 0xd65f03c0 },
			      node26[] = { 0xf002c4a8, 0xf9457500, 0xd65f03c0 },
			      before[] = { 0xd0ffffe0, 0xf9400400, 0xd65f03c0 },
			      other[] = { 0xd0ffffe1, 0xf9400400, 0xd65f03c0 },
			      goes_on[] = { 0xd0ffffe0, 0xf9400400, 0xf9400000 };

	ASSERT_EQ(v8_find_wasm_state(EM_X86_64, 0x1000, plain), 0x1017);
	ASSERT_EQ(v8_find_wasm_state(EM_X86_64, 0x1000, framed), 0xffb);
	ASSERT_EQ(v8_find_wasm_state(EM_X86_64, 0x1000, (const uint8_t *)node20), 0);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x16e7cb0, (const uint8_t *)node20), 0x54c9a18);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x17d70a0, (const uint8_t *)node24), 0x669d7c8);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x18d71ac, (const uint8_t *)node26), 0x716eae8);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x12345678, (const uint8_t *)before), 0x12343008);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x1000, (const uint8_t *)other), 0);
	ASSERT_EQ(v8_find_wasm_state(EM_AARCH64, 0x1000, (const uint8_t *)goes_on), 0);
}
