// SPDX-License-Identifier: Apache-2.0
/*
 * many_roots PROGRAMS: starts so many programs, one after another, each a file of its own in a root
 * of its own, runs them for a moment, and removes them; says so then. Linked statically.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIVING = 20 }; /* of which most have been looked at before they end */

static void check(int bad)
{
	if (bad)
		_exit(1);
}

static int run_for_a_moment(void)
{
	while (clock() < CLOCKS_PER_SEC / 100)
		;
	return pause();
}

static pid_t start(int number)
{
	char root[32], program[64];
	int self = open("/proc/self/exe", O_RDONLY), file;
	struct stat st;
	pid_t pid;

	snprintf(root, sizeof(root), "root-%d", number);
	snprintf(program, sizeof(program), "%s/program", root);
	check(mkdir(root, 0755) || fstat(self, &st));
	file = open(program, O_WRONLY | O_CREAT, 0755);
	check(sendfile(file, self, NULL, st.st_size) != st.st_size ||
	      write(file, &number, sizeof(number)) != sizeof(number));
	close(file);
	close(self);
	pid = fork();
	if (!pid) {
		/* Where that is not allowed the file alone has to do. */
		if (unshare(CLONE_NEWUSER) || chroot(root))
			execl(program, "program", NULL);
		else
			execl("/program", "program", NULL);
		_exit(1);
	}
	return pid;
}

static void end(pid_t pid, int number)
{
	char root[32], program[64];

	snprintf(root, sizeof(root), "root-%d", number);
	snprintf(program, sizeof(program), "%s/program", root);
	check(kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid);
	check(unlink(program) || rmdir(root));
}

int main(int argc, char **argv)
{
	int nr = argc > 1 ? atoi(argv[1]) : 0, i;
	pid_t *pids;

	if (!nr)
		return run_for_a_moment();
	pids = calloc(nr, sizeof(*pids));
	check(!pids);
	for (i = 0; i < nr + LIVING; i++) {
		if (i >= LIVING)
			end(pids[i - LIVING], i - LIVING);
		if (i < nr)
			pids[i] = start(i);
	}
	puts("ended");
	return 0;
}
