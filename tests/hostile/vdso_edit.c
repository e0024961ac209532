// SPDX-License-Identifier: Apache-2.0
/*
 * vdso_edit SECONDS COMM [evil]: asks its vDSO for the time; `evil`: after it has renamed all
 * functions in its copy of it. Says so then, runs until it is killed, and at
 * SIGUSR1 starts a `victim` that does nothing of it, and says when that has ended.
 */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int clock_fn(clockid_t, struct timespec *);

static char *find_vdso(size_t *ret_size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start = 0, end = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "[vdso]"))
			sscanf(line, "%lx-%lx", &start, &end);
	if (maps)
		fclose(maps);
	*ret_size = end - start;
	return (char *)start;
}

static int rename_functions(char *vdso, size_t size)
{
	int nr = 0;

	if (mprotect(vdso, size, PROT_READ | PROT_WRITE | PROT_EXEC))
		return 0;
	for (size_t i = 0; i + 8 < size; i++) {
		if (memcmp(vdso + i, "__vdso_", 7))
			continue;
		memcpy(vdso + i, "__evil_", 7);
		nr++;
	}
	return mprotect(vdso, size, PROT_READ | PROT_EXEC) ? 0 : nr;
}

static size_t offset_of_clock(const char *vdso)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)vdso;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(vdso + header->e_phoff);
	const Elf64_Dyn *dynamic = NULL;
	const Elf64_Sym *symbols = NULL;
	const char *names = NULL;

	for (int i = 0; i < header->e_phnum; i++)
		if (p[i].p_type == PT_DYNAMIC)
			dynamic = (const Elf64_Dyn *)(vdso + p[i].p_vaddr);
	for (; dynamic && dynamic->d_tag; dynamic++) {
		if (dynamic->d_tag == DT_SYMTAB)
			symbols = (const Elf64_Sym *)(vdso + dynamic->d_un.d_ptr);
		if (dynamic->d_tag == DT_STRTAB)
			names = vdso + dynamic->d_un.d_ptr;
	}
	/* The names lie behind the symbols. */
	for (const Elf64_Sym *s = symbols; s && names && (const char *)s < names; s++)
		if (!strcmp(names + s->st_name, "__vdso_clock_gettime") ||
		    !strcmp(names + s->st_name, "__kernel_clock_gettime"))
			return s->st_value;
	return 0;
}

static volatile sig_atomic_t asked;

static void ask(int signal)
{
	asked = signal;
}

static void run_victim(void)
{
	pid_t pid = fork();

	asked = 0;
	if (!pid) {
		execl("/proc/self/exe", "vdso_edit", "0.5", "victim", NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	puts("ended");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	double seconds = strtod(argv[1], NULL);
	struct timespec now = { 0 };
	size_t size, offset;
	char *vdso = find_vdso(&size);
	clock_fn *clock;

	prctl(PR_SET_NAME, argv[2]);
	offset = vdso ? offset_of_clock(vdso) : 0;
	if (!offset)
		return 1;
	if (argc > 3) {
		if (!rename_functions(vdso, size))
			return 1;
		signal(SIGUSR1, ask);
		puts("renamed");
		fflush(stdout);
	}
	clock = (clock_fn *)(vdso + offset);
	do {
		for (int i = 0; i < 10000; i++)
			clock(CLOCK_MONOTONIC, &now);
		if (asked)
			run_victim();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (argc > 3 || (double)now.tv_sec + 1e-9 * (double)now.tv_nsec < seconds);
	return 0;
}
