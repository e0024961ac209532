// SPDX-License-Identifier: Apache-2.0
/* fork without exec: children burn, one after the other; the grandchild too. */
#include "workload.h"

#include <sys/wait.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void child_middle(int n)
{
	leaf();
	sink += n;
}

KNOWN void child_main(int generation)
{
	while (work_left())
		child_middle(generation);
	sink++;
}

int main(int argc, char **argv)
{
	int status = 0;
	pid_t pid;

	work_init(argc, argv);
	work_seconds /= 10;
	for (int i = 0; i < 10; i++) {
		pid = fork();
		if (!pid) {
			child_main(i);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			_exit(1);
	}
	_exit(0);
}
