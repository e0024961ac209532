/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows by which the kernel's own stack is walked (abi/kernel_rows.h, bpf/kernel_stack.bpf.c):
 * read from the running kernel and published beside the recording, by a child process.
 * docs/kernel-stacks.md.
 */
#pragma once

#include "abi/kernel_rows.h"
#include "kernel/kernel_code.h"
#include "unwind/orc.h"
#include "util/child.h"

/* What came of it. */
struct kernel_rows_report {
	int32_t error;	 /* 0 or negative errno */
	uint64_t bytes;	 /* kernel memory of the segments */
	uint32_t helper; /* of `entries`: rows that only bpf_get_stack() knows */
	uint32_t entries;
	struct kernel_code codes[KERNEL_CODES_MAX];
	int32_t code_error; /* of `code`: 0, or why code that comes and goes is the helper's */
	struct kernel_code_layout code;
	char reason[128]; /* of an error: a sentence's second half */
};

struct kernel_rows {
	struct child child;
	int report_fd; /* -1: not started, or done */
	struct kernel_rows_report report;
};

void kernel_rows_init(struct kernel_rows *k);
void kernel_rows_fini(struct kernel_rows *k);
/* `loader`: argv of walkers_child_main(), which hands on to kernel_rows_child_main(); NULL: fork.
 * The segments go into that map of maps, which is borrowed by the child. */
int kernel_rows_start(struct kernel_rows *k, int segments_fd, char *const *loader);
/* Takes in what has come: true, once, if k->report tells. At most `wait_ms` from now on. */
bool kernel_rows_update(struct kernel_rows *k, int wait_ms);

/* The first argument of a walkers_child_main() that shall be kernel_rows_child_main(). */
#define KERNEL_ROWS_ARGUMENT "kernel-rows"
int kernel_rows_child_main(void);

/*
 * Reads this kernel's tables, and, if `segments_fd` is not -1, publishes them. For `doctor`, too.
 * Non-logging: ret->reason says what is wrong.
 */
void kernel_rows_try(int segments_fd, struct kernel_rows_report *ret);
