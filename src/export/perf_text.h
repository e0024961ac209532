/* SPDX-License-Identifier: Apache-2.0 */
/* perf script's text: what its writer (perf.c) and its reader (perf_read.c) share. */
#pragma once

#include "profile/profile.h"

/* Behind "# ", and before a number or a word. perf's own header lines have the same form. */
#define PERF_TEXT_START	    "sonde start (ns) : "
#define PERF_TEXT_DURATION  "sonde duration (ns) : "
#define PERF_TEXT_FREQUENCY "sonde frequency (Hz) : "
/* There are no times: a sample stands for as many as this goes into its period. */
#define PERF_TEXT_WEIGHT "sonde period of one : "
#define PERF_TEXT_TYPE	 "sonde counts : "
#define PERF_TEXT_UNIT	 "sonde unit : "

/* "python : /srv/app.py": frames "(/srv/app.py)" are that runtime's. */
#define PERF_TEXT_SOURCE "sonde functions of "

/* Whether the kernel or one of its modules is meant. */
bool perf_text_kernel_dso(const char *dso, size_t len);
/* As struct export_ops has them. */
int perf_text_read(const void *data, size_t size, struct profile *ret, char ret_problem[200]);
bool perf_text_recognise(const void *data, size_t size);
