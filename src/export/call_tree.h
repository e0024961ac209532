/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged call tree of a profile: comm, then the frames from the outermost to the leaf, each
 * node a function. A stack that is not complete has its "[truncated: reason]" right below the comm.
 *
 * Nodes are columns in depth-first order, siblings sorted by their label: node i's parent is the
 * last node before it with depth[i] - 1. Comms have depth 0; there is no root node.
 */
#pragma once

#include "export/functions.h"

struct call_tree {
	size_t nr;
	uint32_t *function;
	uint32_t *depth;
	uint64_t *self;	    /* samples that ended here; the total is the sum over the subtree */
	uint32_t max_depth; /* the number of levels */
	size_t cap;
};

int call_tree_init(struct call_tree *t, const struct profile *p,
		   const struct function_table *functions);
void call_tree_fini(struct call_tree *t);
