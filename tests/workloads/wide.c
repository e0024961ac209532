// SPDX-License-Identifier: Apache-2.0
/* A thread with a large frame, all of which has been touched, between its first functions and its
 * last. */
#include "workload.h"

#include <pthread.h>
#include <string.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void wide(void)
{
	char touched[600 << 10];

	memset(touched, (int)sink, sizeof(touched));
	__asm__ volatile("" ::"r"(touched) : "memory");
	while (work_left())
		leaf();
	__asm__ volatile("" ::"r"(touched) : "memory");
}

KNOWN void *run(void *arg)
{
	wide();
	sink++;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	work_init(argc, argv);
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	_exit(0);
}
