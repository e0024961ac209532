// SPDX-License-Identifier: Apache-2.0
/* A recursion of exactly 900 frames. */
#include "workload.h"

KNOWN void leaf(void)
{
	SPIN(4 * MILLISECOND);
}

KNOWN int recurse(int depth)
{
	volatile char local[24] = { 0 };

	if (depth > 1)
		local[3] = recurse(depth - 1);
	else
		leaf();
	sink++;
	return local[3];
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		recurse(900);
	_exit(0);
}
