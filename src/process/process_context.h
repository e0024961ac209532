/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process publishes of itself for profilers: OpenTelemetry's process context (OTEP 4719,
 * version 2). A small mapping called OTEL_CTX has a header, which points to a protobuf message.
 *
 * All of it is the process's, who may write whatever it likes, whenever it likes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	PROCESS_CONTEXT_MAX = 64 << 10,	  /* bytes of a message */
	PROCESS_CONTEXT_MAPPINGS = 20000, /* that are looked through; 2 ms */
};

struct process_context {
	uint8_t *data;
	size_t size;
};

void process_context_fini(struct process_context *c);

/* Where the header is. -ENOENT: nowhere, or behind too many mappings; -ESRCH and other errors. */
int process_context_find(int32_t pid, uint64_t *ret_addr);
/*
 * The message, if it is another one than that of *stamp, when it was published (0: any): 1, and
 * *ret is the caller's, *stamp the new one. 0: it is the same. -EAGAIN: it is just being written;
 * -ENOTSUP: another version; -EBADMSG: no such thing; -E2BIG; -EFAULT and the like: not there any
 * more.
 */
int process_context_read(int32_t pid, uint64_t addr, uint64_t *stamp, struct process_context *ret);
