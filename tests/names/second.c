// SPDX-License-Identifier: Apache-2.0
/* A second unit: static functions of the same names at other lines, and an include in a function.
 */
#include "mark.h"

int second_unit(int x);

static INLINE int leaf(int x)
{
	mark("second_leaf"); /* @second_leaf.0 leaf */
	return x;
}

static NOINLINE int plain(int x)
{
	x += leaf(x); /* @second_leaf.1 plain|plain.* */
	KEEP();
	return x;
}

NOINLINE int second_unit(int x)
{
#include "included.h"
	x = plain(x);
	mark("second"); /* @second.0 second_unit */
	KEEP();
	return x + 1;
}
