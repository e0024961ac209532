// SPDX-License-Identifier: Apache-2.0
/* Calls of a tiny library function: much of the time is spent in the PLT's stubs. */
#include "workload.h"

uint64_t lib_add(uint64_t n);

KNOWN void outer(void)
{
	uint64_t n = 1;

	for (int i = 0; i < 200000; i++)
		n = lib_add(n);
	sink += n;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		outer();
	_exit(0);
}
