/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which version of a runtime a file or a process has, and why its frames are not shown: what
 * probe() and attach() tell of it. The log and `sonde doctor` say it, in one sentence for all
 * runtimes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct runtime_ops;

struct runtime_about {
	char version[64]; /* whose, and which: "CPython 3.11"; "": it does not say */
	char why[112];	  /* what is not known of it; "": the version */
	/* What is shown all the same, or is not: the end of the sentence. NULL: native frames. */
	const char *lost;
	/* Of one that is supported: what it does without, for the options that there are. */
	const char *without;
};

/* It is this version. The text may have been read in a file: what is no ASCII becomes '?'. NULL:
 * nobody asks. */
__attribute__((format(printf, 2, 3))) void runtime_is_version(struct runtime_about *about,
							      const char *fmt, ...);
/* It is not supported, and why. Returns -ENOTSUP. */
int runtime_not_supported(struct runtime_about *about, const char *why);

/* "CPython 3.99 is not supported (its version is not known): only its native frames are shown" */
void runtime_about_unsupported(const struct runtime_ops *ops, const struct runtime_about *about,
			       char *ret, size_t size);
/* "3.6 to 3.14", "8 and later": what ops->knows() knows; "" without that. */
void runtime_known_versions(const struct runtime_ops *ops, char *ret, size_t size);
