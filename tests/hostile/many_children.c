// SPDX-License-Identifier: Apache-2.0
/*
 * many_children CHILDREN: at SIGUSR1 makes so many processes that sleep, and says so. It works
 * before, for it is to be sampled. They share its memory: a process takes little more than its
 * stack in the kernel.
 */
#include "workload.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

enum { STACK = 16 << 10 };

static volatile sig_atomic_t goes_on;

static void on_signal(int number)
{
	(void)number;
	goes_on = 1;
}

/* All have one stack: they do and write one and the same. */
static int child(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1;
	char *stack = malloc(STACK);

	if (!stack)
		return 1;
	signal(SIGUSR1, on_signal);
	while (!goes_on)
		SPIN(MILLISECOND);
	for (int i = 0; i < nr; i++) {
		/* Not so fast that the news of it are lost: after that the table is tidied up. */
		usleep(300);
		if (clone(child, stack + STACK, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL) <
		    0)
			return 1;
	}
	printf("%d\n", nr);
	fflush(stdout);
	for (;;)
		pause();
}
