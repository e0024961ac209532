/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their stacks as text for people and as JSON for programs: what `sonde stack` and
 * `sonde core` print.
 */
#pragma once

#include "profile/profile.h"

#include <stdbool.h>
#include <stdio.h>

struct thread_entry {
	int32_t tid;
	const char *name;      /* "" if not known */
	uint32_t virtual_name; /* of the virtual thread that it carries, in the profile; 0: none */
	const char *state; /* "running", "sleeping", "disk sleep", ...; NULL: not known (a core) */
	uint32_t stack;	   /* index into profile->stacks; UINT32_MAX: none could be had */
	const char
		*problem; /* why there is no stack, or what is doubtful about it; NULL: nothing */
};

struct thread_report {
	const struct profile *profile; /* frames are named */
	const struct thread_entry *threads;
	size_t nr_threads;
	/* What stands above the threads: "process 1234 (nginx), 4 threads" and its like. */
	const char *const *headlines;
	size_t nr_headlines;
};

/*
 * Text: a line a thread, then "#0  function at file:line" a frame, innermost first, inlined frames
 * marked, kernel frames marked, those of scripts as "function (file:line)", then the reason if the
 * stack is cut. Colours if `out` is a terminal. 0 or -ENOMEM; the caller checks ferror().
 */
int thread_print_text(const struct thread_report *report, FILE *out);
/*
 * JSON: an object; the members in `extra` (the text of further members, "\"pid\":1", or ""), then
 * "threads": [{"tid", "name", "virtual_thread", "state", "complete", "stop", "problem", "frames":
 * [{"function", "linkage_name", "kind", "inlined", "file", "line", "object", "build_id",
 * "address"}]}].
 */
int thread_print_json(const struct thread_report *report, const char *extra, FILE *out);
