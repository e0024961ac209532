// SPDX-License-Identifier: Apache-2.0
/*
 * Each bucket of 256 bytes of code that the walk touched becomes a mapping and a file of its own in
 * the case, with its rows; so the replay goes through the same look-ups as the kernel did.
 */
#include "replay/replay_case.h"
#include "replay/replay_case_format.h"
#include "bpf/walk.bpf.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>
#include <zstd.h>

enum { COMPRESSION_LEVEL = 19, BUCKET_BYTES = 1 << BUCKET_SHIFT };

struct maker {
	const struct replay_capture *capture;
	VEC(struct replay_bucket) buckets;
	VEC(uint32_t) rows;
	VEC(struct unwind_rule) rules;
	VEC(uint32_t) rule_numbers; /* of the store, by the case's */
	VEC(struct replay_record) records;
};

static void maker_fini(struct maker *m)
{
	vec_free(&m->buckets);
	vec_free(&m->rows);
	vec_free(&m->rules);
	vec_free(&m->rule_numbers);
	vec_free(&m->records);
}

static const uint32_t *cell(const struct maker *m, uint32_t number)
{
	return arena_cell(&m->capture->publisher->store->arena, number);
}

/* The case's number of a rule of the store. */
static int add_rule(struct maker *m, uint32_t store_rule, uint32_t *ret)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < m->rule_numbers.nr && m->rule_numbers.items[i] != store_rule; i++)
		;
	if (i == m->rule_numbers.nr) {
		r = vec_push(&m->rule_numbers, store_rule);
		if (!r)
			r = vec_push(&m->rules, m->capture->publisher->store->rules[store_rule]);
	}
	*ret = i;
	return r;
}

static int add_row(struct maker *m, uint32_t low8, uint32_t store_rule)
{
	uint32_t rule;
	int r = add_rule(m, store_rule, &rule);

	return r ? r : vec_push(&m->rows, ROW(low8, rule));
}

/* Copies the rows of the file's bucket number `n`, and the row in force before it. */
static int add_rows(struct maker *m, const struct unwind_file *f, uint32_t n,
		    struct replay_bucket *b)
{
	uint32_t bucket = *cell(m, f->buckets + n), first = BUCKET_FIRST(bucket), i, row;
	int r = 0;

	b->first_row = (uint32_t)m->rows.nr;
	if (first)
		r = add_row(m, 0, ROW_RULE(*cell(m, f->rows + first - 1)));
	for (i = 0; i < BUCKET_NR(bucket) && !r; i++) {
		row = *cell(m, f->rows + first + i);
		r = add_row(m, row >> 24, ROW_RULE(row));
	}
	b->nr_rows = (uint32_t)m->rows.nr - b->first_row;
	return r;
}

static bool has_bucket(const struct maker *m, uint64_t addr)
{
	for (size_t i = 0; i < m->buckets.nr; i++)
		if (addr >= m->buckets.items[i].start && addr < m->buckets.items[i].end)
			return true;
	return false;
}

static int add_address(struct maker *m, uint64_t addr)
{
	const struct replay_capture *c = m->capture;
	const struct unwind_mapping *map = publisher_mapping(c->publisher, c->snapshot, addr);
	const struct unwind_file *f = map ? &c->publisher->store->files[map->file] : NULL;
	struct replay_bucket b = { 0 };
	int r = 0;

	/* Not there, not loaded: the walk ended here, for want of it. */
	if (!map || (map->file != MAPPING_ANON && f->state != FILE_STATE_LOADED) ||
	    has_bucket(m, addr))
		return 0;
	b.bias = map->bias;
	b.is_file = map->file != MAPPING_ANON;
	b.start = ((addr - map->bias) & -(uint64_t)BUCKET_BYTES) + map->bias;
	b.end = b.start + BUCKET_BYTES;
	if (b.start < map->start)
		b.start = map->start;
	if (b.end > map->end)
		b.end = map->end;
	if (b.is_file && addr - map->bias >= f->start &&
	    (addr - map->bias - f->start) >> BUCKET_SHIFT < f->nr_buckets)
		r = add_rows(m, f, (uint32_t)((addr - map->bias - f->start) >> BUCKET_SHIFT), &b);
	return r ? r : vec_push(&m->buckets, b);
}

/* The native frames' code. (RULE_NO_CALL shows a frame one behind the address looked for.) */
static int add_frames(struct maker *m)
{
	const struct replay_capture *c = m->capture;
	int r = add_address(m, c->pc);

	for (uint32_t i = 0; i < c->nr_words && !r; i += 1 + FRAME_EXTRA(c->words[i])) {
		if (!FRAME_IS_NATIVE(c->words[i]))
			continue;
		r = add_address(m, FRAME_DATA(c->words[i]));
		if (!r)
			r = add_address(m, FRAME_DATA(c->words[i]) - 1);
	}
	return r;
}

/* What runtimes made: frames of theirs do not tell where their code is. */
static int add_runtime_code(struct maker *m)
{
	const struct replay_capture *c = m->capture;
	const struct unwind_mapping *all = publisher_mappings(c->publisher, c->snapshot);
	int r = 0;

	for (uint32_t i = 0; i < c->snapshot->nr && !r; i++) {
		const struct replay_bucket b = { .start = all[i].start,
						 .end = all[i].end,
						 .runtime = all[i].runtime };

		if (b.runtime)
			r = vec_push(&m->buckets, b);
	}
	return r;
}

static int add_records(struct maker *m)
{
	uint32_t at = m->capture->runtimes;
	int r = 0;

	for (int i = 0; i < RUNTIMES_OF_PROCESS_MAX && at && !r; i++) {
		const struct runtime_record *from = (const struct runtime_record *)cell(m, at);
		struct replay_record record = { .runtime = from->runtime, .size = from->size };

		memcpy(record.bytes, from + 1, sizeof(record.bytes));
		r = vec_push(&m->records, record);
		at = from->next;
	}
	return r;
}

static int bucket_order(const void *a, const void *b)
{
	const struct replay_bucket *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int collect(struct maker *m)
{
	uint32_t i, rule;
	int r = 0;

	for (i = 0; i < REPLAY_FIXED_RULES && !r; i++)
		r = add_rule(m, i, &rule);
	if (!r)
		r = add_runtime_code(m);
	if (!r)
		r = add_frames(m);
	if (!r)
		r = add_records(m);
	if (!r && m->buckets.nr)
		qsort(m->buckets.items, m->buckets.nr, sizeof(*m->buckets.items), bucket_order);
	return r;
}

static void put(FILE *out, const void *data, size_t size)
{
	if (size)
		fwrite(data, size, 1, out);
}

static void put_memory(FILE *out, const struct replay_memory *memory)
{
	for (size_t i = 0; i < memory->reads.nr; i++) {
		const struct replay_range range = { memory->reads.items[i].addr,
						    memory->reads.items[i].size };

		put(out, &range, sizeof(range));
	}
	put(out, memory->bytes.items, memory->bytes.nr);
}

static void put_image(FILE *out, const struct replay_image *image)
{
	const struct replay_image_head head = {
		.runtime = image->runtime,
		.options = image->options,
		.nr_ranges = (uint32_t)image->kept.reads.nr,
		.kept_size = (uint32_t)image->kept.bytes.nr,
		.bias = image->bias,
		.size = image->size,
	};

	put(out, &head, sizeof(head));
	put_memory(out, &image->kept);
}

static void put_all(FILE *out, const struct maker *m)
{
	const struct replay_capture *c = m->capture;
	struct replay_header h = {
		.machine = c->machine,
		.stop = c->stop,
		.nr_words = c->nr_words,
		.nr_buckets = (uint32_t)m->buckets.nr,
		.nr_rows = (uint32_t)m->rows.nr,
		.nr_rules = (uint32_t)m->rules.nr,
		.valid = c->valid,
		.max_frames = c->max_frames,
		.nr_records = (uint32_t)m->records.nr,
		.nr_ranges = (uint32_t)c->memory->reads.nr,
		.memory_size = (uint32_t)c->memory->bytes.nr,
		.names_size = c->names ? (uint32_t)strlen(c->names) : 0,
		.flags = c->late ? REPLAY_LATE : 0,
		.nr_images = c->nr_images,
		.pc = c->pc,
		.thread_pointer = c->thread_pointer,
	};

	memcpy(h.magic, REPLAY_MAGIC, sizeof(h.magic));
	memcpy(h.regs, c->regs, sizeof(h.regs));
	put(out, &h, sizeof(h));
	put(out, c->words, c->nr_words * sizeof(*c->words));
	put(out, m->buckets.items, m->buckets.nr * sizeof(*m->buckets.items));
	put(out, m->rows.items, m->rows.nr * sizeof(*m->rows.items));
	put(out, m->rules.items, m->rules.nr * sizeof(*m->rules.items));
	put(out, m->records.items, m->records.nr * sizeof(*m->records.items));
	put_memory(out, c->memory);
	put(out, c->names, h.names_size);
	for (uint32_t i = 0; i < c->nr_images; i++)
		put_image(out, &c->images[i]);
}

/* Does the case give the frames that it was made of? */
static int check(const uint8_t *data, size_t size)
{
	_cleanup_(replay_case_free_p) struct replay_case *c = NULL;
	struct replay_result want, got;
	int r = replay_case_next(&data, &size, &c);

	if (r)
		return r;
	want = replay_case_expected(c);
	got = replay_case_walk(c);
	return got.stop == want.stop && got.nr_words == want.nr_words &&
			       !memcmp(got.words, want.words, got.nr_words * sizeof(*got.words))
		       ? 0
		       : -ESTALE;
}

int replay_case_make(const struct replay_capture *capture, uint8_t **ret, size_t *ret_size)
{
	_cleanup_(maker_fini) struct maker m = { .capture = capture };
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	FILE *out;
	int r = collect(&m);

	if (r)
		return r;
	out = open_memstream(&data, &size);
	if (!out)
		return -ENOMEM;
	put_all(out, &m);
	if (fclose(out))
		return -ENOMEM;
	r = check((const uint8_t *)data, size);
	if (r)
		return r;
	*ret = (uint8_t *)TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

int replay_cases_pack(const uint8_t *data, size_t size, FILE *out)
{
	_cleanup_free_ uint8_t *small = NULL;
	size_t room = ZSTD_compressBound(size), used;

	small = malloc(room);
	if (!small)
		return -ENOMEM;
	used = ZSTD_compress(small, room, data, size, COMPRESSION_LEVEL);
	if (ZSTD_isError(used))
		return -ENOMEM;
	put(out, small, used);
	return ferror(out) ? -EIO : 0;
}
