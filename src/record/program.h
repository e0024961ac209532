/* SPDX-License-Identifier: Apache-2.0 */
/* What a COMMAND is going to run, before it runs. */
#pragma once

#include <stdint.h>

/*
 * The runtimes of the program, or of a script's interpreter (bit N: runtime N); if it is none's, of
 * those whose programs' names its arguments have, or the begin of a shell's script: a guess, see
 * runtimes_of_program().
 */
uint32_t runtimes_of_command(char *const *argv);
