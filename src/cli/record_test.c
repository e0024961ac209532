// SPDX-License-Identifier: Apache-2.0
/*
 * The program with a recorder that records nothing, run as a person runs it: what it says, where,
 * and its exit status.
 */
#include "test.h"

#include "kernel/requirements.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 24, TEXT_MAX = 65536 };

static char dir[] = "/tmp/sonde_record_test_XXXXXX";

struct run {
	pid_t pid;
	int out, err; /* what it prints */
	int status;   /* exit status, 1000 + n for a signal */
	char out_text[TEXT_MAX], err_text[TEXT_MAX];
};

/* In a new folder; everything with a path in `command` is split at spaces. */
static void start(struct run *run, const char *command)
{
	char program[4096], text[4096], *args[ARGS_MAX + 1], *save = NULL;
	int out[2], err[2], nr = 1;

	ASSERT(getenv("SONDE_BUILD_ROOT")); /* meson test sets it */
	snprintf(program, sizeof(program), "%s/src/cli/sonde_without_recorder",
		 getenv("SONDE_BUILD_ROOT"));
	snprintf(text, sizeof(text), "%s", command);
	args[0] = program;
	for (char *arg = strtok_r(text, " ", &save); arg; arg = strtok_r(NULL, " ", &save))
		if (nr < ARGS_MAX)
			args[nr++] = arg;
	args[nr] = NULL;
	ASSERT_OK(pipe2(out, O_CLOEXEC));
	ASSERT_OK(pipe2(err, O_CLOEXEC));
	run->pid = fork();
	if (!run->pid) {
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		execv(program, args);
		_exit(126);
	}
	ASSERT(run->pid > 0);
	close(out[1]);
	close(err[1]);
	run->out = out[0];
	run->err = err[0];
	run->out_text[0] = run->err_text[0] = '\0';
}

/* Appends what comes until `until` is in the text, or the end. */
static void read_until(int fd, char *text, const char *until)
{
	size_t len = strlen(text);
	ssize_t n;

	while (!(until && strstr(text, until)) && len < TEXT_MAX - 1 &&
	       (n = read(fd, text + len, TEXT_MAX - 1 - len)) > 0) {
		len += (size_t)n;
		text[len] = '\0';
	}
}

static void finish(struct run *run)
{
	int status;

	read_until(run->err, run->err_text, NULL);
	read_until(run->out, run->out_text, NULL);
	close(run->out);
	close(run->err);
	ASSERT_EQ(waitpid(run->pid, &status, 0), run->pid);
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static struct run *sonde(const char *command)
{
	static struct run run;

	start(&run, command);
	finish(&run);
	return &run;
}

static void enter_dir(void)
{
	if (!strcmp(dir + strlen(dir) - 6, "XXXXXX"))
		ASSERT_PTR_NONNULL(mkdtemp(dir));
	ASSERT_OK(chdir(dir));
}

static void leave_dir(void)
{
	char command[128];

	ASSERT_OK(chdir("/"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ASSERT_EQ(system(command), 0);
}

static void assert_one_line(const struct run *run, int status, const char *says)
{
	const char *end = strchr(run->err_text, '\n');

	if (run->status != status || !strstr(run->err_text, says))
		FAIL("exit %d, not %d; '%s' has no '%s'", run->status, status, run->err_text, says);
	if (!end || end[1])
		FAIL("not one line: %s", run->err_text);
	ASSERT(!strncmp(run->err_text, "sonde: ", 7));
	ASSERT_STR(run->out_text, "");
}

TEST(help_and_version)
{
	ASSERT_EQ(sonde("--help")->status, 0);
	ASSERT(strstr(sonde("--help")->out_text, "record"));
	ASSERT_EQ(sonde("")->status, 2);
	ASSERT(strstr(sonde("--version")->out_text, "sonde 0."));
	ASSERT(strstr(sonde("help record")->out_text, "-F, --frequency HZ"));
	ASSERT(strstr(sonde("record --help")->out_text, "-F, --frequency HZ"));
	ASSERT_PTR_NULL(strstr(sonde("help record")->out_text, "replay"));
	ASSERT(strstr(sonde("help --man")->out_text, ".SS sonde record\n"));
	ASSERT(strstr(sonde("help doctor")->out_text, "doctor"));
}

TEST(command_lines_that_make_no_sense)
{
	assert_one_line(sonde("nope"), 2, "unknown command 'nope'");
	assert_one_line(sonde("help nope"), 2, "unknown command 'nope'");
	assert_one_line(sonde("reocrd -d 1"), 2,
			"unknown command 'reocrd'; did you mean 'record'?");
	assert_one_line(sonde("help tpo"), 2, "did you mean 'top'?");
	assert_one_line(sonde("record --frequenzy=99"), 2, "did you mean '--frequency'?");
	assert_one_line(sonde("convert --lnies x y"), 2, "did you mean '--lines'?");
	assert_one_line(sonde("doctor x"), 2, "takes no arguments");
	assert_one_line(sonde("record -F 0"), 2, "a whole number from 1");
	assert_one_line(sonde("record -F ten"), 2, "not 'ten'");
	assert_one_line(sonde("record -d 0"), 2, "seconds from 0.001");
	assert_one_line(sonde("record -f nope"), 2, "unknown format 'nope'; there are: ");
	assert_one_line(sonde("record -o /tmp/x.nope"), 2, "'/tmp/x.nope' names no format");
	assert_one_line(sonde("record --memory-limit 1M"), 2, "at least 32M");
	assert_one_line(sonde("record --max-frames 0"), 2, "--max-frames");
	assert_one_line(sonde("record -p 1 -- true"), 2, "either -p or COMMAND");
	assert_one_line(sonde("record -o - --stats -"), 2, "standard output");
	assert_one_line(sonde("record -o - --top 3"), 2, "standard output");
	assert_one_line(sonde("record -p"), 2, "--pid needs PID");
}

TEST(targets_that_are_not_there)
{
	char command[64];
	pid_t zombie;

	assert_one_line(sonde("record -f folded -F 999999999"), 1,
			"is more than this kernel takes");
	assert_one_line(sonde("record -f folded -p 4194304"), 1, "there is no process 4194304");
	assert_one_line(sonde("record -f folded -- no-such-command-x"), 1,
			"COMMAND 'no-such-command-x' not found in $PATH");
	assert_one_line(sonde("record -f folded 1234"), 1, "give -p 1234");
	assert_one_line(sonde("record -f folded -- /no/such"), 1, "'/no/such'");
	assert_one_line(sonde("record -f folded -- /etc/passwd"), 1, "is no executable file");
	assert_one_line(sonde("record -f folded -- /tmp"), 1, "is no executable file");
	zombie = fork();
	if (!zombie)
		_exit(0);
	ASSERT_OK(waitid(P_PID, (id_t)zombie, &(siginfo_t){ 0 }, WEXITED | WNOWAIT));
	snprintf(command, sizeof(command), "record -f folded -p %d", zombie);
	assert_one_line(sonde(command), 1, "has already ended");
	waitpid(zombie, NULL, 0);
}

/* The tests below get as far as the recorder only where a recording could run. */
static bool can_record(void)
{
	struct requirement_result result;

	return !requirements_first_missing(&result);
}

TEST(outputs_are_proved_before_the_recording)
{
	if (!can_record())
		return;
	enter_dir();
	assert_one_line(sonde("record -o no/such/x.folded -- touch ran"), 1,
			"cannot write 'no/such/x.folded'");
	assert_one_line(sonde("record -f folded -o / -- touch ran"), 1, "cannot write '/'");
	assert_one_line(sonde("record -o /tmp -- touch ran"), 2, "'/tmp' is a folder");
	assert_one_line(sonde("record -f folded -o a --stats /no/such -- touch ran"), 1,
			"cannot write '/no/such'");
	ASSERT(access("ran", F_OK) < 0);
	ASSERT(access("a", F_OK) < 0);
	leave_dir();
}

TEST(writes_what_was_recorded)
{
	struct run *run;

	if (!can_record())
		return;
	enter_dir();
	run = sonde("record -d 1 -f folded");
	ASSERT_EQ(run->status, 0);
	ASSERT(strstr(run->err_text,
		      "sonde: 3 samples in 1.0 s at 99 Hz: 100.00 % complete, 0 lost"));
	ASSERT(strstr(run->err_text, "sonde: wrote profile.folded (folded, 1 kB)\n"));
	ASSERT_STR(run->out_text, "");
	run = sonde("record -d 1 -o -");
	ASSERT_STR(run->out_text, "fake;main;function_0 1\nfake;main;function_1 2\n");
	ASSERT_PTR_NULL(strstr(run->err_text, "wrote"));
	run = sonde("record -d 1 -o x.txt --stats -");
	ASSERT(!strncmp(run->out_text, "{\n", 2));
	run = sonde("record -d 1 -o x.txt --stats s.json --top 1");
	ASSERT(strstr(run->out_text, "function_1 [fake]"));
	ASSERT_OK(access("s.json", F_OK));
	leave_dir();
}

TEST(the_exit_status_is_the_commands)
{
	if (!can_record())
		return;
	enter_dir();
	ASSERT_EQ(sonde("record -o a.txt -- true")->status, 0);
	ASSERT_EQ(sonde("record -o a.txt -- false")->status, 1);
	ASSERT_EQ(sonde("record -o a.txt sh -c exit\t42")->status, 42);
	ASSERT_EQ(sonde("record -o a.txt sh -c kill\t-TERM\t$$")->status, 128 + SIGTERM);
	/* Ours goes first where we failed. */
	ASSERT_EQ(sonde("record -f folded -o /dev/full sh -c exit\t42")->status, 1);
	leave_dir();
}

TEST(a_full_disk_is_an_error)
{
	struct run *run;

	if (!can_record())
		return;
	run = sonde("record -f folded -o /dev/full");
	ASSERT_EQ(run->status, 1);
	ASSERT(strstr(run->err_text, "cannot write '/dev/full'"));
	ASSERT(strstr(run->err_text, "No space left on device"));
	run = sonde("record -o /dev/null -f folded --stats /dev/full");
	ASSERT_EQ(run->status, 1);
	ASSERT(strstr(run->err_text, "cannot write '/dev/full'"));
}

/* A reader that does not read: the write blocks until we have had our say. */
TEST(two_interrupts_give_up_writing)
{
	static struct run run;
	int fifo, pipe_size, filled = 0;

	if (!can_record())
		return;
	enter_dir();
	ASSERT_OK(mkfifo("fifo", 0600));
	fifo = open("fifo", O_RDWR | O_CLOEXEC);
	pipe_size = fcntl(fifo, F_GETPIPE_SZ);
	setenv("SONDE_FAKE_STACKS", "100000", 1);
	start(&run, "record -f folded -o fifo");
	while (filled < pipe_size) { /* the writer is at work */
		ASSERT_EQ(poll(&(struct pollfd){ .fd = fifo, .events = POLLIN }, 1, -1), 1);
		ASSERT_OK(ioctl(fifo, FIONREAD, &filled));
	}
	kill(run.pid, SIGINT);
	read_until(run.err, run.err_text, "interrupt again");
	kill(run.pid, SIGINT);
	/* Let it run into its end: read what it still writes, without waiting for more. */
	fcntl(fifo, F_SETFL, O_NONBLOCK);
	while (!strstr(run.err_text, "gave up writing 'fifo'")) {
		char buf[65536];
		struct pollfd fds[] = { { .fd = fifo, .events = POLLIN },
					{ .fd = run.err, .events = POLLIN } };

		ASSERT(poll(fds, 2, -1) > 0);
		if (fds[0].revents)
			ASSERT(read(fifo, buf, sizeof(buf)) > 0);
		if (fds[1].revents)
			read_until(run.err, run.err_text, "gave up");
	}
	finish(&run);
	ASSERT_EQ(run.status, 1);
	close(fifo);
	leave_dir();
}
