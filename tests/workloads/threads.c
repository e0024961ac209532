// SPDX-License-Identifier: Apache-2.0
/* Two threads with a chain each, while main waits; then short-lived threads. */
#include "workload.h"

#include <pthread.h>

KNOWN void leaf(void)
{
	SPIN(MILLISECOND);
}

KNOWN void middle_a(int n)
{
	leaf();
	sink += n;
}

KNOWN void middle_b(int n)
{
	leaf();
	sink -= n;
}

KNOWN void *thread_a(void *arg)
{
	while (work_left())
		middle_a(1);
	return arg;
}

KNOWN void *thread_b(void *arg)
{
	while (work_left())
		middle_b(1);
	return arg;
}

KNOWN void *thread_short(void *arg)
{
	middle_a(2);
	sink++;
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t a, b;

	work_init(argc, argv);
	work_seconds /= 2;
	if (pthread_create(&a, NULL, thread_a, NULL) || pthread_create(&b, NULL, thread_b, NULL))
		_exit(1);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	for (int i = 0; i < 100; i++) {
		if (pthread_create(&a, NULL, thread_short, NULL))
			_exit(1);
		pthread_join(a, NULL);
	}
	_exit(0);
}
