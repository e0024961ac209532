// SPDX-License-Identifier: Apache-2.0
/* map_files FILE...: maps each of them, executable, and runs until it is killed. */
#include <fcntl.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 ||
		    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			return 1;
	}
	for (volatile unsigned long i = 0;; i++)
		;
}
