// SPDX-License-Identifier: Apache-2.0
/*
 * passes SECONDS FILE: enters the kernel all the time, and waits there now and then, ten calls
 * deep. FILE gets how often it was switched out, how often waits() was called and the sum of its
 * arguments, for how many ns it ran, how often it called getppid() and the sum of what that
 * returned.
 */
#include "workload.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static long nr_waits, sum_waits, nr_parents, sum_parents;

KNOWN void enters(void)
{
	for (int i = 0; i < 100; i++) {
		SPIN(1000);
		sum_parents += syscall(SYS_getppid);
		nr_parents++;
	}
	sink++;
}

/* Begins with a nop, which the kernel skips behind a probe. Most other instructions it runs in a
 * page of its own, where the CPU's clock meets them. */
__attribute__((patchable_function_entry(1))) KNOWN void waits(long amount)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 50000 }, NULL);
	nr_waits++;
	sum_waits += amount;
}

KNOWN void descends(int depth)
{
	if (depth) {
		descends(depth - 1);
	} else {
		enters();
		waits(nr_waits % 7 * 1000);
	}
	sink++;
}

static void tell(const char *path)
{
	FILE *f = fopen(path, "w");
	struct timespec cpu;
	struct rusage used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	getrusage(RUSAGE_SELF, &used);
	if (!f ||
	    fprintf(f, "%ld %ld %ld %lld %ld %ld\n", used.ru_nvcsw + used.ru_nivcsw, nr_waits,
		    sum_waits, (long long)cpu.tv_sec * 1000000000 + cpu.tv_nsec, nr_parents,
		    sum_parents) < 0 ||
	    fclose(f))
		_exit(1);
}

int main(int argc, char **argv)
{
	work_init(argc, argv);
	while (work_left())
		descends(9);
	if (argc > 2)
		tell(argv[2]);
	_exit(0);
}
