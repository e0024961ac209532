// SPDX-License-Identifier: Apache-2.0
/*
 * The runtimes' steps over arbitrary memory as the process. The first bytes choose: whose step,
 * which machine, whether the walk begins in an interpreter's loop or in code that the runtime made,
 * whether memory is there at a few addresses or at all. Then come the runtime's record, registers,
 * and what memory holds. A walk must end, with no more frames than its budget; what is read must
 * fit where it is put.
 */
#include "fuzz.h"
#include "bpf/host/walk_host.h"
#include "runtime/runtime.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHOICES = 4, /* bytes at the begin */
	CHOOSE_A64 = 1,
	CHOOSE_CODE = 2,
	CHOOSE_EVERYWHERE = 4,
	CHOOSE_FEW_REGISTERS = 8,
	IMAGE_MAX = 65536,
	/* A step reads a few times; of those that find nothing to say there is one a frame. */
	READS_MAX = SAMPLE_WORDS_MAX * 512,
};

#define IMAGE_AT 0x7f1122330000ull /* also the stack */
#define CODE_AT	 0x7f0000000000ull /* of the runtime; the same bytes */
#define LOOPS_AT 0x400000ull
#define PLAIN_AT 0x500000ull
enum { LOOPS_SIZE = 4096, PLAIN_SIZE = 65536 };

enum { SEGMENT_TABLES, SEGMENT_RECORD, NR_SEGMENTS };
enum { MAPPINGS_CELL = 8, BUCKETS_CELL = 256, ROWS_CELL = 512, RECORD_CELL = 8 };
enum { RULE_LOOP = RULE_RUNTIMES + RUNTIME_MAX_, NR_RULES };

static struct {
	struct walk walk;
	uint8_t image[IMAGE_MAX];
	size_t image_size;
	bool everywhere;
	size_t nr_reads;
	struct unwind_file files[2];
	struct unwind_rule rules[NR_RULES];
	struct arena_segment segments[NR_SEGMENTS];
} f;

/* A member of the walk's state that memory may be read into. */
#define MEMBER(name)                                                                               \
	{                                                                                          \
		offsetof(struct walk, name), sizeof(((struct walk *)0)->name)                      \
	}

static void check_room(const void *to, size_t size)
{
	static const struct {
		size_t at, size;
	} members[] = { MEMBER(window), MEMBER(frames), MEMBER(scratch), MEMBER(state) };
	size_t at = (uintptr_t)to - (uintptr_t)&f.walk;

	if (at >= sizeof(f.walk))
		return; /* a step's own variable: the sanitizer's business */
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (at >= members[i].at && at - members[i].at < members[i].size &&
		    size <= members[i].size - (at - members[i].at))
			return;
	if (size > 8) /* else a register, or such */
		abort();
}

static int read_image(void *ctx, __u64 addr, void *to, __u32 size)
{
	uint64_t at = addr - IMAGE_AT;

	(void)ctx;
	check_room(to, size);
	if (++f.nr_reads > READS_MAX)
		abort();
	if (f.everywhere) {
		for (__u32 i = 0; i < size; i++)
			((uint8_t *)to)[i] = f.image[(addr + i) % f.image_size];
		return 0;
	}
	if (at >= f.image_size)
		at = addr - CODE_AT;
	if (at >= f.image_size || size > f.image_size - at)
		return -1;
	memcpy(to, f.image + at, size);
	return 0;
}

/* Words with one of these in their top byte are addresses of this process. */
static uint64_t settle(uint64_t word)
{
	uint64_t low = word & ((1ull << 56) - 1);

	switch (word >> 56) {
	case 0xa0:
		return IMAGE_AT + low % f.image_size;
	case 0xa1:
		return CODE_AT + low % f.image_size;
	case 0xa2:
		return LOOPS_AT + low % LOOPS_SIZE;
	case 0xa3:
		return PLAIN_AT + low % PLAIN_SIZE;
	default:
		return word;
	}
}

static void settle_all(void *data, size_t size)
{
	uint64_t word;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		memcpy(&word, (uint8_t *)data + i, 8);
		word = settle(word);
		memcpy((uint8_t *)data + i, &word, 8);
	}
}

static size_t take(const uint8_t **data, size_t *size, void *to, size_t room)
{
	size_t n = *size < room ? *size : room;

	memset(to, 0, room);
	memcpy(to, *data, n);
	*data += n;
	*size -= n;
	return n;
}

/* One function that is the interpreter's loop, code without unwind information, and the runtime's.
 */
static void make_tables(uint32_t id, bool a64)
{
	struct unwind_mapping *m =
		(struct unwind_mapping *)&f.segments[SEGMENT_TABLES].cells[MAPPINGS_CELL];
	const int ra = -1, fp = -2, lr_fp = -4;

	m[0] = (struct unwind_mapping){ LOOPS_AT, LOOPS_AT + LOOPS_SIZE, 0, 1, 0 };
	m[1] = (struct unwind_mapping){ PLAIN_AT, PLAIN_AT + PLAIN_SIZE, 0, MAPPING_ANON, 0 };
	m[2] = (struct unwind_mapping){ CODE_AT, CODE_AT + f.image_size, 0, MAPPING_ANON, id };
	f.files[1] = (struct unwind_file){ .start = LOOPS_AT,
					   .nr_buckets = LOOPS_SIZE >> BUCKET_SHIFT,
					   .buckets = BUCKETS_CELL,
					   .rows = ROWS_CELL,
					   .state = FILE_STATE_LOADED };
	for (int i = 0; i < LOOPS_SIZE >> BUCKET_SHIFT; i++)
		f.segments[SEGMENT_TABLES].cells[BUCKETS_CELL + i] = BUCKET(0, 1);
	f.segments[SEGMENT_TABLES].cells[ROWS_CELL] = ROW(0, RULE_LOOP);
	memset(f.rules, 0, sizeof(f.rules));
	f.rules[RULE_NONE] = (struct unwind_rule){ .cfa = CFA_STOP, .cfa_off = STOP_NO_RULE };
	f.rules[RULE_FRAME_POINTER] = (struct unwind_rule){ .cfa = CFA_FRAME_POINTER };
	f.rules[RULE_RUNTIMES + id] =
		(struct unwind_rule){ .cfa = CFA_RUNTIME, .cfa_off = (int32_t)id };
	f.rules[RULE_LOOP] = (struct unwind_rule){ .cfa = CFA_REG,
						   .cfa_reg = a64 ? A64_SP : X86_RSP,
						   .cfa_off = 32,
						   .ra = (uint8_t)(id << RULE_RUNTIME_SHIFT),
						   .ra_off = (int16_t)(a64 ? -3 : ra),
						   .slot_off = { (int16_t)(a64 ? lr_fp : fp) } };
}

static void make_record(uint32_t id, const uint8_t **data, size_t *size)
{
	uint32_t *cells = &f.segments[SEGMENT_RECORD].cells[RECORD_CELL];
	struct runtime_record head = { .runtime = id, .size = (uint32_t)runtimes[id]->record_size };

	memcpy(cells, &head, sizeof(head));
	take(data, size, cells + sizeof(head) / 4, head.size);
	settle_all(cells + sizeof(head) / 4, head.size);
}

/* The runtime chosen by a byte: one of those that have a step of their own. */
static uint32_t choose(uint8_t byte)
{
	uint32_t ids[RUNTIME_MAX_], nr = 0;

	for (uint32_t id = 0; id < RUNTIME_MAX_; id++)
		if (runtimes[id] && runtimes[id]->probe)
			ids[nr++] = id;
	return ids[byte % nr];
}

static void check(int stop, uint32_t max_frames)
{
	const struct walk *w = &f.walk;
	uint32_t nr = 0;

	if (stop <= STOP_NONE || stop >= STOP_MAX_ || w->full.nr_words > SAMPLE_WORDS_MAX)
		abort();
	for (uint32_t i = 0; i < w->full.nr_words; i += 1 + FRAME_EXTRA(w->words[i])) {
		nr++;
		if (i + FRAME_EXTRA(w->words[i]) >= w->full.nr_words)
			abort();
	}
	if (nr > max_frames || nr != w->nr_frames)
		abort();
}

FUZZER(data, size)
{
	static struct arena_segment *const segments[] = { &f.segments[0], &f.segments[1] };
	const struct walk_tables tables = { f.files, 2, f.rules, NR_RULES, segments, NR_SEGMENTS };
	const struct walk_memory memory = { .read = read_image, .ctx = NULL };
	__u64 regs[UNWIND_REGS_MAX];
	struct walk_input input = {
		.regs = regs,
		.process = { .generation = 1, .nr_mappings = 3, .mappings = MAPPINGS_CELL },
	};
	uint8_t choices[CHOICES];
	bool a64;
	uint32_t id;

	if (size < CHOICES)
		return 0;
	take(&data, &size, choices, sizeof(choices));
	id = choose(choices[0]);
	a64 = choices[1] & CHOOSE_A64;
	f.everywhere = choices[1] & CHOOSE_EVERYWHERE;
	f.nr_reads = 0;
	f.image_size = size > 256 ? (size < IMAGE_MAX ? size & ~7ul : IMAGE_MAX) : 256;
	make_record(id, &data, &size);
	make_tables(id, a64);
	take(&data, &size, regs, 8 * (a64 ? 32 : 17));
	settle_all(regs, sizeof(regs));
	memset(f.image, 0, f.image_size);
	take(&data, &size, f.image, size < f.image_size ? size : f.image_size);
	settle_all(f.image, f.image_size);
	regs[a64 ? A64_SP : X86_RSP] = IMAGE_AT + (8ull * choices[3]) % f.image_size;
	input.machine = a64 ? EM_AARCH64 : EM_X86_64;
	input.valid = choices[1] & CHOOSE_FEW_REGISTERS
			      ? (a64 ? 1u << A64_SP | 1u << A64_FP : 1u << X86_RSP | 1u << X86_RBP)
			      : 0;
	input.pc = choices[1] & CHOOSE_CODE ? CODE_AT + regs[0] % f.image_size
					    : LOOPS_AT + regs[0] % LOOPS_SIZE;
	input.process.runtimes = SEGMENT_RECORD * ARENA_SEGMENT_CELLS + RECORD_CELL;
	input.max_frames = 1 + 16u * choices[2];
	input.thread_pointer = IMAGE_AT + regs[1] % f.image_size;
	check(walk_host(&tables, &memory, &input, &f.walk), input.max_frames);
	return 0;
}
