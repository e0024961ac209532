// SPDX-License-Identifier: Apache-2.0
/* libc calls back: qsort's recursion (8 elements: 1 to 3 levels) and bsearch. */
#include "workload.h"

KNOWN int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	SPIN(MILLISECOND / 8);
	return (*x > *y) - (*x < *y);
}

KNOWN void sorter(void)
{
	int v[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };

	qsort(v, 8, sizeof(v[0]), compare);
	sink += v[0];
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		sorter();
	_exit(0);
}
