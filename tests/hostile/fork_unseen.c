// SPDX-License-Identifier: Apache-2.0
/*
 * A victim whose fork nobody hears of: outer, middle, leaf; at SIGUSR1 it forks, says the child's
 * number and waits. The child is called "unseen"; at SIGUSR2 it goes on in another chain,
 * other_outer, middle, leaf, for SECONDS.
 */
#include "workload.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static volatile sig_atomic_t forks, goes_on;

static void on_signal(int number)
{
	*(number == SIGUSR1 ? &forks : &goes_on) = 1;
}

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void middle(int n)
{
	leaf();
	sink += n;
}

KNOWN void outer(int n)
{
	middle(n);
	sink += n;
}

KNOWN void other_outer(int n)
{
	middle(n);
	sink += n;
}

KNOWN void child(void)
{
	prctl(PR_SET_NAME, "unseen");
	while (!goes_on)
		outer(2);
	prctl(PR_SET_NAME, "unseen-other");
	work_seconds += (double)clock() / CLOCKS_PER_SEC;
	while (work_left())
		other_outer(3);
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t pid;

	work_init(argc, argv);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	while (!forks)
		outer(1);
	pid = fork();
	if (!pid)
		child();
	printf("%d\n", pid);
	fflush(stdout);
	waitpid(pid, NULL, 0);
	pause();
}
