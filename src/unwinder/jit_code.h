/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that a process has registered with GDB (docs/gdb-jit.md): which files of it have a list of
 * such code, what these lists say.
 */
#pragma once

#include "unwind/jit_list.h"
#include "unwinder/publisher.h"

/* Where to look: a process by its snapshot and, of those that share one, its address space. */
struct jit_place {
	const struct mapping_snapshot *snapshot;
	uint64_t mm; /* 0: the snapshot is one process's */
	uint16_t machine;
	struct jit_memory memory;
};

/* What is said of `pc`: 0, -ENOENT, -EAGAIN or -ENOMEM, as jit_list_find(). */
int jit_code_find(struct publisher *p, const struct jit_place *place, uint64_t pc,
		  struct jit_code *ret);
/*
 * The name of the code at `addr` of a process with that snapshot, as it is now: 0; -EAGAIN: not
 * now, since its user has had his share of the time for following code; else as above.
 */
int jit_code_name(struct publisher *p, const struct mapping_snapshot *b, int32_t pid, uint64_t addr,
		  char ret[static JIT_NAME_MAX]);
void jit_code_free(struct jit_codes *codes);
