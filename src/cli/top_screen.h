/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live table of `sonde top` on a terminal (ncurses): draws a top_model, obeys keys. It knows
 * nothing of recording. What is written to standard error meanwhile is kept back and shown when the
 * screen is given back.
 */
#pragma once

#include "cli/top_model.h"

struct top_screen;

enum top_action {
	TOP_ACTION_NONE = 0,
	TOP_ACTION_QUIT = 1,
	TOP_ACTION_RESET = 2, /* count anew */
};

/* Takes the terminal over. -ENOTTY: standard input or output is none; -EINVAL: of unknown type. */
int top_screen_open(struct top_screen **ret);
/* Gives it back as it was. NULL is fine. */
void top_screen_close(struct top_screen *s);
/* Handles what was typed; never blocks. */
enum top_action top_screen_keys(struct top_screen *s);
/* The user wants it to stand still: do not update the model. */
bool top_screen_is_paused(const struct top_screen *s);
/* `status` stands in the first line: "99 Hz, 12 processes, ...". 0 or -ENOMEM. */
int top_screen_draw(struct top_screen *s, const struct top_model *m, const char *status);
