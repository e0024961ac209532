// SPDX-License-Identifier: Apache-2.0
/* many_sleepers THREADS: so many threads that sleep; it says how many there are. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 1, made = 0;
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	while (made < nr && !pthread_create(&thread, &attr, sleep_on, NULL))
		made++;
	printf("%d\n", made);
	fflush(stdout);
	for (;;)
		pause();
}
