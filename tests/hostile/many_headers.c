// SPDX-License-Identifier: Apache-2.0
/*
 * many_headers FILES: runs in files with as many program headers as can be, and in some with as
 * many as sonde reads: loaded segments, or notes, each of 23 MB, all the same ones. Until it is
 * killed.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	HEADERS = 65534,
	READ = 4096,
	PAGE = 4096,
	CODE = 1 << 22,
	NOTES = CODE + PAGE,
	NOTES_SIZE = 23 << 20
};

/* dec %rdi; jnz; ret */
static const unsigned char spin[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };

static void *make(int number, int nr, int notes)
{
	Elf64_Phdr *headers = calloc(HEADERS, sizeof(*headers));
	Elf64_Ehdr header;
	char name[64], *all = calloc(1, NOTES_SIZE);
	int fd, self = open("/proc/self/exe", O_RDONLY);
	void *code;

	if (!headers || !all || read(self, &header, sizeof(header)) != sizeof(header))
		exit(1);
	close(self);
	header.e_phoff = sizeof(header);
	header.e_phnum = nr;
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	header.e_entry = number; /* no two are equal */
	for (int i = 0; i < nr; i++)
		headers[i] = notes ? (Elf64_Phdr){ .p_type = PT_NOTE,
						   .p_offset = NOTES,
						   .p_vaddr = NOTES,
						   .p_filesz = NOTES_SIZE,
						   .p_memsz = NOTES_SIZE,
						   .p_align = 4 }
				   : (Elf64_Phdr){ .p_type = PT_LOAD,
						   .p_flags = PF_R | PF_X,
						   .p_offset = CODE,
						   .p_vaddr = (unsigned long)PAGE * (i + 1),
						   .p_filesz = PAGE,
						   .p_memsz = PAGE,
						   .p_align = PAGE };
	headers[nr - 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					.p_flags = PF_R | PF_X,
					.p_offset = CODE,
					.p_vaddr = 1ul << 40,
					.p_filesz = PAGE,
					.p_memsz = PAGE,
					.p_align = PAGE };
	snprintf(name, sizeof(name), "headers-%d", number);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0700);
	if (fd < 0 || pwrite(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    pwrite(fd, headers, HEADERS * sizeof(*headers), sizeof(header)) < 0 ||
	    pwrite(fd, spin, sizeof(spin), CODE) != sizeof(spin) ||
	    pwrite(fd, all, NOTES_SIZE, NOTES) != NOTES_SIZE)
		exit(1);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, CODE);
	if (code == MAP_FAILED)
		exit(1);
	close(fd);
	free(headers);
	free(all);
	return code;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	void *code[nr];

	for (int i = 0; i < nr; i++)
		code[i] = make(i, i % 4 < 2 ? HEADERS : READ, i % 2);
	puts("made");
	fflush(stdout);
	for (;;)
		for (int i = 0; i < nr; i++)
			((void (*)(unsigned long))code[i])(10000000);
}
