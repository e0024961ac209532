// SPDX-License-Identifier: Apache-2.0
#include "unwind/never_returns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/code_scan.h"
#include "util/cleanup.h"

enum {
	DEPTH = 12,	    /* of calls */
	BLOCKS_MAX = 256,   /* of a function */
	BLOCKS_HASH = 1024, /* a quarter full at most */
	STEPS_MAX = 4096,   /* instructions of a function */
	STEPS_A_BYTE = 2,   /* of all of the code */
	KNOWN_HASH = 8192,
};

/* Where blocks of one function begin: those that were met, and those that are still to be read. */
struct blocks {
	uint32_t met[BLOCKS_HASH]; /* place in the code + 1 */
	uint32_t todo[BLOCKS_MAX];
	size_t nr_met, nr_todo;
};

enum answer { NOT_ASKED, RETURNS, NEVER };

struct never_returns {
	const struct scan_arch *arch;
	const uint8_t *code;
	size_t size;
	uint64_t addr;
	size_t steps; /* left */
	int depth;
	size_t asked[DEPTH]; /* functions that are being read, each of which calls the next */
	struct {
		uint32_t at; /* place in the code */
		uint8_t answer;
	} known[KNOWN_HASH];
	struct blocks blocks[DEPTH];
};

int never_returns_new(const struct scan_arch *arch, const uint8_t *code, size_t size, uint64_t addr,
		      struct never_returns **ret)
{
	struct never_returns *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->arch = arch;
	n->code = code;
	n->size = size < UINT32_MAX ? size : UINT32_MAX - 1;
	n->addr = addr;
	n->steps = n->size * STEPS_A_BYTE;
	*ret = n;
	return 0;
}

void never_returns_free(struct never_returns *n)
{
	free(n);
}

/* Whether a block that begins there was met before; else it is from now on. */
static bool meet(struct blocks *b, size_t at)
{
	size_t i = (at ^ at >> 10) % BLOCKS_HASH;

	for (; b->met[i]; i = (i + 1) % BLOCKS_HASH)
		if (b->met[i] == at + 1)
			return true;
	b->met[i] = (uint32_t)at + 1;
	b->nr_met++;
	return false;
}

static bool function_never_returns(struct never_returns *n, size_t at);

/* One block after the other, up to where there is no way on. True: it is known that it ends there.
 */
static bool read_way(struct never_returns *n, struct blocks *b, size_t at, int *steps)
{
	struct code_insn insn;

	for (; n->steps && *steps; n->steps--, --*steps) {
		if (at >= n->size || !n->arch->step(n->arch->cfi, n->code + at, n->size - at,
						    n->addr + at, &insn, NULL))
			return false;
		if (insn.flow == FLOW_STOP)
			return !insn.padding; /* zeros between functions are not code's end */
		if (insn.flow == FLOW_RETURN || insn.flow == FLOW_INDIRECT)
			return false;
		if (insn.flow == FLOW_CALL && insn.target != n->addr + at + insn.len &&
		    function_never_returns(n, insn.target - n->addr))
			return true;
		if (insn.flow == FLOW_COND || insn.flow == FLOW_JUMP) {
			size_t to = insn.target - n->addr;

			if (to >= n->size || b->nr_met == BLOCKS_MAX)
				return false;
			if (!meet(b, to))
				b->todo[b->nr_todo++] = (uint32_t)to;
			if (insn.flow == FLOW_JUMP)
				return true;
		}
		at += insn.len;
	}
	return false;
}

static bool read_function(struct never_returns *n, struct blocks *b, size_t at)
{
	int steps = STEPS_MAX;

	memset(b->met, 0, sizeof(b->met));
	b->nr_met = b->nr_todo = 0;
	meet(b, at);
	b->todo[b->nr_todo++] = (uint32_t)at;
	while (b->nr_todo)
		if (!read_way(n, b, b->todo[--b->nr_todo], &steps))
			return false;
	return true;
}

static bool function_never_returns(struct never_returns *n, size_t at)
{
	size_t i = (at ^ at >> 13) % KNOWN_HASH;
	bool never;

	if (at >= n->size)
		return false;
	if (n->known[i].answer && n->known[i].at == at)
		return n->known[i].answer == NEVER;
	if (n->depth == DEPTH)
		return false;
	for (int d = 0; d < n->depth; d++)
		if (n->asked[d] == at)
			return false;
	n->asked[n->depth] = at;
	n->depth++;
	never = read_function(n, &n->blocks[n->depth - 1], at);
	n->depth--;
	n->known[i].at = (uint32_t)at;
	n->known[i].answer = never ? NEVER : RETURNS;
	return never;
}

bool never_returns(struct never_returns *n, uint64_t addr)
{
	return function_never_returns(n, addr - n->addr);
}
