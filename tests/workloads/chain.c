// SPDX-License-Identifier: Apache-2.0
/*
 * The plain chain main -> outer -> middle -> leaf; compiled in many ways (see the Makefile).
 * chain [SECONDS [COMM [unlink]]]: takes the name COMM, removes its own file.
 */
#include "workload.h"

#include <sys/prctl.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void middle(int n)
{
	sink += n;
	leaf();
	sink += n;
}

KNOWN int outer(int a, int b)
{
	middle(a + b);
	sink++;
	return a * b;
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t len;

	work_init(argc, argv);
	if (argc > 2)
		prctl(PR_SET_NAME, argv[2]);
	if (argc > 3) {
		len = readlink("/proc/self/exe", path, sizeof(path) - 1);
		if (len < 0)
			return 1;
		path[len] = 0;
		if (unlink(path))
			return 1;
	}
	while (work_left())
		sink += outer(argc, 3);
	_exit(0);
}
