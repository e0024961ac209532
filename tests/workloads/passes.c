// SPDX-License-Identifier: Apache-2.0
/*
 * passes SECONDS FILE: enters the kernel all the time, and waits there now and then, ten calls
 * deep. FILE gets how often it was switched out.
 */
#include "workload.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

KNOWN void enters(void)
{
	for (int i = 0; i < 100; i++) {
		SPIN(1000);
		sink += syscall(SYS_getppid);
	}
	sink++;
}

KNOWN void waits(void)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 50000 }, NULL);
	sink++;
}

KNOWN void descends(int depth)
{
	if (depth) {
		descends(depth - 1);
	} else {
		enters();
		waits();
	}
	sink++;
}

static void tell(const char *path)
{
	FILE *f = fopen(path, "w");
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	if (!f || fprintf(f, "%ld\n", used.ru_nvcsw + used.ru_nivcsw) < 0 || fclose(f))
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
