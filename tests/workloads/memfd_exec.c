// SPDX-License-Identifier: Apache-2.0
/* memfd_exec PROGRAM ARGS...: copies PROGRAM into a memfd and executes that. */
#include "workload.h"

#include <fcntl.h>
#include <sys/mman.h>

extern char **environ;

int main(int argc, char **argv)
{
	char buf[65536];
	ssize_t n;
	int in, out;

	if (argc < 2)
		return 2;
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	out = memfd_create("workload", MFD_CLOEXEC);
	if (in < 0 || out < 0)
		return 1;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			return 1;
	fexecve(out, argv + 1, environ);
	return 1;
}
