/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that sample have in common: `record`, `top` and `agent`. */
#pragma once

#include "cli/names.h"
#include "cli/select.h"
#include "cli/target.h"
#include "record/recorder.h"

/* As the command line gave them; the frequency has an option of another name in each command. */
struct sampling_arguments {
	uint32_t frequency_hz;
	uint32_t max_frames;
	uint64_t memory_limit; /* bytes */
	struct runtime_names_options runtimes;
	const char *tracers; /* a list for tracers_parse() */
	struct select_wanted select;
	bool no_kernel, no_inlines, no_file_names, idle;
};

/*
 * Of a table of options; `AT_` is its AT(), `sampling` the struct sampling_arguments there,
 * `limit_` the default of --memory-limit, `least_` the least that it may be.
 */
#define SAMPLING_OPTIONS(AT_, limit_, least_)                                                      \
	{ 0,                                                                                       \
	  "memory-limit",                                                                          \
	  "SIZE",                                                                                  \
	  limit_,                                                                                  \
	  "own memory and BPF maps together",                                                      \
	  OPTION_SIZE,                                                                             \
	  AT_(sampling.memory_limit),                                                              \
	  .min = least_,                                                                           \
	  .max = MEMORY_LIMIT_MAX },                                                               \
		{ 0,                                                                               \
		  "max-frames",                                                                    \
		  "N",                                                                             \
		  "8192",                                                                          \
		  "user frames of a stack, at most 8192; longer ones are truncated",               \
		  OPTION_NUMBER,                                                                   \
		  AT_(sampling.max_frames),                                                        \
		  .min = 1,                                                                        \
		  .max = SAMPLE_FRAMES_MAX },                                                      \
		{ 0,                                                                               \
		  "no-kernel",                                                                     \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "leave kernel frames out",                                                       \
		  OPTION_FLAG,                                                                     \
		  AT_(sampling.no_kernel) },                                                       \
		{ 0,                                                                               \
		  "no-inlines",                                                                    \
		  NULL,                                                                            \
		  NULL,                                                                            \
		  "leave inlined functions out",                                                   \
		  OPTION_FLAG,                                                                     \
		  AT_(sampling.no_inlines) },                                                      \
		{ 0,                                                                               \
		  "tracers",                                                                       \
		  "LIST",                                                                          \
		  "all",                                                                           \
		  "frames of these runtimes alone: python, hotspot, ruby, php, perl, v8, go, and " \
		  "labels (of goroutines); native ones are always there",                          \
		  OPTION_STRING,                                                                   \
		  AT_(sampling.tracers),                                                           \
		  .or_none = true },                                                               \
		NAMES_RUNTIME_OPTIONS(AT_, sampling.runtimes)

#define SYMBOLIZE_OPTIONS(AT_)                                                                     \
	{                                                                                          \
		0, "symbolize", "host|none", "host",                                               \
			"name functions of native code here, or leave it to who has the files: "   \
			"their addresses and build ids are told in any case",                      \
			OPTION_CHOICE, AT_(sampling.no_file_names)                                 \
	}

_Static_assert(SAMPLE_FRAMES_MAX == 8192, "--max-frames' help says so");

/* A recorder's options of these, with the hidden commands that its children are. */
struct recorder_options sampling_recorder_options(const struct sampling_arguments *arguments);
