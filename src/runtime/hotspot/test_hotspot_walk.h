/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's step over a JVM that is made up: a code heap with its segment map, blobs, a stack,
 * methods. Java is called by native code at NATIVE, where walks end (its file can't be read).
 */
#pragma once

#include "bpf/host/walk_host.h"
#include "runtime/hotspot/hotspot_abi.h"
#include "test.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

enum {
	NATIVE = 0x400000,
	HEAP = 0x10000000,
	HEAP_SIZE = 0x20000,
	SEGMENT = 128,
	SEGMAP = 0x20000000,
	META = 0x30000000, /* metaspace, strings, JavaThread, the Java heap */
	META_SIZE = 0x10000,
	STACK = 0x7ff00000,
	STACK_WORDS = 1024,
	RECORD_CELL = 32768,
	BLOCK_HEADER = 16,
	HEADER = 64, /* of a blob here */
	/* The interpreter's blob: its code, and the entries of methods in it. */
	INTERPRETER = HEAP + 0x10000,
	INTERPRETER_SIZE = 0x4000,
	ENTRIES = INTERPRETER + 0x1000,
	ENTRIES_SIZE = 0x1000,
	METHOD = META + 0x100,
	CONST_METHOD = META + 0x200,
	CODES = CONST_METHOD + 48,
	CODE_SIZE = 100,
	NAME_INDEX = 3,
	CONSTANTS = META + 0x300,
	HOLDER = META + 0x400,
	SYMBOL = META + 0x500,
	METHOD_NAME = META + 0x580,
	THREAD = META + 0x600,
	CONTINUATION = META + 0x700,
	NAMES = META + 0x1000,
	CHUNK = META + 0x2000,
	OPERATIONS = META + 0x3000,
};

static struct {
	struct hotspot_record record;
	struct unwind_file files[2];
	struct unwind_rule rules[RULE_RUNTIMES + RUNTIME_MAX_];
	struct arena_segment *segments[1];
	__u8 heap[HEAP_SIZE], segmap[HEAP_SIZE / SEGMENT], meta[META_SIZE];
	__u64 stack[STACK_WORDS];
	__u8 native[64];
	__u64 regs[UNWIND_REGS_MAX];
	__u16 machine;
	__u32 next_segment, next_name;
	__u64 call_stub; /* its blob */
	bool late;
	bool anonymous; /* native code has no unwind information */
	__u64 missing;	/* a page of the process's that nobody has touched yet; 0: none */
	__u32 nr_reads; /* of the walk, but for the stack */
	__u32 max_frames;
	struct cached_rule *callers;
	struct walk walk;
} t __attribute__((unused));

static inline void *at(__u64 addr, __u64 size)
{
	const struct {
		__u64 start, size;
		void *to;
	} areas[] = {
		{ HEAP, sizeof(t.heap), t.heap },	{ SEGMAP, sizeof(t.segmap), t.segmap },
		{ META, sizeof(t.meta), t.meta },	{ STACK, sizeof(t.stack), t.stack },
		{ NATIVE, sizeof(t.native), t.native },
	};

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		if (addr >= areas[i].start && addr - areas[i].start <= areas[i].size &&
		    size <= areas[i].size - (addr - areas[i].start))
			return (__u8 *)areas[i].to + (addr - areas[i].start);
	return NULL;
}

static inline int read_test(void *ctx, __u64 addr, void *to, __u32 size)
{
	const void *from = at(addr, size);

	(void)ctx;
	t.nr_reads += addr < STACK;
	if (!from || (t.missing && addr + size > t.missing && addr < t.missing + 4096))
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static inline void put(__u64 addr, const void *from, __u64 size)
{
	memcpy(at(addr, size), from, size);
}

static inline void put_8(__u64 addr, __u64 value)
{
	put(addr, &value, 8);
}

static inline void put_4(__u64 addr, __u32 value)
{
	put(addr, &value, 4);
}

/* A blob behind the others: where its code begins. */
static inline __u64 add_blob(const char *name, __u32 code_size, int frame_size, int frame_complete,
			     __u32 compile_id)
{
	__u32 segments = (BLOCK_HEADER + HEADER + code_size + SEGMENT - 1) / SEGMENT;
	__u64 blob = HEAP + (__u64)t.next_segment * SEGMENT + BLOCK_HEADER;

	put(NAMES + t.next_name, name, strlen(name) + 1);
	put_8(blob, NAMES + t.next_name);
	t.next_name += 64;
	put_4(blob + 8, HEADER + code_size);
	put_4(blob + 12, HEADER);
	put_4(blob + 16, (__u32)frame_complete);
	put_4(blob + 20, (__u32)frame_size);
	put_4(blob + 24, compile_id);
	put_4(blob + 28, 16);			  /* orig_pc */
	put_4(blob + 32, HEADER + code_size - 8); /* deopt_handler */
	for (__u32 i = 0; i < segments; i++)
		t.segmap[t.next_segment + i] = i > 200 ? 200 : (__u8)i;
	t.next_segment += segments;
	return blob + HEADER;
}

static inline void set_up_method(void)
{
	static const __u8 symbol[16] = { 1, 0, 0x34, 0x12, 3, 0, 'a', '/', 'B', 99, 98, 97 };

	put_8(METHOD + 8, CONST_METHOD);
	put_8(CONST_METHOD + 8, CONSTANTS);
	put_4(CONST_METHOD + 24, 80);
	put_4(CONST_METHOD + 32, CODE_SIZE | NAME_INDEX << 16);
	put_8(CONSTANTS + 24, HOLDER);
	put_8(CONSTANTS + 48 + 8 * NAME_INDEX, METHOD_NAME);
	put_8(HOLDER + 24, SYMBOL);
	put(SYMBOL, symbol, sizeof(symbol));
}

static inline void set_up(void)
{
	memset(&t, 0, sizeof(t));
	t.machine = EM_X86_64;
	memset(t.segmap, 0xff, sizeof(t.segmap));
	t.files[1].state = FILE_STATE_UNREADABLE;
	t.rules[RULE_FRAME_POINTER].cfa = CFA_FRAME_POINTER;
	t.rules[RULE_FRAME_POINTER].cfa_off = CODE_ANON;
	for (__u32 i = 0; i < RUNTIME_MAX_; i++)
		t.rules[RULE_RUNTIMES + i] =
			(struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = (__s32)i };
	t.call_stub = add_blob("StubRoutines (1)", 256, 0, -1, 0);
	t.record = (struct hotspot_record){
		.heaps = { { HEAP, HEAP + HEAP_SIZE, HEAP, SEGMAP, 7, BLOCK_HEADER } },
		.code_start = HEAP,
		.code_end = HEAP + HEAP_SIZE,
		.interpreter_start = INTERPRETER,
		.interpreter_end = INTERPRETER + INTERPRETER_SIZE,
		.entries_start = ENTRIES,
		.entries_end = ENTRIES + ENTRIES_SIZE,
		.call_stub_return = t.call_stub + 0x80,
		.release = 17,
		.nr_heaps = 1,
		.header_size = HEADER,
		.interpreter_bcp = 64,
		.blob_name = { 0, 8, 0 },
		.blob_size = { 8, 4, 1 },
		.blob_code_begin = { 12, 4, 1 },
		.blob_frame_complete = { 16, 4, 1 },
		.blob_frame_size = { 20, 4, 1 },
		.nmethod_compile_id = { 24, 4, 1 },
		.nmethod_orig_pc = { 28, 4, 1 },
		.nmethod_deopt_handler = { 32, 4, 1 },
		.method_const = 8,
		.const_constants = 8,
		.const_code_size = 32,
		.const_name_index = 34,
		.const_size = 24,
		.const_codes = 48,
		.constants_holder = 24,
		.constants_size = 48,
		.klass_name = 24,
		.symbol = { .mask = 0xffffffffffff0000, .length = 4, .body = 6 },
	};
	set_up_method();
}

#define SP(word) (STACK + 8 * (__u64)(word))

/* Native code calls Java: the frame of the call stub, whose frame pointer is at this word. */
static inline void call_stub_at(__u32 word)
{
	t.stack[word] = SP(900);	   /* the caller's rbp */
	t.stack[word + 1] = NATIVE + 0x11; /* and where it goes on */
	for (__u32 i = 0; i < 5; i++)
		t.stack[word - 7 - i] = 0x1000 + i; /* rbx, r12 to r15 */
}

static inline int walk(__u64 pc)
{
	const struct walk_memory memory = { .read = read_test, .ctx = NULL };
	const struct walk_tables tables = { t.files,	2,
					    t.rules,	sizeof(t.rules) / sizeof(t.rules[0]),
					    t.segments, 1 };
	const struct walk_input input = {
		.machine = t.machine,
		.pc = pc,
		.regs = t.regs,
		.process = { .generation = 7, .nr_mappings = 2, .runtimes = RECORD_CELL },
		.max_frames = t.max_frames ?: 100,
		.late = t.late,
		.callers = t.callers,
	};
	struct unwind_mapping *m;
	struct runtime_record *r;
	int stop;

	t.segments[0] = calloc(1, sizeof(*t.segments[0]));
	ASSERT_PTR_NONNULL(t.segments[0]);
	m = (struct unwind_mapping *)t.segments[0]->cells;
	m[0] = (struct unwind_mapping){ NATIVE, NATIVE + 0x1000, 0, t.anonymous ? MAPPING_ANON : 1,
					0 };
	m[1] = (struct unwind_mapping){ HEAP, HEAP + HEAP_SIZE, 0, 0, RUNTIME_HOTSPOT };
	r = (struct runtime_record *)&t.segments[0]->cells[RECORD_CELL];
	r->runtime = RUNTIME_HOTSPOT;
	r->size = sizeof(t.record);
	memcpy(r + 1, &t.record, sizeof(t.record));
	t.nr_reads = 0;
	stop = walk_host(&tables, &memory, &input, &t.walk);
	free(t.segments[0]);
	t.segments[0] = NULL;
	return stop;
}

/* Frame `i` of the walk, as two words; native ones have one. */
static inline const __u64 *frame(__u32 i)
{
	const __u64 *word = t.walk.words;

	for (; i; i--)
		word += 1 + FRAME_EXTRA(*word);
	ASSERT(word < t.walk.words + t.walk.full.nr_words);
	return word;
}

#define ASSERT_BLOB(i, kind, code, check, where)                                                   \
	do {                                                                                       \
		const __u64 *f_ = frame(i);                                                        \
		ASSERT_EQ(f_[0], FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(kind, (code)-HEADER)));   \
		ASSERT_EQ(f_[1], HOTSPOT_WORD(check, where));                                      \
	} while (0)

#define ASSERT_METHOD(i, bci)                                                                      \
	do {                                                                                       \
		const __u64 *f_ = frame(i);                                                        \
		ASSERT_EQ(f_[0],                                                                   \
			  FRAME(RUNTIME_HOTSPOT, 1, HOTSPOT_FRAME(HOTSPOT_INTERPRETED, METHOD)));  \
		ASSERT_EQ(HOTSPOT_WORD_CHECK(f_[1]), cookie());                                    \
		ASSERT_EQ(HOTSPOT_WORD_WHERE(f_[1]), bci);                                         \
	} while (0)

static inline __u32 cookie_of(__u64 constants)
{
	struct hotspot_identity id = { .const_method = CONST_METHOD,
				       .constants = constants,
				       .holder = HOLDER,
				       .method = hotspot_method_id(CODE_SIZE, NAME_INDEX, 80),
				       .method_name = METHOD_NAME };
	__u32 len;

	memcpy(&id.name, at(HOLDER + 24, 8), 8);
	memcpy(id.symbol, at(id.name, 8), 8);
	len = hotspot_symbol_length(&t.record.symbol, id.symbol[0]);
	memcpy(id.symbol, at(id.name, 6 + len), 6 + (len < 64 ? len : 64));
	if (len > 64)
		memcpy(&id.tail, at(id.name + 6 + len - 8, 8), 8);
	return hotspot_cookie(&id, &t.record.symbol);
}

static inline __u32 cookie(void)
{
	return cookie_of(CONSTANTS);
}

/* The walk went by the call stub to native code, in this many frames. */
#define ASSERT_TO_NATIVE(stop, nr)                                                                 \
	do {                                                                                       \
		ASSERT_EQ(stop, STOP_FILE_UNREADABLE);                                             \
		ASSERT_EQ(t.walk.nr_frames, nr);                                                   \
		ASSERT_EQ(HOTSPOT_FRAME_ADDRESS(FRAME_DATA(*frame((nr)-2))),                       \
			  t.call_stub - HEADER);                                                   \
		ASSERT_EQ(*frame((nr)-1), FRAME(RUNTIME_NATIVE, 0, NATIVE + 0x10));                \
	} while (0)

/* An interpreter's frame: its frame pointer is at this word, its caller's sp at `sender`. */
static inline void interpreted_at(__u32 word, __u32 sender, __u64 link, __u64 ra, __u32 bci)
{
	t.stack[word - t.record.interpreter_bcp / 8] = CODES + bci;
	t.stack[word - 3] = METHOD;
	t.stack[word - 1] = SP(sender);
	t.stack[word] = link;
	t.stack[word + 1] = ra;
}

/* A virtual thread: its last frame on the stack returns to the barrier. */
static inline __u64 virtual_thread(__u64 *ret_caller)
{
	__u64 leaf, stubs, enter;

	set_up();
	leaf = add_blob("nmethod", 256, 4, 16, 77);
	*ret_caller = add_blob("nmethod", 256, 6, 16, 78);
	stubs = add_blob("StubRoutines (continuation stubs)", 512, 0, -1, 0);
	enter = add_blob("native nmethod", 256, 10, 16, 79);
	t.record.cont_return = enter + 0x50;
	t.record.thread_cont_entry = 8;
	t.record.cont_entry_size = 64;
	t.record.cont_entry_cont = 8;
	t.regs[X86_R15] = THREAD;
	put_8(THREAD + 8, SP(104)); /* ContinuationEntry */
	t.regs[X86_RSP] = SP(100);
	t.stack[103] = stubs + 0x80;
	t.stack[104 + 1] = CONTINUATION;
	/* enterSpecial's frame: 10 words from 104 on. */
	t.stack[104 + 8] = SP(200);
	t.stack[104 + 9] = t.record.call_stub_return;
	call_stub_at(200);
	return leaf;
}

/* The record knows how callers wait in the heap. References are compressed. */
static inline void know_chunks(void)
{
	t.record.chunk_stack = 64;
	t.record.oop_size = 4;
	t.record.oop_shift = 3;
	t.record.continuation_tail = 32;
	t.record.chunk_parent = 40;
	t.record.chunk_size = 12;
	t.record.chunk_sp = 24;
}
