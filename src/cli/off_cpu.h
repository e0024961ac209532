/* SPDX-License-Identifier: Apache-2.0 */
/* The options of off-CPU profiling: which sleeps of threads are taken (docs/off-cpu.md). */
#pragma once

#include "cli/config.h"
#include "kernel/source.h"

struct off_cpu_wanted {
	const char *mode;  /* --off-cpu; NULL: none */
	double threshold;  /* the same, as other profilers have it; 0: none */
	const char *least; /* --off-cpu-min; NULL: 0 */
	bool waker;
	bool kick;
};

/* What --off-cpu is without a value: sums are right, and no more than a sample a ms of sleep. */
#define OFF_CPU_ALONE "weighted=1ms"

/* Of a table of options; `AT_` is its AT(), `off_cpu` the struct off_cpu_wanted there. */
#define OFF_CPU_OPTIONS(AT_)                                                                       \
	{ .name = "off-cpu",                                                                       \
	  .arg = "[P|weighted=TIME]",                                                              \
	  .help = "also take why threads were on no CPU, and for how long: each sleep with "       \
		  "probability P (1: all), or one sample for each TIME that was slept, which "     \
		  "leaves no longer sleep out (alone: " OFF_CPU_ALONE ")",                         \
	  .type = OPTION_STRING,                                                                   \
	  AT_(off_cpu.mode),                                                                       \
	  .alone = OFF_CPU_ALONE,                                                                  \
	  .instead = "off-cpu-threshold" },                                                        \
		{ 0,                                                                               \
		  "off-cpu-threshold",                                                             \
		  "P",                                                                             \
		  NULL,                                                                            \
		  "the same as --off-cpu P; 0: none",                                              \
		  OPTION_FRACTION,                                                                 \
		  AT_(off_cpu.threshold),                                                          \
		  .instead = "off-cpu" },                                                          \
		{ 0,                                                                               \
		  "off-cpu-min",                                                                   \
		  "TIME",                                                                          \
		  NULL,                                                                            \
		  "take no shorter sleeps (10us)",                                                 \
		  OPTION_STRING,                                                                   \
		  AT_(off_cpu.least) },                                                            \
		{ 0,                                                                               \
		  "off-cpu-waker",                                                                 \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "with each sleep, tell who has ended it, and where",                             \
		  OPTION_FLAG,                                                                     \
		  AT_(off_cpu.waker) },                                                            \
	{                                                                                          \
		0, "off-cpu-kick", NULL, NULL, "for tests: as on kernels before 6.16",             \
			OPTION_FLAG, AT_(off_cpu.kick), .hidden = true                             \
	}

/*
 * Logging: -EINVAL after a line that says what is wrong; `command` is what help is asked for by,
 * `config` (or NULL) where the options came from. ret->kind is SOURCE_NONE if no sleeps are wanted.
 */
int off_cpu_source(const struct off_cpu_wanted *wanted, const struct config *config,
		   const char *command, struct source_spec *ret);
