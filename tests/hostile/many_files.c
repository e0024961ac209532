// SPDX-License-Identifier: Apache-2.0
/*
 * many_files PROCESSES FILES: each process maps so many ELF files of its own, says so, and runs
 * until it is killed, at the lowest priority: it is sampled, and takes no CPU from others.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr code;
};

static void map_one(struct image *image, int process, int number)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "of-%d-%d", process, number);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
	image->code.p_vaddr = 0x1000 * number; /* no two are equal */
	if (fd < 0 || write(fd, image, sizeof(*image)) != sizeof(*image) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		exit(1);
	/* What is between keeps them apart. */
	mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	close(fd);
	unlink(name);
}

int main(int argc, char **argv)
{
	struct image image = { .code = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X } };
	int processes = atoi(argv[1]), files = atoi(argv[2]), i, process = 0;
	int self = open("/proc/self/exe", O_RDONLY), ready[2];
	char c = 0;

	read(self, &image.header, sizeof(image.header));
	image.header.e_phoff = sizeof(image.header);
	image.header.e_phnum = 1;
	image.header.e_shoff = image.header.e_shnum = image.header.e_shstrndx = 0;
	image.code.p_filesz = image.code.p_memsz = sizeof(image);
	pipe(ready);
	for (; process < processes; process++) {
		if (fork())
			continue;
		for (i = 0; i < files; i++)
			map_one(&image, process, i);
		setpriority(PRIO_PROCESS, 0, 19);
		write(ready[1], &c, 1);
		for (volatile unsigned long n = 0;; n++)
			;
	}
	for (i = 0; i < processes; i++)
		read(ready[0], &c, 1);
	printf("mapped\n");
	fflush(stdout);
	pause();
}
