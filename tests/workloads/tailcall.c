// SPDX-License-Identifier: Apache-2.0
/* entry calls hop_one, which jumps to hop_two, which jumps to leaf: the hops leave no frame. */
#include "workload.h"

KNOWN int leaf(int n)
{
	SPIN(MILLISECOND);
	return n + 1;
}

KNOWN int hop_two(int n)
{
	return leaf(n + 1);
}

KNOWN int hop_one(int n)
{
	return hop_two(n * 2);
}

KNOWN void entry(int n)
{
	sink += hop_one(n);
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left()) {
		entry(argc);
		sink++;
	}
	_exit(0);
}
