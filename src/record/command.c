// SPDX-License-Identifier: Apache-2.0
#include "record/command.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct command {
	const char *name;
	pid_t pid;
	int pidfd;
	int go_fd;    /* a byte lets the child go */
	int error_fd; /* the child's errno, if exec fails; end of file if it does not */
	bool started, reaped;
	int status;
};

__attribute__((noreturn)) static void child(char *const *argv, int go_fd, int error_fd)
{
	char byte;
	int err;

	/* The parent died, or gave up. */
	if (read(go_fd, &byte, 1) != 1)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	err = errno;
	if (write(error_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

int command_prepare(char *const *argv, struct command **ret)
{
	struct command *c;
	int go[2], error[2], r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	if (pipe2(go, O_CLOEXEC)) {
		free(c);
		return log_err(-errno, "cannot prepare to run %s", argv[0]);
	}
	if (pipe2(error, O_CLOEXEC)) {
		r = -errno;
		close(go[0]);
		close(go[1]);
		free(c);
		return log_err(r, "cannot prepare to run %s", argv[0]);
	}
	c->name = argv[0];
	c->pid = fork();
	if (!c->pid) {
		close(go[1]);
		close(error[0]);
		child(argv, go[0], error[1]);
	}
	r = c->pid < 0 ? -errno : 0;
	close(go[0]);
	close(error[1]);
	c->go_fd = go[1];
	c->error_fd = error[0];
	c->pidfd = r ? -1 : (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (!r && c->pidfd < 0)
		r = -errno;
	if (r) {
		command_free(c);
		return log_err(r, "cannot prepare to run %s", argv[0]);
	}
	*ret = c;
	return 0;
}

int command_start(struct command *c)
{
	int err = 0;
	ssize_t n;

	c->started = true;
	if (write(c->go_fd, "", 1) != 1)
		return log_err(-errno, "cannot run %s", c->name);
	do {
		n = read(c->error_fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	if (n == sizeof(err))
		return log_err(-err, "cannot run %s", c->name);
	return 0;
}

pid_t command_pid(const struct command *c)
{
	return c->pid;
}

int command_fd(const struct command *c)
{
	return c->pidfd;
}

bool command_has_ended(const struct command *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };

	return c->reaped || poll(&p, 1, 0) > 0;
}

void command_kill(struct command *c, int signal_number)
{
	if (!c->reaped && c->pid > 0)
		kill(c->pid, signal_number);
}

/* The recorder has blocked them. */
static int open_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int command_wait(struct command *c, int *ret)
{
	_cleanup_close_ int signals = open_signals();
	struct pollfd p[] = { { .fd = c->pidfd, .events = POLLIN },
			      { .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	unsigned int nr_signals = 0;

	while (!c->reaped) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (p[0].revents && waitpid(c->pid, &c->status, 0) == c->pid) {
			c->reaped = true;
		} else if (p[1].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			/* It may ignore them; what was recorded must not be lost for that. */
			if (nr_signals++) {
				*ret = (int)info.ssi_signo; /* the wait status of one it killed */
				return 0;
			}
			log_info("waiting for %s; interrupt again to leave it alone", c->name);
			if (info.ssi_code != SI_KERNEL)
				command_kill(c, (int)info.ssi_signo);
		}
	}
	*ret = c->status;
	return 0;
}

void command_free(struct command *c)
{
	if (!c)
		return;
	close_p(&c->go_fd);
	close_p(&c->error_fd);
	if (c->pid > 0 && !c->started && !c->reaped) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &c->status, 0);
	}
	close_p(&c->pidfd);
	free(c);
}
