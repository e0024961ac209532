/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is in no file and has no frame pointers: told of by those who made it (jit_code.h), or
 * followed in the process's memory (PCRE's patterns), for the one walk that is in it. What it is
 * now says nothing of later: memory is used again for other code, and nobody tells.
 */
#pragma once

#include "unwinder/publisher.h"
#include "bpf/host/walk_host.h"

/*
 * The rule of the frame that `state` has stopped at, if its mapping of `b` is of no file: 0 if the
 * code proves it, and what it leads to is a return address. -ENOTSUP: it is a file's; -ENOENT: it
 * tells nothing; -EAGAIN: not now; -ENOMEM. The publisher counts what was learned.
 */
int anon_code_rule(struct publisher *p, const struct mapping_snapshot *b, uint16_t machine,
		   const struct walk_memory *memory, const struct walk *state,
		   struct walk_known_rule *ret);
void anon_code_fini(struct publisher *p);
