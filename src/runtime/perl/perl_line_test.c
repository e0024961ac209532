// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of ops in a made-up statement:
 *
 *     10: if (CONDITION)		COP; LOGOP: CONDITION, SCOPE
 *     12:	SET(CALL);		null op with line 12, SET: CALL
 */
#include "runtime/perl/perl_abi.h"
#include "runtime/perl/perl_line.h"

#include "fake_memory.h"
#include "test.h"

#include <errno.h>

enum {
	BASE = 0x200000,
	SIZE = 0x1000,
	COP = BASE + 0x80,
	LOGOP = BASE + 0x100,
	CONDITION = BASE + 0x180,
	SCOPE = BASE + 0x200,
	NULLED = BASE + 0x280,
	SET = BASE + 0x300,
	CALL = BASE + 0x3f0, /* its bytes are in two blocks */
	BEHIND = 0x5000,     /* what is run next: not read */
	PP_DBSTATE = 0x7770,
	NEXTSTATE = 195,
	ENTERSUB = 180,
	SIBLING = 1 << 14,
	KIDS = 4 << 16,
};

static uint8_t memory[SIZE];

static int read_test(void *ctx, uint64_t addr, void *to, size_t size)
{
	(void)ctx;
	return fake_memory_read(memory, BASE, SIZE, addr, to, size);
}

static void put(uint64_t addr, uint64_t value)
{
	memcpy(memory + (addr - BASE), &value, sizeof(value));
}

static void put_op(uint64_t addr, uint32_t type, uint64_t next, uint64_t sibling, uint64_t first)
{
	put(addr + PERL_OP_NEXT, next);
	put(addr + PERL_OP_SIBLING, sibling ? sibling : LOGOP); /* else its parent */
	put(addr + PERL_OP_TYPE, type | (sibling ? SIBLING : 0) | (first ? KIDS : 0));
	put(addr + PERL_OP_FIRST, first);
}

static void put_line(uint64_t addr, uint32_t line)
{
	memcpy(memory + (addr - BASE) + PERL_COP_LINE, &line, sizeof(line));
}

static void set_up(uint32_t type)
{
	memset(memory, 0, sizeof(memory));
	put_op(COP, type, CONDITION, LOGOP, 0);
	put_line(COP, 10);
	put_op(LOGOP, 170, BEHIND, 0, CONDITION);
	put_op(CONDITION, 9, LOGOP, SCOPE, 0);
	put_op(SCOPE, NEXTSTATE + 5, CALL, 0, NULLED);
	put_op(NULLED, 0, SET, SET, 0);
	put(NULLED + PERL_OP_TARG, NEXTSTATE);
	put_line(NULLED, 12);
	put_op(SET, 40, BEHIND, 0, CALL);
	put_op(CALL, ENTERSUB, SET, 0, 0);
}

static int read_line(uint64_t mark, uint32_t *line)
{
	const struct runtime_target t = { .memory = { read_test, NULL } };

	*line = 10;
	return perl_line_read(&t, COP, PP_DBSTATE, mark, line);
}

static uint32_t line_of(uint64_t mark)
{
	uint32_t line;

	ASSERT_OK(read_line(mark, &line));
	return line;
}

TEST(a_blocks_only_statement_has_its_line)
{
	set_up(NEXTSTATE);
	ASSERT_EQ(line_of(perl_op_mark(CONDITION, false)), 10u);
	ASSERT_EQ(line_of(perl_op_mark(CALL, false)), 12u);
	ASSERT_EQ(line_of(perl_op_mark(SET, false)), 12u);
	/* By where a call returns to. */
	ASSERT_EQ(line_of(perl_op_mark(SET, true)), 12u);
	/* Behind its last op it is the statement's own line, as caller() has it. */
	ASSERT_EQ(line_of(perl_op_mark(BEHIND, true)), 10u);
	/* In no op of it; a block's own next op does not count. */
	ASSERT_EQ(line_of(perl_op_mark(BEHIND, false)), 10u);
	put(CALL + PERL_OP_NEXT, BEHIND);
	ASSERT_EQ(line_of(perl_op_mark(CALL, true)), 10u);
	/* Not what was another op before. */
	put(NULLED + PERL_OP_TARG, NEXTSTATE + 1);
	ASSERT_EQ(line_of(perl_op_mark(CALL, false)), 10u);
}

TEST(in_a_debugger_statements_have_another_type)
{
	set_up(NEXTSTATE + 1);
	put(COP + PERL_OP_PPADDR, PP_DBSTATE);
	ASSERT_EQ(line_of(perl_op_mark(CALL, false)), 12u);
}

TEST(a_statement_that_is_gone_or_never_ends_has_no_line)
{
	uint32_t line;

	set_up(NEXTSTATE);
	put(SCOPE + PERL_OP_FIRST, BASE + SIZE);
	ASSERT_ERR(read_line(perl_op_mark(CALL, false), &line), ENOENT);
	put(SCOPE + PERL_OP_FIRST, SCOPE + 1);
	ASSERT_ERR(read_line(perl_op_mark(CALL, false), &line), ENOENT);
	/* In itself; behind itself. */
	put(SCOPE + PERL_OP_FIRST, SCOPE);
	ASSERT_ERR(read_line(perl_op_mark(CALL, false), &line), ENOENT);
	put_op(CONDITION, 9, LOGOP, CONDITION, 0);
	ASSERT_ERR(read_line(perl_op_mark(CALL, false), &line), ENOENT);
	ASSERT_EQ(line, 10u);
}
