/* SPDX-License-Identifier: Apache-2.0 */
/* What the publisher's own files ask of one another. */
#pragma once

#include "unwinder/publisher.h"

/* Writes what the published process says into the kernel's table. */
int publisher_tell_kernel(struct publisher *p, const struct process *proc);
/* A forked child's asks are held as its parent's were: `flags` are those of its entry. */
void publisher_hold_child(struct publisher *p, struct published_process *child,
			  const struct published_process *parent, uint32_t flags);
/* Does its code in no file mostly tell nothing? */
bool publisher_is_anon_silent(const struct published_process *v);
/* Processes whose asks were held long enough may ask again. */
void publisher_let_ask(struct publisher *p, uint64_t now_ns);
/* publisher_tables.c: what was built meanwhile is loaded; tables that there is no room for. */
void publisher_take_tables(struct publisher *p, uint64_t now_ns);
/* process_table.file_too_large. */
void publisher_file_too_large(void *ctx, const struct mapped_file *file, uint64_t bytes);
/* jit_code.c: the file's index will be another's. */
void jit_code_forget_file(struct publisher *p, uint32_t index);
