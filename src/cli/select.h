/* SPDX-License-Identifier: Apache-2.0 */
/* The options that say which processes are sampled (docs/selection.md). */
#pragma once

#include "cli/config.h"
#include "cli/options.h"
#include "record/selection.h"

struct select_wanted {
	struct text_list include, exclude;
	double min_age_s; /* of all; 0: any */
};

/* Of a table of options; `AT_` is its AT(), `sampling` the struct sampling_arguments there. */
#define SELECT_OPTIONS(AT_)                                                                        \
	{ 0,                                                                                       \
	  "include",                                                                               \
	  "KEY=VALUE[,...]",                                                                       \
	  NULL,                                                                                    \
	  "sample these processes only: pid, comm, exe, cgroup, container, uid or min-age; "       \
	  "repeatable",                                                                            \
	  OPTION_LIST,                                                                             \
	  AT_(sampling.select.include) },                                                          \
	{                                                                                          \
		0, "exclude", "KEY=VALUE[,...]", NULL, "don't sample these processes; repeatable", \
			OPTION_LIST, AT_(sampling.select.exclude)                                  \
	}

/*
 * Logging: -EINVAL after a line that says what is wrong; `command` is what help is asked for by,
 * `config` (or NULL) where the options came from. *ret is the caller's.
 */
int select_parse(const struct select_wanted *wanted, const struct config *config,
		 const char *command, struct selection *ret);
