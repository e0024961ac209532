// SPDX-License-Identifier: Apache-2.0
/*
 * Reads replay cases, of bytes that nobody vouches for, and walks them. replay_case_make.c makes
 * them.
 */
#include "replay/replay_case.h"
#include "replay/replay_case_format.h"
#include "bpf/host/walk_host.h"
#include "runtime/runtime.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

/* The arena of a case. */
enum {
	SEGMENT_MAPPINGS,
	SEGMENT_BUCKETS,
	SEGMENT_ROWS,
	SEGMENT_RECORDS = SEGMENT_ROWS + REPLAY_ROWS_MAX / ARENA_SEGMENT_CELLS,
	NR_SEGMENTS,
	RECORD_CELLS = (RUNTIME_RECORD_CELLS + 7) & ~7,
	FIRST_RECORD_CELL = 8, /* cell 0 of the arena is none */
};
_Static_assert(REPLAY_BUCKETS_MAX * sizeof(struct unwind_mapping) / 4 <= ARENA_SEGMENT_CELLS,
	       "mappings have one segment");
_Static_assert(FIRST_RECORD_CELL + RUNTIMES_OF_PROCESS_MAX * RECORD_CELLS <= ARENA_SEGMENT_CELLS,
	       "and records");

struct replay_case {
	struct replay_header h;
	__u64 *words;
	struct replay_memory memory;
	char *names;
	struct replay_image images[RUNTIMES_OF_PROCESS_MAX];
	/* The tables. */
	struct unwind_file *files;
	struct unwind_rule *rules;
	struct arena_segment *segments[NR_SEGMENTS];
	struct unwind_process process;
	struct walk walk;
};

/* --- reading --------------------------------------------------------------------------------- */

struct input {
	const uint8_t *data;
	size_t size;
};

/* `nr` items of `item` bytes, copied; NULL at the end of the input or of memory. */
static void *take(struct input *in, uint64_t nr, size_t item)
{
	void *copy;

	if (nr > in->size / item)
		return NULL;
	copy = malloc(nr * item + 1);
	if (!copy)
		return NULL;
	memcpy(copy, in->data, nr * item);
	in->data += nr * item;
	in->size -= nr * item;
	return copy;
}

static bool take_into(struct input *in, void *to, size_t size)
{
	if (size > in->size)
		return false;
	memcpy(to, in->data, size);
	in->data += size;
	in->size -= size;
	return true;
}

/* Files, mappings, buckets and rows. False if the case contradicts itself. */
static bool fill_tables(struct replay_case *c, const struct replay_bucket *buckets,
			const uint32_t *rows)
{
	struct unwind_mapping *m = (struct unwind_mapping *)c->segments[SEGMENT_MAPPINGS]->cells;
	uint32_t i;

	for (i = 0; i < c->h.nr_buckets; i++) {
		const struct replay_bucket *b = &buckets[i];

		if (b->nr_rows > BUCKET_ROWS_MAX || b->first_row > c->h.nr_rows ||
		    b->nr_rows > c->h.nr_rows - b->first_row || b->end <= b->start)
			return false;
		m[i] = (struct unwind_mapping){ b->start, b->end, b->bias, b->is_file ? i + 1 : 0,
						b->runtime };
		c->segments[SEGMENT_BUCKETS]->cells[i] = BUCKET(0, b->nr_rows);
		c->files[i + 1] = (struct unwind_file){
			.start = (b->start - b->bias) & -((uint64_t)1 << BUCKET_SHIFT),
			.nr_buckets = 1,
			.buckets = SEGMENT_BUCKETS * ARENA_SEGMENT_CELLS + i,
			.rows = SEGMENT_ROWS * ARENA_SEGMENT_CELLS + b->first_row,
			.state = FILE_STATE_LOADED,
		};
	}
	for (i = 0; i < c->h.nr_rows; i++)
		c->segments[SEGMENT_ROWS + i / ARENA_SEGMENT_CELLS]
			->cells[i % ARENA_SEGMENT_CELLS] = rows[i];
	c->process = (struct unwind_process){ .generation = 1, .nr_mappings = c->h.nr_buckets };
	return true;
}

static int read_tables(struct replay_case *c, struct input *in)
{
	_cleanup_free_ struct replay_bucket *buckets = NULL;
	_cleanup_free_ uint32_t *rows = NULL;
	size_t i;

	if (c->h.nr_words > SAMPLE_WORDS_MAX || c->h.nr_buckets > REPLAY_BUCKETS_MAX ||
	    c->h.nr_rows > REPLAY_ROWS_MAX || c->h.nr_rules > REPLAY_RULES_MAX)
		return -EINVAL;
	c->words = take(in, c->h.nr_words, sizeof(*c->words));
	buckets = take(in, c->h.nr_buckets, sizeof(*buckets));
	rows = take(in, c->h.nr_rows, sizeof(*rows));
	c->rules = take(in, c->h.nr_rules, sizeof(*c->rules));
	c->files = calloc(c->h.nr_buckets + 1, sizeof(*c->files));
	if (!c->words || !buckets || !rows || !c->rules || !c->files)
		return -EINVAL;
	for (i = 0; i < NR_SEGMENTS; i++) {
		c->segments[i] = calloc(1, sizeof(*c->segments[i]));
		if (!c->segments[i])
			return -ENOMEM;
	}
	return fill_tables(c, buckets, rows) ? 0 : -EINVAL;
}

/*
 * Records grow at their end, and 0 is what is not known: one that was saved when it was shorter is
 * as good as it was then.
 */
static uint32_t record_size(const struct replay_record *record)
{
	const struct runtime_ops *ops =
		record->runtime < RUNTIME_MAX_ ? runtimes[record->runtime] : NULL;

	return ops && ops->record_size > record->size ? (uint32_t)ops->record_size : record->size;
}

static int read_records(struct replay_case *c, struct input *in)
{
	uint32_t *cells = c->segments[SEGMENT_RECORDS]->cells, at = FIRST_RECORD_CELL, i;

	if (c->h.nr_records > RUNTIMES_OF_PROCESS_MAX)
		return -EINVAL;
	for (i = 0; i < c->h.nr_records; i++, at += RECORD_CELLS) {
		const uint32_t arena = SEGMENT_RECORDS * ARENA_SEGMENT_CELLS;
		struct runtime_record head = { 0 };
		struct replay_record record;

		if (!take_into(in, &record, sizeof(record)) || record.size > RUNTIME_RECORD_MAX)
			return -EINVAL;
		head.runtime = record.runtime;
		memset(record.bytes + record.size, 0, sizeof(record.bytes) - record.size);
		head.size = record_size(&record);
		head.next = i + 1 < c->h.nr_records ? arena + at + RECORD_CELLS : 0;
		memcpy(cells + at, &head, sizeof(head));
		memcpy(cells + at + sizeof(head) / 4, record.bytes, sizeof(record.bytes));
		if (!i)
			c->process.runtimes = arena + at;
	}
	return 0;
}

/* Ranges come sorted, and apart from each other. */
static int read_memory(struct input *in, uint32_t nr, uint32_t size, struct replay_memory *ret)
{
	_cleanup_free_ struct replay_range *ranges = NULL;
	uint64_t end = 0, total = 0;

	if (size > REPLAY_MEMORY_MAX || nr > REPLAY_READS_MAX)
		return -EINVAL;
	ranges = take(in, nr, sizeof(*ranges));
	if (!ranges || in->size < size)
		return -EINVAL;
	for (uint32_t i = 0; i < nr; i++) {
		const struct replay_range *range = &ranges[i];

		if (!range->size || range->size > size - total ||
		    range->addr + range->size < range->addr || (i && range->addr <= end))
			return -EINVAL;
		replay_memory_add(ret, range->addr, in->data + total, range->size);
		total += range->size;
		end = range->addr + range->size;
	}
	in->data += size;
	in->size -= size;
	return ret->full ? -ENOMEM : total == size ? 0 : -EINVAL;
}

static int read_images(struct replay_case *c, struct input *in)
{
	int r = 0;

	if (c->h.nr_images > RUNTIMES_OF_PROCESS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < c->h.nr_images && !r; i++) {
		struct replay_image_head head;

		if (!take_into(in, &head, sizeof(head)) || head.size > REPLAY_IMAGE_MAX)
			return -EINVAL;
		c->images[i].runtime = head.runtime;
		c->images[i].options = head.options;
		c->images[i].bias = head.bias;
		c->images[i].size = head.size;
		r = read_memory(in, head.nr_ranges, head.kept_size, &c->images[i].kept);
	}
	return r;
}

static int read_case(struct replay_case *c, struct input *in)
{
	int r;

	if (!take_into(in, &c->h, sizeof(c->h)) ||
	    memcmp(c->h.magic, REPLAY_MAGIC, sizeof(c->h.magic)) != 0 ||
	    c->h.max_frames > SAMPLE_FRAMES_MAX)
		return -EINVAL;
	r = read_tables(c, in);
	if (!r)
		r = read_records(c, in);
	if (!r)
		r = read_memory(in, c->h.nr_ranges, c->h.memory_size, &c->memory);
	if (r)
		return r;
	c->names = take(in, c->h.names_size, 1);
	if (!c->names)
		return -EINVAL;
	c->names[c->h.names_size] = '\0';
	return read_images(c, in);
}

int replay_case_next(const uint8_t **data, size_t *size, struct replay_case **ret)
{
	_cleanup_(replay_case_free_p) struct replay_case *c = NULL;
	struct input in = { *data, *size };
	int r;

	if (!in.size)
		return -ENODATA;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	r = read_case(c, &in);
	if (r)
		return r;
	*data = in.data;
	*size = in.size;
	*ret = TAKE_PTR(c);
	return 0;
}

DEFINE_CLEANUP(ZSTD_DCtx *, ZSTD_freeDCtx)

int replay_cases_unpack(const void *data, size_t size, uint8_t **ret, size_t *ret_size)
{
	_cleanup_(ZSTD_freeDCtx_p) ZSTD_DCtx *ctx = NULL;
	_cleanup_free_ uint8_t *plain = NULL;
	unsigned long long plain_size = ZSTD_getFrameContentSize(data, size);
	bool compressed = plain_size != ZSTD_CONTENTSIZE_ERROR;

	if (!compressed)
		plain_size = size;
	if (plain_size > REPLAY_CASES_MAX) /* or not known */
		return -EINVAL;
	plain = malloc(plain_size + 1);
	if (!plain)
		return -ENOMEM;
	if (!compressed) {
		memcpy(plain, data, size);
	} else {
		ctx = ZSTD_createDCtx();
		if (!ctx)
			return -ENOMEM;
		if (ZSTD_decompressDCtx(ctx, plain, plain_size, data, size) != plain_size)
			return -EINVAL;
	}
	*ret = TAKE_PTR(plain);
	*ret_size = plain_size;
	return 0;
}

void replay_case_free(struct replay_case *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < NR_SEGMENTS; i++)
		free(c->segments[i]);
	for (i = 0; i < RUNTIMES_OF_PROCESS_MAX; i++)
		replay_image_fini(&c->images[i]);
	replay_memory_fini(&c->memory);
	free(c->names);
	free(c->files);
	free(c->rules);
	free(c->words);
	free(c);
}

/* --- walking --------------------------------------------------------------------------------- */

static int read_kept(void *ctx, __u64 addr, void *to, __u32 size)
{
	return replay_memory_read(ctx, addr, to, size);
}

struct replay_result replay_case_walk(struct replay_case *c)
{
	const struct walk_memory memory = { .read = read_kept, .ctx = &c->memory };
	const struct walk_tables tables = {
		.files = c->files,
		.nr_files = c->h.nr_buckets + 1,
		.rules = c->rules,
		.nr_rules = c->h.nr_rules,
		.segments = c->segments,
		.nr_segments = NR_SEGMENTS,
	};
	const __u64 *regs = (const __u64 *)c->h.regs;
	const struct walk_input input = {
		.machine = (uint16_t)c->h.machine,
		.pc = c->h.pc,
		.regs = regs,
		.valid = c->h.valid,
		.process = c->process,
		.late = c->h.flags & REPLAY_LATE,
		.max_frames = c->h.max_frames,
		.thread_pointer = c->h.thread_pointer,
	};
	int stop = walk_host(&tables, &memory, &input, &c->walk);

	return (struct replay_result){ stop, c->walk.words, c->walk.full.nr_words };
}

struct replay_result replay_case_expected(const struct replay_case *c)
{
	return (struct replay_result){ c->h.stop, c->words, c->h.nr_words };
}

/* --- naming ---------------------------------------------------------------------------------- */

const char *replay_case_expected_names(const struct replay_case *c)
{
	return c->names ? c->names : "";
}

int replay_case_name(const struct replay_case *c, char **ret)
{
	const struct replay_image_wanted wanted = { .machine = (uint16_t)c->h.machine,
						    .memory = &c->memory,
						    .words = c->words,
						    .nr_words = c->h.nr_words };

	return replay_images_name(c->images, c->h.nr_images, &wanted, ret);
}
