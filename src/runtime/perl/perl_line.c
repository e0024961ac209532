// SPDX-License-Identifier: Apache-2.0
/*
 * Facts: util.c (closest_cop), op.h, op.c (op_scope, op_null), opcode.h at v5.28.0 to v5.42.0.
 */
#include "runtime/perl/perl_line.h"
#include "runtime/perl/perl_abi.h"
#include "runtime/words.h"

#include <errno.h>
#include <string.h>

enum {
	OP_BYTES = 48,
	OPS_MAX = 4096,	 /* of a statement */
	DEPTH_MAX = 128, /* of ops in ops */
	BLOCK = 1024,	 /* what is read at once: ops lie side by side */
	TYPE_MASK = 0x1ff,
	HAS_SIBLING = 1 << 14,
	HAS_KIDS = 4 << 16,
	/* nextstate, dbstate, unstack, enter, leave, scope: one behind the other in all versions */
	DBSTATE_BEHIND = 1,
	SCOPE_BEHIND = 5,
};

struct search {
	const struct runtime_target *target;
	uint64_t block; /* address of what `bytes` has; 0: nothing */
	uint8_t bytes[BLOCK];
	uint64_t mark;
	uint32_t nextstate, nr; /* its number; ops that were read */
};

struct op {
	uint64_t at, next, sibling, targ, first;
	uint32_t type, line;
};

/* Blocks lie in one page each. One that cannot be read whole is not kept. */
static int read_bytes(struct search *s, uint64_t at, uint8_t *to)
{
	uint64_t block = at & ~(uint64_t)(BLOCK - 1);

	if (at - block > BLOCK - OP_BYTES)
		return runtime_read_or_gone(s->target, at, to, OP_BYTES);
	if (s->block != block) {
		s->block = 0;
		if (runtime_read(s->target, block, s->bytes, BLOCK))
			return runtime_read_or_gone(s->target, at, to, OP_BYTES);
		s->block = block;
	}
	memcpy(to, s->bytes + (at - block), OP_BYTES);
	return 0;
}

static int read_op(struct search *s, uint64_t at, struct op *ret)
{
	uint8_t bytes[OP_BYTES];
	uint32_t bits;
	int r;

	if (at & 7 || s->nr++ >= OPS_MAX)
		return -ENOENT;
	r = read_bytes(s, at, bytes);
	if (r)
		return r;
	bits = half_at(bytes, PERL_OP_TYPE);
	*ret = (struct op){
		.at = at,
		.next = word_at(bytes, PERL_OP_NEXT),
		.sibling = bits & HAS_SIBLING ? word_at(bytes, PERL_OP_SIBLING) : 0,
		.targ = word_at(bytes, PERL_OP_TARG),
		.first = bits & HAS_KIDS ? word_at(bytes, PERL_OP_FIRST) : 0,
		.type = bits & TYPE_MASK,
		.line = half_at(bytes, PERL_COP_LINE),
	};
	return 0;
}

static bool is_sought(const struct search *s, const struct op *op)
{
	if (s->mark & 1)
		return op->type != s->nextstate + SCOPE_BEHIND &&
		       perl_op_mark(op->next, true) == s->mark;
	return perl_op_mark(op->at, false) == s->mark;
}

/* 0; 1: it is `op`, or in it, and *line is where; in a block without a COP of its own, its line. */
static int look_in(struct search *s, struct op op, uint32_t *line)
{
	struct {
		uint64_t next; /* to be looked at */
		uint32_t line;
	} open[DEPTH_MAX];
	uint32_t depth = 0, at_line = *line;
	int r;

	for (;;) {
		if (is_sought(s, &op)) {
			*line = at_line;
			return 1;
		}
		if (op.first) {
			if (depth == DEPTH_MAX)
				return -ENOENT;
			open[depth].next = op.first;
			open[depth++].line = at_line;
		}
		while (depth && !open[depth - 1].next)
			depth--;
		if (!depth)
			return 0;
		r = read_op(s, open[depth - 1].next, &op);
		if (r)
			return r;
		if (!op.type && op.targ == s->nextstate)
			open[depth - 1].line = op.line;
		open[depth - 1].next = op.sibling;
		at_line = open[depth - 1].line;
	}
}

int perl_line_read(const struct runtime_target *t, uint64_t cop, uint64_t dbstate, uint64_t mark,
		   uint32_t *line)
{
	struct search s = { .target = t, .mark = mark };
	uint8_t ppaddr[8];
	uint32_t found = *line;
	struct op op;
	int r = read_op(&s, cop, &op);

	if (!r)
		r = runtime_read_or_gone(t, cop + PERL_OP_PPADDR, ppaddr, sizeof(ppaddr));
	if (r || !op.sibling)
		return r;
	s.nextstate = op.type - (word_at(ppaddr, 0) == dbstate ? DBSTATE_BEHIND : 0);
	r = read_op(&s, op.sibling, &op);
	if (!r)
		r = look_in(&s, op, &found);
	if (r == 1)
		*line = found;
	return r < 0 ? r : 0;
}
