// SPDX-License-Identifier: Apache-2.0
#include "unwinder/host_walk.h"
#include "process/memory.h"
#include "unwinder/anon_code.h"
#include "util/clock.h"

#include <errno.h>
#include <string.h>

enum {
	ASKED_MAX = 64,	 /* functions of one stack that are followed at once */
	TABLES_MAX = 64, /* files of one stack whose tables are got for it */
};

/* The tables that there is no room for. */
struct spilled {
	struct publisher *publisher;
	bool may;	   /* its user has time left */
	uint64_t begin_ns; /* of a CPU, when the first rule was asked for; 0: none was */
	uint32_t nr_tables;
};

/* walk_input.elsewhere */
static int find_spilled(void *ctx, __u32 file, __u64 addr, struct unwind_rule *ret)
{
	struct spilled *s = ctx;

	if (!s->may || !publisher_has_spilled(s->publisher, file))
		return -ENOENT;
	if (!s->begin_ns)
		s->begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return table_spill_find(&s->publisher->spill, file, addr, ret);
}

/* What a walk has asked for, and was told. */
struct answers {
	struct walk_known_rule known[ASKED_MAX];
	uint32_t nr_known, nr_asked;
	uint64_t since_ns; /* of a CPU: what was before that is counted; 0: nothing was asked */
};

/* An answer costs another walk, too, and of a deep stack a long one. The first walk is not
 * counted, which each raw sample has. */
static void count_time(struct publisher *p, const struct mapping_snapshot *b,
		       struct answers *answers)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	publisher_took(p, b, answers->since_ns ? now - answers->since_ns : RAW_SAMPLE_NS);
	answers->since_ns = now;
}

/* The walk is in a file whose table is not loaded: may it go on? */
static bool get_table(struct spilled *s, const struct mapping_snapshot *b, const struct walk *state,
		      struct answers *answers)
{
	struct publisher *p = s->publisher;
	bool got;

	if ((!s->may && publisher_has_spilled(p, state->mapping_file)) ||
	    s->nr_tables++ >= TABLES_MAX)
		return false;
	if (answers->since_ns)
		count_time(p, b, answers);
	got = publisher_get_table(p, b, state->mapping_file);
	/* That is not for the answers. */
	if (answers->since_ns)
		answers->since_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return got;
}

/* Follows what the walk has stopped at: whether it may go further with that. */
static bool answer(struct publisher *p, const struct mapping_snapshot *b,
		   const struct walk_memory *memory, uint16_t machine, const struct walk *state,
		   struct answers *answers)
{
	int r;

	if (answers->nr_asked++ == ASKED_MAX)
		return false;
	count_time(p, b, answers);
	r = anon_code_rule(p, b, machine, memory, state, &answers->known[answers->nr_known]);
	if (r != -ENOTSUP) {
		answers->nr_known += !r;
		return !r;
	}
	/* There would be nowhere to write down what is learned. */
	return !publisher_has_spilled(p, state->mapping_file) &&
	       !publisher_follow(p, b, state->mapping_file, state->pc - state->mapping_bias,
				 !state->interrupted);
}

/* The walk ended in a file whose table is not loaded: is there no room for it, and can't it be
 * read, or not now? */
static bool is_given_up(const struct spilled *s, const struct walk *state)
{
	uint32_t file_state = s->publisher->store->files[state->mapping_file].state;

	return file_state == FILE_STATE_EVICTED || (file_state == FILE_STATE_SPILLED && !s->may);
}

int host_walk(struct publisher *p, const struct walk_memory *memory, const struct walk_input *input,
	      struct walk *state)
{
	struct spilled spilled = { .publisher = p };
	const struct walk_tables tables = {
		.files = p->store->files,
		.nr_files = UNWIND_FILES_MAX,
		.rules = p->store->rules,
		.nr_rules = UNWIND_RULES_MAX,
		.segments = p->store->arena.segments,
		.nr_segments = ARENA_SEGMENTS_MAX,
	};
	struct walk_input in = *input;
	const struct mapping_snapshot *snapshot = publisher_snapshot(p, input->process.generation);
	struct answers answers = { .nr_asked = 0 };
	int stop;

	spilled.may = publisher_may_read_spilled(p, snapshot);
	p->nr_anon = p->nr_anon_silent = 0;
	in.known = answers.known;
	in.elsewhere = find_spilled;
	in.elsewhere_ctx = &spilled;
	/* Each turn gets one file's table, or follows what one frame is in, so that this ends. */
	for (in.may_ask = true;;) {
		in.nr_known = answers.nr_known;
		stop = walk_host(&tables, memory, &in, state);
		if (stop == STOP_CODE_PENDING)
			in.may_ask = answer(p, snapshot, memory, in.machine, state, &answers);
		else if (stop != STOP_FILE_PENDING ||
			 !get_table(&spilled, snapshot, state, &answers))
			break;
	}
	if (answers.since_ns)
		count_time(p, snapshot, &answers);
	if (spilled.begin_ns)
		publisher_read_spilled(p, snapshot,
				       clock_ns(CLOCK_THREAD_CPUTIME_ID) - spilled.begin_ns);
	return stop == STOP_FILE_PENDING && is_given_up(&spilled, state) ? STOP_TABLE_EVICTED
									 : stop;
}

/* Further up than that is no stack's address. */
enum { STACK_SIZE_MAX = 64 << 20 };

bool stack_copy_chunk(const struct stack_copy *copy, uint32_t i, struct stack_chunk *ret)
{
	uint32_t skip = copy->start & (RAW_PAGE - 1), at;

	if (!copy->pages) {
		*ret = (struct stack_chunk){ copy->start, copy->size, copy->bytes };
		return i == 0;
	}
	if (i >= copy->nr_pages)
		return false;
	*ret = (struct stack_chunk){ copy->start, RAW_PAGE - skip, copy->bytes };
	if (!copy->pages[i])
		return true;
	at = i * RAW_PAGE - (copy->pages[0] ? 0 : skip);
	*ret = (struct stack_chunk){ copy->start - skip + (uint64_t)copy->pages[i] * RAW_PAGE,
				     RAW_PAGE, copy->bytes + at };
	return true;
}

bool stack_copy_of_raw(const struct sample_raw *raw, const uint8_t *bytes, struct stack_copy *ret)
{
	const struct stack_copy copy = { raw->stack_start, raw->stack_size, raw->nr_pages,
					 raw->pages, bytes };
	struct stack_chunk chunk;
	uint32_t i, size = 0;

	if (raw->nr_pages > RAW_PAGES_MAX)
		return false;
	for (i = 0; stack_copy_chunk(&copy, i, &chunk); i++) {
		if (i && raw->pages[i] <= raw->pages[i - 1])
			return false;
		size += chunk.size;
	}
	if (size != raw->stack_size)
		return false;
	*ret = copy;
	return true;
}

/*
 * What the copy has from `addr` on. False: nothing; in *ret_left_out: for lack of room, as it lies
 * behind the last page, or behind the near ones of a deep stack.
 */
static bool find_chunk(const struct stack_copy *copy, uint64_t addr, struct stack_chunk *ret,
		       bool *ret_left_out)
{
	uint32_t i, nr_below = 0;
	struct stack_chunk c;

	for (i = 0; stack_copy_chunk(copy, i, &c); i++) {
		uint64_t at = addr - c.addr;

		if (at < c.size) {
			*ret = (struct stack_chunk){ addr, c.size - (uint32_t)at, c.bytes + at };
			return true;
		}
		nr_below += addr >= c.addr;
	}
	*ret_left_out = addr >= copy->start && (nr_below == i || nr_below == RAW_PAGES_NEAR);
	return false;
}

int copied_memory_read_stack(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct copied_memory *m = ctx;
	uint32_t done = 0, n;
	struct stack_chunk c;
	bool left_out;

	while (done < size) {
		if (!find_chunk(&m->stack, addr + done, &c, &left_out)) {
			m->elsewhere = addr + done - m->stack.start >= STACK_SIZE_MAX;
			m->past_copy |= left_out && !m->elsewhere;
			return -EFAULT;
		}
		n = size - done < c.size ? size - done : c.size;
		memcpy((uint8_t *)to + done, c.bytes, n);
		done += n;
	}
	return 0;
}

/*
 * Is `addr` of the stack, above its copy or in a hole of it? Libraries, and what their runtimes'
 * steps read, are often mapped right above a thread's stack: where it matters the process's
 * mappings tell.
 */
static bool is_beside_copy(struct copied_memory *m, uint64_t addr)
{
	if (addr - m->stack.start >= STACK_SIZE_MAX)
		return false;
	if (!m->stack_end)
		m->stack_end = process_mapping_end(m->pid, m->stack.start);
	/* It is gone: so is the rest. */
	return !m->stack_end || addr < m->stack_end;
}

static int read_of_process(struct copied_memory *m, uint64_t addr, void *to, uint32_t size)
{
	struct stack_chunk chunk;
	bool left_out;

	if (!m->pid || find_chunk(&m->stack, addr, &chunk, &left_out) || is_beside_copy(m, addr))
		return copied_memory_read_stack(m, addr, to, size);
	return process_read_memory(m->pid, addr, to, size);
}

int copied_memory_read(void *ctx, __u64 addr, void *to, __u32 size)
{
	struct copied_memory *m = ctx;
	uint64_t in_code = addr - m->code_start;
	int r;

	if (in_code < m->code_size && size <= m->code_size - in_code) {
		if (!m->code)
			return process_read_memory(m->pid, addr, to, size);
		memcpy(to, m->code + in_code, size);
		return 0;
	}
	r = read_of_process(m, addr, to, size);
	return r && m->publisher ? publisher_read_code(m->publisher, m->snapshot, addr, to, size)
				 : r;
}

int copied_memory_stop(const struct copied_memory *copied, int stop)
{
	if (stop == STOP_STACK_UNREADABLE && (copied->past_copy || copied->elsewhere))
		return STOP_STACK_COPY_END;
	return stop == STOP_FRAME_POINTER && copied->past_copy ? STOP_STACK_COPY_END : stop;
}
