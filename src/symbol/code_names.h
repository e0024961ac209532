/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of BPF programs that came since /proc/kallsyms was read, as PERF_RECORD_KSYMBOL tells them,
 * in the order of time. What is told to be gone is known to be nobody's, whatever was read before.
 *
 * Not all that is told is true. Trampolines and dispatchers are smaller than the page that they are
 * said to be, and others lie in it (bpf_image_ksym_add(), kernel/bpf/trampoline.c): of these
 * nothing is known here. From Linux 5.8 to 6.1 all functions of a program have the name of its
 * first one (perf_event_bpf_emit_ksymbols(), kernel/events/core.c). They are told together, unlike
 * programs that are loaded twice: once that was seen, no name is believed any more.
 */
#pragma once

#include "util/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CODE_NAMES_MAX = 1 << 12,
	CODE_NAMES_GONE_MAX = 1 << 10, /* of those, that are gone */
};

/* [start, end); name NULL: it is gone. */
struct told_code {
	uint64_t start, end, time_ns;
	char *name;
};

struct code_names {
	VEC(struct told_code) items; /* by address; none lies in another */
	size_t nr_gone;
	bool distrusted; /* names are not those of the code */
};

/*
 * There is code of that name since `time_ns`. False: who is there is not known, and is read from
 * kallsyms; so it is if this is not believed, or there is no room or memory.
 */
bool code_names_add(struct code_names *c, uint64_t time_ns, uint64_t start, uint64_t len,
		    const char *name);
/* Nobody is there any more, who had that name ("": not told). False: as above. */
bool code_names_gone(struct code_names *c, uint64_t start, uint64_t len, const char *name);
/* False: nothing was told of this address. *ret: NULL if what was there is gone. */
bool code_names_find(const struct code_names *c, uint64_t addr, const char **ret);
/* kallsyms was read, and has nothing any more of what is gone. */
void code_names_forget_gone(struct code_names *c);
/* Also at the end: nothing is known, since something may not have been told. */
void code_names_forget_all(struct code_names *c);
