// SPDX-License-Identifier: Apache-2.0
/*
 * spawner COUNT PROGRAM [ARGS...]: runs COUNT processes, one after the other; a %d in PROGRAM
 * becomes the process's number. Prints the CPU seconds that it and they used: "cpu SELF CHILDREN".
 */
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

static double seconds(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
	int count, status, failed = 0;
	const char *hole;
	char path[4096];
	pid_t pid;

	if (argc < 3)
		return 2;
	count = (int)strtol(argv[1], NULL, 10);
	hole = strstr(argv[2], "%d");
	for (int i = 0; i < count; i++) {
		if (hole)
			snprintf(path, sizeof(path), "%.*s%d%s", (int)(hole - argv[2]), argv[2], i,
				 hole + 2);
		else
			snprintf(path, sizeof(path), "%s", argv[2]);
		pid = fork();
		if (!pid) {
			execv(path, argv + 2);
			_exit(126);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		failed += status != 0;
	}
	printf("cpu %.6f %.6f\n", seconds(RUSAGE_SELF), seconds(RUSAGE_CHILDREN));
	return failed ? 1 : 0;
}
