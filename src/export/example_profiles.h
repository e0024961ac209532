/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles made by hand for the tests of formats: what recordings have, and what they rarely have.
 * Only tests link this.
 */
#pragma once

#include "profile/profile.h"

enum example_flags {
	EXAMPLE_EVENTS = 1, /* every sample with its times */
	EXAMPLE_BYTES = 2,  /* counts bytes, so it has no frequency */
	EXAMPLE_NO_FREQUENCY = 4,
	EXAMPLE_EMPTY = 8,    /* nothing was seen */
	EXAMPLE_VIRTUAL = 16, /* thread 1300, "python3", carries a virtual one, "red" */
	/* Of the first samples' threads and stacks also off_cpu/nanoseconds, with times if the
	 * others have them; some of either kind in a trace, with labels. */
	EXAMPLE_TRACED = 32,
};

#define EXAMPLE_START_NS    1700000000123456789ull
#define EXAMPLE_DURATION_NS 10000000000ull

/*
 * Two processes of PID 1000, a container's, and the idle CPU's: the kernel with a build id and a
 * module without one; C, Go and Rust; inlined functions with lines; frames without names in files
 * with and without an id, and in anonymous memory; Python and Java among native frames; cut stacks;
 * hostile names; a sample that was never seen. *ret is initialised.
 */
int example_profile(struct profile *ret, unsigned flags);

/* The thread that is called so, or NULL. */
const struct profile_thread *example_thread(const struct profile *p, const char *name);
