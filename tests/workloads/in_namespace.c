// SPDX-License-Identifier: Apache-2.0
/*
 * in_namespace PROGRAM ARGS...: runs a copy of the static PROGRAM as /bin/NAME, PID 1, in mount and
 * PID namespaces of its own, with a tmpfs as root: no path of it exists outside.
 */
#include "workload.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int copy(const char *from, const char *to)
{
	char buf[65536];
	ssize_t n;
	int in, out;

	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	if (in < 0 || out < 0)
		return -1;
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			return -1;
	return close(out) || close(in) || n;
}

static int enter(const char *program, const char *root)
{
	const char *name = strrchr(program, '/');
	char to[256];

	name = name ? name + 1 : program;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", root, "tmpfs", 0, NULL))
		return -1;
	snprintf(to, sizeof(to), "%s/bin", root);
	mkdir(to, 0755);
	snprintf(to, sizeof(to), "%s/tmp", root);
	mkdir(to, 0777);
	snprintf(to, sizeof(to), "%s/bin/%s", root, name);
	if (copy(program, to) || chdir(root) || syscall(SYS_pivot_root, ".", ".") ||
	    umount2(".", MNT_DETACH) || chdir("/"))
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	char root[] = "/tmp/sonde-ns-XXXXXX";
	const char *name;
	int status = 0;
	char path[256];
	pid_t pid;

	if (argc < 2 || !mkdtemp(root))
		return 2;
	if (unshare(CLONE_NEWPID))
		return 1;
	pid = fork();
	if (!pid) {
		name = strrchr(argv[1], '/');
		snprintf(path, sizeof(path), "/bin/%s", name ? name + 1 : argv[1]);
		if (!enter(argv[1], root))
			execv(path, argv + 1);
		_exit(126);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 1;
	rmdir(root);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
