// SPDX-License-Identifier: Apache-2.0
/* A process whose first thread ends while another goes on. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static void stand_alone(void)
{
	for (;;)
		pause();
}

static void *other(void *arg)
{
	stand_alone();
	return arg;
}

int main(void)
{
	pthread_t id;

	if (pthread_create(&id, NULL, other, NULL))
		return 1;
	puts("ready");
	fflush(stdout);
	pthread_exit(NULL);
}
