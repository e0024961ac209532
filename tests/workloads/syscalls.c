// SPDX-License-Identifier: Apache-2.0
/* Nearly all the time is spent in the kernel, in short calls and in long ones. */
#include "workload.h"

#include <fcntl.h>
#include <sys/syscall.h>

static char buffer[1 << 16];

KNOWN void short_calls(void)
{
	for (int i = 0; i < 2000; i++)
		sink += syscall(SYS_getppid);
	sink++;
}

KNOWN void long_calls(int fd)
{
	for (int i = 0; i < 100; i++)
		sink += read(fd, buffer, sizeof(buffer));
	sink++;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	work_init(argc, argv);
	if (fd < 0)
		_exit(1);
	while (work_left()) {
		short_calls();
		long_calls(fd);
	}
	_exit(0);
}
