// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_wasm.h"

#include "elf/a64_insn.h"
#include "runtime/v8/v8_code.h"
#include "runtime/v8/v8_heap.h"
#include "runtime/v8/v8_positions.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* std::map of libstdc++: its first node's address stands behind a word, a node's children
	 * in the third and fourth word, then the key and the value. */
	NODE_WORDS = 7,
	NODE_LEFT = 2,
	NODE_RIGHT = 3,
	NODE_KEY = 4,
	NODE_VALUE = 5,
	MAP_ROOT = 8,
	DEPTH_MAX = 64,
	CODE_SIZE = 64, /* of a WasmCode, as far as it is read */
	NEW_CODE_MAX = 1 << 14,
	NEW_CODE_AT_ONCE = 512,
	FUNCTIONS_MAX = 1000000, /* kV8MaxWasmFunctions */
	/* What describes code lies side by side: protected instructions, relocation, positions in
	 * the source, inlined calls. These parts' sizes: 4 bytes each. */
	CODE_TABLES = -8, /* from its size: their address */
	CODE_RELOCATION = 4,
	CODE_POSITIONS = 8,
	CODE_INLINED = 12,
	CODE_PROTECTED = -4, /* from its index */
	TABLE_MAX = 4 << 20,
	INLINED_SIZE = 13, /* WasmInliningPosition: index, whether it was a tail call, where */
	INLINED_CALLER = 5,
	/* Modules: https://webassembly.github.io/spec/core/binary and its appendix of names. */
	MODULE_BEGIN = 8,
	SECTIONS_MAX = 256,
	SECTION_HEAD = 16,
	CUSTOM = 0,
	FUNCTION_NAMES = 1,
	NAMES_MAX = 16 << 20, /* bytes of names of functions */
	READINGS = 4,	      /* two of which, one behind the other, must be the same */
	X86_LOAD_SIZE = 7,    /* bytes of an instruction */
	A64_PAGE = 4096,      /* what adrp counts in */
};

/*
 * What leads into functions and out of them, and is none: tables of jumps, which are a module's own
 * and have no function's index, and, since V8 13, ways out that all modules share.
 */
#define STUB	    "wasm-stub"
#define NO_FUNCTION UINT32_MAX

static const struct v8_work lookup_work = { .reads = 1 << 12, .bytes = 32 << 20 };

/* A function's code. */
struct wasm_code {
	uint64_t module, start, tables;
	uint32_t size, index, protected, relocation, positions, inlined;
};

struct wasm_function {
	uint32_t index;
	char name[V8_TEXT_MAX + 1];
};

/* The functions of a frame, inlined ones first. */
struct wasm_reading {
	int nr;
	struct wasm_function functions[V8_INLINED_MAX];
};

static uint32_t word_4(const uint8_t *bytes, size_t at)
{
	uint32_t value;

	memcpy(&value, bytes + at, sizeof(value));
	return value;
}

/* --- where the manager of code is ---------------------------------------------------------------
 */

/* mov N(%rip), %rax, behind what makes a frame if there is that. */
static uint64_t find_state_x86(uint64_t addr, const uint8_t *code)
{
	static const uint8_t frame[] = { 0x55, 0x48, 0x89, 0xe5 }, load[] = { 0x48, 0x8b, 0x05 };
	size_t at = memcmp(code, frame, sizeof(frame)) ? 0 : sizeof(frame);
	int32_t offset;

	if (memcmp(code + at, load, sizeof(load)))
		return 0;
	memcpy(&offset, code + at + sizeof(load), sizeof(offset));
	return addr + at + X86_LOAD_SIZE + (uint64_t)(int64_t)offset;
}

/* adrp xA, PAGE; ldr x0, [xA, #N]; ret */
static uint64_t find_state_a64(uint64_t addr, const uint8_t *code)
{
	uint32_t page = word_4(code, 0), load = word_4(code, 4);
	int64_t pages = a64_bits(page, 5, 19) << 2 | a64_bits(page, 29, 2);

	if ((page & 0x9f000000) != 0x90000000 || (load & 0xffc0001f) != 0xf9400000 ||
	    a64_bits(page, 0, 5) != a64_bits(load, 5, 5) || word_4(code, 8) != 0xd65f03c0)
		return 0;
	pages -= (pages & 1 << 20) << 1; /* its sign */
	return (addr & ~(A64_PAGE - 1ull)) + (uint64_t)(pages * A64_PAGE) +
	       8 * (uint64_t)a64_bits(load, 10, 12);
}

uint64_t v8_find_wasm_state(uint16_t machine, uint64_t addr, const uint8_t code[V8_WASM_GETTER])
{
	return machine == EM_X86_64 ? find_state_x86(addr, code) : find_state_a64(addr, code);
}

/* --- which code it is --------------------------------------------------------------------------
 */

/* The node of a map whose key is the last one at or before `key`; -ENODATA: there is none. */
static int find_node(const struct v8_heap *h, uint64_t map, uint64_t key, uint64_t ret[NODE_WORDS])
{
	uint64_t at, node[NODE_WORDS];
	bool found = false;
	int r = v8_read_bytes(h, map + MAP_ROOT, &at, sizeof(at));

	for (int i = 0; !r && at && i < DEPTH_MAX; i++) {
		r = v8_read_bytes(h, at, node, sizeof(node));
		if (r)
			break;
		if (node[NODE_KEY] <= key) {
			memcpy(ret, node, sizeof(node));
			found = true;
		}
		at = node[node[NODE_KEY] <= key ? NODE_RIGHT : NODE_LEFT];
	}
	return r ? r : at ? -ENOENT : found ? 0 : -ENODATA;
}

/* The WasmCode there, if it has the pc. */
static int read_code(const struct v8_heap *h, const struct v8_wasm_layout *l, uint64_t at,
		     uint64_t module, uint64_t pc, struct wasm_code *ret)
{
	uint8_t bytes[CODE_SIZE];
	int r = v8_read_bytes(h, at, bytes, sizeof(bytes));

	if (r)
		return r;
	memcpy(&ret->module, bytes, sizeof(ret->module));
	memcpy(&ret->start, bytes + 8, sizeof(ret->start));
	ret->size = word_4(bytes, l->code_size);
	ret->index = word_4(bytes, l->code_index);
	memcpy(&ret->tables, bytes + l->code_size + CODE_TABLES, sizeof(ret->tables));
	ret->protected = word_4(bytes, (size_t)(l->code_index + CODE_PROTECTED));
	ret->relocation = word_4(bytes, l->code_size + CODE_RELOCATION);
	ret->positions = word_4(bytes, l->code_size + CODE_POSITIONS);
	ret->inlined = word_4(bytes, l->code_size + CODE_INLINED);
	return ret->module == module && pc - ret->start < ret->size ? 0 : -ENOENT;
}

/* Code that was made, and waits for being put into the map: a vector of addresses. */
static int find_new_code(const struct v8_heap *h, const struct v8_wasm_layout *l, uint64_t module,
			 uint64_t pc, struct wasm_code *ret)
{
	uint64_t range[2], codes[NEW_CODE_AT_ONCE];
	int r = v8_read_bytes(h, module + l->module_new_code, range, sizeof(range));

	if (!r && (range[1] - range[0]) / sizeof(*codes) > NEW_CODE_MAX)
		r = -ENOENT;
	for (uint64_t at = range[0], left; !r && at < range[1]; at += left) {
		left = range[1] - at < sizeof(codes) ? range[1] - at : sizeof(codes);
		r = v8_read_bytes(h, at, codes, left);
		for (size_t i = 0; !r && i < left / sizeof(*codes); i++)
			if (!read_code(h, l, codes[i], module, pc, ret))
				return 0;
	}
	return r ? r : -ENOENT;
}

/* -ENODATA: no module has code there. */
static int find_code(const struct v8_heap *h, const struct v8_wasm *w, uint64_t pc,
		     struct wasm_code *ret)
{
	const struct v8_wasm_layout *l = &w->layout->wasm;
	uint64_t manager, module, node[NODE_WORDS] = { 0 };
	int r = v8_read_bytes(h, w->state, &manager, sizeof(manager));

	if (!r)
		r = find_node(h, manager + l->manager_modules, pc, node);
	if (!r && pc >= node[NODE_VALUE]) /* where its memory ends */
		r = -ENODATA;
	if (r)
		return r;
	module = node[NODE_VALUE + 1];
	r = find_node(h, module + l->module_code, pc, node);
	if (!r)
		r = read_code(h, l, node[NODE_VALUE], module, pc, ret);
	return r == -ENOENT || r == -ENODATA ? find_new_code(h, l, module, pc, ret) : r;
}

/* --- names -------------------------------------------------------------------------------------
 */

/* Bytes that are read one behind the other. */
struct bytes {
	const uint8_t *at, *end;
	bool failed;
};

static uint32_t take_number(struct bytes *b)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte;

		if (b->at == b->end)
			break;
		byte = *b->at++;
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	b->failed = true;
	return 0;
}

/* Text that is UTF-8 without a NUL, else none; cut to what fits. */
static void take_text(const uint8_t *s, size_t size, char ret[V8_TEXT_MAX + 1])
{
	size_t kept = 0;

	for (size_t at = 0, n; at < size; at += n) {
		n = utf8_len((const char *)s + at, size - at);
		if (!n || !s[at]) {
			kept = 0;
			break;
		}
		if (at + n <= V8_TEXT_MAX)
			kept = at + n;
	}
	memcpy(ret, s, kept);
	ret[kept] = '\0';
}

/* The name among names of functions, which are sorted by their indices. */
static void find_name(struct bytes b, uint32_t index, char ret[V8_TEXT_MAX + 1])
{
	uint32_t nr = take_number(&b);

	for (uint32_t i = 0; i < nr && !b.failed; i++) {
		uint32_t of = take_number(&b), size = take_number(&b);

		if (b.failed || size > (size_t)(b.end - b.at))
			return;
		if (of == index) {
			take_text(b.at, size, ret);
			return;
		}
		b.at += size;
	}
}

/* A part of a module's bytes: what it is, and where its contents are. */
struct part {
	uint8_t id;
	uint64_t at, end;
};

static int read_part(const struct v8_heap *h, uint64_t at, uint64_t end, struct part *ret)
{
	uint8_t head[SECTION_HEAD];
	size_t size = end - at < sizeof(head) ? (size_t)(end - at) : sizeof(head);
	struct bytes b = { head + 1, head + size, false };
	int r = size ? v8_read_bytes(h, at, head, size) : -ENOENT;
	uint32_t length;

	if (r)
		return r;
	length = take_number(&b);
	ret->id = head[0];
	ret->at = at + (uint64_t)(b.at - head);
	ret->end = ret->at + length;
	return b.failed || length > end - ret->at ? -ENOENT : 0;
}

/* Whether it is the section of names; it begins with what it is called. */
static bool is_names(const struct v8_heap *h, struct part *section)
{
	static const uint8_t called[] = { 4, 'n', 'a', 'm', 'e' };
	uint8_t found[sizeof(called)];

	if (section->id != CUSTOM || section->end - section->at < sizeof(found) ||
	    v8_read_bytes(h, section->at, found, sizeof(found)) ||
	    memcmp(found, called, sizeof(found)) != 0)
		return false;
	section->at += sizeof(found);
	return true;
}

/* The part of [at, end) that is wanted: the section of names, or in that the functions' ones. */
static int find_part(const struct v8_heap *h, uint64_t at, uint64_t end, bool section,
		     struct part *ret)
{
	int r = 0;

	for (int i = 0; !r && i < SECTIONS_MAX; i++) {
		r = read_part(h, at, end, ret);
		if (r)
			break;
		at = ret->end;
		if (section ? is_names(h, ret) : ret->id == FUNCTION_NAMES)
			return 0;
	}
	return r ? r : -ENOENT;
}

/* The function's name, "" if it has none. Errors: as v8_read_bytes(). */
static int read_name(const struct v8_heap *h, const struct v8_wasm *w, uint64_t module,
		     struct wasm_function *f)
{
	_cleanup_free_ uint8_t *names = NULL;
	uint64_t bytes, range[2];
	struct part part;
	size_t size;
	int r = v8_read_bytes(h, module + w->layout->wasm.module_bytes, &bytes, sizeof(bytes));

	f->name[0] = '\0';
	if (!r)
		r = v8_read_bytes(h, bytes, range, sizeof(range));
	if (r)
		return r;
	if (range[1] < MODULE_BEGIN || range[1] > UINT32_MAX)
		return 0;
	r = find_part(h, range[0] + MODULE_BEGIN, range[0] + range[1], true, &part);
	if (!r)
		r = find_part(h, part.at, part.end, false, &part);
	size = r ? 0 : (size_t)(part.end - part.at);
	if (!size || size > NAMES_MAX)
		return r == -ESRCH ? r : 0;
	names = malloc(size);
	if (!names)
		return -ENOMEM;
	r = v8_read_bytes(h, part.at, names, size);
	if (!r)
		find_name((struct bytes){ names, names + size, false }, f->index, f->name);
	return r;
}

/* --- inlined functions -------------------------------------------------------------------------
 */

/* A part of what describes code; the caller's to free. */
static int read_table(const struct v8_heap *h, uint64_t at, uint32_t size, uint8_t **ret)
{
	uint8_t *bytes;
	int r;

	if (size > TABLE_MAX)
		return -ENOENT;
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	r = v8_read_bytes(h, at, bytes, size);
	if (r)
		free(bytes);
	else
		*ret = bytes;
	return r;
}

/*
 * The indices of the functions that are in each other where the code calls something, the
 * innermost one first: how many. What was interrupted itself is not told of: positions are those of
 * calls.
 */
static int find_inlined(const struct v8_heap *h, const struct v8_wasm *w,
			const struct wasm_code *code, uint64_t pc, struct wasm_reading *ret)
{
	_cleanup_free_ uint8_t *positions = NULL, *inlined = NULL;
	uint64_t at = code->tables + code->protected + code->relocation;
	uint32_t nr_inlined = code->inlined / INLINED_SIZE;
	struct v8_position p;
	int r = read_table(h, at, code->positions, &positions);

	if (!r)
		r = read_table(h, at + code->positions, code->inlined, &inlined);
	if (r)
		return r;
	p = v8_position_at(positions, code->positions, &w->layout->positions,
			   (uint32_t)(pc - code->start));
	while (p.inlined >= 0) {
		const uint8_t *entry = inlined + (size_t)p.inlined * INLINED_SIZE;
		int64_t caller;

		if ((uint32_t)p.inlined >= nr_inlined || ret->nr + 1 >= V8_INLINED_MAX)
			return -ENOENT;
		ret->functions[ret->nr++].index = word_4(entry, 0);
		memcpy(&caller, entry + INLINED_CALLER, sizeof(caller));
		p = v8_position_of(caller);
	}
	return 0;
}

/* --- frames ------------------------------------------------------------------------------------
 */

/* Whether the code around pc is what the step saw. */
static int check_code(const struct v8_heap *h, uint64_t pc, uint64_t want)
{
	uint64_t words[V8_CODE_WORDS] = { 0 }, line = V8_LINE_OF(pc), hash = 0;
	int r = v8_read_bytes(h, line, words + V8_CODE_WORDS / 2, V8_CODE_LINE);

	if (!r && !V8_LINE_IS_FIRST(line) &&
	    v8_read_bytes(h, line - V8_CODE_LINE, words, V8_CODE_LINE))
		memset(words, 0, V8_CODE_LINE);
	for (size_t i = 0; i < V8_CODE_WORDS; i++)
		hash = V8_CODE_MIX(hash, words[i]);
	return r ? r : hash == want ? 0 : -ENOENT;
}

static int read_frame(const struct v8_wasm *w, const uint64_t *words, struct wasm_reading *ret)
{
	uint64_t pc = V8_FRAME_ADDRESS(FRAME_DATA(words[0]));
	bool calls = V8_FRAME_KIND(FRAME_DATA(words[0])) == V8_WASM_CALL;
	struct v8_work work = lookup_work;
	struct v8_heap h = { .target = w->target, .layout = w->layout, .work = &work };
	struct wasm_code code = { 0 };
	int r = check_code(&h, pc, words[1]);

	ret->nr = 0;
	if (!r)
		r = find_code(&h, w, pc, &code);
	if (r == -ENODATA || (!r && code.index == NO_FUNCTION)) {
		ret->functions[ret->nr++] = (struct wasm_function){ NO_FUNCTION, STUB };
		return check_code(&h, pc, words[1]);
	}
	if (!r && calls && w->layout->wasm.inlines && code.inlined)
		r = find_inlined(&h, w, &code, pc, ret);
	ret->functions[ret->nr++].index = code.index;
	for (int i = 0; !r && i < ret->nr; i++) {
		r = ret->functions[i].index < FUNCTIONS_MAX ? 0 : -ENOENT;
		if (!r)
			r = read_name(&h, w, code.module, &ret->functions[i]);
	}
	return r ? r : check_code(&h, pc, words[1]);
}

static bool readings_equal(const struct wasm_reading *a, const struct wasm_reading *b)
{
	bool equal = a->nr == b->nr;

	for (int i = 0; equal && i < a->nr; i++)
		equal = a->functions[i].index == b->functions[i].index &&
			!strcmp(a->functions[i].name, b->functions[i].name);
	return equal;
}

static int tell(const struct wasm_reading *from, const struct runtime_sink *sink)
{
	int r = 0;

	for (int i = 0; !r && i < from->nr; i++) {
		const struct wasm_function *f = &from->functions[i];
		char number[32];

		snprintf(number, sizeof(number), "wasm-function[%u]", f->index);
		r = sink->add(sink->ctx, &(struct runtime_inline_frame){
						 .name = *f->name ? f->name : number });
	}
	return r;
}

int v8_wasm_name(const struct v8_wasm *w, const uint64_t words[2], const struct runtime_sink *sink)
{
	_cleanup_free_ struct wasm_reading *readings = calloc(2, sizeof(*readings));
	int r, r_before;

	if (!readings)
		return -ENOMEM;
	r = read_frame(w, words, &readings[0]);
	for (int i = 1; i < READINGS && (!r || r == -ENOENT); i++) {
		r_before = r;
		r = read_frame(w, words, &readings[i % 2]);
		if (r == r_before && (r || readings_equal(&readings[0], &readings[1])))
			return r ? r : tell(&readings[0], sink);
	}
	return r ? r : -ENOENT;
}
