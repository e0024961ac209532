// SPDX-License-Identifier: Apache-2.0
/*
 * branches SECONDS LATE: stacks of which hardly two are equal, for so long; then a child called
 * "late" runs in one place, for LATE seconds.
 */
#include "workload.h"

#include <sys/prctl.h>
#include <sys/wait.h>

enum { BRANCHES = 24 };

KNOWN void branches_on(uint64_t way, int depth);

KNOWN void goes_left(uint64_t way, int depth)
{
	branches_on(way >> 1, depth - 1);
	sink++;
}

KNOWN void goes_right(uint64_t way, int depth)
{
	branches_on(way >> 1, depth - 1);
	sink++;
}

KNOWN void arrives(void)
{
	SPIN(MILLISECOND / 10);
}

KNOWN void branches_on(uint64_t way, int depth)
{
	if (!depth)
		arrives();
	else if (way & 1)
		goes_left(way, depth);
	else
		goes_right(way, depth);
	sink++;
}

KNOWN void comes_late(void)
{
	SPIN(MILLISECOND);
}

int main(int argc, char **argv)
{
	pid_t child;

	work_init(argc, argv);
	while (work_left())
		branches_on(sink, BRANCHES);
	child = fork();
	if (!child) {
		prctl(PR_SET_NAME, "late");
		work_seconds = strtod(argv[2], NULL); /* its CPU time begins at 0 */
		while (work_left())
			comes_late();
		_exit(0);
	}
	return waitpid(child, NULL, 0) != child;
}
