// SPDX-License-Identifier: Apache-2.0
#include "util/child.h"
#include "util/capabilities.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum {
	FDS_MAX = CHILD_MORE_FD - CHILD_IN_FD + CHILD_MORE_MAX,
	ARGS_MAX = 48,
	KILL_MS = 500,	 /* that a killed child has to end */
	KILLED_MAX = 64, /* that have not ended yet */
	CPU_GRACE_S = 5, /* at the hard limit it would be SIGKILL, which anybody may have sent */
};

/* What the child is given; made before the fork, since between it and exec little is allowed. */
struct launch {
	int (*main)(int argc, char **argv);
	int fds[FDS_MAX];
	int nr_fds;
	char *argv[ARGS_MAX];
	int argc;
	char program[PATH_MAX]; /* "": fork */
};

/*
 * The program by its own name: run as /proc/self/exe it would be "exe" in lists of processes and
 * in recordings, until it has got to main(). That is right also if the file has been replaced.
 */
static int find_program(const char *builder, char ret[static PATH_MAX])
{
	struct stat st, named;
	ssize_t n = -1;

	if (!strcmp(builder, "/proc/self/exe"))
		n = readlink(builder, ret, PATH_MAX);
	if (n > 0 && n < PATH_MAX) {
		ret[n] = '\0';
		if (!stat(builder, &st) && !stat(ret, &named) && st.st_dev == named.st_dev &&
		    st.st_ino == named.st_ino)
			return 0;
	}
	return snprintf(ret, PATH_MAX, "%s", builder) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int prepare(struct launch *l, const struct child_spec *spec)
{
	static char name[] = "child";
	size_t nr = 0, i;
	int r = spec->program ? find_program(spec->program[0], l->program) : 0;

	if (r)
		return r;
	while (spec->program && spec->program[nr])
		nr++;
	if (nr + spec->nr_args + 2 > ARGS_MAX || spec->nr_more_fds > CHILD_MORE_MAX)
		return -E2BIG;
	if (!spec->program)
		l->argv[l->argc++] = name;
	for (i = 0; i < nr; i++)
		l->argv[l->argc++] = spec->program[i];
	for (i = 0; i < spec->nr_args; i++)
		l->argv[l->argc++] = spec->args[i];
	l->main = spec->main;
	return 0;
}

/*
 * The kernel sends SIGKILL when the other end is closed, to its owner: none yet. Where it can't (a
 * sandbox's), children end when they are done.
 */
static int make_lifeline(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	if (fcntl(fds[0], F_SETSIG, SIGKILL) ||
	    fcntl(fds[0], F_SETFL, O_RDONLY | O_NONBLOCK | O_ASYNC))
		log_debug("children do not end with us: %s", strerror(errno));
	return 0;
}

/* In the child, when it does not have the other end any more itself. */
static void hold_lifeline(void)
{
	struct pollfd closed = { .fd = CHILD_LIFELINE_FD };

	fcntl(CHILD_LIFELINE_FD, F_SETOWN, getpid());
	/* It may have been cut before that. */
	if (poll(&closed, 1, 0) == 1 && (fcntl(CHILD_LIFELINE_FD, F_GETFL) & O_ASYNC))
		_exit(CHILD_FAILED);
}

/*
 * What was sent to our parent's group before we left it is our parent's alone, as whoever sent it
 * told that one, too. To be ignored takes what is pending away.
 */
static void forget_signals(void)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		signal(numbers[i], SIG_IGN);
		signal(numbers[i], SIG_DFL);
	}
}

/* In the child, before exec: nothing that is not async-signal-safe. */
__attribute__((noreturn)) static void run_child(struct launch *l)
{
	sigset_t set;
	int i, fd;

	/* Else the keys that end a recording would end it, too. */
	setsid();
	forget_signals();
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	for (i = 0; i < l->nr_fds; i++) {
		l->fds[i] = fcntl(l->fds[i], F_DUPFD_CLOEXEC, CHILD_IN_FD + FDS_MAX);
		if (l->fds[i] < 0)
			_exit(CHILD_FAILED);
	}
	for (i = 0; i < l->nr_fds; i++)
		if (dup2(l->fds[i], CHILD_IN_FD + i) < 0)
			_exit(CHILD_FAILED);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Not ours: who reads a pipe of our parent's need not wait for us. */
	for (i = 0; i < CHILD_IN_FD && fd >= 0; i++)
		if (dup2(fd, i) == i)
			fcntl(i, F_SETFD, 0);
	syscall(SYS_close_range, CHILD_IN_FD + l->nr_fds, ~0U, 0);
	hold_lifeline();
	if (!*l->program)
		_exit(l->main(l->argc, l->argv));
	execv(l->program, l->argv);
	execv(l->argv[0], l->argv);
	_exit(CHILD_FAILED);
}

/* --- those that there are --------------------------------------------------------------------- */

static struct {
	VEC(pid_t) pids;
	uint64_t ended_cpu_ns; /* of those that were waited for */
	uint64_t told_ns;      /* it never becomes less: not when one is left, or cannot be asked */
} known;

static void remember(pid_t pid)
{
	if (vec_push(&known.pids, pid))
		log_debug("child %d is not counted: out of memory", pid);
}

static void forget(pid_t pid)
{
	for (size_t i = 0; i < known.pids.nr; i++)
		if (known.pids.items[i] == pid)
			known.pids.items[i--] = known.pids.items[--known.pids.nr];
	if (!known.pids.nr)
		vec_free(&known.pids);
}

/* waitpid(), and what it cost. */
static pid_t take(pid_t pid, int *status, int flags)
{
	struct rusage used;
	pid_t r = wait4(pid, status, flags, &used);

	if (r > 0)
		known.ended_cpu_ns += child_usage_ns(&used);
	return r;
}

void child_each(void (*each)(void *ctx, pid_t pid), void *ctx)
{
	for (size_t i = 0; i < known.pids.nr; i++)
		each(ctx, known.pids.items[i]);
}

uint64_t child_cpu_ns(void)
{
	uint64_t sum = known.ended_cpu_ns;
	struct timespec ran;
	clockid_t clock;

	for (size_t i = 0; i < known.pids.nr; i++)
		if (!clock_getcpuclockid(known.pids.items[i], &clock) &&
		    !clock_gettime(clock, &ran))
			sum += (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec;
	if (sum > known.told_ns)
		known.told_ns = sum;
	return known.told_ns;
}

/* --- starting and ending them ----------------------------------------------------------------- */

/*
 * Killed, waited for, and not over yet: they are taken away when another child is started or ends,
 * else left to init.
 */
static struct {
	pid_t pids[KILLED_MAX];
	size_t nr;
} killed;

static void reap_killed(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < killed.nr; i++)
		if (!take(killed.pids[i], NULL, WNOHANG))
			killed.pids[kept++] = killed.pids[i];
	killed.nr = kept;
}

int child_start(const struct child_spec *spec, struct child *ret)
{
	_cleanup_close_ int messages = -1, child_end_of = -1, lifeline = -1, our_end = -1;
	struct launch l = { 0 };
	struct child child;
	int fds[2], r;

	reap_killed();
	r = prepare(&l, spec);
	if (r)
		return r;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	messages = fds[0];
	child_end_of = fds[1];
	r = make_lifeline(fds);
	if (r)
		return r;
	lifeline = fds[0];
	our_end = fds[1];
	l.fds[l.nr_fds++] = spec->in_fd;
	l.fds[l.nr_fds++] = spec->out_fd;
	l.fds[l.nr_fds++] = child_end_of;
	l.fds[l.nr_fds++] = lifeline;
	for (size_t i = 0; i < spec->nr_more_fds; i++)
		l.fds[l.nr_fds++] = spec->more_fds[i];
	child.pid = fork();
	if (child.pid < 0)
		return -errno;
	if (!child.pid)
		run_child(&l);
	remember(child.pid);
	child_set_idle(&child, spec->idle);
	child.messages = TAKE_FD(messages);
	child.lifeline[0] = TAKE_FD(lifeline);
	child.lifeline[1] = TAKE_FD(our_end);
	*ret = child;
	return 0;
}

int child_set_idle(const struct child *child, bool idle)
{
	struct sched_param param = { 0 };
	int io = idle ? IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0)
		      : IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4);
	int r = 0;

	/* Not from us: a recorder may have a real-time priority. */
	if (sched_setscheduler(child->pid, idle ? SCHED_IDLE : SCHED_OTHER, &param))
		r = -errno;
	if (setpriority(PRIO_PROCESS, (id_t)child->pid, idle ? 19 : 0))
		r = -errno;
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, child->pid, io);
	return r;
}

void child_let_stay(const struct child *child)
{
	/* Of the pipe's end, which is the child's and ours. */
	fcntl(child->lifeline[0], F_SETFL, O_RDONLY | O_NONBLOCK);
}

static void close_all(struct child *child)
{
	const int fds[] = { child->messages, child->lifeline[0], child->lifeline[1] };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*child = CHILD_NONE;
}

void child_leave(struct child *child)
{
	child_let_stay(child);
	forget(child->pid);
	close_all(child);
}

/*
 * A child that was killed ends when it gets a CPU, which takes its time on a busy machine, and if a
 * dead file server or a debugger holds it, for ever: nobody waits for that.
 */
static void wait_for_killed(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		poll(&ended, 1, KILL_MS);
}

int child_end(struct child *child, bool kill_it, int *ret_status)
{
	pid_t pid = child->pid;
	int status = 0, r;

	reap_killed();
	if (kill_it) {
		kill(pid, SIGKILL);
		wait_for_killed(pid);
	}
	do
		r = take(pid, &status, kill_it ? WNOHANG : 0);
	while (r < 0 && errno == EINTR);
	forget(pid);
	if (!r && killed.nr < KILLED_MAX)
		killed.pids[killed.nr++] = pid;
	r = r < 0 ? -errno : 0;
	/* Not before: that kills one that is about to end well. */
	close_all(child);
	if (r)
		return r;
	if (ret_status)
		*ret_status = status;
	return 0;
}

/* --- the child's side ------------------------------------------------------------------------- */

void child_limit(int resource, uint64_t value, uint64_t grace)
{
	struct rlimit limit = { value, value + grace };

	setrlimit(resource, &limit);
}

void child_restrict(uint64_t file_bytes, uint64_t cpu_s, uint64_t memory)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	child_limit(RLIMIT_CORE, 0, 0);
	child_limit(RLIMIT_FSIZE, file_bytes, 0);
	child_limit(RLIMIT_CPU, cpu_s, CPU_GRACE_S);
#ifndef WITH_SANITIZERS
	child_limit(RLIMIT_AS, memory, 0);
#else
	(void)memory;
#endif
}

void child_drop_capabilities(uint64_t keep)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		log_debug("what a child executes may have new privileges: %s", strerror(errno));
	r = capabilities_keep(keep);
	if (r)
		log_debug("a child has capabilities that it does not need: %s", strerror(-r));
}
