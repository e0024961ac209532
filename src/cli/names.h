/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that name frames have in common: --names, options of runtimes' frames, and how
 * symbol tables are built. */
#pragma once

#include "symbol/symbol_store.h"

#include <stdbool.h>

/* "full" or "short"; logging: -EINVAL after a line that says what there is. */
int names_style(const char *value, bool *ret_short);
/* Of a table of options; `AT_` is its AT(), `runtimes_` the struct runtime_names_options there. */
#define NAMES_RUNTIME_OPTIONS(AT_, runtimes_)                                                      \
	{ 0,                                                                                       \
	  "interpreter-frames",                                                                    \
	  NULL,                                                                                    \
	  NULL,                                                                                    \
	  "show an interpreter's own C functions that only run a script's function too",           \
	  OPTION_FLAG,                                                                             \
	  AT_(runtimes_.interpreter_frames) },                                                     \
		{ 0,                                                                               \
		  "tiers",                                                                         \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "tell the versions of a compiled function (Java) apart by the tier that "        \
		  "made them",                                                                     \
		  OPTION_FLAG,                                                                     \
		  AT_(runtimes_.runtime.tiers) },                                                  \
		{ 0,                                                                               \
		  "async",                                                                         \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "continue the stack of a task (Python), of an async function (Node.js) "         \
		  "with those that wait for it, that of a goroutine (Go) with what has "           \
		  "started it",                                                                    \
		  OPTION_FLAG,                                                                     \
		  AT_(runtimes_.runtime.async) },                                                  \
	{                                                                                          \
		0, "threads", "os|virtual", "os",                                                  \
			"count a virtual thread (Java) under the thread that carries it, or "      \
			"under its own name",                                                      \
			OPTION_CHOICE, AT_(runtimes_.runtime.virtual_threads)                      \
	}
/* argv of the programs that build symbol tables and unwind tables, load walkers, copy files and
 * read memory: this one, with hidden commands. */
extern char *const names_builder[], *const names_table_builder[],
					    *const names_walker_loader[],
						    *const names_file_copier[],
							    *const names_memory_reader[];
/* What names_print_progress() prints into `columns` columns: less than that, at most size - 1. */
void names_format_progress(const struct symbol_progress *progress, size_t columns, char *buf,
			   size_t size);
/*
 * One line on stderr, if it is a terminal, about the symbols that are waited for; the cursor stays
 * at the line's start. Whether it was printed: then the caller clears it at the end.
 */
bool names_print_progress(const struct symbol_progress *progress);
