// SPDX-License-Identifier: Apache-2.0
/*
 * A call of a noreturn function is its caller's last instruction: the return address belongs to the
 * next function.
 */
#include "workload.h"

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN __attribute__((noreturn)) void forever(int n)
{
	while (work_left()) {
		leaf();
		sink += n;
	}
	_exit(0);
}

__attribute__((noreturn)) KNOWN void last_call(int n)
{
	sink++;
	forever(n);
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	last_call(argc);
}
