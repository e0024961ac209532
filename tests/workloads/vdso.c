// SPDX-License-Identifier: Apache-2.0
/* Nearly all the time is spent in the vDSO. */
#include "workload.h"

KNOWN void leaf(void)
{
	struct timespec ts;

	for (int i = 0; i < 20000; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	sink += ts.tv_nsec;
}

KNOWN void outer(void)
{
	leaf();
	sink++;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		outer();
	_exit(0);
}
