// SPDX-License-Identifier: Apache-2.0
/*
 * A recorder that records nothing: for tests of the command line, on machines and as users that
 * cannot record. It runs COMMAND and reports $SONDE_FAKE_STACKS stacks (2 if unset).
 */
#include "record/recording.h"

#include "util/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_command(char *const *command)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(command[0], command);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/* main; function_0, function_1, ... */
static int add_stacks(struct profile *profile, uint32_t nr)
{
	uint32_t file, frames[2], stack;
	char name[64];
	int r;

	r = profile_add_file(profile, "/usr/bin/fake", NULL, 0, &file);
	for (uint32_t i = 0; !r && i <= nr; i++) {
		const struct profile_frame frame = {
			.kind = FRAME_KIND_NATIVE,
			.file = file,
			.address = i,
		};

		r = profile_add_frame(profile, &frame, i ? &frames[0] : &frames[1]);
		snprintf(name, sizeof(name), i ? "function_%u" : "main", i - 1);
		if (!r)
			r = profile_name_frame(profile, i ? frames[0] : frames[1], name);
		if (r || !i)
			continue;
		r = profile_add_stack(profile, frames, 2, STOP_COMPLETE, &stack);
		if (!r)
			r = profile_add_comm_sample(profile, "fake", stack, i);
	}
	return r;
}

int recording_run(const struct recording_options *options, struct profile *profile,
		  struct recorder_stats *ret_stats, int *ret_command_status)
{
	const char *stacks = getenv("SONDE_FAKE_STACKS");
	uint32_t nr = stacks ? (uint32_t)strtoul(stacks, NULL, 10) : 2;
	int status = 0, r;
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, NULL); /* as the true one does */
	if (options->command)
		status = run_command(options->command);
	r = add_stacks(profile, nr);
	if (r < 0)
		return log_err(r, "cannot fake");
	*ret_stats = (struct recorder_stats){
		.samples = profile_total(profile),
		.complete = profile_total(profile),
		.frequency_hz = options->recorder.frequency_hz,
		.duration_s = options->duration_s,
		.map_bytes = options->recorder.memory_limit,
	};
	*ret_command_status = status;
	return 0;
}
