// SPDX-License-Identifier: Apache-2.0
/*
 * The news of mappings, on each CPU as fast as it goes. Writes a line when any ring must be full,
 * and once more for each SIGUSR1, when that is so again.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ENOUGH = 5000, CPUS_MAX = 1024 };

static void map_and_unmap(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, 8192);
}

static void wait_for(volatile unsigned long *counts, int nr)
{
	unsigned long before[CPUS_MAX];

	for (int i = 0; i < nr; i++)
		before[i] = counts[i];
	for (int i = 0; i < nr; i++)
		while (counts[i] < before[i] + ENOUGH)
			usleep(1000);
}

int main(void)
{
	volatile unsigned long *counts =
		mmap(NULL, CPUS_MAX * sizeof(*counts), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int cpu, nr = 0, number;
	cpu_set_t allowed, one;
	sigset_t again;

	sigemptyset(&again);
	sigaddset(&again, SIGUSR1);
	sigprocmask(SIG_BLOCK, &again, NULL);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		number = nr++;
		if (fork())
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (;; counts[number]++)
			map_and_unmap();
	}
	for (;;) {
		wait_for(counts, nr);
		printf("full\n");
		fflush(stdout);
		sigwait(&again, &cpu);
	}
}
