/* SPDX-License-Identifier: Apache-2.0 */
/* What an output stream can show: colours and width, if it is a terminal. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* A terminal, and the user has not set NO_COLOR. */
bool term_colours(FILE *out);
/* Columns; 0 if it is no terminal: do not cut lines. */
int term_width(FILE *out);

enum term_colour {
	TERM_BOLD,
	TERM_DIM,
	TERM_RED,
	TERM_GREEN,
	TERM_YELLOW,
};
/* The escape sequence, or "" if not `colours`; term_reset() ends it. */
const char *term_start(bool colours, enum term_colour colour);
const char *term_reset(bool colours);
