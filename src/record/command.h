/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The COMMAND of a recording: forked first, let go once all is ready, so that it is recorded from
 * its first instruction. What the child does before its exec is not the command's, and is not
 * recorded.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct command;

/* Forks a child that waits to become argv. Signals and the mask are put back to what we started
 * with. */
int command_prepare(char *const *argv, struct command **ret);
/* Lets it go. Logging: -ENOENT, -EACCES ... if it could not be executed. */
int command_start(struct command *c);
pid_t command_pid(const struct command *c);
/* Readable when it has ended. */
int command_fd(const struct command *c);
bool command_has_ended(const struct command *c);
void command_kill(struct command *c, int signal_number);
/* Waits for its end; *ret is a wait status. */
int command_wait(struct command *c, int *ret);
/* Kills it if it never started. */
void command_free(struct command *c);
