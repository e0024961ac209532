// SPDX-License-Identifier: Apache-2.0
/* C: static and global functions, inlined chains, the same function inlined twice, and what a
 * linker may fold. */
#include <stdlib.h>

#include "mark.h"

extern volatile int zero;
int second_unit(int x);
int global(int x);
int folded_one(int x);
int folded_two(int x);

static INLINE int leaf(int x, const char *name)
{
	mark(name); /* @leaf_a.0 leaf */ /* @leaf_b.0 leaf */
	return x + 1;
}

static INLINE int middle(int x)
{
	x = leaf(x, "leaf_a"); /* @leaf_a.1 middle */
	x += leaf(	       /* @leaf_b.1 middle */
		  x, "leaf_b");
	return x;
}

static NOINLINE int outer(int x)
{
	int y = middle(x); /* @leaf_a.2 outer */ /* @leaf_b.2 outer */

	KEEP();
	return y * 2;
}

static NOINLINE int plain(int x)
{
	mark("plain"); /* @plain.0 plain|plain.* */
	KEEP();
	return x;
}

NOINLINE int global(int x)
{
	mark("global"); /* @global.0 global */
	if (x < 0) {
		x = plain(x);
		for (int i = 0; i < x; i++) {
			int nested = outer(i);

			mark("never");
			x += nested;
		}
	}
	return x;
}

static __attribute__((cold)) NOINLINE void complain(const char *name)
{
	mark(name);
	KEEP();
}

static INLINE void in_block(int x)
{
	{
		int y = x + zero;

		{
			mark("block"); /* @block.0 in_block */
			zero = y - y;
		}
	}
}

NOINLINE int blocks(int x)
{
	if (x) {
		int z = x + 1;

		in_block(z); /* @block.1 blocks */
	}
	KEEP();
	return x;
}

NOINLINE int unlikely(int x)
{
	int y = x * 3;

	if (__builtin_expect(x == 42, 0)) {
		mark("cold"); /* @cold.0 unlikely */
		complain("complain");
		y -= zero;
	}
	KEEP();
	return y + zero;
}

/* Two functions of equal code: a linker may fold them. */
NOINLINE int folded_one(int x)
{
	mark("folded"); /* @folded.0 folded_one|folded_two */
	KEEP();
	return x * 17 + zero;
}

NOINLINE int folded_two(int x)
{
	mark("folded");
	KEEP();
	return x * 17 + zero;
}

volatile int zero;

int main(void)
{
	mark("main"); /* @main.0 main */
	outer(zero);
	plain(zero);
	global(zero + 1);
	blocks(zero + 1);
	unlikely(zero + 42);
	folded_one(zero);
	second_unit(zero);
	return 0;
}
