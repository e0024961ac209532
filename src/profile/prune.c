// SPDX-License-Identifier: Apache-2.0
/*
 * The stacks of a user's program, of all its processes, are a tree, outermost frame first. Each
 * node weighs what the samples below it do; those below a threshold go, and what ended there ends
 * at the first node above that stays. The threshold grows until no more than a share is left.
 */
#include "profile/prune.h"
#include "util/cleanup.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* What a stack takes beside its frames, and a sample: their places, also in maps. */
	STACK_BYTES = 56,
	SAMPLE_BYTES = 56,
	FRAME_BYTES = sizeof(uint32_t),
};

#define THRESHOLD_STEP 1.1

/* A sample's stack. */
struct entry {
	uint32_t user, program; /* uid; strtab, the path of the executable */
	uint32_t thread, stack;
	uint32_t node;
	float weight;
};

struct node {
	uint32_t parent;
	uint32_t depth; /* frames from the outermost one to here */
	uint32_t round; /* the last look at what a threshold leaves that met it */
	float weight;
};

/* All of a user's processes of one executable. */
struct program {
	size_t from, nr; /* entries */
	uint32_t user;
	uint64_t bytes; /* that its stacks and samples take */
	uint64_t share; /* that they may */
};

struct pruning {
	const struct profile *p;
	VEC(struct entry) entries;    /* by user and program, then in the order of the tree */
	VEC(struct node) nodes;	      /* of one program; 0 is the root */
	VEC(uint32_t) path;	      /* nodes from the root to where the tree grows */
	VEC(struct program) programs; /* by user */
	struct map samples;	      /* of a thread that ends at a node */
	uint32_t round;
	uint32_t *depths; /* by stack */
};

/* --- samples, in the order of their stacks ---------------------------------------------------- */

static uint32_t outer_frame(const struct profile *p, const struct profile_stack *s, uint32_t i)
{
	return p->stack_frames.items[s->first + s->nr - 1 - i];
}

/* How many outermost frames two stacks share. */
static uint32_t shared_frames(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_stack *x = &p->stacks.items[a], *y = &p->stacks.items[b];
	uint32_t nr = x->nr < y->nr ? x->nr : y->nr, i = 0;

	if (x->stop != y->stop)
		return 0;
	while (i < nr && outer_frame(p, x, i) == outer_frame(p, y, i))
		i++;
	return i;
}

static int compare(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

static int by_owner_and_frames(const void *a, const void *b, void *ctx)
{
	const struct profile *p = ctx;
	const struct entry *x = a, *y = b;
	const struct profile_stack *s = &p->stacks.items[x->stack], *t = &p->stacks.items[y->stack];
	uint32_t i;
	int r = compare(x->user, y->user);

	r = r ?: compare(x->program, y->program);
	r = r ?: compare(s->stop, t->stop);
	if (r || x->stack == y->stack)
		return r;
	i = shared_frames(p, x->stack, y->stack);
	return i < s->nr && i < t->nr ? compare(outer_frame(p, s, i), outer_frame(p, t, i))
				      : compare(s->nr, t->nr);
}

/* Of all types: a sample weighs as much as its value is that of its type's mean sample. */
static int add_entries(struct pruning *c, const struct profile_cut *cut)
{
	const struct profile *p = c->p;
	double all = 0;
	int r = vec_reserve(&c->entries, c->entries.nr + cut->samples.nr);

	if (r)
		return r;
	for (size_t i = 0; i < cut->samples.nr; i++)
		all += (double)cut->samples.items[i].count;
	for (size_t i = 0; i < cut->samples.nr; i++) {
		const struct profile_sample *s = &cut->samples.items[i];
		const struct profile_process *process =
			&p->processes.items[p->threads.items[s->thread].process];

		c->entries.items[c->entries.nr++] = (struct entry){
			.user = process->uid,
			.program = process->path,
			.thread = s->thread,
			.stack = s->stack,
			.weight = (float)((double)s->count * (double)cut->samples.nr /
					  (all > 0 ? all : 1)),
		};
	}
	return 0;
}

static int find_entries(struct pruning *c)
{
	int r = 0;

	for (uint32_t type = 0; type < profile_nr_types(c->p) && !r; type++)
		r = add_entries(c, profile_cut_of(c->p, type));
	if (!r && c->entries.nr)
		qsort_r(c->entries.items, c->entries.nr, sizeof(*c->entries.items),
			by_owner_and_frames, (void *)c->p);
	return r;
}

/* --- a program's tree ------------------------------------------------------------------------- */

static int add_node(struct pruning *c, uint32_t depth)
{
	int r = vec_push(&c->nodes, (struct node){ .depth = depth });

	return r ?: vec_push(&c->path, (uint32_t)c->nodes.nr - 1);
}

static struct node *last_node(const struct pruning *c)
{
	return &c->nodes.items[c->path.items[c->path.nr - 1]];
}

/* Nothing more comes below nodes that are further in than `depth`, where the tree grows now. */
static int close_nodes(struct pruning *c, uint32_t depth)
{
	int r = 0;

	while (!r && last_node(c)->depth > depth) {
		uint32_t closed = c->path.items[--c->path.nr];

		if (last_node(c)->depth < depth)
			r = add_node(c, depth);
		c->nodes.items[closed].parent = c->path.items[c->path.nr - 1];
		last_node(c)->weight += c->nodes.items[closed].weight;
	}
	return r;
}

static int make_tree(struct pruning *c, struct entry *entries, size_t nr)
{
	int r;

	c->nodes.nr = c->path.nr = 0;
	r = add_node(c, 0);
	for (size_t i = 0; i < nr && !r; i++) {
		uint32_t frames = c->p->stacks.items[entries[i].stack].nr;

		r = close_nodes(c, i ? shared_frames(c->p, entries[i - 1].stack, entries[i].stack)
				     : 0);
		if (!r && last_node(c)->depth < frames)
			r = add_node(c, frames);
		if (r)
			return r;
		entries[i].node = c->path.items[c->path.nr - 1];
		last_node(c)->weight += entries[i].weight;
	}
	return r ?: close_nodes(c, 0);
}

/* The node where a stack ends if those below the threshold go. */
static uint32_t kept_node(const struct pruning *c, uint32_t node, double threshold)
{
	while (node && c->nodes.items[node].weight < threshold)
		node = c->nodes.items[node].parent;
	return node;
}

/* What is left of a program if those below the threshold go; samples of one thread become one. */
static int bytes_left(struct pruning *c, const struct program *program, double threshold,
		      uint64_t *ret)
{
	const struct entry *entries = c->entries.items + program->from;
	int r = 0;

	*ret = 0;
	c->round++;
	map_clear(&c->samples);
	for (size_t i = 0; i < program->nr && !r; i++) {
		uint32_t node = kept_node(c, entries[i].node, threshold);
		struct node *n = &c->nodes.items[node];

		if (n->round != c->round)
			*ret += STACK_BYTES + (uint64_t)n->depth * FRAME_BYTES;
		n->round = c->round;
		r = map_put(&c->samples, (uint64_t)entries[i].thread << 32 | node, 1);
	}
	*ret += c->samples.nr * (uint64_t)SAMPLE_BYTES;
	return r;
}

static double least_weight(const struct pruning *c)
{
	double least = (double)c->nodes.items[0].weight;

	for (size_t i = 1; i < c->nodes.nr; i++)
		if ((double)c->nodes.items[i].weight < least)
			least = (double)c->nodes.items[i].weight;
	return least;
}

/* Up to twice as heavy, by chance: no more of those that were met as often as others go than must.
 */
static void lift(struct pruning *c)
{
	for (size_t i = 1; i < c->nodes.nr; i++)
		c->nodes.items[i].weight *=
			1 + (float)((uint32_t)i * 2654435761u) / (float)UINT32_MAX;
}

static int prune_program(struct pruning *c, const struct program *program)
{
	struct entry *entries = c->entries.items + program->from;
	double threshold = 0;
	uint64_t bytes = program->bytes;
	int r = make_tree(c, entries, program->nr);

	if (!r && bytes > program->share)
		lift(c);
	while (!r && bytes > program->share && threshold < (double)c->nodes.items[0].weight) {
		threshold = threshold > 0 ? THRESHOLD_STEP * threshold : least_weight(c);
		r = bytes_left(c, program, threshold, &bytes);
	}
	for (size_t i = 0; i < program->nr && !r; i++) {
		uint32_t node = kept_node(c, entries[i].node, threshold);
		uint32_t *depth = &c->depths[entries[i].stack];

		/* Another program may keep more of it, or all. */
		if (*depth == PROFILE_GONE || *depth < c->nodes.items[node].depth)
			*depth = c->nodes.items[node].depth;
	}
	return r;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int find_programs(struct pruning *c)
{
	const struct entry *e = c->entries.items;
	int r = 0;

	for (size_t i = 0; i < c->entries.nr && !r;) {
		struct program p = { .from = i, .user = e[i].user };

		while (i < c->entries.nr && e[i].user == p.user &&
		       e[i].program == e[p.from].program)
			i++;
		p.nr = i - p.from;
		r = make_tree(c, c->entries.items + p.from, p.nr);
		r = r ?: bytes_left(c, &p, 0, &p.bytes);
		r = r ?: vec_push(&c->programs, p);
	}
	return r;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The most that each may have, so that all of them have `all`. Sorts them. */
static uint64_t find_share(uint64_t *bytes, size_t nr, uint64_t all)
{
	qsort(bytes, nr, sizeof(*bytes), by_size);
	for (size_t i = 0; i < nr; i++) {
		if (bytes[i] > all / (nr - i))
			return all / (nr - i);
		all -= bytes[i];
	}
	return UINT64_MAX;
}

static size_t end_of_user(const struct pruning *c, size_t from)
{
	size_t end = from;

	while (end < c->programs.nr && c->programs.items[end].user == c->programs.items[from].user)
		end++;
	return end;
}

/* Of programs [from, end), together; `bytes` has room for each, and gets theirs. */
static uint64_t add_up(const struct pruning *c, size_t from, size_t end, uint64_t *bytes)
{
	uint64_t all = 0;

	for (size_t i = from; i < end; i++)
		all += bytes[i - from] = c->programs.items[i].bytes;
	return all;
}

static int find_shares(struct pruning *c)
{
	size_t size = (c->programs.nr + 1) * sizeof(uint64_t);
	_cleanup_free_ uint64_t *bytes = malloc(size), *users = malloc(size);
	uint64_t all, of_user, share;
	size_t nr = 0;

	if (!bytes || !users)
		return -ENOMEM;
	all = add_up(c, 0, c->programs.nr, bytes);
	for (size_t i = 0; i < c->programs.nr; i = end_of_user(c, i))
		users[nr++] = add_up(c, i, end_of_user(c, i), bytes);
	of_user = find_share(users, nr, all / 4 * 3);
	for (size_t i = 0, end; i < c->programs.nr; i = end) {
		end = end_of_user(c, i);
		all = add_up(c, i, end, bytes);
		share = all > of_user ? find_share(bytes, end - i, of_user) : UINT64_MAX;
		for (size_t k = i; k < end; k++)
			c->programs.items[k].share = share;
	}
	return 0;
}

static int find_depths(struct pruning *c)
{
	int r = find_entries(c);

	r = r ?: find_programs(c);
	r = r ?: find_shares(c);
	for (size_t i = 0; i < c->programs.nr && !r; i++)
		r = prune_program(c, &c->programs.items[i]);
	return r;
}

static uint64_t count_pruned(const struct pruning *c)
{
	const struct profile_cut *cut = &c->p->cut;
	uint64_t nr = 0;

	for (size_t i = 0; i < cut->samples.nr; i++) {
		uint32_t stack = cut->samples.items[i].stack;

		if (c->depths[stack] < c->p->stacks.items[stack].nr &&
		    profile_stack_stop(c->p, stack) == STOP_COMPLETE)
			nr += cut->samples.items[i].count;
	}
	return nr;
}

int profile_prune(struct profile *p, struct profile_collected *ret, uint64_t *ret_samples)
{
	size_t size = (p->stacks.nr + 1) * sizeof(uint32_t);
	_cleanup_free_ uint32_t *depths = malloc(size);
	struct pruning c = { .p = p, .depths = depths };
	int r;

	if (!depths)
		return -ENOMEM;
	memset(depths, 0xff, size); /* PROFILE_GONE: no sample has it, it stays as it is */
	r = find_depths(&c);
	if (!r)
		*ret_samples = count_pruned(&c);
	vec_free(&c.entries);
	vec_free(&c.nodes);
	vec_free(&c.path);
	vec_free(&c.programs);
	map_fini(&c.samples);
	return r ?: profile_collect_to(p, depths, ret);
}
