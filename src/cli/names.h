/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that name frames have in common: --names, and how symbol tables are built. */
#pragma once

#include "symbol/symbol_store.h"

#include <stdbool.h>

/* "full" or "short"; logging: -EINVAL after a line that says what there is. */
int names_style(const char *value, bool *ret_short);
/* argv of the program that builds symbol tables: this one, with a hidden command. */
extern char *const names_builder[];
/* What names_print_progress() prints into `columns` columns: less than that, at most size - 1. */
void names_format_progress(const struct symbol_progress *progress, size_t columns, char *buf,
			   size_t size);
/*
 * One line on stderr, if it is a terminal, about the symbols that are waited for; the cursor stays
 * at the line's start. Whether it was printed: then the caller clears it at the end.
 */
bool names_print_progress(const struct symbol_progress *progress);
