// SPDX-License-Identifier: Apache-2.0
/*
 * jit_names PROCESSES: "JITs" that run everywhere in code for which each has a name as long as can
 * be in its perf map: so many addresses, so many names. Says which processes they are.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 1 << 20, NAME = 1023 };

static void write_map(const char *code)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map ||
	    fprintf(map, "%lx %x %0*d\n", (unsigned long)code, SIZE, NAME, (int)getpid()) < 0 ||
	    fclose(map))
		exit(1);
}

int main(int argc, char **argv)
{
	int ready[2], processes = atoi(argv[1]), pid;
	char *code, c = 0;

	code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED || pipe(ready))
		return 1;
	memset(code, 0x90, SIZE - 1); /* nop */
	code[SIZE - 1] = (char)0xc3;  /* ret */
	for (int i = 0; i < processes; i++) {
		pid = fork();
		if (pid)
			printf("%d ", pid);
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		write_map(code);
		write(ready[1], &c, 1);
		for (;;)
			((void (*)(void))code)();
	}
	for (int i = 0; i < processes; i++)
		read(ready[0], &c, 1);
	putchar('\n');
	fflush(stdout);
	pause();
}
