/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a top_model as text: tables on a terminal, in a pipe, or in a text file. */
#pragma once

#include "cli/top_model.h"

#include <stdio.h>

/*
 * The functions of a whole profile, two tables of at most `nr`: by self samples (the function ran),
 * by total samples (it or something it called ran; counted once a stack). 0 or -ENOMEM.
 */
int top_print(const struct profile *p, uint32_t nr, FILE *out);
/* What the model holds now, at most `nr` rows of it, under `title`. 0 or -ENOMEM. */
int top_print_rows(const struct top_model *m, const struct top_view *view, const char *title,
		   uint32_t nr, FILE *out);
/* "function [file]", "name (pid 12)", "name (pid 12, tid 13)": what a row is. */
const char *top_row_text(const struct top_model *m, const struct top_row *row, enum top_by by,
			 char *buf, size_t size);
