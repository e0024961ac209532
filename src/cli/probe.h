/* SPDX-License-Identifier: Apache-2.0 */
/* The options of probes and events: what is sampled beside the CPUs' clocks (docs/probes.md). */
#pragma once

#include "cli/config.h"
#include "cli/options.h"
#include "kernel/source.h"

struct probes_wanted {
	struct text_list probes, events;
};

/* Of a table of options; `AT_` is its AT(), `probes` the struct probes_wanted there. */
#define PROBE_OPTIONS(AT_)                                                                         \
	{ 0,                                                                                       \
	  "probe",                                                                                 \
	  "TYPE:TARGET[:SYMBOL][,...]",                                                            \
	  NULL,                                                                                    \
	  "also take a sample each time that a task comes there: tracepoint:GROUP:NAME, "          \
	  "uprobe:FILE:FUNCTION, uretprobe, usdt:FILE:[PROVIDER:]NAME, kprobe:FUNCTION, "          \
	  "kretprobe; with ,rate=N N times a second; repeatable",                                  \
	  OPTION_LIST,                                                                             \
	  AT_(probes.probes) },                                                                    \
	{                                                                                          \
		0, "event", "NAME[:PERIOD]", NULL,                                                 \
			"also take a sample each PERIOD events: page-faults, context-switches, "   \
			"cycles, ...; repeatable",                                                 \
			OPTION_LIST, AT_(probes.events)                                            \
	}

/* What they and other options ask for, as a recorder takes it. */
struct probes {
	struct probe {
		char *texts[8];		   /* owned; what the source points to */
		struct source_site *sites; /* owned */
		unsigned argument;	   /* that is looked at: 1 and on; 0: none */
		const char *wanted;	   /* what it is then, or how it begins and '*' */
	} items[SAMPLE_SOURCES_MAX];
	struct source_spec sources[SAMPLE_SOURCES_MAX];
	size_t nr;
	const char *command;	     /* what help is asked for by */
	const struct config *config; /* where they came from, or NULL; only while they are read */
};

void probes_fini(struct probes *p);
/* A source that was found elsewhere; SOURCE_NONE is none. Logging. */
int probes_add(struct probes *p, const struct source_spec *source);
/*
 * As far as can be told without a look at the machine. Logging: -EINVAL after a line. `config` (or
 * NULL): where the options came from.
 */
int probes_parse(const struct probes_wanted *wanted, const struct config *config,
		 const char *command, struct probes *p);
/* Finds files, functions, tracepoints. Logging: -ENOENT and others after a line that says what is
 * wrong. */
int probes_find(struct probes *p);
/* Is there a source of samples of this type? */
bool probes_have_type(const struct probes *p, const char *type);
