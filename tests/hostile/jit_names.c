// SPDX-License-Identifier: Apache-2.0
/*
 * jit_names PROCESSES: "JITs" that run everywhere in code for which each has a name as long as can
 * be in its perf map: so many addresses, so many names. Says which processes they are.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SIZE = 1 << 20, NAME = 1023, TRIES = 1000 };

/* False: another user's process that had our PID has left one. */
static bool write_map(const char *code)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return false;
	fprintf(map, "%lx %x %0*d\n", (unsigned long)code, SIZE, NAME, (int)getpid());
	return !fclose(map);
}

static void run(const char *code, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!write_map(code) || write(ready, code, 1) != 1)
		_exit(1);
	for (;;)
		((void (*)(void))code)();
}

int main(int argc, char **argv)
{
	int ready[2], processes = atoi(argv[1]), pid;
	char *code, c;

	code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		return 1;
	memset(code, 0x90, SIZE - 1); /* nop */
	code[SIZE - 1] = (char)0xc3;  /* ret */
	for (int i = 0, tries = 0; i < processes;) {
		if (++tries > TRIES || pipe(ready))
			return 1;
		pid = fork();
		if (!pid)
			run(code, ready[1]);
		close(ready[1]);
		if (read(ready[0], &c, 1) == 1)
			i += printf("%d ", pid) > 0;
		close(ready[0]);
	}
	putchar('\n');
	fflush(stdout);
	pause();
}
