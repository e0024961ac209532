// SPDX-License-Identifier: Apache-2.0
#include "runtime/v8/v8_collections.h"

#include "test.h"

#define FIND(prologue, statistics, exit)                                                           \
	v8_find_collections(prologue, sizeof(prologue), statistics, sizeof(statistics), exit,      \
			    sizeof(exit), &heap)
#define BEGIN	      0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb /* push, mov, push, mov %rdi, %rbx */
#define BYTES(n)      (n) & 0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff
#define ADD_1(n)      0x83, 0x83, BYTES(n), 0x01       /* addl $1, n(%rbx) */
#define ADD_1_LONG(n) 0x48, 0x83, 0x83, BYTES(n), 0x01 /* addq */
#define INC(n)	      0x41, 0xff, 0x86, BYTES(n)       /* incl n(%r14) */
/* cmpb $0, n(%rdi) behind a call: in it are the bytes of an inc. */
#define FALSE_INC(n) 0xe8, 0x00, 0x00, 0x00, 0xff, 0x80, 0xbf, BYTES(n), 0x00
#define RETURN	     0x5b, 0x5d, 0xc3
#define HEAP(n)	     0x4c, 0x8d, 0xa7, BYTES(n) /* lea n(%rdi), %r12 */
#define ISOLATE(n)   0x49, 0x8d, 0x55, (n)&0xff /* lea n(%r13), %rdx */
#define EXIT_FP(n)   0x49, 0x89, 0xad, BYTES(n) /* mov %rbp, n(%r13) */

static const uint8_t statistics[] = { 0x55, HEAP(0xd2c0), 0xc3 },
		     ways_out[] = { 0x55, EXIT_FP(0x100), ISOLATE(-0x80), 0xff, 0xd3 };

/* As GCC makes it for 11.3 and 13.6, clang for 14.6. */
TEST(where_collections_are_counted)
{
	int32_t heap = 0;
	static const uint8_t add[] = { BEGIN, ADD_1(0x244), RETURN },
			     twice[] = { BEGIN, ADD_1(0x23c), RETURN, ADD_1(0x23c), RETURN },
			     inc[] = { BEGIN, FALSE_INC(0x10), INC(0x244), RETURN };

	ASSERT_EQ(FIND(add, statistics, ways_out), 0xd2c0 + 0x244 - 0x80);
	ASSERT_EQ(heap, 0xd2c0 - 0x80);
	ASSERT_EQ(FIND(twice, statistics, ways_out), 0xd2c0 + 0x23c - 0x80);
	ASSERT_EQ(FIND(inc, statistics, ways_out), 0xd2c0 + 0x244 - 0x80);
}

TEST(what_is_not_certain_is_done_without)
{
	int32_t heap = 0;
	static const uint8_t two[] = { BEGIN, ADD_1(0x244), ADD_1(0x248), RETURN },
			     none[] = { BEGIN, FALSE_INC(0x10), ADD_1_LONG(0x244), RETURN },
			     one[] = { BEGIN, ADD_1(0x244), RETURN },
			     negative[] = { BEGIN, ADD_1(-0x244), RETURN },
			     far[] = { HEAP(0x40d2c0), 0xc3 }, above[] = { ISOLATE(0x40), 0xc3 };

	ASSERT_EQ(FIND(two, statistics, ways_out), 0);
	ASSERT_EQ(FIND(none, statistics, ways_out), 0);
	ASSERT_EQ(FIND(negative, statistics, ways_out), 0);
	ASSERT_EQ(FIND(one, far, ways_out), 0);
	ASSERT_EQ(FIND(one, ways_out, ways_out), 0);
	ASSERT_EQ(FIND(one, statistics, above), 0);
	ASSERT_EQ(FIND(one, statistics, statistics), 0);
	ASSERT_EQ(v8_find_collections(one, 0, statistics, 0, ways_out, 0, &heap), 0);
}
