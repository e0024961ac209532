// SPDX-License-Identifier: Apache-2.0
#include "symbol/symbol_child.h"
#include "symbol/symbol_builder.h"
#include "symbol/symbol_cache.h"
#include "symbol/symbol_store.h"
#include "util/cleanup.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ELF_FD = 3,
	OUT_FD = 4,
	MESSAGES_FD = 5,
	LIFELINE_FD = 6,
	ROOTS_FD = 7,
	FDS_MAX = ROOTS_FD + SYMBOL_CHILD_ROOTS_MAX + 1,
	ARGS_MAX = 48,
	ARG_SIZE = 64,
	IMAGE_SIZE_MAX = 1 << 30,
	CPU_GRACE_S = 5, /* at the hard limit it would be SIGKILL, which anybody may have sent */
	KILL_MS = 500,	 /* that a killed child has to end */
};

#define BUILDER_MEMORY_DEFAULT (UINT64_C(2) << 30)

/* --- the parent's side ------------------------------------------------------------------------ */

/* What the child is given; made before the fork, since between it and exec little is allowed. */
struct launch {
	int fds[FDS_MAX];
	int nr_fds;
	char text[4][ARG_SIZE];
	char *argv[ARGS_MAX];
	char *path, *key;
	int argc;
	char program[PATH_MAX]; /* "": fork */
};

static void launch_fini(struct launch *l)
{
	free(l->path);
	free(l->key);
}

static int add_text(struct launch *l, char **slot, const char *key, const char *value)
{
	if (asprintf(slot, "%s=%s", key, value) < 0) {
		*slot = NULL;
		return -ENOMEM;
	}
	l->argv[l->argc++] = *slot;
	return 0;
}

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

static int prepare(struct launch *l, const struct symbol_child_spec *spec)
{
	static char name[] = "build-symbols";
	size_t i;
	int r;

	if (spec->builder) {
		r = find_program(spec->builder[0], l->program);
		if (r)
			return r;
	}
	if (!spec->builder)
		l->argv[l->argc++] = name;
	for (i = 0; spec->builder && spec->builder[i]; i++) {
		if (i >= ARGS_MAX / 2)
			return -E2BIG;
		l->argv[l->argc++] = spec->builder[i];
	}
	snprintf(l->text[0], ARG_SIZE, "roots=%u", spec->nr_roots);
	snprintf(l->text[1], ARG_SIZE, "memory=%llu", (unsigned long long)spec->memory);
	snprintf(l->text[2], ARG_SIZE, "debug-info=%d", !spec->no_debug_info);
	snprintf(l->text[3], ARG_SIZE, "cache-size=%llu", (unsigned long long)spec->cache_size);
	for (i = 0; i < sizeof(l->text) / sizeof(l->text[0]); i++)
		l->argv[l->argc++] = l->text[i];
	r = spec->path ? add_text(l, &l->path, "path", spec->path) : 0;
	if (!r && spec->cache_dir >= 0)
		r = add_text(l, &l->key, "key", spec->key);
	return r;
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
		log_debug("builders do not end with us: %s", strerror(errno));
	return 0;
}

/* In the child, when it does not have the other end any more itself. */
static void hold_lifeline(void)
{
	struct pollfd closed = { .fd = LIFELINE_FD };

	fcntl(LIFELINE_FD, F_SETOWN, getpid());
	/* It may have been cut before that. */
	if (poll(&closed, 1, 0) == 1 && (fcntl(LIFELINE_FD, F_GETFL) & O_ASYNC))
		_exit(SYMBOL_CHILD_FAILED);
}

/* In the child, before exec: nothing that is not async-signal-safe. */
__attribute__((noreturn)) static void run_child(struct launch *l)
{
	sigset_t set;
	int i, fd;

	/* Else the keys that end a recording would end it, too. */
	setsid();
	sigemptyset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	for (i = 0; i < l->nr_fds; i++) {
		l->fds[i] = fcntl(l->fds[i], F_DUPFD_CLOEXEC, ELF_FD + FDS_MAX);
		if (l->fds[i] < 0)
			_exit(SYMBOL_CHILD_FAILED);
	}
	for (i = 0; i < l->nr_fds; i++)
		if (dup2(l->fds[i], ELF_FD + i) < 0)
			_exit(SYMBOL_CHILD_FAILED);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Not ours: who reads a pipe of our parent's need not wait for us. */
	for (i = 0; i < ELF_FD && fd >= 0; i++)
		if (dup2(fd, i) == i)
			fcntl(i, F_SETFD, 0);
	syscall(SYS_close_range, ELF_FD + l->nr_fds, ~0U, 0);
	hold_lifeline();
	if (!*l->program)
		_exit(symbol_store_builder_main(l->argc, l->argv));
	execv(l->program, l->argv);
	execv(l->argv[0], l->argv);
	_exit(SYMBOL_CHILD_FAILED);
}

int symbol_child_start(const struct symbol_child_spec *spec, struct symbol_child *ret)
{
	_cleanup_(launch_fini) struct launch l = { 0 };
	_cleanup_close_ int messages = -1, child_end = -1, lifeline = -1, our_end = -1;
	struct symbol_child child;
	int fds[2], r;

	r = prepare(&l, spec);
	if (r)
		return r;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	messages = fds[0];
	child_end = fds[1];
	r = make_lifeline(fds);
	if (r)
		return r;
	lifeline = fds[0];
	our_end = fds[1];
	l.fds[l.nr_fds++] = spec->elf_fd;
	l.fds[l.nr_fds++] = spec->out_fd;
	l.fds[l.nr_fds++] = child_end;
	l.fds[l.nr_fds++] = lifeline;
	for (uint32_t i = 0; i < spec->nr_roots; i++)
		l.fds[l.nr_fds++] = spec->roots[i];
	if (spec->cache_dir >= 0)
		l.fds[l.nr_fds++] = spec->cache_dir;
	child.pid = fork();
	if (child.pid < 0)
		return -errno;
	if (!child.pid)
		run_child(&l);
	symbol_child_set_idle(&child, spec->idle);
	child.messages = TAKE_FD(messages);
	child.lifeline[0] = TAKE_FD(lifeline);
	child.lifeline[1] = TAKE_FD(our_end);
	*ret = child;
	return 0;
}

int symbol_child_set_idle(const struct symbol_child *child, bool idle)
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

void symbol_child_let_stay(const struct symbol_child *child)
{
	/* Of the pipe's end, which is the child's and ours. */
	fcntl(child->lifeline[0], F_SETFL, O_RDONLY | O_NONBLOCK);
}

static void close_all(struct symbol_child *child)
{
	const int fds[] = { child->messages, child->lifeline[0], child->lifeline[1] };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*child = SYMBOL_CHILD_NONE;
}

void symbol_child_leave(struct symbol_child *child)
{
	symbol_child_let_stay(child);
	close_all(child);
}

/*
 * A child that was killed ends at once, unless a dead file server or a debugger holds it: then it
 * is left to init, for nobody shall wait for that.
 */
static void wait_for_killed(pid_t pid)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd >= 0)
		poll(&ended, 1, KILL_MS);
}

int symbol_child_end(struct symbol_child *child, bool kill_it, int *ret_status)
{
	pid_t pid = child->pid;
	int status = 0, r;

	if (kill_it) {
		kill(pid, SIGKILL);
		wait_for_killed(pid);
	}
	do
		r = waitpid(pid, &status, kill_it ? WNOHANG : 0);
	while (r < 0 && errno == EINTR);
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

struct task {
	struct symbol_builder_options options;
	uint64_t memory, cache_size;
	const char *key; /* in the cache; NULL: the image stays in OUT_FD */
	int cache_dir;
};

static void set_limit(int resource, uint64_t value, uint64_t grace)
{
	struct rlimit limit = { value, value + grace };

	setrlimit(resource, &limit);
}

static void restrict_self(const struct task *task)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	set_limit(RLIMIT_CORE, 0, 0);
	set_limit(RLIMIT_FSIZE, IMAGE_SIZE_MAX, 0);
	set_limit(RLIMIT_CPU, SYMBOL_CHILD_CPU_S, CPU_GRACE_S);
#ifndef __SANITIZE_ADDRESS__
	set_limit(RLIMIT_AS, task->memory, 0);
#else
	(void)task;
#endif
}

static bool value_of(const char *arg, const char *key, const char **ret)
{
	size_t len = strlen(key);

	if (strncmp(arg, key, len) || arg[len] != '=')
		return false;
	*ret = arg + len + 1;
	return true;
}

static int parse(int argc, char **argv, struct task *task)
{
	static int roots[SYMBOL_CHILD_ROOTS_MAX];
	struct debug_search *search = &task->options.search;
	const char *value;

	for (int i = 0; i < argc; i++) {
		if (value_of(argv[i], "roots", &value))
			search->nr_roots = strtoul(value, NULL, 10);
		else if (value_of(argv[i], "memory", &value))
			task->memory = strtoull(value, NULL, 10);
		else if (value_of(argv[i], "debug-info", &value))
			task->options.no_debug_info = *value == '0';
		else if (value_of(argv[i], "cache-size", &value))
			task->cache_size = strtoull(value, NULL, 10);
		else if (value_of(argv[i], "path", &value))
			search->path = value;
		else if (value_of(argv[i], "key", &value))
			task->key = value;
		else if (i)
			return -EINVAL;
	}
	if (search->nr_roots > SYMBOL_CHILD_ROOTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < search->nr_roots; i++)
		roots[i] = ROOTS_FD + (int)i;
	search->roots = roots;
	task->cache_dir = ROOTS_FD + (int)search->nr_roots;
	if (!task->memory)
		task->memory = BUILDER_MEMORY_DEFAULT;
	search->max_bytes = task->memory / 2;
	return 0;
}

static void complain(void *ctx, const char *text)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	(void)ctx;
	if (n >= (int)sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* A parent that is gone or does not read misses nothing that it needs. */
	if (write(MESSAGES_FD, line, (size_t)n) < 0)
		return;
}

static int build(struct task *task, const struct elf_file *elf)
{
	int r = symbol_table_build(elf, &task->options, OUT_FD, NULL);
	char text[1024];

	if ((r == -EFBIG || r == -ENOMEM) && !task->options.no_debug_info) {
		snprintf(text, sizeof(text), "%s: its debug information is too big; symbols only",
			 task->options.search.path);
		complain(NULL, text);
		task->options.complaint = text;
		task->options.no_debug_info = true;
		if (ftruncate(OUT_FD, 0))
			return -errno;
		r = symbol_table_build(elf, &task->options, OUT_FD, NULL);
	}
	return r == -ENOENT ? 0 : r;
}

static int build_and_publish(struct task *task)
{
	_cleanup_(elf_file_free_p) struct elf_file *elf = NULL;
	int r = elf_file_open_fd(ELF_FD, &elf);

	if (!r)
		r = build(task, elf);
	if (!task->key)
		return r;
	/* A table that does not get its name still serves our parent, who has it open. */
	if (r || symbol_cache_commit(task->cache_dir, task->key, OUT_FD))
		symbol_cache_abandon(task->cache_dir, task->key, OUT_FD);
	else
		symbol_cache_clean(task->cache_dir, task->cache_size);
	return r;
}

int symbol_store_builder_main(int argc, char **argv)
{
	struct task task = { .options.search.complain = complain, .options.search.path = "" };
	int r;

	/* Of /proc/self/exe it would be "exe", in every list of processes and in our recordings. */
	prctl(PR_SET_NAME, SYMBOL_CHILD_NAME);
	r = parse(argc, argv, &task);
	if (r)
		return SYMBOL_CHILD_FAILED;
	restrict_self(&task);
	r = build_and_publish(&task);
	if (!r)
		return SYMBOL_CHILD_OK;
	return r == -ENOSPC || r == -EDQUOT ? SYMBOL_CHILD_NO_SPACE : SYMBOL_CHILD_FAILED;
}
