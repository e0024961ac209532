// SPDX-License-Identifier: Apache-2.0
/*
 * Burns in main, in a new thread, in a new child, in turn until the time is over: whenever it is
 * attached to, threads and children appear later.
 */
#include "workload.h"

#include <pthread.h>
#include <sys/wait.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void main_part(void)
{
	for (int i = 0; i < 50; i++)
		leaf();
	sink++;
}

KNOWN void child_part(void)
{
	for (int i = 0; i < 50; i++)
		leaf();
	sink++;
}

KNOWN void *thread_part(void *arg)
{
	for (int i = 0; i < 50; i++)
		leaf();
	sink++;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;
	pid_t pid;

	work_init(argc, argv);
	work_seconds /= 3;
	while (work_left()) {
		main_part();
		if (pthread_create(&thread, NULL, thread_part, NULL))
			_exit(1);
		pthread_join(thread, NULL);
		pid = fork();
		if (!pid) {
			child_part();
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			_exit(1);
	}
	_exit(0);
}
