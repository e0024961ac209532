// SPDX-License-Identifier: Apache-2.0
/*
 * switches CPU: two processes on that CPU, each of which waits for a byte from the other one, until
 * the first is told to end. Each byte is a wake-up and a switch.
 */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void pass(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
}

int main(int argc, char **argv)
{
	int there[2], back[2];
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0, &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu) || pipe(there) || pipe(back))
		return 1;
	switch (fork()) {
	case -1:
		return 1;
	case 0:
		if (!prctl(PR_SET_PDEATHSIG, SIGKILL))
			pass(there[0], back[1]);
		return 0;
	}
	if (write(there[1], "", 1) == 1)
		pass(back[0], there[1]);
	return 0;
}
