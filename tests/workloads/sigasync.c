// SPDX-License-Identifier: Apache-2.0
/*
 * A timer signal interrupts the chain at arbitrary instructions; its handler burns CPU in a chain
 * of its own. sigasync [SECONDS [alt]]: with alt, the handler has an alternate stack.
 */
#include "workload.h"

#include <signal.h>
#include <sys/time.h>

KNOWN void handler_leaf(void)
{
	SPIN(2 * MILLISECOND);
}

KNOWN void handler_middle(int n)
{
	handler_leaf();
	sink += n;
}

KNOWN void on_tick(int signo)
{
	handler_middle(signo);
	sink++;
}

/* Short, so that prologues are interrupted too. */
KNOWN void leaf(void)
{
	SPIN(20);
}

KNOWN void middle(int n)
{
	for (int i = 0; i < 4000; i++) {
		leaf();
		sink += n;
	}
}

KNOWN void outer(int n)
{
	middle(n + 1);
	sink += n;
}

int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 8000 }, { 0, 8000 } };
	struct sigaction sa = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
	static char stack[65536];
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) };

	work_init(argc, argv);
	if (argc > 2) {
		sigaltstack(&ss, NULL);
		sa.sa_flags |= SA_ONSTACK;
	}
	sigaction(SIGPROF, &sa, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
	while (work_left())
		outer(argc);
	_exit(0);
}
