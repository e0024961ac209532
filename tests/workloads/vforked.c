// SPDX-License-Identifier: Apache-2.0
/*
 * vfork: the child burns CPU on its parent's stack. In the vfork system call itself the return
 * address is only in a register.
 */
#include "workload.h"

#include <sys/wait.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND / 2);
}

KNOWN void middle(int n)
{
	leaf();
	sink += n;
}

KNOWN int run_vfork(int n)
{
	volatile pid_t pid;
	int status = 0;

	pid = vfork();
	if (!pid) {
		middle(n);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	sink += n;
	return status;
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	for (int i = 0; i < (int)(work_seconds * 1000); i++)
		if (run_vfork(i))
			_exit(1);
	_exit(0);
}
