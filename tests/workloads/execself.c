// SPDX-License-Identifier: Apache-2.0
/*
 * One process that becomes, every 30 ms, its static twin and back: the same PID with other
 * mappings. execself [SECONDS]; the twin is the file with or without ".static".
 */
#include "workload.h"

#include <string.h>
#include <sys/prctl.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void burn(int n)
{
	leaf();
	sink += n;
}

static void other_path(char *path, size_t size)
{
	static const char ending[] = ".static";
	ssize_t len = readlink("/proc/self/exe", path, size - sizeof(ending));
	size_t cut = sizeof(ending) - 1;

	if (len < (ssize_t)cut)
		_exit(1);
	path[len] = 0;
	if (!strcmp(path + len - cut, ending))
		path[len - cut] = 0;
	else
		memcpy(path + len, ending, sizeof(ending));
}

int main(int argc, char **argv)
{
	char path[4096];

	prctl(PR_SET_NAME, "execself");
	work_init(argc, argv);
	for (int i = 0; i < 30; i++)
		burn(argc);
	if (!work_left())
		_exit(0);
	other_path(path, sizeof(path));
	execv(path, argv);
	_exit(1);
}
