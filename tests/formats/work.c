// SPDX-License-Identifier: Apache-2.0
/*
 * What the formats' tests record: inlined functions (-O2 -g), system calls, two threads with names,
 * and a recursion that is deeper than the test's --max-frames. `work SECONDS` of CPU time each.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define INLINED	    static inline __attribute__((always_inline))
#define NOT_INLINED __attribute__((noinline, noclone))

static volatile long sink;
static double seconds;

NOT_INLINED double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

INLINED void innermost(long n)
{
	for (long i = 0; i < n; i++)
		sink = sink + i;
}

INLINED void middle(long n)
{
	innermost(n);
	sink = sink + 1;
}

NOT_INLINED void compute(long n)
{
	middle(n);
	sink = sink + 2;
}

NOT_INLINED void read_zeros(void)
{
	static char buf[1 << 20];
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 4; i++)
		sink = sink + read(fd, buf, sizeof(buf));
	close(fd);
}

NOT_INLINED long recurse(int depth)
{
	if (!depth)
		compute(200000);
	else
		sink = sink + recurse(depth - 1);
	return sink;
}

NOT_INLINED void *deep_thread(void *arg)
{
	prctl(PR_SET_NAME, "deep one");
	while (cpu_time() < seconds)
		recurse(60);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
	pthread_create(&thread, NULL, deep_thread, NULL);
	while (cpu_time() < seconds) {
		compute(200000);
		read_zeros();
	}
	pthread_join(thread, NULL);
	return 0;
}
