// SPDX-License-Identifier: Apache-2.0
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool term_colours(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

int term_width(FILE *out)
{
	struct winsize size;

	if (!isatty(fileno(out)))
		return 0;
	if (ioctl(fileno(out), TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 80;
	return size.ws_col;
}

const char *term_start(bool colours, enum term_colour colour)
{
	if (!colours)
		return "";
	switch (colour) {
	case TERM_BOLD:
		return "\033[1m";
	case TERM_DIM:
		return "\033[2m";
	case TERM_RED:
		return "\033[31m";
	case TERM_GREEN:
		return "\033[32m";
	case TERM_YELLOW:
		return "\033[33m";
	}
	return "";
}

const char *term_reset(bool colours)
{
	return colours ? "\033[0m" : "";
}
