// SPDX-License-Identifier: Apache-2.0
/*
 * Each bucket of 256 bytes of code that the walk touched becomes a mapping and a file of its own in
 * the case, with its rows; so the replay goes through the same look-ups as the kernel did.
 */
#include "agent/replay_case.h"
#include "bpf/host/walk_host.h"
#include "util/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static const char magic[8] = "SNDREPL2";

enum {
	BUCKETS_MAX = 1024,
	BUCKET_BYTES = 1 << BUCKET_SHIFT,
	ROWS_MAX = BUCKETS_MAX * (BUCKET_ROWS_MAX + 1),
	RULES_MAX = 4096,
};

struct case_header {
	char magic[8];
	uint32_t machine, stop;
	uint32_t nr_words, nr_buckets, nr_rows, nr_rules, stack_size, pad_;
};

struct case_bucket {
	uint64_t start; /* in memory; 256 bytes, or what the mapping has of them */
	uint64_t end;
	uint64_t bias;
	uint32_t is_file;	     /* 0: anonymous code */
	uint32_t first_row, nr_rows; /* in the case; row 0 of a bucket is in force at its start */
	uint32_t pad_;
};

struct replay_case {
	struct case_header h;
	struct sample_raw raw;
	__u64 *words;
	uint8_t *stack;
	/* The tables. */
	struct unwind_file *files;
	struct unwind_rule *rules;
	struct arena_segment *segments[4];
	struct unwind_process process;
	struct walk walk;
};

/* --- writing --------------------------------------------------------------------------------- */

struct writer {
	const struct publisher *p;
	VEC(struct case_bucket) buckets;
	VEC(uint32_t) rows;
	VEC(struct unwind_rule) rules;
	VEC(uint32_t) rule_numbers; /* of the store, by the case's */
};

static uint32_t cell(const struct writer *w, uint32_t number)
{
	return w->p->store->segments[number >> ARENA_SEGMENT_SHIFT]
		->cells[number & (ARENA_SEGMENT_CELLS - 1)];
}

/* The case's number of a rule of the store. */
static int add_rule(struct writer *w, uint32_t store_rule, uint32_t *ret)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < w->rule_numbers.nr && w->rule_numbers.items[i] != store_rule; i++)
		;
	if (i == w->rule_numbers.nr) {
		r = vec_push(&w->rule_numbers, store_rule);
		if (!r)
			r = vec_push(&w->rules, w->p->store->rules[store_rule]);
	}
	*ret = i;
	return r;
}

static int add_row(struct writer *w, uint32_t low8, uint32_t store_rule)
{
	uint32_t rule;
	int r = add_rule(w, store_rule, &rule);

	return r ? r : vec_push(&w->rows, ROW(low8, rule));
}

/* Copies the rows of the file's bucket number `n`, and the row in force before it. */
static int add_rows(struct writer *w, const struct unwind_file *f, uint32_t n,
		    struct case_bucket *b)
{
	uint32_t bucket = cell(w, f->buckets + n), first = BUCKET_FIRST(bucket), i, row;
	int r = 0;

	b->first_row = (uint32_t)w->rows.nr;
	if (first)
		r = add_row(w, 0, ROW_RULE(cell(w, f->rows + first - 1)));
	for (i = 0; i < BUCKET_NR(bucket) && !r; i++) {
		row = cell(w, f->rows + first + i);
		r = add_row(w, row >> 24, ROW_RULE(row));
	}
	b->nr_rows = (uint32_t)w->rows.nr - b->first_row;
	return r;
}

static int add_address(struct writer *w, const struct block *block, uint64_t addr)
{
	const struct unwind_mapping *m = publisher_mapping(w->p, block, addr);
	const struct unwind_file *f = m ? &w->p->store->files[m->file] : NULL;
	struct case_bucket b = { 0 };
	size_t i;
	int r = 0;

	if (!m || (m->file != MAPPING_ANON && f->state != FILE_STATE_LOADED))
		return 0; /* the walk ended here, for want of it */
	for (i = 0; i < w->buckets.nr; i++)
		if (addr >= w->buckets.items[i].start && addr < w->buckets.items[i].end)
			return 0;
	b.bias = m->bias;
	b.is_file = m->file != MAPPING_ANON;
	b.start = ((addr - m->bias) & -(uint64_t)BUCKET_BYTES) + m->bias;
	b.end = b.start + BUCKET_BYTES;
	if (b.start < m->start)
		b.start = m->start;
	if (b.end > m->end)
		b.end = m->end;
	if (b.is_file && addr - m->bias >= f->start &&
	    (addr - m->bias - f->start) >> BUCKET_SHIFT < f->nr_buckets)
		r = add_rows(w, f, (uint32_t)((addr - m->bias - f->start) >> BUCKET_SHIFT), &b);
	return r ? r : vec_push(&w->buckets, b);
}

static int bucket_order(const void *a, const void *b)
{
	const struct case_bucket *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void put(FILE *out, const void *data, size_t size)
{
	if (size)
		fwrite(data, size, 1, out);
}

int replay_case_write(FILE *out, const struct publisher *p, const struct block *block,
		      const struct sample_raw *raw, const uint8_t *stack, const __u64 *words,
		      uint32_t nr_words, enum stop_reason stop)
{
	struct writer w = { .p = p };
	struct case_header h = { .machine = EM_X86_64,
				 .stop = stop,
				 .nr_words = nr_words,
				 .stack_size = raw->stack_size };
	uint32_t i, rule;
	int r = 0;

#if defined(__aarch64__)
	h.machine = EM_AARCH64;
#endif
	memcpy(h.magic, magic, sizeof(magic));
	/* The walker itself knows the first two rules by their numbers. */
	for (i = 0; i <= RULE_FRAME_POINTER && !r; i++)
		r = add_rule(&w, i, &rule);
	for (i = 0; i < nr_words && !r; i++)
		r = add_address(&w, block, FRAME_DATA(words[i]));
	if (!r) {
		qsort(w.buckets.items, w.buckets.nr, sizeof(*w.buckets.items), bucket_order);
		h.nr_buckets = (uint32_t)w.buckets.nr;
		h.nr_rows = (uint32_t)w.rows.nr;
		h.nr_rules = (uint32_t)w.rules.nr;
		put(out, &h, sizeof(h));
		put(out, raw, sizeof(*raw));
		put(out, words, nr_words * sizeof(*words));
		put(out, w.buckets.items, w.buckets.nr * sizeof(*w.buckets.items));
		put(out, w.rows.items, w.rows.nr * sizeof(*w.rows.items));
		put(out, w.rules.items, w.rules.nr * sizeof(*w.rules.items));
		put(out, stack, raw->stack_size);
		r = ferror(out) ? -EIO : 0;
	}
	vec_free(&w.buckets);
	vec_free(&w.rows);
	vec_free(&w.rules);
	vec_free(&w.rule_numbers);
	return r;
}

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

/*
 * Arena: segment 0 the mappings, segment 1 the buckets, from segment 2 on the rows. False if the
 * case contradicts itself.
 */
static bool fill_tables(struct replay_case *c, const struct case_bucket *buckets,
			const uint32_t *rows)
{
	struct unwind_mapping *m = (struct unwind_mapping *)c->segments[0]->cells;
	uint32_t i;

	for (i = 0; i < c->h.nr_buckets; i++) {
		const struct case_bucket *b = &buckets[i];

		if (b->nr_rows > BUCKET_ROWS_MAX || b->first_row > c->h.nr_rows ||
		    b->nr_rows > c->h.nr_rows - b->first_row || b->end <= b->start)
			return false;
		m[i] = (struct unwind_mapping){ b->start, b->end, b->bias, b->is_file ? i + 1 : 0,
						0 };
		c->segments[1]->cells[i] = BUCKET(0, b->nr_rows);
		c->files[i + 1] = (struct unwind_file){
			.start = (b->start - b->bias) & -(uint64_t)BUCKET_BYTES,
			.nr_buckets = 1,
			.buckets = ARENA_SEGMENT_CELLS + i,
			.rows = 2 * ARENA_SEGMENT_CELLS + b->first_row,
			.state = FILE_STATE_LOADED,
		};
	}
	for (i = 0; i < c->h.nr_rows; i++)
		c->segments[2 + i / ARENA_SEGMENT_CELLS]->cells[i % ARENA_SEGMENT_CELLS] = rows[i];
	c->process = (struct unwind_process){ .generation = 1, .nr_mappings = c->h.nr_buckets };
	return true;
}

static int read_body(struct replay_case *c, struct input *in)
{
	_cleanup_free_ struct case_bucket *buckets = NULL;
	_cleanup_free_ uint32_t *rows = NULL;
	size_t i;

	if (memcmp(c->h.magic, magic, sizeof(magic)) || c->h.nr_words > SAMPLE_WORDS_MAX ||
	    c->h.nr_buckets > BUCKETS_MAX || c->h.nr_rows > 2 * ARENA_SEGMENT_CELLS ||
	    c->h.nr_rules > RULES_MAX || c->h.stack_size > RAW_STACK_MAX ||
	    c->h.stack_size != c->raw.stack_size)
		return -EINVAL;
	c->words = take(in, c->h.nr_words, sizeof(*c->words));
	buckets = take(in, c->h.nr_buckets, sizeof(*buckets));
	rows = take(in, c->h.nr_rows, sizeof(*rows));
	c->rules = take(in, c->h.nr_rules, sizeof(*c->rules));
	c->stack = take(in, c->h.stack_size, 1);
	c->files = calloc(c->h.nr_buckets + 1, sizeof(*c->files));
	for (i = 0; i < 4; i++)
		c->segments[i] = calloc(1, sizeof(*c->segments[i]));
	if (!c->words || !buckets || !rows || !c->rules || !c->stack || !c->files ||
	    !c->segments[0] || !c->segments[1] || !c->segments[2] || !c->segments[3] || in->size)
		return -EINVAL;
	return fill_tables(c, buckets, rows) ? 0 : -EINVAL;
}

int replay_case_read(const void *data, size_t size, struct replay_case **ret)
{
	_cleanup_(replay_case_free_p) struct replay_case *c = calloc(1, sizeof(*c));
	struct input in = { data, size };
	int r;

	if (!c)
		return -ENOMEM;
	if (size < sizeof(c->h) + sizeof(c->raw))
		return -EINVAL;
	memcpy(&c->h, in.data, sizeof(c->h));
	memcpy(&c->raw, in.data + sizeof(c->h), sizeof(c->raw));
	in.data += sizeof(c->h) + sizeof(c->raw);
	in.size -= sizeof(c->h) + sizeof(c->raw);
	r = read_body(c, &in);
	if (!r)
		*ret = TAKE_PTR(c);
	return r;
}

void replay_case_free(struct replay_case *c)
{
	size_t i;

	if (!c)
		return;
	for (i = 0; i < 4; i++)
		free(c->segments[i]);
	free(c->files);
	free(c->rules);
	free(c->stack);
	free(c->words);
	free(c);
}

/* --- walking --------------------------------------------------------------------------------- */

static int read_case(void *ctx, __u64 addr, void *to, __u32 size)
{
	const struct replay_case *c = ctx;
	uint64_t in_stack = addr - c->raw.stack_start,
		 in_code = addr - (c->raw.pc - RAW_CODE_BEFORE);

	if (in_stack < c->h.stack_size && size <= c->h.stack_size - in_stack) {
		memcpy(to, c->stack + in_stack, size);
		return 0;
	}
	if (in_code < sizeof(c->raw.code) && size <= sizeof(c->raw.code) - in_code) {
		memcpy(to, c->raw.code + in_code, size);
		return 0;
	}
	return -EFAULT;
}

struct replay_result replay_case_walk(struct replay_case *c)
{
	const struct walk_memory memory = { read_case, c };
	const struct walk_tables tables = {
		.files = c->files,
		.nr_files = c->h.nr_buckets + 1,
		.rules = c->rules,
		.nr_rules = c->h.nr_rules,
		.segments = c->segments,
		.nr_segments = 4,
	};
	const struct walk_input input = {
		.machine = (uint16_t)c->h.machine,
		.pc = c->raw.pc,
		.regs = c->raw.regs,
		.process = c->process,
		.max_frames = SAMPLE_FRAMES_DEFAULT,
	};
	int stop = walk_host(&tables, &memory, &input, &c->walk);

	return (struct replay_result){ stop, c->walk.words, c->walk.full.nr_words };
}

struct replay_result replay_case_expected(const struct replay_case *c)
{
	return (struct replay_result){ c->h.stop, c->words, c->h.nr_words };
}
