// SPDX-License-Identifier: Apache-2.0
/*
 * absent_page FILE: publishes a context (OTEL_CTX) whose message lies where FILE is mapped, which
 * nobody has read yet. Says so, reads a line, and runs until it is killed.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct header {
	char signature[8];
	uint32_t version, size;
	uint64_t stamp, message;
};

static void *map_file(int fd)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		err(1, "mmap");
	close(fd); /* it asks the server */
	return page;
}

int main(int argc, char **argv)
{
	struct header header = { .signature = "OTEL_CTX", .version = 2, .size = 64, .stamp = 1 };
	int fd, context;

	if (argc != 2)
		errx(1, "usage: absent_page FILE");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	context = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	if (fd < 0 || context < 0)
		err(1, "%s", argv[1]);
	header.message = (uintptr_t)map_file(fd);
	if (pwrite(context, &header, sizeof(header), 0) < 0 || ftruncate(context, PAGE))
		err(1, "memfd");
	map_file(context);
	puts("mapped");
	fflush(stdout);
	getchar();
	for (volatile unsigned long n = 0;; n++)
		;
}
