// SPDX-License-Identifier: Apache-2.0
/*
 * The tree by sorting: stacks are written out as paths of function numbers and sorted; then each
 * sample adds the nodes below what it shares with the sample before it. Nothing is hashed, nodes
 * are made in their final order, and transient memory is as much as the profile's own stacks take.
 */
#include "export/call_tree.h"

#include "export/places.h"
#include "util/cleanup.h"

#include <string.h>

struct path {
	const uint32_t *functions; /* outermost first */
	uint32_t nr;
	uint32_t rank; /* equal paths have equal ranks, and ranks are in the order of paths */
};

struct paths {
	uint32_t *functions;
	struct path *by_stack;
};

struct leaf {
	uint32_t comm; /* a function */
	const struct path *path;
	uint64_t count;
};

static int compare_paths(const void *a, const void *b)
{
	const struct path *pa = *(const struct path *const *)a,
			  *pb = *(const struct path *const *)b;
	uint32_t nr = pa->nr < pb->nr ? pa->nr : pb->nr;

	for (uint32_t i = 0; i < nr; i++)
		if (pa->functions[i] != pb->functions[i])
			return pa->functions[i] < pb->functions[i] ? -1 : 1;
	return pa->nr < pb->nr ? -1 : pa->nr > pb->nr;
}

static int compare_leaves(const void *a, const void *b)
{
	const struct leaf *la = a, *lb = b;

	if (la->comm != lb->comm)
		return la->comm < lb->comm ? -1 : 1;
	return la->path->rank < lb->path->rank ? -1 : la->path->rank > lb->path->rank;
}

static void write_paths(struct paths *paths, const struct profile *p,
			const struct function_table *f)
{
	uint32_t *out = paths->functions;

	for (size_t i = 0; i < p->stacks.nr; i++) {
		const struct profile_stack *stack = &p->stacks.items[i];
		const uint32_t *frames = stack_frames(p, stack);

		paths->by_stack[i].functions = out;
		if (stack->stop < STOP_MAX_ && f->truncated[stack->stop] != UINT32_MAX)
			*out++ = f->truncated[stack->stop];
		for (uint32_t k = stack->nr; k > 0; k--)
			for (uint32_t inline_frame = f->first_inline[frames[k - 1] + 1];
			     inline_frame > f->first_inline[frames[k - 1]]; inline_frame--)
				*out++ = f->of_inline[inline_frame - 1];
		paths->by_stack[i].nr = (uint32_t)(out - paths->by_stack[i].functions);
	}
}

static int rank_paths(struct path *by_stack, size_t nr)
{
	_cleanup_free_ struct path **order = calloc(nr + 1, sizeof(struct path *));
	uint32_t rank = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		order[i] = &by_stack[i];
	qsort(order, nr, sizeof(struct path *), compare_paths);
	for (size_t i = 0; i < nr; i++) {
		if (i && compare_paths(&order[i - 1], &order[i]))
			rank++;
		order[i]->rank = rank;
	}
	return 0;
}

static int grow(struct call_tree *t)
{
	size_t cap = t->cap ? t->cap + t->cap / 2 : 1024;
	uint32_t *function, *depth;
	uint64_t *self;

	if (cap > UINT32_MAX)
		return -EOVERFLOW;
	function = realloc(t->function, cap * sizeof(*function));
	if (!function)
		return -ENOMEM;
	t->function = function;
	depth = realloc(t->depth, cap * sizeof(*depth));
	if (!depth)
		return -ENOMEM;
	t->depth = depth;
	self = realloc(t->self, cap * sizeof(*self));
	if (!self)
		return -ENOMEM;
	t->self = self;
	t->cap = cap;
	return 0;
}

static int add_node(struct call_tree *t, uint32_t function, uint32_t depth)
{
	int r = t->nr < t->cap ? 0 : grow(t);

	if (r)
		return r;
	t->function[t->nr] = function;
	t->depth[t->nr] = depth;
	t->self[t->nr] = 0;
	t->nr++;
	if (depth >= t->max_depth)
		t->max_depth = depth + 1;
	return 0;
}

/* How many elements of the path, the comm included, `leaf` shares with `prev`. */
static uint32_t shared_depth(const struct leaf *prev, const struct leaf *leaf)
{
	uint32_t n = 0;

	if (!prev || prev->comm != leaf->comm)
		return 0;
	while (n < prev->path->nr && n < leaf->path->nr &&
	       prev->path->functions[n] == leaf->path->functions[n])
		n++;
	return n + 1;
}

static int add_leaf(struct call_tree *t, const struct leaf *prev, const struct leaf *leaf)
{
	int r;

	for (uint32_t d = shared_depth(prev, leaf); d <= leaf->path->nr; d++) {
		r = add_node(t, d ? leaf->path->functions[d - 1] : leaf->comm, d);
		if (r)
			return r;
	}
	/*
	 * Shorter paths sort before those they begin, so that a leaf without a new node is the path
	 * before it once more: the node made last.
	 */
	t->self[t->nr - 1] += leaf->count;
	return 0;
}

static int add_leaves(struct call_tree *t, const struct profile *p, const struct function_table *f,
		      const struct path *by_stack)
{
	size_t nr = p->cut.samples.nr;
	_cleanup_free_ struct leaf *leaves = calloc(nr + 1, sizeof(*leaves));

	if (!leaves)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		leaves[i] = (struct leaf){ f->of_thread[p->cut.samples.items[i].thread],
					   &by_stack[p->cut.samples.items[i].stack],
					   p->cut.samples.items[i].count };
	qsort(leaves, nr, sizeof(*leaves), compare_leaves);
	for (size_t i = 0; i < nr; i++) {
		int r = add_leaf(t, i ? &leaves[i - 1] : NULL, &leaves[i]);

		if (r)
			return r;
	}
	return 0;
}

/* The elements of all stacks, with a truncation marker each. */
static size_t count_elements(const struct profile *p, const struct function_table *f)
{
	size_t nr = p->stacks.nr;

	for (size_t i = 0; i < p->stack_frames.nr; i++) {
		uint32_t frame = p->stack_frames.items[i];

		nr += f->first_inline[frame + 1] - f->first_inline[frame];
	}
	return nr;
}

int call_tree_init(struct call_tree *t, const struct profile *p,
		   const struct function_table *functions)
{
	_cleanup_free_ uint32_t *path_functions =
		calloc(count_elements(p, functions) + 1, sizeof(*path_functions));
	_cleanup_free_ struct path *by_stack = calloc(p->stacks.nr + 1, sizeof(*by_stack));
	struct paths paths = { path_functions, by_stack };
	int r;

	*t = (struct call_tree){ 0 };
	if (!path_functions || !by_stack)
		return -ENOMEM;
	write_paths(&paths, p, functions);
	r = rank_paths(by_stack, p->stacks.nr);
	if (!r)
		r = add_leaves(t, p, functions, by_stack);
	if (r)
		call_tree_fini(t);
	return r;
}

void call_tree_fini(struct call_tree *t)
{
	free(t->function);
	free(t->depth);
	free(t->self);
	*t = (struct call_tree){ 0 };
}
