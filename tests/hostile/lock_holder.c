// SPDX-License-Identifier: Apache-2.0
/*
 * lock_holder FILE NR: FILE is on a FUSE file system. In NR processes a thread waits in mmap() for
 * ever, with the lock of the process's mappings, while another one burns some CPU: the kernel drops
 * what is cached of a file that is opened without a cache (FOPEN_DIRECT_IO), and waits for a page
 * of it that is being read. A process that was sampled before that is known already: thus several.
 *
 * It says "opened", waits for a line (the server hangs from then on), reads a page, waits for
 * another line (the server has been asked), begins, and says "burnt".
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int cached, uncached, burnt[2];

static void *read_page(void *page)
{
	return (void *)(long)*(volatile char *)page;
}

static void *map(void *unused)
{
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, uncached, 0);
	return unused;
}

static void start(void *(*run)(void *), void *with)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, with))
		errx(1, "no thread");
}

static void wait_for_line(const char *say)
{
	char line[2];

	if (write(STDOUT_FILENO, say, 7) != 7 || read(STDIN_FILENO, line, 2) <= 0)
		errx(1, "nobody there");
}

__attribute__((noinline)) static void burn(clock_t until)
{
	while (clock() < until)
		;
}

static void hold_lock(void)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* What is needed later is in memory then: a page that is not waits for the lock, too. */
	burn(CLOCKS_PER_SEC / 1000);
	if (write(burnt[1], &byte, 0))
		_exit(1);
	start(map, NULL);
	burn(CLOCKS_PER_SEC / 5);
	if (write(burnt[1], &byte, 1) == 1)
		pause();
	_exit(1);
}

int main(int argc, char **argv)
{
	int nr = argc == 3 ? atoi(argv[2]) : 0;
	char byte;
	void *page;

	alarm(60); /* whoever reads what we say waits for no longer */
	cached = nr ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	uncached = cached < 0 ? -1 : open(argv[1], O_RDONLY | O_SYNC | O_CLOEXEC);
	if (uncached < 0)
		err(1, "usage: lock_holder FILE NR");
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, cached, 0);
	if (page == MAP_FAILED || pipe(burnt))
		err(1, "no page, or no pipe");
	wait_for_line("opened\n");
	start(read_page, page);
	wait_for_line("reads.\n");
	for (int i = 0; i < nr; i++)
		if (!fork())
			hold_lock();
	for (int i = 0; i < nr; i++)
		if (read(burnt[0], &byte, 1) != 1)
			err(1, "read");
	wait_for_line("burnt.\n");
}
